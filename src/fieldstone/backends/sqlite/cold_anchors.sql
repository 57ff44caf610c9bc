-- Up to which entry of a store's log the rows here follow it, and the log's hash there. A store whose log has no such
-- entry is an older one than they were copied from; a store that knows of later copies has a newer file than this.
CREATE TABLE unit_anchors (
    stream_no INTEGER PRIMARY KEY,
    position  INTEGER NOT NULL,
    anchor    BLOB                -- NULL: the log was empty
) STRICT;
