"""The feed: what happened to memories, as the log has it, without a word of what is in them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.access import Caller
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.replies import Compacted
from fieldstone.core.requests import Compact, CompactFilter, Message
from fieldstone.core.vocabulary import FeedKind
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import Feed, FeedEvent, MemoryAdapter, SeedEntry
from fieldstone.profiles.openwop import feed as feed_module
from fieldstone.profiles.openwop.feed import FeedMark, event_from
from fieldstone.testing import KEY
from tests.access.sessions import close_session
from tests.field.fields import opened
from tests.messages import accepted, join, record, register
from tests.requirements import requirement

AUDITOR = Caller("key-auditor", 0)
WORD = "quokka"


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await opened()
    yield field
    await field.close()


# --- what an event says -----------------------------------------------------------------------------------------------


@requirement("openwop:events:shape", "openwop:attribution:fields")
async def test_a_put_is_told_with_its_ref_id_tags_node_and_agent_and_nothing_else(field: LocalField) -> None:
    entry = await MemoryAdapter(field).put(
        "notes", content=f"The {WORD} sleeps.", tags=["animals"], node_id="node-1", agent_id="agent-1"
    )
    [event] = await told(field)
    assert event.flat() == {
        "id": event.id,
        "type": "memory.written",
        "ts": entry.created_at,
        "memoryRef": "notes",
        "memoryId": entry.id,
        "nodeId": "node-1",
        "agentId": "agent-1",
        "tags": ["animals"],
    }


@requirement("openwop:attribution:fields")
async def test_what_was_not_given_is_not_told(field: LocalField) -> None:
    entry = await MemoryAdapter(field).put("notes", content="Rain.")
    [event] = await told(field)
    assert event.payload == {"memoryRef": "notes", "memoryId": entry.id}


@requirement("openwop:compaction:event")
async def test_a_compaction_names_its_output_and_sources_by_their_own_ids(field: LocalField) -> None:
    await seed(field, "notes", "a", "b", "c")
    [compacted] = await MemoryAdapter(field).compact("notes", why="asked", whole=True)
    assert compacted.type == "memory.compacted"
    output = (await MemoryAdapter(field).list("notes")).entries[0]
    assert compacted.payload == {
        "memoryRef": "notes",
        "outputId": output.id,
        "sourceCount": 3,
        "trigger": "host-managed",
        "byteSize": len(output.content.encode()),
        "sourceIds": ["a", "b", "c"],
    }
    assert (await told(field, "memory.compacted")) == [compacted]


@requirement("openwop:compaction:source-ids")
async def test_above_100_sources_are_counted_and_not_named(field: LocalField) -> None:
    await seed(field, "notes", *(f"entry-{number}" for number in range(101)))
    [compacted] = await MemoryAdapter(field).compact("notes", why="asked", whole=True)
    assert compacted.payload["sourceCount"] == 101
    assert "sourceIds" not in compacted.payload


@requirement("openwop:distillation:budget")
async def test_a_distillation_tells_its_budget_and_what_it_used(field: LocalField) -> None:
    await seed(field, "notes", "a", "b")
    distilled = await MemoryAdapter(field).distil("notes", 5_000)
    assert distilled is not None
    [event] = await told(field, "memory.compacted")
    assert event == distilled.event
    assert event.payload["distillation"]["tokenBudget"] == 5_000
    assert 0 < event.payload["distillation"]["tokensUsed"] <= 5_000
    assert event.payload["distillation"]["indexUpdated"] is False


@requirement("openwop:consolidation:event")
async def test_a_consolidation_tells_how_many_there_were_and_are_and_which_gave_way(field: LocalField) -> None:
    same = [SeedEntry(id=entry_id, content="The pears of the old tree are ripe in May.") for entry_id in "ab"]
    other = SeedEntry(id="c", content="Rana leads the harbour office.")
    await MemoryAdapter(field).seed("notes", [*same, other])
    consolidated = await MemoryAdapter(field).consolidate("notes")
    [event] = await told(field, "agent.memory.consolidated")
    assert event == consolidated
    assert event.payload == {
        "memoryRef": "notes",
        "inputCount": 3,
        "outputCount": 2,
        "trigger": "host-managed",
        "mergedIds": ["a"],
    }


@requirement("openwop:consolidation:event")
async def test_a_consolidation_that_changed_nothing_names_nobody(field: LocalField) -> None:
    await MemoryAdapter(field).put("notes", content="Rain.")
    consolidated = await MemoryAdapter(field).consolidate("notes")
    assert consolidated is not None
    assert (consolidated.payload["inputCount"], consolidated.payload["outputCount"]) == (1, 1)
    assert "mergedIds" not in consolidated.payload


@requirement("openwop:views:syntheses", "openwop:compaction:host-managed")
async def test_a_field_that_compacts_itself_tells_so_under_its_own_name(field: LocalField) -> None:
    await field.send(register("ada", authority=10))
    for session in (None, "sprint"):
        units = [await accepted(field, record("ada", f"Pear {n} is ripe.", session=session)) for n in range(3)]
        output = await summarized(field, "ada", session)
        event = (await told(field, "memory.compacted"))[-1]
        assert event.payload["memoryRef"] == ("field:research" if session is None else "field:research:sprint")
        assert event.payload["outputId"] == output
        assert event.payload["sourceIds"] == units


@requirement("openwop:events:content-free")
async def test_no_event_holds_a_word_of_what_is_remembered(field: LocalField) -> None:
    for number in range(4):
        await MemoryAdapter(field).put("notes", content=f"The {WORD} sleeps {number} hours.")
    await MemoryAdapter(field).compact("notes", why=f"a reason with {WORD}", whole=True)
    events = await told(field)
    assert len(events) == 6
    assert WORD not in str([event.flat() for event in events])


@requirement("openwop:events:content-free")
async def test_the_event_of_a_purged_entry_stays_without_what_was_erased(field: LocalField) -> None:
    adapter = MemoryAdapter(field)
    await adapter.seed("notes", [SeedEntry(id="mine", content="Rain.", tags=("weather",))])
    [before] = await told(field)
    assert (before.payload["memoryId"], before.payload["tags"]) == ("mine", ["weather"])
    assert await adapter.delete("notes", "mine")
    [after] = await told(field)
    assert (after.id, after.ts) == (before.id, before.ts)
    assert after.payload.keys() == {"memoryRef", "memoryId"}
    assert after.payload["memoryId"].startswith("mem-")


@requirement("openwop:events:shape")
async def test_an_event_that_a_server_tells_is_the_same_here(field: LocalField) -> None:
    await seed(field, "notes", "a", "b")
    await MemoryAdapter(field).distil("notes", 5_000)
    for event in await told(field):
        assert event_from(event.flat()) == event


# --- who sees it ------------------------------------------------------------------------------------------------------


@requirement("openwop:errors:authority")
async def test_an_auditor_without_any_authority_is_told_of_every_memory(field: LocalField) -> None:
    await seed(field, "notes", "a")
    assert (await Feed(field, AUDITOR).page()).events == tuple(await told(field))


@requirement("openwop:events:visible")
async def test_what_was_compacted_in_a_closed_session_is_told_to_those_who_see_into_it(field: LocalField) -> None:
    member = Caller("key-member", 4, frozenset({"ada"}))
    await field.send(Message("REGISTER", "ada", register("ada").request, caller=member))
    await field.send(register("op", authority=10))
    await close_session(field, "vault", "ada", "op")
    for number in range(3):
        message = record("ada", f"Pear {number} is ripe.", session="vault")
        await field.send(Message("RECORD", "ada", message.request, "vault", caller=member))
    await summarized(field, "op", "vault")
    await seed(field, "notes", "a")
    for caller, seen in ((member, 2), (AUDITOR, 1)):
        page = await Feed(field, caller).page()
        assert len(page.events) == seen
        assert page.next == str((await field.audit.feed(after=0, limit=10))[-1].seq)
    assert len(await told(field)) == 2


@requirement("openwop:events:paged")
async def test_a_page_of_nothing_that_the_caller_may_see_goes_on_to_the_next(field: LocalField) -> None:
    await field.send(register("ada", authority=10))
    await close_session(field, "vault", "ada")
    for round_number in range(3):
        for number in range(3):
            await accepted(field, record("ada", f"Pear {round_number}-{number} is ripe.", session="vault"))
        await summarized(field, "ada", "vault")
    await seed(field, "notes", "a")
    page = await Feed(field, AUDITOR).page(limit=1)
    assert [event.type for event in page.events] == ["memory.written"]


# --- pages ------------------------------------------------------------------------------------------------------------


@requirement("openwop:events:paged")
async def test_pages_make_the_whole_in_order_whatever_their_size(field: LocalField) -> None:
    await seed(field, "notes", *"abcdefg")
    await MemoryAdapter(field).compact("notes", why="asked", whole=True)
    whole = await told(field)
    assert [int(event.id) for event in whole] == sorted({int(event.id) for event in whole})
    for limit in (1, 2, 3, 1_000):
        assert await paged(field, limit) == whole


@requirement("openwop:events:paged")
async def test_a_page_of_long_events_is_short_and_the_next_one_goes_on(
    field: LocalField, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(field, "notes", *(str(number) for number in range(35)))
    whole = await told(field)
    monkeypatch.setattr(feed_module, "PAGE_BYTES", 1)
    assert len((await Feed(field).page()).events) == feed_module.TOLD_AT_ONCE
    assert await paged(field, 100) == whole


@requirement("openwop:events:types")
async def test_only_the_kinds_that_are_asked_for_come(field: LocalField) -> None:
    await seed(field, "notes", "a", "b")
    await MemoryAdapter(field).compact("notes", why="asked", whole=True)
    assert {event.type for event in await told(field, "memory.compacted")} == {"memory.compacted"}
    both: list[FeedKind] = ["memory.compacted", "memory.written"]
    assert (await Feed(field).page(kinds=both)).events == tuple(await told(field))


@requirement("openwop:events:since")
async def test_since_is_an_id_or_a_time(field: LocalField) -> None:
    await seed(field, "notes", "a")
    clock = field._clock
    clock.advance(60_000)  # type: ignore[attr-defined]  # the test's own
    await seed(field, "notes", "b")
    first, second = await told(field)
    feed = Feed(field)
    assert (await feed.page(since=first.id)).events == (second,)
    assert (await feed.page(since=second.ts)).events == (second,)
    assert (await feed.page(since=first.ts.replace("Z", "+00:00"))).events == (first, second)
    assert (await feed.page(since="2999-01-01T00:00:00Z")).events == ()


@requirement("openwop:events:paged")
async def test_where_there_is_nothing_the_next_page_begins_where_this_one_did(field: LocalField) -> None:
    feed = Feed(field)
    assert (await feed.page()).next == "0"
    await seed(field, "notes", "a")
    for since in ("2999-01-01T00:00:00Z", (await told(field))[0].id):
        assert (await feed.page(since=since)).next == since


@requirement("openwop:events:since")
@pytest.mark.parametrize(
    "since",
    [
        *("", "yesterday", "24h", "-1", "1.5", "٣", "9" * 17, "2026-01-31", "2026-01-31T08:00:00"),
        *("2026-02-30T08:00:00Z", "2026-01-31 08:00:00Z", "2026-01-31T25:00:00Z", "2026-01-31T08:00:60Z", "1' OR 1=1"),
    ],
)
async def test_a_since_that_is_neither_is_refused(field: LocalField, since: str) -> None:
    with pytest.raises(InvalidPayload, match="since must be a cursor, or a time"):
        await Feed(field).page(since=since)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_a_limit_out_of_bounds_is_refused(field: LocalField, limit: int) -> None:
    with pytest.raises(InvalidPayload):
        await Feed(field).page(limit=limit)


@requirement("openwop:events:since")
@given(since=st.one_of(st.text(max_size=40), st.datetimes().map(lambda at: f"{at.isoformat()}Z")))
async def test_any_since_is_answered_or_refused_and_never_an_exception(since: str) -> None:
    field = await opened()
    try:
        await Feed(field).page(since=since)
    except InvalidPayload:
        pass
    finally:
        await field.close()


# --- following --------------------------------------------------------------------------------------------------------


@requirement("openwop:events:sse")
async def test_following_tells_what_was_and_then_what_happens(field: LocalField) -> None:
    await seed(field, "notes", "a")
    events = Feed(field).follow(kinds=["memory.written"])
    assert (await anext(events)).payload["memoryId"] == "a"
    waiting = asyncio.ensure_future(anext(events))
    await join(field, "ada")  # the log grows, and there is nothing to tell
    await seed(field, "notes", "b")
    assert (await waiting).payload["memoryId"] == "b"


async def test_the_first_after_a_cursor_is_waited_for(field: LocalField) -> None:
    waiting = asyncio.ensure_future(Feed(field).first(since="0"))
    await seed(field, "notes", "a", "b")
    first = await waiting
    assert first.payload["memoryId"] == "a"
    assert (await Feed(field).first(since=first.id)).payload["memoryId"] == "b"


async def test_a_log_that_does_not_grow_is_not_waited_for_any_longer_than_was_said(field: LocalField) -> None:
    feed = Feed(field)
    assert not await feed.grown(feed.head, timeout_s=0.001)
    await seed(field, "notes", "a")
    assert await feed.grown(0, timeout_s=30)


# --- marks ------------------------------------------------------------------------------------------------------------


async def test_whoever_follows_for_the_first_time_begins_now_and_later_where_they_were() -> None:
    store = MemoryStore(KEY)
    field = await opened(store=store)
    await seed(field, "notes", "a")
    begun = await FeedMark(field.audit, "somebody").cursor()
    await seed(field, "notes", "b", "c")
    assert await since(field, begun) == ["b", "c"]
    assert await FeedMark(field.audit, "somebody").cursor() == begun
    first = (await Feed(field).page(since=begun)).events[0]
    await FeedMark(field.audit, "somebody").reached(first.id)
    assert await since(field, await FeedMark(field.audit, "somebody").cursor()) == ["c"]
    await field.close()


async def test_whoever_came_before_anything_happened_misses_nothing(field: LocalField) -> None:
    assert await FeedMark(field.audit, "somebody").cursor() == "0"
    await seed(field, "notes", "a")
    assert await since(field, await FeedMark(field.audit, "somebody").cursor()) == ["a"]


async def test_a_mark_beyond_the_log_is_one_of_another_copy_of_the_store(field: LocalField) -> None:
    await FeedMark(field.audit, "somebody").reached("900")
    await seed(field, "notes", "a")
    cursor = await FeedMark(field.audit, "somebody").cursor()
    await seed(field, "notes", "b")
    assert await since(field, cursor) == ["b"]


# --- helpers of these tests -------------------------------------------------------------------------------------------


async def seed(field: LocalField, memory: str, *ids: str) -> None:
    entries = [SeedEntry(id=entry_id, content=f"Entry {entry_id} tells of pears.") for entry_id in ids]
    await MemoryAdapter(field).seed(memory, entries)


async def summarized(field: LocalField, agent: str, session: str | None) -> str:
    """The id of the synthesis."""
    wanted = CompactFilter(session_id=session, types=("finding",))
    reply = await field.send(Message("COMPACT", agent, Compact("summarize", wanted, verify=False)))
    assert isinstance(reply, Compacted)
    [output] = reply.synthesis_units or ()
    return output


async def told(field: LocalField, *kinds: FeedKind) -> list[FeedEvent]:
    return list((await Feed(field).page(kinds=kinds or None, limit=1_000)).events)


async def paged(field: LocalField, limit: int) -> list[FeedEvent]:
    found: list[FeedEvent] = []
    page = await Feed(field).page(limit=limit)
    while page.events:
        assert len(page.events) <= limit
        found += page.events
        page = await Feed(field).page(since=page.next, limit=limit)
    return found


async def since(field: LocalField, cursor: str) -> list[Any]:
    return [event.payload["memoryId"] for event in (await Feed(field).page(since=cursor)).events]
