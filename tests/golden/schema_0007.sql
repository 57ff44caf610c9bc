CREATE INDEX conflicts_open ON conflicts (position) WHERE status <> 'resolved';

CREATE INDEX conflicts_open_by_a ON conflicts (position >> 32, unit_a) WHERE status <> 'resolved';

CREATE INDEX conflicts_open_by_b ON conflicts (position >> 32, unit_b) WHERE status <> 'resolved';

CREATE INDEX entries_by_digest ON entries (session, digest, position) WHERE digest IS NOT NULL;

CREATE INDEX entries_by_session ON entries (session, position);

CREATE INDEX entries_expiring ON entries (expires_ms) WHERE expires_ms IS NOT NULL;

CREATE INDEX entries_listed ON entries (session, position) WHERE archived_seq IS NULL AND gone_seq IS NULL;

CREATE INDEX entry_tags_by_entry ON entry_tags (entry);

CREATE INDEX feed_by_kind ON feed (position >> 32, kind, position);

CREATE INDEX feed_by_time ON feed (position >> 32, at_ms);

CREATE INDEX feed_by_unit ON feed (position >> 32, unit, kind) WHERE unit IS NOT NULL;

CREATE INDEX units_archived ON units (position) WHERE archived_epoch IS NOT NULL;

CREATE UNIQUE INDEX units_by_id ON units (id, position >> 32);

CREATE INDEX units_drafted ON units (position) WHERE mode = 'draft' OR committed_seq IS NOT NULL;

CREATE UNIQUE INDEX vector_models_by_state ON vector_models (stream_no, state) WHERE state <> 'dropped';

CREATE TABLE agents (
    position     INTEGER PRIMARY KEY,
    registration INTEGER NOT NULL,
    status       TEXT NOT NULL,
    authority    INTEGER NOT NULL
, credential TEXT) STRICT;

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

CREATE TABLE entries (
    position     INTEGER PRIMARY KEY,
    session      INTEGER NOT NULL,
    written      INTEGER NOT NULL,
    digest       BLOB,
    expires_ms   INTEGER,
    run          TEXT,
    archived_seq INTEGER,
    gone_seq     INTEGER
) STRICT;

CREATE TABLE entry_tags (
    session INTEGER NOT NULL,
    digest  BLOB NOT NULL,
    entry   INTEGER NOT NULL,
    PRIMARY KEY (session, digest, entry)
) STRICT, WITHOUT ROWID;

CREATE TABLE feed (
    position INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    at_ms    INTEGER NOT NULL,
    unit     INTEGER
) STRICT;

CREATE TABLE guards (
    unit  INTEGER NOT NULL,
    guard TEXT NOT NULL,
    PRIMARY KEY (unit, guard)
) STRICT, WITHOUT ROWID;

CREATE TABLE hints (
    position INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE log (
    position INTEGER PRIMARY KEY,
    body     BLOB NOT NULL,
    hash     BLOB NOT NULL
) STRICT;

CREATE TABLE marks (
    stream_no INTEGER NOT NULL,
    name      TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (stream_no, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    session INTEGER NOT NULL,
    agent   INTEGER NOT NULL,
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE moved_units (
    position INTEGER PRIMARY KEY,
    units    BLOB NOT NULL
) STRICT;

CREATE TABLE names (
    stream_no INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    digest    BLOB NOT NULL,
    number    INTEGER NOT NULL,
    PRIMARY KEY (stream_no, kind, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE relations (
    source INTEGER NOT NULL,
    place  INTEGER NOT NULL,
    type   TEXT NOT NULL,
    target INTEGER NOT NULL,
    PRIMARY KEY (source, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
    position INTEGER PRIMARY KEY,
    key      BLOB NOT NULL,
    request  BLOB NOT NULL,
    at_ms    INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE streams (
    stream_no  INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    field      TEXT NOT NULL,
    name       TEXT NOT NULL,
    digest_key BLOB NOT NULL,
    head_seq   INTEGER NOT NULL,
    head_hash  BLOB NOT NULL,
    UNIQUE (tenant, field, name)
) STRICT;

CREATE TABLE texts (
    position INTEGER PRIMARY KEY,
    salt     BLOB NOT NULL,
    body     BLOB NOT NULL
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
, echo_of INTEGER, trust INTEGER, purged_seq INTEGER) STRICT;

CREATE TABLE vector_models (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_no INTEGER NOT NULL,
    name      TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    state     TEXT NOT NULL
) STRICT;

CREATE TABLE vectors (
    position INTEGER PRIMARY KEY,
    seqs     BLOB NOT NULL,
    scales   BLOB NOT NULL,
    codes    BLOB NOT NULL
) STRICT;

CREATE TRIGGER log_is_never_deleted   BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER log_is_never_rewritten BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
