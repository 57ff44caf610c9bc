-- The text index lives in a file of its own (STORE-index), so that filling it never makes a RECORD wait for the store's
-- write lock. It is derived: without the file it is built again when the store is opened.

CREATE TABLE IF NOT EXISTS text_indexes (
    stream_no INTEGER PRIMARY KEY,
    position  INTEGER NOT NULL,   -- the seq up to which all units are in the index
    anchor    BLOB NOT NULL,      -- the hash of the log's entry there: an index of another history is not used
    documents INTEGER NOT NULL
) STRICT;
