-- Whose credential may speak as the agent; null: the local operator's of an open field.
ALTER TABLE agents ADD COLUMN credential TEXT;

-- How far a unit can be trusted: its author's authority, or that of a synthesis' least trusted source.
ALTER TABLE units ADD COLUMN trust INTEGER;

-- Closed sessions and who sees into them. Agent 0 is nobody: a session that has lost its members stays closed.
CREATE TABLE members (
    session INTEGER NOT NULL,   -- the position of its name
    agent   INTEGER NOT NULL,
    PRIMARY KEY (session, agent)
) STRICT, WITHOUT ROWID;
