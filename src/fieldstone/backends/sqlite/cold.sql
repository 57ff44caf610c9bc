-- Archived texts live in a file of their own (STORE-cold), which is made when the first one comes. Its pages do not count
-- against the store's size cap, so that a full store can be archived.

-- Whose they are. A file left behind by another store of the same name must not speak for this one.
CREATE TABLE streams (
    stream_no INTEGER PRIMARY KEY,
    owner     BLOB NOT NULL       -- a digest of the stream's own key
) STRICT;

-- Up to 64 neighbouring seqs a row (position = stream_no << 32 | seq >> 6): what was said together shares its words, and
-- packs three times as closely together as alone.
CREATE TABLE blocks (
    position INTEGER PRIMARY KEY,
    salts    BLOB NOT NULL,       -- [[seq, salt], …], ascending; apart, since nothing can pack them
    bodies   BLOB NOT NULL        -- zlib of [body, …] in the same order
) STRICT;
