-- The transport log and the durable transcript live in a file of their own (STORE-planes), which several processes write:
-- streams, snapshots, runs and messages together, so that a run is committed in one transaction.
--
-- What was said lies in tables with a `position` and columns of bytes, and nowhere else: these are the ones that `scour`
-- can overwrite. A position is a stream's or thread's number << 30 | a seq or place in it. Ids hold no secrets.

CREATE TABLE scopes (
    scope_no INTEGER PRIMARY KEY,
    scope    TEXT NOT NULL UNIQUE      -- tenant and field
) STRICT;

-- Never deleted: head and floor outlive the events, so that a seq is never used twice.
CREATE TABLE streams (
    stream_no INTEGER PRIMARY KEY,
    scope_no  INTEGER NOT NULL,
    stream    TEXT NOT NULL,
    head      INTEGER NOT NULL DEFAULT 0,
    floor     INTEGER NOT NULL DEFAULT 0,
    cleared   INTEGER NOT NULL DEFAULT 0,   -- up to here the rows are deleted; those up to the floor follow in chunks
    held_from INTEGER,
    held_ms   INTEGER,
    active_ms INTEGER NOT NULL,
    UNIQUE (scope_no, stream),
    CHECK (cleared <= floor AND floor <= head)
) STRICT;

CREATE INDEX truncated ON streams (scope_no, stream) WHERE cleared < floor;

-- The primary key refuses the second of two that would write the same seq.
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE snapshots (
    position INTEGER PRIMARY KEY,
    about    BLOB NOT NULL,            -- msgpack of [created_ms, state_version, checksum, size, pieces]
    state    BLOB NOT NULL
) STRICT;

CREATE TABLE appends (
    stream_no INTEGER NOT NULL,
    key       BLOB NOT NULL,           -- a digest of the idempotency key
    digest    BLOB NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    PRIMARY KEY (stream_no, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE readers (
    stream_no INTEGER NOT NULL,
    name      TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (stream_no, name)
) STRICT, WITHOUT ROWID;

-- Never deleted, as streams.
CREATE TABLE threads (
    thread_no  INTEGER PRIMARY KEY,
    scope_no   INTEGER NOT NULL,
    thread     TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    active_ms  INTEGER NOT NULL,
    leaf       TEXT,
    messages   INTEGER NOT NULL,
    runs       INTEGER NOT NULL,
    deleted_ms INTEGER,
    UNIQUE (scope_no, thread)
) STRICT;

CREATE TABLE runs (
    thread_no   INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    scope_no    INTEGER NOT NULL,
    id          TEXT NOT NULL,
    stream      TEXT NOT NULL,
    fork_from   TEXT,
    status      TEXT NOT NULL,
    created_ms  INTEGER NOT NULL,
    finished_ms INTEGER,
    messages    INTEGER NOT NULL,
    active_ms   INTEGER NOT NULL,
    PRIMARY KEY (thread_no, place),
    UNIQUE (scope_no, id),
    UNIQUE (scope_no, stream)
) STRICT, WITHOUT ROWID;

CREATE INDEX forks ON runs (thread_no, fork_from, place);
CREATE INDEX open_runs ON runs (scope_no, active_ms, id) WHERE status IN ('created', 'streaming');

CREATE TABLE messages (
    thread_no  INTEGER NOT NULL,
    place      INTEGER NOT NULL,
    id         TEXT NOT NULL,
    parent     TEXT,
    run        TEXT NOT NULL,
    role       TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    depth      INTEGER NOT NULL,
    jump       TEXT,
    stands     INTEGER NOT NULL,
    PRIMARY KEY (thread_no, place),
    UNIQUE (thread_no, id)
) STRICT, WITHOUT ROWID;

-- In the order in which children are asked for: the first of them is found among a thousand dead branches at once.
CREATE INDEX children ON messages (thread_no, parent, stands DESC, place DESC);
CREATE INDEX messages_of_run ON messages (thread_no, run, place);

CREATE TABLE bodies (
    position INTEGER PRIMARY KEY,
    body     BLOB NOT NULL
) STRICT;
