-- By which entry a unit was purged. Its row stays for the tombstone.
ALTER TABLE units ADD COLUMN purged_seq INTEGER;

-- Compactions, and how far they came. One that runs when the store is opened is gone on with.
CREATE TABLE compactions (
    position  INTEGER PRIMARY KEY,
    id        TEXT NOT NULL,
    strategy  TEXT NOT NULL,
    state     TEXT NOT NULL,
    units     INTEGER NOT NULL,
    syntheses INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    ended_seq INTEGER
) STRICT;

-- Units that no compaction touches: held, or pinned.
CREATE TABLE guards (
    unit  INTEGER NOT NULL,   -- its position
    guard TEXT NOT NULL,
    PRIMARY KEY (unit, guard)
) STRICT, WITHOUT ROWID;
