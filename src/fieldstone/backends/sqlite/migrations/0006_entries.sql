-- Units that are entries of an OpenWOP memory. Where their id is not their unit's, a keyed digest finds it.
CREATE TABLE entries (
    position     INTEGER PRIMARY KEY,   -- the unit's
    session      INTEGER NOT NULL,      -- the position of its memory's name
    written      INTEGER NOT NULL,
    digest       BLOB,
    expires_ms   INTEGER,
    run          TEXT,
    archived_seq INTEGER,
    gone_seq     INTEGER
) STRICT;
CREATE INDEX entries_by_session ON entries (session, position);
-- A memory that was compacted many times lists few of its entries.
CREATE INDEX entries_listed ON entries (session, position) WHERE archived_seq IS NULL AND gone_seq IS NULL;
CREATE INDEX entries_by_digest ON entries (session, digest, position) WHERE digest IS NOT NULL;
CREATE INDEX entries_expiring ON entries (expires_ms) WHERE expires_ms IS NOT NULL;

CREATE TABLE entry_tags (
    session INTEGER NOT NULL,
    digest  BLOB NOT NULL,
    entry   INTEGER NOT NULL,           -- its position
    PRIMARY KEY (session, digest, entry)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_tags_by_entry ON entry_tags (entry);

-- Events that are told to others as they happen.
CREATE TABLE feed (
    position INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    at_ms    INTEGER NOT NULL,
    unit     INTEGER
) STRICT;
CREATE INDEX feed_by_kind ON feed (position >> 32, kind, position);
CREATE INDEX feed_by_time ON feed (position >> 32, at_ms);
CREATE INDEX feed_by_unit ON feed (position >> 32, unit, kind) WHERE unit IS NOT NULL;
