-- Vectors are made from texts, but costly to make again: not a view, so a rebuild leaves them alone.

CREATE TABLE vector_models (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,   -- never given twice: a late batch of a dropped model finds nothing
    stream_no INTEGER NOT NULL,
    name      TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    state     TEXT NOT NULL                        -- serving, preparing; or dropped, until its blocks are overwritten
) STRICT;
CREATE UNIQUE INDEX vector_models_by_state ON vector_models (stream_no, state) WHERE state <> 'dropped';

-- A row holds the vectors of up to 64 neighbouring seqs, so a million of them are read in 16,000 steps and found
-- without an index. Its position is the model's number and the seqs' upper bits (number << 32 | seq >> 6).
CREATE TABLE vectors (
    position INTEGER PRIMARY KEY,
    seqs     BLOB NOT NULL,   -- int64 each, ascending; all numbers little-endian
    scales   BLOB NOT NULL,   -- float32 each
    codes    BLOB NOT NULL    -- int8, dimension of them each
) STRICT;
