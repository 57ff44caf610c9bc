"""Consolidation of a memory: what says the same is said once, what is out of date gives way, and nobody misses it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.events import ConflictResolved, MemoryConsolidated, UnitReinstated, UnitSuperseded
from fieldstone.field import consolidating
from fieldstone.field.consolidating import CORROBORATED, Candidate, Consolidation, GaveWay
from fieldstone.field.entries import KeptEntry
from fieldstone.field.field import LocalField
from fieldstone.field.options import MemoryOptions, Options
from fieldstone.field.putting import NewEntry
from fieldstone.retrieval.duplicates import restates
from fieldstone.testing.world import ManualClock, SeededIds
from tests.protocol.ways import Place, open_field_at
from tests.requirements import requirement

DARK = "The user prefers dark mode in the editor."
DARK_AGAIN = "User prefers dark mode in the editor"
HUNDRED = "The API rate limit is 100 requests per second."
FIFTY = "The API rate limit is 50 requests per second."
HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidating, "PAUSE_MS", 0)


@pytest.fixture(params=["memory", "sqlite"])
async def field(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalField]:
    field = await open_host(tmp_path / "field.db" if request.param == "sqlite" else None)
    yield field
    await field.close()


async def open_host(path: Path | None = None, **options: Any) -> LocalField:
    return await open_field_at(Place(path, Options(**options), ManualClock(), SeededIds()))


async def put(field: LocalField, content: str, *tags: str, memory: str = "m", by: Caller = LOCAL, **more: Any) -> int:
    [kept] = await field.memories.entries.put(by, memory, [NewEntry(content=content, tags=tags, **more)])
    return kept.row.unit


async def consolidate(field: LocalField, memory: str = "m") -> MemoryConsolidated:
    told = await field.memories.consolidating.consolidate(memory)
    assert told is not None
    event = (await field.audit.entries([told.seq]))[told.seq].event
    assert isinstance(event, MemoryConsolidated)
    return event


async def listed(field: LocalField, memory: str = "m", **how: Any) -> Sequence[KeptEntry]:
    return await field.memories.entries.list(memory, limit=None, **how)


async def units(field: LocalField, memory: str = "m", **how: Any) -> list[int]:
    return [each.row.unit for each in await listed(field, memory, **how)]


async def events(field: LocalField, kind: type) -> list[Any]:
    lines = (await field.log(limit=1_000)).entries
    return [line.entry.event for line in lines if isinstance(line.entry.event, kind)]


# --- what gives way ---------------------------------------------------------------------------------------------------


@requirement("openwop:consolidation:merges")
async def test_of_entries_that_say_the_same_the_newest_stays(field: LocalField) -> None:
    first, second = await put(field, DARK), await put(field, DARK)
    other, newest = await put(field, "The user lives in Lisbon."), await put(field, DARK_AGAIN)
    event = await consolidate(field)
    assert (event.inputs, event.outputs, set(event.units)) == (4, 2, {first, second})
    assert await units(field) == [newest, other]
    assert {(each.unit, each.by_unit) for each in await events(field, UnitSuperseded)} == {
        (first, newest),
        (second, newest),
    }


@requirement("openwop:consolidation:supersedes")
async def test_an_entry_that_a_newer_one_contradicts_gives_way(field: LocalField) -> None:
    old, new = await put(field, HUNDRED), await put(field, FIFTY)
    event = await consolidate(field)
    assert (event.inputs, event.outputs, event.units) == (2, 1, (old,))
    assert await units(field) == [new]


@requirement("openwop:consolidation:idempotent")
async def test_a_second_consolidation_changes_nothing(field: LocalField) -> None:
    for content in (HUNDRED, DARK, FIFTY, DARK_AGAIN, HUNDRED, "The user lives in Lisbon."):
        await put(field, content, "seen")
    await consolidate(field)
    before, changes = await listed(field), len(await events(field, UnitSuperseded))
    event = await consolidate(field)
    assert (event.inputs, event.outputs, event.units) == (3, 3, ())
    assert await listed(field) == before
    assert len(await events(field, UnitSuperseded)) == changes


@requirement("openwop:consolidation:supersedes")
async def test_what_was_put_out_of_date_does_not_come_back_when_its_successor_goes() -> None:
    found = gave_way("The server does not run in Rome.", "The server runs in Rome.", "The server runs in Paris.")
    assert {(each.unit, each.by) for each in found} == {(1, 3), (2, 3)}


@requirement("openwop:consolidation:one-ref")
async def test_only_the_one_memory_is_touched(field: LocalField) -> None:
    await put(field, DARK), await put(field, DARK)
    others = [await put(field, DARK, memory="n"), await put(field, DARK, memory="n")]
    await consolidate(field)
    assert await units(field, "n") == others[::-1]


async def test_a_memory_that_nobody_wrote_to_is_none(field: LocalField) -> None:
    assert await field.memories.consolidating.consolidate("nobody's") is None


@requirement("openwop:consolidation:event")
async def test_an_empty_memory_is_told_as_empty(field: LocalField) -> None:
    await put(field, DARK, expires_ms=field.memories.now_ms() + HOUR_MS)
    advance(field, HOUR_MS)
    event = await consolidate(field)
    assert (event.inputs, event.outputs) == (0, 0)


@requirement("openwop:consolidation:event")
async def test_many_that_give_way_are_counted_and_told_once(field: LocalField) -> None:
    last = 0
    for _ in range(120):
        last = await put(field, DARK)
    event = await consolidate(field)
    assert (event.inputs, event.outputs, event.units) == (120, 1, ()), "above 100 they are counted"
    assert await units(field) == [last]
    assert len(await events(field, MemoryConsolidated)) == 1


# --- nobody misses anything -------------------------------------------------------------------------------------------


@requirement("openwop:consolidation:merges")
async def test_the_one_that_stays_is_found_by_the_tags_of_those_that_said_the_same(field: LocalField) -> None:
    await put(field, DARK, "ui", "user:42", id="a")
    newest = await put(field, DARK_AGAIN, "editor", id="b", node_id="n-1")
    await consolidate(field)
    assert await units(field, tag="ui") == await units(field, tag="user:42") == [newest]
    [kept] = await listed(field)
    assert (kept.id, kept.content, kept.node_id) == ("b", DARK_AGAIN, "n-1")
    assert kept.tags[:3] == ("editor", "ui", "user:42")


@requirement("openwop:consolidation:supersedes")
async def test_what_is_out_of_date_takes_its_tags_with_it(field: LocalField) -> None:
    await put(field, HUNDRED, "limits")
    await put(field, FIFTY)
    await consolidate(field)
    assert await units(field, tag="limits") == []


@requirement("openwop:consolidation:strengthens")
async def test_what_another_source_said_before_is_marked_as_corroborated(field: LocalField) -> None:
    await put(field, DARK, agent_id="ada")
    await put(field, HUNDRED, agent_id="ada")
    corroborated = await put(field, DARK, agent_id="ben")
    repeated = await put(field, HUNDRED, agent_id="ada")
    await consolidate(field)
    assert await units(field) == [repeated, corroborated]
    assert await units(field, tag=CORROBORATED) == [corroborated], "whoever repeats himself is no second witness"


@requirement("openwop:consolidation:keeps")
async def test_no_entry_gives_way_to_one_that_expires_earlier(field: LocalField) -> None:
    soon, late = field.memories.now_ms() + HOUR_MS, field.memories.now_ms() + 2 * HOUR_MS
    for_ever, later = await put(field, DARK), await put(field, DARK, expires_ms=late)
    sooner, contradicted = await put(field, DARK, expires_ms=soon), await put(field, HUNDRED)
    contradicting = await put(field, FIFTY, expires_ms=soon)
    await consolidate(field)
    assert await units(field) == [contradicting, contradicted, sooner, later, for_ever]
    newest = await put(field, DARK)
    await consolidate(field)
    assert await units(field) == [newest, contradicting, contradicted]


@requirement("openwop:consolidation:keeps")
async def test_no_entry_gives_way_to_one_that_is_trusted_less(field: LocalField) -> None:
    chief, guest = Caller("key-chief", 9), Caller("key-guest", 4)
    trusted = [await put(field, DARK, by=chief), await put(field, HUNDRED, by=chief)]
    doubted = [await put(field, DARK, by=guest), await put(field, FIFTY, by=guest)]
    await consolidate(field)
    assert await units(field) == [*doubted[::-1], *trusted[::-1]]


@requirement("openwop:consolidation:keeps")
@pytest.mark.parametrize("guard", ["hold", "pin"])
async def test_what_is_held_or_pinned_stays(field: LocalField, guard: Any) -> None:
    [kept] = await field.memories.entries.put(LOCAL, "m", [NewEntry(content=DARK)])
    await field.guard(kept.unit_id, guard)
    older, newest = await put(field, DARK), await put(field, DARK)
    event = await consolidate(field)
    assert event.units == (older,)
    assert await units(field) == [newest, kept.row.unit]


@requirement("openwop:consolidation:long-term")
async def test_what_a_compaction_made_takes_no_part(field: LocalField) -> None:
    sources = [await put(field, DARK), await put(field, HUNDRED)]
    assert await field.memories.condensing.compact("m", sources, why="a test")
    [output] = await units(field)
    same = await put(field, (await listed(field))[0].content)
    event = await consolidate(field)
    assert (event.inputs, event.outputs) == (2, 2)
    assert await units(field) == [same, output]


@requirement("openwop:snapshot:replay")
async def test_a_run_that_began_before_still_sees_what_gave_way(field: LocalField) -> None:
    made_before = [await put(field, DARK), await put(field, DARK)]
    moment = field.memories.entries.begin()
    await consolidate(field)
    assert await units(field, moment=moment) == made_before[::-1]
    assert await units(field) == [made_before[1]]


@requirement("openwop:consolidation:long-term")
async def test_the_texts_stay_the_log_is_whole_and_the_views_can_be_built_again(field: LocalField) -> None:
    first = await put(field, DARK, "ui")
    await put(field, DARK, "editor", agent_id="ada")
    await consolidate(field)
    before = await listed(field)
    assert await field.audit.texts([first]), "until it is compacted or deleted"
    assert (await field.verify()).ok
    await field.rebuild()
    assert await listed(field) == before
    assert await units(field, tag="ui") == [before[0].row.unit]


@requirement("openwop:forget:reaches-consolidated")
async def test_what_gave_way_is_still_within_reach_of_those_who_may_erase_it(field: LocalField) -> None:
    expiring = await put(field, HUNDRED, expires_ms=field.memories.now_ms() + HOUR_MS)
    tagged, sourced = await put(field, DARK, "user:42"), await put(field, DARK, agent_id="ada")
    await put(field, FIFTY)
    newest = await put(field, DARK)
    await consolidate(field)
    gave_way = [expiring, tagged, sourced]
    assert set(await field.audit.texts(gave_way)) == set(gave_way)
    advance(field, HOUR_MS)
    await field.memories.entries.drop_expired()
    await field.memories.entries.forget(LOCAL, "m", source="ada")
    assert set(await field.audit.texts(gave_way)) == {tagged}
    await field.memories.entries.forget(LOCAL, "m", tag="user:42")
    assert not await field.audit.texts([tagged, newest]), "also the one that bears its tag now"
    assert (await field.verify()).ok


async def test_an_export_brings_the_consolidated_memory_to_another_field(field: LocalField) -> None:
    await put(field, DARK, "ui", id="a")
    await put(field, DARK, "editor", id="b", agent_id="ada")
    await consolidate(field)
    other = await open_host()
    lines = b"".join([chunk async for chunk in field.export()]).splitlines(keepends=True)
    await other.import_lines(lines)
    here, there = await listed(field), await listed(other)
    assert [(each.id, each.tags) for each in there] == [(each.id, each.tags) for each in here]
    assert len(await units(other, tag="ui")) == 1
    event = await consolidate(other)
    assert (event.inputs, event.outputs) == (1, 1)
    await other.close()


@requirement("openwop:sr-1:tags-joined")
async def test_tags_that_are_joined_are_cleaned_of_secrets_that_became_known_since(field: LocalField) -> None:
    value = "plum harbour 9417 quartz".replace(" ", "-")  # nothing about it looks like a secret
    await put(field, DARK, f"theirs {value}")
    await put(field, DARK, f"own {value}")
    await field.put_secret("late", value)
    await consolidate(field)
    [kept] = await listed(field)
    assert kept.tags == ("own [REDACTED:late]", "theirs [REDACTED:late]")


# --- others write meanwhile -------------------------------------------------------------------------------------------


async def test_entries_that_changed_meanwhile_are_left(field: LocalField) -> None:
    entries = field.memories.entries
    for content in (DARK, DARK, HUNDRED, FIFTY):
        await put(field, content)
    work = field.memories.consolidating
    session = await entries.session("m")
    inputs, found = await work._compared("m")
    fifty, hundred, *_ = await listed(field)
    await entries.delete(LOCAL, "m", fifty.id)
    assert session is not None
    told = await work._carried_out(session, inputs, found.gave_way)
    assert len(await listed(field)) == 2
    assert hundred.row.unit in await units(field), "what it gave way to is no more"
    event = (await field.audit.entries([told.seq]))[told.seq].event
    assert isinstance(event, MemoryConsolidated)
    assert event.outputs == event.inputs - 1


@requirement("openwop:consolidation:supersedes")
async def test_a_dispute_ends_with_the_entry_that_gives_way_and_nothing_comes_back() -> None:
    field = await open_host(memories=MemoryOptions(detect_conflicts=True), detection_timeout_ms=60_000)
    for content in (HUNDRED, FIFTY, HUNDRED.replace("100", "75")):
        await put(field, content)
    await field._writer.drain()
    disputed = len(await field.conflicts())
    assert disputed
    event = await consolidate(field)
    assert event.outputs == 1
    assert not await field.conflicts(("detected", "resolving", "escalated"))
    assert len(await events(field, ConflictResolved)) == disputed, "each of them once"
    [newest] = await listed(field)
    gone = {each.unit for each in await events(field, UnitSuperseded)}
    rows = await field.audit.units([*gone, newest.row.unit])
    assert {rows[unit].status for unit in gone} == {"superseded"}
    assert rows[newest.row.unit].status == "active"
    assert await events(field, UnitReinstated)
    await field.close()


# --- deciding, without a field ----------------------------------------------------------------------------------------


@requirement("openwop:consolidation:merges")
@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (DARK_AGAIN, DARK),
        ("Backups run nightly at 02:00 UTC.", "The backup runs nightly at 02:00 UTC"),
        ("The deploy of the shop takes 40 minutes on weekdays.", "Deploy of the shop takes 40 minutes."),
    ],
)
def test_what_says_all_of_it_takes_its_place(newer: str, older: str) -> None:
    assert gave_way(newer, older)


@requirement("openwop:consolidation:keeps")
@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Ben reports to Ada since spring.", "Ada reports to Ben since spring."),
        ("The client calls the server.", "The server calls the client."),
        ("The backup runs before the deploy of the shop.", "The backup runs after the index of the shop."),
        ("Deploy of the shop takes 40 minutes.", "The deploy of the shop takes 40 minutes on weekdays."),
        ("The cache of the search service holds user sessions.", "The cache of the search service holds pictures."),
        ("Server 17 is in the basement.", "Server 71 is in the basement."),
        ("Is the rate limit 50?", HUNDRED),
        (FIFTY, HUNDRED + " The team wants to raise it next year."),
        ("Today the deploy of the shop failed.", "Today the deploy of the shop succeeded."),
    ],
)
def test_what_would_be_lost_stays(newer: str, older: str) -> None:
    assert not gave_way(newer, older)


@requirement("openwop:consolidation:keeps")
def test_who_says_i_is_somebody_else_each_time() -> None:
    older, newer = "I live in Paris.", "I live in Rome."
    assert gave_way(newer, older)
    apart = [Candidate(2, newer, source=(1, "ada", None)), Candidate(1, older, source=(1, "ben", None))]
    assert not looked_at(apart).gave_way


@requirement("openwop:consolidation:keeps")
def test_a_document_gives_way_to_the_same_one_alone() -> None:
    long = HUNDRED + " And so on." * 300
    assert gave_way(long, long)
    assert not gave_way(FIFTY, long)
    assert not gave_way(long + " It is all.", long)


@requirement("openwop:consolidation:merges")
def test_an_entry_whose_tags_find_no_room_stays() -> None:
    many = tuple(f"t{at}" for at in range(consolidating.MOST_TAGS))
    found = looked_at([Candidate(3, DARK, many), Candidate(2, DARK, ("more",)), Candidate(1, DARK, ("t1",))])
    assert found.gave_way == [GaveWay(1, 3)]


SUBJECTS = ("The API rate limit", "The cache", "Server 17", "The deploy of the shop")
SAYS = ("is 50 requests", "is 100 requests", "is open", "is closed", "is not open", "runs in Rome", "runs in Paris")
ENDS = ("", ".", " on Mondays", " also on Mondays.")
CORPUS = st.lists(
    st.builds(
        lambda subject, says, end, trust, hours, stays, source: (f"{subject} {says}{end}", trust, hours, stays, source),
        st.sampled_from(SUBJECTS),
        st.sampled_from(SAYS),
        st.sampled_from(ENDS),
        st.sampled_from((4, 4, 4, 9)),
        st.sampled_from((None, None, None, 1, 2)),
        st.sampled_from((False, False, False, True)),
        st.sampled_from(("ada", "ben")),
    ),
    max_size=30,
)


@given(CORPUS)
def test_what_stands_stands_for_what_gave_way_and_still_stands_after_the_next(corpus: list[Any]) -> None:
    entries = [
        Candidate(unit, text, (text,), (1, source, None), trust, hours, stays)
        for unit, (text, trust, hours, stays, source) in enumerate(corpus)
    ][::-1]
    found = looked_at(entries)
    by_unit, gone = {each.unit: each for each in entries}, {each.unit for each in found.gave_way}
    assert len(gone) == len(found.gave_way)
    for unit, by, tags in found.gave_way:
        older, newer = by_unit[unit], by_unit[by]
        assert by > unit
        assert by not in gone
        assert not older.stays
        assert newer.trust >= older.trust
        assert newer.expires_ms is None or (older.expires_ms or 0) in range(1, newer.expires_ms + 1)
        assert not tags or restates(newer.text, older.text)
    joined = {each.by: each.tags for each in found.gave_way}
    left = [each._replace(tags=(*each.tags, *joined.get(each.unit, ()))) for each in entries if each.unit not in gone]
    assert not looked_at(left).gave_way


def test_a_memory_ten_times_as_long_costs_about_ten_times_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def count(*_: Any) -> None:
        nonlocal counted
        counted += 1

    monkeypatch.setattr(consolidating, "judge", count)
    costs = []
    for size in (100, 1_000):
        counted = 0
        looked_at([Candidate(unit, f"Server {unit} of the shop runs in Rome.") for unit in range(size, 0, -1)])
        costs.append(counted)
    assert costs[1] <= 13 * costs[0]


def gave_way(*newest_first: str) -> list[GaveWay]:
    """Units are numbered from the oldest, 1, to the newest."""
    count = len(newest_first)
    return looked_at([Candidate(count - at, text) for at, text in enumerate(newest_first)]).gave_way


def looked_at(entries: Sequence[Candidate]) -> Consolidation:
    found = Consolidation()
    found.look_at(entries)
    return found


def advance(field: LocalField, ms: int) -> None:
    assert isinstance(field._clock, ManualClock)
    field._clock.advance(ms)
