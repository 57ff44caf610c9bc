-- Which unit points to which, for those that the Field knows. `place` is the relation's own among its unit's.
CREATE TABLE relations (
    source INTEGER NOT NULL,   -- the position of the unit that has it
    place  INTEGER NOT NULL,
    type   TEXT NOT NULL,
    target INTEGER NOT NULL,
    PRIMARY KEY (source, place)
) STRICT, WITHOUT ROWID;

-- Units from before this table: their relations stand in the log.
INSERT INTO relations (source, place, type, target)
    SELECT log.position, relation.key, relation.value ->> 'type', relation.value ->> 'target'
        FROM log, json_each(CAST(log.body AS TEXT), '$.event.relations') AS relation
        WHERE CAST(log.body AS TEXT) ->> '$.event.kind' = 'unit.recorded' AND relation.value ->> 'target' IS NOT NULL;

-- The unit that this one only restates: its author had just been shown it.
ALTER TABLE units ADD COLUMN echo_of INTEGER;

-- How far the work behind the log has come.
CREATE TABLE marks (
    stream_no INTEGER NOT NULL,
    name      TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (stream_no, name)
) STRICT, WITHOUT ROWID;
