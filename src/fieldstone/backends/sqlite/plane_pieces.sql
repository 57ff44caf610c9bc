-- A long snapshot is written piece by piece, in transactions of their own: for one of megabytes all writers would wait.
-- `about` of the snapshot names its pieces, which follow what its `state` has. None is there that no snapshot names.

CREATE TABLE pieces (
    position INTEGER PRIMARY KEY,
    body     BLOB NOT NULL
) STRICT;
