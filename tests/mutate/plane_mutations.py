"""The part of the list that is about the planes: streams, threads, and contexts."""

from typing import Final

from tests.mutate.mutation import Mutation

PLANE: Final = "tests/planes/test_plane_secrets.py"
DELTAS: Final = "tests/planes/test_deltas.py"
SWEPT: Final = "tests/planes/test_sweeping.py"
CONTEXTS: Final = "tests/planes/context/test_redaction.py"

NO_NAME: Final = f"{PLANE}::test_a_secret_as_the_name_of_something_is_refused_and_nothing_is_kept"
DIGEST: Final = f"{PLANE}::test_the_digest_of_a_request_tells_nothing_of_a_secret"
IN_PIECES: Final = f"{DELTAS}::test_the_marker_goes_into_the_first_piece_and_the_others_lose_their_part"
PAYLOAD: Final = f"{DELTAS}::test_every_string_of_a_payload_is_clean_names_too"
NOT_SHOWN: Final = f"{DELTAS}::test_no_reader_sees_more_than_three_characters_of_it"
BETWEEN: Final = f"{DELTAS}::test_a_secret_is_caught_whatever_comes_between_its_pieces"
ANOTHER_PROCESS: Final = f"{DELTAS}::test_another_process_goes_on_with_a_text_and_a_secret"
CUT_IN_TWO: Final = (
    "tests/planes/test_stream_compaction.py::test_a_secret_that_a_compaction_cut_in_two_is_taken_out_of_both_halves"
)
EVENTS_SWEPT: Final = f"{SWEPT}::test_a_sweep_clears_a_late_secret_from_events_also_over_deltas"
STATES_SWEPT: Final = f"{SWEPT}::test_a_sweep_clears_snapshots_and_messages"
PAGES_SWEPT: Final = f"{SWEPT}::test_a_secret_over_many_pages_of_events_is_cleared"
BOTH_HALVES: Final = f"{SWEPT}::test_a_secret_that_a_compaction_cut_in_two_is_cleared_from_both_halves"
REASONING_SWEPT: Final = f"{PLANE}::test_a_late_secret_over_pieces_of_reasoning_is_swept_from_messages_and_snapshots"
STREAM_RENAMED: Final = f"{PLANE}::test_a_stream_whose_name_holds_a_late_secret_goes_on_under_another"
SPELLED: Final = (
    "tests/planes/test_spelled_secrets.py::test_a_secret_that_numbers_spell_is_not_stored_and_one_that_was_is_swept"
)
# In the source of a snapshot's sweep: what is cleaned.
STATE: Final = '[_clean_message(tools, each) for each in (*state["messages"], *draft)], state["openCalls"]'
KIND_SWEPT: Final = f"{PLANE}::test_a_late_secret_that_is_a_kind_of_event_is_swept"
FIELD_SWEPT: Final = f"{PLANE}::test_a_sweep_of_the_field_clears_its_planes_too"
MESSAGES_CLEAN: Final = f"{CONTEXTS}::test_what_comes_in_is_clean_before_the_model_or_a_summariser_sees_it"
SUMMARY_CLEAN: Final = f"{CONTEXTS}::test_a_secret_that_a_summariser_says_is_taken_out_of_the_summary"
CONTEXT_IDS: Final = f"{CONTEXTS}::test_ids_that_hold_a_secret_are_refused"


def _unchecked(name: str, what: str, text: str, replacement: str) -> Mutation:
    """A name in the transport log is not checked."""
    return Mutation(
        f"stream-{name}",
        f"the refusal of a secret in place of {what}",
        "planes/streams.py",
        text,
        replacement,
        (NO_NAME,),
    )


NAMES: Final = (
    _unchecked("id", "a stream's id", "names = [stream]", "names = []"),
    _unchecked("key", "an idempotency key", "names.append(key)", "pass"),
    _unchecked("kind", "a kind of event", "names.append(kind)", "pass"),
    _unchecked("names", "any name in an append", "self._refuse_secrets(harness, names)", "pass"),
    _unchecked("readers", "the name of a reader", "self._refuse_secrets(harness, [stream, name])", "pass"),
    _unchecked("search", "any name", "if any(harness.holds_secret(new)):", "if False:"),
    Mutation(
        "thread-ids",
        "the refusal of a secret in place of a thread's id",
        "field/threads.py",
        "if any(harness.holds_secret(",
        "if False and any(harness.holds_secret(",
        (f"{PLANE}::test_a_thread_whose_id_holds_a_secret_is_not_begun",),
    ),
    Mutation(
        "thread-fork",
        "the refusal of a secret in place of the message that a run forks from",
        "field/threads.py",
        "holds_secret([thread, fork_from] if",
        "holds_secret([thread] if",
        (f"{PLANE}::test_a_run_that_forks_from_an_id_that_holds_a_secret_is_not_begun",),
    ),
)

STREAMS: Final = (
    Mutation(
        "stream-sent-again",
        "the cleaning of what is stored before it is compared with a request that is sent again",
        "planes/streams.py",
        "clean_words(self.harness, events))",
        "events)",
        (
            "tests/planes/test_sweeping.py::test_an_append_is_answered_as_the_first_time_although_its_secret_became_known_since",
        ),
    ),
    Mutation(
        "stream-words-in-a-thread",
        "the cleaning of much text beside the deltas",
        "planes/streams.py",
        "events = await asyncio.to_thread(clean_words, harness, events)",
        "pass",
        (f"{PLANE}::test_a_secret_in_more_text_than_is_cleaned_on_the_spot_is_taken_out",),
    ),
    Mutation(
        "stream-words-on-the-spot",
        "the cleaning of what stands beside the deltas",
        "planes/streams.py",
        "events = clean_words(harness, events)",
        "pass",
        (PAYLOAD,),
    ),
    Mutation(
        "stream-words",
        "the cleaning of strings that belong to no running text",
        "planes/trails.py",
        "harness.clean_groups([each.strings for each in words])",
        "[type(group)(each.strings, ()) for each in words for group in harness.clean_groups([[]])]",
        (PAYLOAD,),
    ),
    Mutation(
        "stream-running-text",
        "the cleaning of running texts",
        "planes/trails.py",
        "harness.clean_groups([[text] for text in texts])",
        "[type(group)([text], ()) for text in texts for group in harness.clean_groups([[]])]",
        (f"{DELTAS}::test_a_batch_is_cleaned_as_one_text",),
    ),
    Mutation(
        "stream-settled-text",
        "the cleaning of a text in which a secret stays one whatever follows",
        "planes/trails.py",
        "clean = harness.clean_one(text).text",
        "clean = text",
        (f"{DELTAS}::test_a_secret_behind_one_that_is_none_any_more_is_caught",),
    ),
    Mutation(
        "stream-open-secret",
        "the memory of a secret that may go on with the next delta",
        "planes/trails.py",
        "if harness.clean_one(",
        "if False and harness.clean_one(",
        (f"{DELTAS}::test_what_follows_a_secret_in_one_piece_belongs_to_it",),
    ),
    Mutation(
        "stream-earlier-pieces",
        "the rewriting of earlier deltas when a secret completes",
        "planes/streams.py",
        "    tables.replace_events(row.stream, rewritten)\n",
        "",
        (IN_PIECES,),
    ),
    Mutation(
        "stream-snapshots",
        "the dropping of snapshots that hold the first part of a secret",
        "planes/streams.py",
        "if any(last_seq >= seq for last_seq in taken):",
        "if False:",
        (f"{DELTAS}::test_a_snapshot_of_the_first_part_goes_when_the_secret_completes",),
    ),
    Mutation(
        "stream-below-floor",
        "the rewriting of a snapshot when a secret completes that begins in it",
        "planes/streams.py",
        "rewrite_below_floor(tables, row, texts[row.floor])",
        "pass",
        (f"{PLANE}::test_the_first_half_of_a_secret_does_not_stay_in_a_snapshot_when_the_other_half_comes",),
    ),
    Mutation(
        "stream-read-below-floor",
        "the memory of a text that a compaction has cut in two",
        "planes/streams.py",
        "(below := text_below_floor(tables, row))",
        '(below := "")',
        (CUT_IN_TWO,),
    ),
    Mutation(
        "stream-read-back",
        "the memory of what another process appended",
        "planes/streams.py",
        "trail = read_back_trail(self.harness, tables, row)",
        "trail = StreamTrail(row.head)",
        (ANOTHER_PROCESS,),
    ),
    Mutation(
        "stream-going-on",
        "the memory of a text when another event comes between its deltas",
        "planes/trails.py",
        "going_on = {} if ends_texts(event) else going_on",
        "going_on = {}",
        (BETWEEN,),
    ),
    Mutation(
        "stream-read-back-going-on",
        "the memory of what another process appended before another event",
        "planes/streams.py",
        "if ends_texts(event):",
        "if text is None:",
        (f"{PLANE}::test_a_secret_with_other_events_between_its_pieces_is_in_no_message",),
    ),
    Mutation(
        "stream-swallow",
        "the taking out of what goes on behind a marker that was read back",
        "planes/trails.py",
        "        _swallow(run)\n",
        "        pass\n",
        (ANOTHER_PROCESS,),
    ),
    Mutation(
        "stream-digest",
        "the cleaning of what the digest of a request is made from",
        "planes/streams.py",
        "clean = follow(harness, literals, StreamTrail(), events).events",
        "clean = events",
        (DIGEST,),
    ),
    Mutation(
        "stream-numbers",
        "the search for secrets that are numbers",
        "planes/trails.py",
        "return str(int(value)) if is_long else None",
        "return None",
        (SPELLED,),
    ),
    Mutation(
        "stream-bytes",
        "the search for secrets that are lists of bytes",
        "planes/trails.py",
        'return bytes(value).hex(" ") if is_bytes else None',
        "return None",
        (SPELLED,),
    ),
    Mutation(
        "stream-held",
        "the holding back of what may begin a secret",
        "planes/pages.py",
        "return row, row.held_from - 1,",
        "return row, row.head,",
        (NOT_SHOWN,),
    ),
    Mutation(
        "stream-known-beginnings",
        "the search for the beginnings of known secrets",
        "redact/openings.py",
        "_, trail = harness.clean_after(Trail(), [near])",
        "return",
        (NOT_SHOWN,),
    ),
    Mutation(
        "stream-token-beginnings",
        "the search for the beginnings of tokens",
        "redact/openings.py",
        "        *_of_literals(literals, text),\n",
        "",
        (NOT_SHOWN,),
    ),
    Mutation(
        "stream-announced",
        "the search for secrets that are announced by words",
        "redact/openings.py",
        "        *_of_what_is_said(text),\n",
        "",
        (f"{DELTAS}::test_a_password_that_is_announced_is_held_back_from_its_first_letter",),
    ),
)


def _unswept(name: str, removes: str, text: str, replacement: str, test: str) -> Mutation:
    return Mutation(f"plane-sweep-{name}", removes, "planes/sweeping.py", text, replacement, (test,))


SWEEPING: Final = (
    Mutation(
        "sweep-planes",
        "the sweep of the planes with that of the field",
        "field/field.py",
        "structs.replace(swept, planes=await self._planes.sweep())",
        "swept",
        (FIELD_SWEPT,),
    ),
    Mutation(
        "sweep-streams",
        "the sweep of the planes",
        "field/planes.py",
        "await sweep_planes(self.streams) if await self._store.bytes_used() else",
        "",
        (FIELD_SWEPT,),
    ),
    Mutation(
        "plane-sweep-search",
        "the search for late secrets in snapshots and messages",
        "planes/trails.py",
        "[group] = harness.clean_groups([strings])",
        "[group] = [type(each)(strings, ()) for each in harness.clean_groups([[]])]",
        (STATES_SWEPT,),
    ),
    _unswept(
        "words",
        "the search for late secrets beside the deltas",
        "clean_words(tools.harness, events)",
        "events",
        EVENTS_SWEPT,
    ),
    _unswept(
        "running-texts",
        "the search for late secrets in running texts",
        "followed = follow(tools.harness, tools.literals, trail, clean)",
        "followed = follow(tools.harness, tools.literals, trail, clean)._replace(events=clean)",
        EVENTS_SWEPT,
    ),
    _unswept(
        "earlier-pages",
        "the cleaning of the first pieces of a late secret that lie on an earlier page",
        "for seq in followed.rewritten.keys() - {trail.floor}:",
        "for seq in ():",
        PAGES_SWEPT,
    ),
    _unswept(
        "kinds",
        "the cleaning of kinds of events",
        "_with_clean_kind(tools.harness, each) for each in",
        "each for each in",
        KIND_SWEPT,
    ),
    _unswept(
        "kind",
        "the search for a late secret in a kind of event",
        "clean = harness.clean_one(event.kind).text",
        "clean = event.kind",
        KIND_SWEPT,
    ),
    _unswept(
        "stream-ids",
        "the search for late secrets in the ids of streams",
        "stream = await _sweep_name(tools, row.stream, _rename_stream)",
        "stream = row.stream",
        STREAM_RENAMED,
    ),
    _unswept(
        "names",
        "the search for late secrets in names",
        "if not any(tools.harness.holds_secret([name])):",
        "if True:",
        STREAM_RENAMED,
    ),
    _unswept(
        "new-names",
        "the cleaning of a name that gets another",
        "clean = harness.clean_one(name).text",
        "clean = name",
        STREAM_RENAMED,
    ),
    _unswept(
        "reader-names",
        "the search for late secrets in the names of readers",
        "tools.harness.holds_secret(list(readers))",
        "[None] * len(readers)",
        f"{PLANE}::test_a_reader_whose_name_is_a_late_secret_goes_on_under_another",
    ),
    _unswept(
        "thread-ids",
        "the search for late secrets in the ids of threads",
        "thread = await _sweep_name(tools, told, _rename_thread)",
        "thread = told",
        f"{PLANE}::test_a_thread_whose_name_holds_a_late_secret_goes_on_under_another",
    ),
    _unswept(
        "events",
        "the cleaning of stored events",
        "tables.replace_events(stream, still)",
        "pass",
        EVENTS_SWEPT,
    ),
    _unswept(
        "floor",
        "the cleaning of a text that a compaction has cut in two",
        "rewrite_below_floor(tables, row, below)",
        "pass",
        BOTH_HALVES,
    ),
    _unswept(
        "snapshots",
        "the cleaning of stored snapshots",
        "clean = await asyncio.to_thread(_clean_snapshot, tools, row or StreamRow(stream), snapshot)",
        "clean = None",
        STATES_SWEPT,
    ),
    _unswept(
        "snapshot",
        "the cleaning of a snapshot's state",
        f"_clean_told(\n        tools, {STATE}\n    )",
        STATE,
        STATES_SWEPT,
    ),
    _unswept(
        "unreadable-snapshot",
        "the search for late secrets in a snapshot that nobody can read",
        'holds = any(tools.harness.holds_secret([snapshot.state.decode(errors="replace")]))',
        "holds = False",
        f"{PLANE}::test_a_late_secret_in_a_snapshot_that_nobody_can_read_is_swept",
    ),
    _unswept(
        "snapshot-reasoning",
        "the search for late secrets over pieces of reasoning in a snapshot's messages",
        "_clean_message(tools, each) for each in (",
        'each if each is not state["draft"] else _clean_message(tools, each) for each in (',
        REASONING_SWEPT,
    ),
    _unswept(
        "draft-reasoning",
        "the search for late secrets over pieces of reasoning in a snapshot's draft",
        "_clean_message(tools, each) for each in (",
        'each if each is state["draft"] else _clean_message(tools, each) for each in (',
        REASONING_SWEPT,
    ),
    _unswept(
        "message-reasoning",
        "the search for late secrets over pieces of reasoning in messages",
        "_clean_message(tools, message)]",
        "message]",
        REASONING_SWEPT,
    ),
    _unswept(
        "reasoning",
        "the search for late secrets over pieces of reasoning",
        "clean = follow(tools.harness, tools.literals, StreamTrail(), told).events",
        "clean = told",
        REASONING_SWEPT,
    ),
    _unswept(
        "messages",
        "the search for late secrets in messages",
        "clean = await asyncio.to_thread(_clean_bodies, tools, page)",
        "clean = {}",
        STATES_SWEPT,
    ),
    _unswept(
        "bodies",
        "the cleaning of stored messages",
        "    tables.put_bodies(thread, still)\n",
        "",
        STATES_SWEPT,
    ),
    _unswept(
        "values",
        "the cleaning of a stored message",
        "[clean], _ = _clean_told(tools, [_clean_message(tools, message)])",
        "clean = _clean_message(tools, message)",
        STATES_SWEPT,
    ),
    _unswept(
        "told",
        "the cleaning of what messages and states tell",
        "clean_values(tools.harness, [told, list(calls), list(calls.values())], depth=-DEEPER)",
        "told, list(calls), list(calls.values())",
        STATES_SWEPT,
    ),
    _unswept(
        "residue",
        "the scouring of pages and journals that still hold what was swept",
        "await streams.scour()",
        "pass",
        f"{PLANE}::test_no_byte_of_an_open_file_holds_what_was_swept",
    ),
)

REMEMBERING: Final = (
    Mutation(
        "remembered-texts",
        "the cleaning of what is remembered of a run",
        "field/remembering.py",
        "content=group.texts[0], purpose=group.texts[1])",
        "content=each.content)",
        (f"{PLANE}::test_what_is_remembered_of_a_run_is_told_without_a_late_secret",),
    ),
    Mutation(
        "remembered-search",
        "the search for late secrets in what is remembered of a run",
        "field/remembering.py",
        "await asyncio.to_thread(harness.clean_groups, [[each.content, each.purpose] for each in found])",
        "[type(group)([each.content] * 2, ()) for each in found for group in harness.clean_groups([[]])]",
        (f"{PLANE}::test_what_is_remembered_of_a_run_is_told_without_a_late_secret",),
    ),
)

CONTEXT: Final = (
    Mutation(
        "context-message",
        "the cleaning of a message that comes into a context",
        "planes/context/cleaning.py",
        "clean = harness.clean_if_nothing_is_found([texts])\n    if clean is None:\n"
        "        clean = await asyncio.to_thread(harness.clean_groups, [texts])\n",
        "clean = [type(each)(texts, ()) for each in harness.clean_if_nothing_is_found([[]]) or ()]\n",
        (MESSAGES_CLEAN,),
    ),
    Mutation(
        "context-long-message",
        "the cleaning of a long message that comes into a context",
        "planes/context/cleaning.py",
        "group, trail = await asyncio.to_thread(harness.clean_after, trail, texts)\n        return group.texts, trail",
        "return texts, trail",
        (f"{CONTEXTS}::test_a_long_text_is_clean_too",),
    ),
    Mutation(
        "context-split-secret",
        "the search for a secret that goes on from one message into the next",
        "planes/context/cleaning.py",
        "group, [trail] = harness.follow([trail], texts, clean[0])",
        "group = clean[0]",
        (f"{CONTEXTS}::test_a_secret_that_goes_on_from_one_message_into_the_next_is_found",),
    ),
    Mutation(
        "context-ids",
        "the refusal of ids that hold a secret in a context",
        "planes/context/cleaning.py",
        "if any(harness.holds_secret([message.id, *calls])):",
        "if False and calls:",
        (CONTEXT_IDS,),
    ),
    Mutation(
        "context-summary",
        "the cleaning of a context's summary",
        "planes/context/cleaning.py",
        "return (await asyncio.to_thread(harness.clean_one, text)).text",
        "return text",
        (SUMMARY_CLEAN,),
    ),
    Mutation(
        "context-cleaning",
        "the cleaning of all that comes into a context",
        "planes/context/execution.py",
        "await self._cleaner.clean(message)",
        "message",
        (MESSAGES_CLEAN,),
    ),
    Mutation(
        "context-texts",
        "the cleaning of a message's texts",
        "planes/context/cleaning.py",
        "cleaned, self._trail = await _without_secrets(harness, message, self._trail)",
        "cleaned = message",
        (MESSAGES_CLEAN,),
    ),
    Mutation(
        "context-scan",
        "the search for secrets in a message's texts",
        "planes/context/cleaning.py",
        "texts, trail = await _scanned(harness, trail, dirty)",
        "texts = dirty",
        (MESSAGES_CLEAN,),
    ),
    Mutation(
        "context-names",
        "the check of the ids in a message",
        "planes/context/cleaning.py",
        "    _refuse_names(harness, message)\n",
        "",
        (CONTEXT_IDS,),
    ),
    Mutation(
        "context-summary-text",
        "the cleaning of what a summariser says in a context",
        "planes/context/compacting.py",
        "await clean_text(await self._tools.cleaning(), draft.text.rstrip())",
        "draft.text.rstrip()",
        (SUMMARY_CLEAN,),
    ),
)

PLANES: Final = (*NAMES, *STREAMS, *SWEEPING, *REMEMBERING, *CONTEXT)
