-- name: find_stream
SELECT stream_no, digest_key, head_seq, head_hash FROM streams WHERE tenant = ? AND field = ? AND name = ?;

-- name: create_stream
INSERT INTO streams (tenant, field, name, digest_key, head_seq, head_hash) VALUES (?, ?, ?, ?, 0, ?) RETURNING stream_no;

-- name: move_head
UPDATE streams SET head_seq = ?, head_hash = ? WHERE stream_no = ?;

-- name: read_head
SELECT head_seq, head_hash FROM streams WHERE stream_no = ?;

-- name: insert_entry
INSERT INTO log (position, body, hash) VALUES (?, ?, ?);

-- name: read_entries
SELECT position & 0xffffffff, body, hash FROM log WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: insert_text
INSERT INTO texts (position, salt, body) VALUES (?, ?, ?);

-- name: erase_text
DELETE FROM texts WHERE position = ?;

-- name: read_texts
SELECT position & 0xffffffff, salt, body FROM texts WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: get_text
SELECT position & 0xffffffff, salt, body FROM texts WHERE position = ?;

-- name: insert_reply
INSERT INTO replies (position, key, request, at_ms, body) VALUES (?, ?, ?, ?, ?);

-- name: get_reply
SELECT key, request, at_ms, body FROM replies WHERE position = ? AND key = ?;

-- name: all_replies
SELECT position & 0xffffffff, key FROM replies WHERE position > ? AND position <= ? ORDER BY position;

-- name: last_reply
SELECT coalesce(max(position & 0xffffffff), 0) FROM replies WHERE position > ? AND position <= ?;

-- name: forget_replies
-- Rows stand in the order of time: the walk from the old end stops at the first one that is young enough.
DELETE FROM replies WHERE position IN
    (SELECT position FROM replies
     WHERE position > ?1 AND position <= ?2
       AND position < coalesce((SELECT position FROM replies
                                WHERE position > ?1 AND position <= ?2 AND at_ms >= ?3 ORDER BY position LIMIT 1),
                               ?2 + 1)
     ORDER BY position LIMIT ?4);

-- name: put_name
INSERT INTO names (stream_no, kind, digest, number) VALUES (?, ?, ?, ?);

-- name: find_name
SELECT number FROM names WHERE stream_no = ? AND kind = ? AND digest = ?;

-- name: put_agent
-- A new registration takes the place of the agent's earlier one.
INSERT INTO agents (position, registration, status, authority) VALUES (?, ?, ?, ?)
    ON CONFLICT (position) DO UPDATE SET
        registration = excluded.registration, status = excluded.status, authority = excluded.authority;

-- name: all_agents
SELECT position & 0xffffffff, registration, status, authority FROM agents
    WHERE position > ? AND position <= ? ORDER BY position;

-- name: put_unit
INSERT INTO units (position, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
                   committed_seq, archived_epoch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_unit_status
UPDATE units SET status = ? WHERE position = ?;

-- name: commit_unit
UPDATE units SET mode = 'committed', status = 'active', epoch = ?, committed_seq = ?, score = coalesce(?, score)
    WHERE position = ?;

-- name: find_unit
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch
    FROM units WHERE id = ? AND position >> 32 = ?;

-- name: get_unit
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch
    FROM units WHERE position = ?;

-- name: scan_units
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch
    FROM units WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: drafted_units
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch
    FROM units WHERE (mode = 'draft' OR committed_seq IS NOT NULL) AND position > ? AND position <= ? ORDER BY position;

-- name: count_units_of
SELECT count(*) FROM units WHERE position > ? AND position <= ? AND agent = ? AND mode = 'committed';

-- name: put_conflict
INSERT INTO conflicts (position, id, type, status, unit_a, unit_b, detected_by, strategy, winner, resolved_by,
                       resolved_seq, resolved_epoch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: resolve_conflict
UPDATE conflicts SET status = 'resolved', strategy = ?, winner = ?, resolved_by = ?, resolved_seq = ?, resolved_epoch = ?
    WHERE position = ?;

-- name: all_conflicts
SELECT position & 0xffffffff, id, type, status, unit_a, unit_b, detected_by, strategy, winner, resolved_by,
       resolved_seq, resolved_epoch
    FROM conflicts WHERE position > ? AND position <= ? ORDER BY position;

-- name: open_conflicts
SELECT position & 0xffffffff, id, type, status, unit_a, unit_b, detected_by, strategy, winner, resolved_by,
       resolved_seq, resolved_epoch
    FROM conflicts WHERE status <> 'resolved' AND position > ? AND position <= ? ORDER BY position;

-- name: open_conflicts_of
-- Written as a union so that each half uses its partial index.
SELECT position & 0xffffffff, id, type, status, unit_a, unit_b, detected_by, strategy, winner, resolved_by,
       resolved_seq, resolved_epoch
    FROM conflicts WHERE status <> 'resolved' AND position >> 32 = ?1 AND unit_a = ?2
UNION
SELECT position & 0xffffffff, id, type, status, unit_a, unit_b, detected_by, strategy, winner, resolved_by,
       resolved_seq, resolved_epoch
    FROM conflicts WHERE status <> 'resolved' AND position >> 32 = ?1 AND unit_b = ?2
ORDER BY 1;

-- name: keep_hint
INSERT INTO hints (position) VALUES (?);

-- name: drop_hint
DELETE FROM hints WHERE position = ?;

-- name: all_hints
SELECT position & 0xffffffff FROM hints WHERE position > ? AND position <= ? ORDER BY position;
