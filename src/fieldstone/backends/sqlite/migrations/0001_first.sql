-- A row's position is its stream's number and its seq in one integer (stream_no << 32 | seq): one b-tree, appended at
-- its end, and every key is scoped by tenant and field. The primary key refuses the second of two racing writers.

CREATE TABLE streams (
    stream_no  INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    field      TEXT NOT NULL,
    name       TEXT NOT NULL,
    digest_key BLOB NOT NULL,            -- for digests of names and messages; made with the stream
    head_seq   INTEGER NOT NULL,         -- kept apart from the rows, so that a cut-off tail is noticed
    head_hash  BLOB NOT NULL,
    UNIQUE (tenant, field, name)
) STRICT;

-- Never updated, never deleted from.
CREATE TABLE log (
    position INTEGER PRIMARY KEY,
    body     BLOB NOT NULL,
    hash     BLOB NOT NULL
) STRICT;

CREATE TRIGGER log_is_never_rewritten BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_is_never_deleted   BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

-- Beside the log, erasable. Without its row, the hash in the entry tells nothing.
CREATE TABLE texts (
    position INTEGER PRIMARY KEY,
    salt     BLOB NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- Answers remembered for idempotency: not a view, since the log does not hold them. Rows are appended in the order of
-- time and dropped from the old end. There is no index over their keys: see replies.py.
CREATE TABLE replies (
    position INTEGER PRIMARY KEY,   -- the stream's number, and the answer's own
    key      BLOB NOT NULL,
    request  BLOB NOT NULL,
    at_ms    INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- Views: everything below can be thrown away and built again from log and texts.

CREATE TABLE names (
    stream_no INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    digest    BLOB NOT NULL,
    number    INTEGER NOT NULL,
    PRIMARY KEY (stream_no, kind, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    position     INTEGER PRIMARY KEY,
    registration INTEGER NOT NULL,
    status       TEXT NOT NULL,
    authority    INTEGER NOT NULL
) STRICT;

CREATE TABLE units (
    position       INTEGER PRIMARY KEY,
    id             TEXT NOT NULL,
    mode           TEXT NOT NULL,
    type           TEXT NOT NULL,
    status         TEXT NOT NULL,
    epoch          INTEGER NOT NULL,
    at_ms          INTEGER NOT NULL,
    agent          INTEGER NOT NULL,
    registration   INTEGER NOT NULL,
    session        INTEGER,
    task           INTEGER,
    score          REAL,
    committed_seq  INTEGER,
    archived_epoch INTEGER
) STRICT;
CREATE INDEX units_drafted ON units (position) WHERE mode = 'draft' OR committed_seq IS NOT NULL;
-- Ids are made in time order, so this index grows at its end, too. The stream is the position's upper half.
CREATE UNIQUE INDEX units_by_id ON units (id, position >> 32);

CREATE TABLE conflicts (
    position       INTEGER PRIMARY KEY,
    id             TEXT NOT NULL,
    type           TEXT NOT NULL,
    status         TEXT NOT NULL,
    unit_a         INTEGER NOT NULL,
    unit_b         INTEGER NOT NULL,
    detected_by    TEXT NOT NULL,
    strategy       TEXT,
    winner         INTEGER,
    resolved_by    INTEGER,
    resolved_seq   INTEGER,
    resolved_epoch INTEGER
) STRICT;
CREATE INDEX conflicts_open ON conflicts (position) WHERE status <> 'resolved';
CREATE INDEX conflicts_open_by_a ON conflicts (position >> 32, unit_a) WHERE status <> 'resolved';
CREATE INDEX conflicts_open_by_b ON conflicts (position >> 32, unit_b) WHERE status <> 'resolved';

-- Reads whose hint is still kept.
CREATE TABLE hints (
    position INTEGER PRIMARY KEY
) STRICT;
