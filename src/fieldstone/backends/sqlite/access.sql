-- Keys and sealed secrets live in a file of their own (STORE-access, readable by its owner only): an export or a copy of
-- the memory carries no credentials, and the command line changes them while a server has the store.

CREATE TABLE keys (
    id              TEXT PRIMARY KEY,
    tenant          TEXT NOT NULL,
    authority       INTEGER NOT NULL CHECK (authority BETWEEN 0 AND 10),
    agents          TEXT,              -- a JSON array; NULL: any agent that the key registers
    salt            BLOB NOT NULL,
    digest          BLOB NOT NULL,     -- of the key's secret part; the key itself is not kept
    created_ms      INTEGER NOT NULL,
    expires_ms      INTEGER,
    revoked_ms      INTEGER,
    rate_per_second REAL,
    quota_units     INTEGER
) STRICT, WITHOUT ROWID;

-- A store that once had a key must never fall open again.
CREATE TRIGGER keys_are_never_deleted BEFORE DELETE ON keys
BEGIN SELECT raise(ABORT, 'keys are revoked, never deleted'); END;

CREATE TABLE secrets (
    tenant TEXT NOT NULL,
    id     TEXT NOT NULL,
    scope  TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
