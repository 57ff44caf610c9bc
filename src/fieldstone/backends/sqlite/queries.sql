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

-- name: replace_text
INSERT INTO texts (position, salt, body) VALUES (?, ?, ?)
    ON CONFLICT (position) DO UPDATE SET salt = excluded.salt, body = excluded.body;

-- name: erase_texts
DELETE FROM texts WHERE position IN (SELECT value FROM json_each(?));

-- name: read_texts
SELECT position & 0xffffffff, salt, body FROM texts WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: get_texts
-- One statement for all of them: each of its own would open and close a read transaction, which costs most of its time.
SELECT position & 0xffffffff, salt, body FROM texts WHERE position IN (SELECT value FROM json_each(?));

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

-- name: read_replies
SELECT position, body FROM replies WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: drop_reply
DELETE FROM replies WHERE position = ?;

-- name: put_name
INSERT INTO names (stream_no, kind, digest, number) VALUES (?, ?, ?, ?);

-- name: replace_name
-- In an import the name comes with its new text alone: then there is no row to replace.
INSERT OR REPLACE INTO names (stream_no, kind, digest, number) VALUES (?, ?, ?, ?);

-- name: drop_name
DELETE FROM names WHERE stream_no = ? AND number = ?;

-- name: find_name
SELECT number FROM names WHERE stream_no = ? AND kind = ? AND digest = ?;

-- name: put_agent
-- A new registration takes the place of the agent's earlier one.
INSERT INTO agents (position, registration, status, authority, credential) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (position) DO UPDATE SET
        registration = excluded.registration, status = excluded.status, authority = excluded.authority,
        credential = excluded.credential;

-- name: all_agents
SELECT position & 0xffffffff, registration, status, authority, credential FROM agents
    WHERE position > ? AND position <= ? ORDER BY position;

-- name: put_unit
-- In the order of the table's columns. apsw reads the text of a statement again for every row, and names are most of it.
INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_unit_status
UPDATE units SET status = ? WHERE position = ?;

-- name: commit_unit
UPDATE units SET mode = 'committed', status = 'active', epoch = ?, committed_seq = ?, score = coalesce(?, score)
    WHERE position = ?;

-- name: find_unit
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch, echo_of, trust, purged_seq
    FROM units WHERE id = ? AND position >> 32 = ?;

-- name: get_units
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch, echo_of, trust, purged_seq
    FROM units WHERE position IN (SELECT value FROM json_each(?));

-- name: archived_units
-- Those that are still to be moved to cold storage.
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch, echo_of, trust, purged_seq
    FROM units INDEXED BY units_archived
    WHERE archived_epoch IS NOT NULL AND position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: drop_units
DELETE FROM units WHERE position IN (SELECT value FROM json_each(?));

-- name: all_moved_units
SELECT position & 0xffffffff, units FROM moved_units WHERE position BETWEEN ? AND ?;

-- name: get_moved_units
SELECT units FROM moved_units WHERE position = ?;

-- name: set_moved_units
INSERT OR REPLACE INTO moved_units (position, units) VALUES (?, ?);

-- name: drop_moved_units
DELETE FROM moved_units WHERE position = ?;

-- name: scan_units
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch, echo_of, trust, purged_seq
    FROM units WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: unit_columns
SELECT position & 0xffffffff, mode, type, status, epoch, agent, registration, coalesce(session, 0), coalesce(task, 0),
       score, coalesce(committed_seq, 0), coalesce(archived_epoch, 0), coalesce(echo_of, 0),
       coalesce(trust, 4), coalesce(purged_seq, 0)  -- 4: DEFAULT_AUTHORITY
    FROM units WHERE position > ? AND position <= ? ORDER BY position LIMIT ?;

-- name: drafted_units
SELECT position & 0xffffffff, id, mode, type, status, epoch, at_ms, agent, registration, session, task, score,
       committed_seq, archived_epoch, echo_of, trust, purged_seq
    FROM units WHERE (mode = 'draft' OR committed_seq IS NOT NULL) AND position > ? AND position <= ? ORDER BY position;

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

-- name: put_relation
INSERT INTO relations (source, place, type, target) VALUES (?, ?, ?, ?);

-- name: elaborate_units
INSERT INTO relations (source, place, type, target) SELECT ?, key, 'elaborates', value FROM json_each(?);

-- name: all_relations
SELECT source & 0xffffffff, place, type, target FROM relations WHERE source > ? AND source <= ? ORDER BY source, place;

-- name: archive_units
UPDATE units SET archived_epoch = ? WHERE position IN (SELECT value FROM json_each(?));

-- name: purge_units
UPDATE units SET purged_seq = ? WHERE position IN (SELECT value FROM json_each(?));

-- name: put_compaction
INSERT INTO compactions (position, id, strategy, state, units, syntheses, bytes, ended_seq)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_compaction
UPDATE compactions SET state = ?, units = ?, syntheses = ?, bytes = ?, ended_seq = ? WHERE position = ?;

-- name: all_compactions
SELECT position & 0xffffffff, id, strategy, state, units, syntheses, bytes, ended_seq
    FROM compactions WHERE position > ? AND position <= ? ORDER BY position;

-- name: put_guard
INSERT INTO guards (unit, guard) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: drop_guard
DELETE FROM guards WHERE unit = ? AND guard = ?;

-- name: all_guards
SELECT unit & 0xffffffff, guard FROM guards WHERE unit > ? AND unit <= ? ORDER BY unit, guard;

-- name: put_member
INSERT INTO members (session, agent) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: drop_member
DELETE FROM members WHERE session = ? AND agent = ?;

-- name: all_members
SELECT session & 0xffffffff, agent FROM members WHERE session > ? AND session <= ? ORDER BY session, agent;

-- name: mark_echo
UPDATE units SET echo_of = ? WHERE position = ?;

-- name: set_mark
INSERT INTO marks (stream_no, name, seq) VALUES (?, ?, ?) ON CONFLICT (stream_no, name) DO UPDATE SET seq = excluded.seq;

-- name: drop_mark
DELETE FROM marks WHERE stream_no = ? AND name = ?;

-- name: get_mark
SELECT seq FROM marks WHERE stream_no = ? AND name = ?;

-- name: keep_hint
INSERT INTO hints (position) VALUES (?);

-- name: drop_hints
DELETE FROM hints WHERE position IN (SELECT value FROM json_each(?));

-- name: all_hints
SELECT position & 0xffffffff FROM hints WHERE position > ? AND position <= ? ORDER BY position;

-- name: all_models
SELECT number, name, dimension, state FROM vector_models WHERE stream_no = ? AND state <> 'dropped' ORDER BY number;

-- name: find_model
SELECT number, name, dimension, state FROM vector_models WHERE number = ? AND stream_no = ? AND state <> 'dropped';

-- name: begin_model
INSERT INTO vector_models (stream_no, name, dimension, state) VALUES (?, ?, ?, ?) RETURNING number;

-- name: set_model_state
UPDATE vector_models SET state = ? WHERE number = ?;

-- name: set_serving_model_dropped
UPDATE vector_models SET state = 'dropped' WHERE stream_no = ? AND state = 'serving';

-- name: dropped_model
SELECT number FROM vector_models WHERE stream_no = ? AND state = 'dropped' LIMIT 1;

-- name: forget_model
DELETE FROM vector_models WHERE number = ?;

-- name: all_model_dimensions
-- Dropped ones, too: what is erased must not outlive its model in blocks that are not overwritten yet.
SELECT number, dimension FROM vector_models WHERE stream_no = ?;

-- name: put_block
INSERT INTO vectors (position, seqs, scales, codes) VALUES (?, ?, ?, ?)
    ON CONFLICT (position) DO UPDATE SET seqs = excluded.seqs, scales = excluded.scales, codes = excluded.codes;

-- name: drop_block
DELETE FROM vectors WHERE position = ?;

-- name: drop_blocks
DELETE FROM vectors WHERE position IN
    (SELECT position FROM vectors WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?);

-- name: scan_blocks
SELECT position, seqs, scales, codes FROM vectors WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?;

-- name: put_entry
INSERT INTO entries (position, session, written, digest, expires_ms, run, archived_seq, gone_seq)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_entry_tag
INSERT INTO entry_tags (session, digest, entry) VALUES (?, ?, ?);

-- name: drop_entry_tags
DELETE FROM entry_tags WHERE entry IN
    (SELECT position FROM entries WHERE written = ?1 AND position > ?2 AND position <= ?3);

-- name: forget_entries
UPDATE entries SET digest = NULL, expires_ms = NULL WHERE position IN (SELECT value FROM json_each(?));

-- name: drop_tags_of
DELETE FROM entry_tags WHERE entry IN (SELECT value FROM json_each(?));

-- name: find_written
SELECT position, session FROM entries WHERE written = ? AND position > ? AND position <= ?;

-- name: relabel_entry
UPDATE entries SET digest = ? WHERE position = ?;

-- name: has_entries
SELECT 1 FROM entries WHERE position > ? AND position <= ? LIMIT 1;

-- name: shelve_entries
UPDATE entries SET archived_seq = ? WHERE position IN (SELECT value FROM json_each(?));

-- name: remove_entries
-- The first time counts: an entry that was replaced and then purged was gone before.
UPDATE entries SET gone_seq = coalesce(gone_seq, ?) WHERE position IN (SELECT value FROM json_each(?));

-- name: find_entry
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries WHERE session = ? AND digest = ? ORDER BY position DESC LIMIT 1;

-- name: get_entries
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries WHERE position IN (SELECT value FROM json_each(?));

-- name: listed_entries
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries INDEXED BY entries_listed
    WHERE session = ? AND position < ? AND archived_seq IS NULL AND gone_seq IS NULL ORDER BY position DESC LIMIT ?;

-- name: every_entry
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries INDEXED BY entries_by_session WHERE session = ? AND position < ? ORDER BY position DESC LIMIT ?;

-- name: tagged_entries
SELECT e.position & 0xffffffff, e.session & 0xffffffff, e.written, e.digest, e.expires_ms, e.run, e.archived_seq,
       e.gone_seq
    FROM entry_tags t CROSS JOIN entries e ON e.position = t.entry
    WHERE t.session = ?1 AND t.digest = ?4 AND t.entry < ?2
      AND (?5 OR (e.archived_seq IS NULL AND e.gone_seq IS NULL))
    ORDER BY t.entry DESC LIMIT ?3;

-- name: count_memories
SELECT session & 0xffffffff, count(*) FROM entries INDEXED BY entries_listed
    WHERE session > ? AND session <= ? AND archived_seq IS NULL AND gone_seq IS NULL GROUP BY session;

-- name: expired_entries
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries INDEXED BY entries_expiring
    WHERE expires_ms IS NOT NULL AND expires_ms <= ? AND position > ? AND position <= ?
    ORDER BY expires_ms, position LIMIT ?;

-- name: all_entries
SELECT position & 0xffffffff, session & 0xffffffff, written, digest, expires_ms, run, archived_seq, gone_seq
    FROM entries WHERE position > ? AND position <= ? ORDER BY position;

-- name: all_entry_tags
SELECT session & 0xffffffff, digest, entry & 0xffffffff FROM entry_tags
    WHERE session > ? AND session <= ? ORDER BY session, digest, entry;

-- name: put_feed
INSERT INTO feed (position, kind, at_ms, unit) VALUES (?, ?, ?, ?);

-- name: all_feed
SELECT position & 0xffffffff, kind, at_ms, unit FROM feed WHERE position > ? AND position <= ? ORDER BY position;

-- name: read_feed
SELECT position & 0xffffffff, kind, at_ms, unit FROM feed
    WHERE position > ? AND position <= ? AND at_ms >= ? ORDER BY position LIMIT ?;

-- name: read_feed_of_kind
SELECT position & 0xffffffff, kind, at_ms, unit FROM feed INDEXED BY feed_by_kind
    WHERE position >> 32 = ? AND kind = ? AND position > ? AND at_ms >= ? ORDER BY position LIMIT ?;

-- name: first_in_feed
-- Clocks may be set back: it is the first of all that are late enough, not the one that is early enough.
SELECT min(position) FROM feed INDEXED BY feed_by_time WHERE position >> 32 = ? AND at_ms >= ?;

-- name: feed_of_unit
SELECT position & 0xffffffff, kind, at_ms, unit FROM feed INDEXED BY feed_by_unit
    WHERE position >> 32 = ? AND unit = ? AND kind = ? ORDER BY position DESC LIMIT 1;
