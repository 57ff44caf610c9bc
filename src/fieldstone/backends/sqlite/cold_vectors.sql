-- Vectors of archived units.

-- Whose a model is. Its number is the store's own, so a file left behind by another store may have the same one.
CREATE TABLE vector_models (
    number    INTEGER PRIMARY KEY,
    owner     BLOB NOT NULL,       -- a digest of the stream's own key
    dimension INTEGER NOT NULL
) STRICT;

-- Up to 64 neighbouring seqs a row (position = the model's number << 32 | seq >> 6), as they lie in the store.
CREATE TABLE vectors (
    position INTEGER PRIMARY KEY,
    members  BLOB NOT NULL,        -- a bit for each of the 64 seqs, the lowest first; read without the rest of the row
    scales   BLOB NOT NULL,        -- float32 each, little-endian; nothing can pack them
    codes    BLOB NOT NULL         -- zlib of int8, dimension of them each
) STRICT;
