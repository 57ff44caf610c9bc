-- Rows of archived units lie in cold storage. This says which: one that lies there and is not named here is a copy that
-- nobody counts on. A row is about 64 neighbouring seqs (position = stream_no << 32 | seq >> 6).
CREATE TABLE moved_units (
    position INTEGER PRIMARY KEY,
    units    BLOB NOT NULL           -- a bit each, little-endian
) STRICT;

-- Archived, and still here: these are to be moved.
CREATE INDEX units_archived ON units (position) WHERE archived_epoch IS NOT NULL;
