-- Rows of archived units, up to 64 neighbouring seqs a row (position = stream_no << 32 | seq >> 6), column by column:
-- what stands below each other is alike. The store says which of them count (its table moved_units).
CREATE TABLE unit_blocks (
    position INTEGER PRIMARY KEY,
    units    BLOB NOT NULL,       -- which of the 64 are here: a bit each, little-endian
    drafted  INTEGER NOT NULL,    -- whether one of them was once a draft
    ids      BLOB NOT NULL,       -- zlib of [id, …], ascending by seq; apart, since whoever reads all units needs no ids
    columns  BLOB NOT NULL        -- zlib of the other columns, in the same order
) STRICT;
CREATE INDEX unit_blocks_drafted ON unit_blocks (position) WHERE drafted;

-- From the beginning of a unit's id to where its row may be. What an entry of the log is called never changes, so an
-- entry here is never wrong, whether or not the unit is still archived.
CREATE TABLE unit_ids (
    stem     TEXT NOT NULL,
    position INTEGER NOT NULL,    -- of the unit: stream_no << 32 | seq
    PRIMARY KEY (stem, position)
) STRICT, WITHOUT ROWID;
