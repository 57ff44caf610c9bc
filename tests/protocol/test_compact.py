"""COMPACT: archive, summarize and purge, through every way in."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fieldstone.backends.sqlite.cold import SqliteCold
from fieldstone.core.errors import StorageFull, UnitPurged
from fieldstone.core.events import CompactionBegun, CompactionEnded, MemoryCompacted, UnitsArchived, UnitsPurged
from fieldstone.ports.store import Commit
from fieldstone.testing import FaultyStore
from tests.protocol.rig import Body, Rig, ids, kind_of, relation
from tests.protocol.rig import unit as payload_of
from tests.protocol.ways import DURABLE, on_disk
from tests.redact.fakes import TOKENS
from tests.requirements import requirement


@pytest.fixture
async def field(field: Rig) -> Rig:
    await field.register("op", role="operator", authority=10)
    await field.register("ada", authority=6)
    await field.register("ben")
    return field


async def compact(field: Rig, strategy: str, agent: str = "op", **payload: Any) -> Body:
    return await field.ask("COMPACT", agent, {"strategy": strategy, **payload})


async def findings(field: Rig, count: int, *, session: str | None = None, word: str = "server") -> list[str]:
    return [
        await field.record("ben", f"The {word} number {at} holds {at * 7} entries of the cache.", session=session)
        for at in range(count)
    ]


@requirement("akashik:compact:archive-out-of-attune")
async def test_archived_units_leave_attune_unless_they_are_asked_for(field: Rig) -> None:
    units = await findings(field, 5)
    answer = await compact(field, "archive")
    assert (answer["status"], answer["units_affected"], answer["synthesis_units_created"]) == ("ok", 5, 0)
    assert answer["storage_reclaimed_bytes"] > 0
    assert await field.seen_by("ada") == set()
    assert await field.seen_by("ada", include_archived=True) == set(units)
    assert await field.seen_by("ada", temporal_layers=["past"]) == set(units)


@requirement("akashik:compact:archive-readable", "akashik:compact:archive-out-of-attune")
async def test_an_archived_unit_is_read_whole_and_found_by_its_words(field: Rig) -> None:
    units = await findings(field, 5)
    before = [await field.unit(unit) for unit in units]
    await compact(field, "archive")
    for unit, was in zip(units, before, strict=True):
        now = await field.unit(unit)
        assert (now.content, now.status, now.intent) == (was.content, was.status, was.intent)
        assert now.archived_epoch
    found = await field.attune("ada", "cache 21 entries", include_archived=True, max_units=1)
    assert ids(found) == [units[3]]


@requirement("akashik:compact:restore")
async def test_restored_units_are_back_and_their_status_is_what_it_was(field: Rig) -> None:
    units = await findings(field, 4)
    await field.record("ben", "Corrected.", relations=[relation("supersedes", units[0])])
    answer = await compact(field, "archive", filter={"max_age_epochs": 0})
    assert answer["units_affected"] >= 4
    assert await field.door.restore(units) == 4
    assert await field.seen_by("ada") >= set(units[1:])
    assert (await field.unit(units[0])).status == "superseded"
    assert await field.door.restore(units) == 0


@requirement("akashik:compact:filter")
async def test_the_filter_is_exact(field: Rig) -> None:
    old = await findings(field, 3, session="one")
    question = await field.record("ben", "Is it so?", type="question", session="one")
    epoch = await field.epoch()
    new = await findings(field, 3, session="two")
    for filter_, expected in (
        ({"session_id": "two"}, 3),
        ({"types": ["question"]}, 1),
        ({"session_id": "nowhere"}, 0),
        ({"status": ["retracted"]}, 0),
        ({"max_age_epochs": await field.epoch() - epoch}, 3),  # strictly older than the question
        ({}, 7),
    ):
        assert (await compact(field, "archive", dry_run=True, filter=filter_))["units_affected"] == expected, filter_
    await compact(field, "archive", filter={"types": ["question"], "session_id": "one"})
    assert await field.seen_by("ada") == {*old, *new}
    assert (await field.unit(question)).archived_epoch


@requirement("akashik:compact:filter-malformed")
@pytest.mark.parametrize(
    "payload",
    [
        {"strategy": "purge"},
        {"strategy": "purge", "filter": {}},
        {"strategy": "archive", "filter": {"types": []}},
        {"strategy": "archive", "filter": {"status": []}},
        {"strategy": "archive", "filter": {"status": ["nonsense"]}},
        {"strategy": "archive", "filter": {"max_age_epochs": -1}},
        {"strategy": "archive", "filter": {"colour": "blue"}},
        {"strategy": "melt"},
        {"filter": {}},
    ],
    ids=str,
)
async def test_what_is_malformed_is_refused(field: Rig, payload: Body) -> None:
    await field.refused("INVALID_PAYLOAD", "COMPACT", "op", payload)


@requirement("akashik:compact:authority")
async def test_who_may_not_is_refused(field: Rig) -> None:
    await findings(field, 2)
    await field.refused("FORBIDDEN", "COMPACT", "ben", {"strategy": "archive"})
    await field.refused("FORBIDDEN", "COMPACT", "ada", {"strategy": "purge", "filter": {"max_age_epochs": 0}})
    await field.refused("AGENT_NOT_REGISTERED", "COMPACT", "nobody", {"strategy": "archive"})
    assert (await compact(field, "archive", "ada"))["units_affected"] == 2


@requirement("akashik:compact:nothing-matches")
async def test_nothing_to_compact_is_no_error_and_leaves_nothing(field: Rig) -> None:
    before = await field.trace()
    for strategy in ("archive", "summarize", "purge"):
        answer = await compact(field, strategy, filter={"session_id": "nowhere"})
        assert (answer["status"], answer["units_affected"]) == ("ok", 0)
    assert await field.trace() == before


@requirement("akashik:compact:repeatable")
async def test_the_same_compaction_twice_changes_nothing_more(field: Rig) -> None:
    await findings(field, 6)
    await compact(field, "archive")
    before = await field.trace()
    assert (await compact(field, "archive"))["units_affected"] == 0
    assert await field.trace() == before


@requirement("akashik:compact:repeatable")
async def test_a_message_that_is_sent_again_gets_the_first_answer(field: Rig) -> None:
    await findings(field, 3)
    envelope = field.envelope("COMPACT", "op", {"strategy": "archive"})
    _, first = await field.send_envelope(envelope)
    before = await field.trace()
    assert (await field.send_envelope(envelope))[1] == first
    assert await field.trace() == before


@requirement("akashik:compact:dry-run")
async def test_a_dry_run_says_what_it_would_do_and_does_nothing(field: Rig) -> None:
    units = await findings(field, 8, session="talk")
    before = await field.trace()
    plan = await compact(field, "summarize", dry_run=True)
    assert await field.trace() == before
    [group] = plan["groups"]
    assert (group["units"], group["session_id"], set(group["unit_ids"])) == (8, "talk", set(units))
    assert group["tokens_after"] < group["tokens_before"]
    assert group["bytes"] > 0
    assert (await compact(field, "summarize"))["units_affected"] == plan["units_affected"]


@requirement("akashik:compact:synthesis", "akashik:compact:field-voice")
async def test_summarize_makes_a_synthesis_that_elaborates_all_originals_and_archives_them(field: Rig) -> None:
    units = await findings(field, 12, session="talk")
    answer = await compact(field, "summarize")
    assert (answer["units_affected"], answer["synthesis_units_created"]) == (12, 1)
    [synthesis] = answer["synthesis_units"]
    unit = await field.unit(synthesis)
    assert (unit.type, unit.status, unit.source.agent_id, unit.source.agent_role) == (
        "synthesis",
        "active",
        "field",
        "field",
    )
    assert unit.source.session_id == "talk"
    assert {(each.type, each.target_id) for each in unit.relations} == {("elaborates", one) for one in units}
    assert await field.seen_by("ada") == {synthesis}
    [shown] = (await field.attune("ada"))["record"]
    assert shown["derived_from"] == {"units": 12, "agents": ["ben"]}


@requirement("akashik:compact:verbatim")
async def test_decisions_questions_and_contested_units_are_quoted_word_for_word(field: Rig) -> None:
    await findings(field, 20)
    said = {
        "decision": "We go with the blue option, come what may.",
        "constraint": "Nothing may run at night.",
        "question": "Who pays for the third server?",
    }
    for kind, content in said.items():
        await field.record("ben", content, type=kind)
    one = await field.record("ben", "The door of the vault is open today.")
    await field.record("ada", "No, it stays shut.", relations=[relation("contradicts", one)])
    answer = await compact(field, "summarize")
    content = (await field.unit(answer["synthesis_units"][0])).content
    for text in (*said.values(), "The door of the vault is open today.", "No, it stays shut."):
        assert text in content


@requirement("akashik:compact:not-said-again")
async def test_what_was_taken_back_is_not_said_again(field: Rig) -> None:
    units = await findings(field, 6)
    wrong = await field.record("ben", "The moon is made of marzipan, and 4711 of it.")
    await field.ask("RETRACT", "ben", {"memory_unit_id": wrong, "reason": "it is not"})
    answer = await compact(field, "summarize")
    assert answer["units_affected"] == len(units) + 1
    assert "marzipan" not in (await field.unit(answer["synthesis_units"][0])).content


async def test_a_synthesis_tells_in_plain_words_how_many_units_it_quotes(field: Rig) -> None:
    for session, count in (("one", 1), ("two", 2)):
        await findings(field, count, session=session)
    made = [await field.unit(each) for each in (await compact(field, "summarize"))["synthesis_units"]]
    told = {
        each.source.session_id: (each.intent.purpose, each.confidence and each.confidence.reasoning) for each in made
    }
    assert told == {
        "one": ("to keep what one unit says in fewer words", "Made from one unit of ben, which is quoted."),
        "two": ("to keep what 2 units say in fewer words", "Made from 2 units of ben, of which 1 is quoted."),
    }


@requirement("akashik:compact:no-surer")
async def test_a_synthesis_is_no_surer_and_no_more_trusted_than_what_it_quotes(field: Rig) -> None:
    await field.register("guest", authority=4)
    await field.record("guest", "Perhaps 12 of them.", confidence={"score": 0.2, "reasoning": "heard it"})
    await field.record("op", "Surely 40 of them.", confidence={"score": 1.0, "reasoning": "counted"})
    answer = await compact(field, "summarize")
    unit = await field.unit(answer["synthesis_units"][0])
    assert unit.confidence is not None
    assert unit.confidence.score == 0.2
    [shown] = (await field.attune("ada"))["record"]
    assert shown["trust"] == 4


@requirement("akashik:compact:sessions-apart")
async def test_groups_never_mix_sessions(field: Rig) -> None:
    for session in ("one", "two", None):
        await findings(field, 4, session=session)
    answer = await compact(field, "summarize")
    sessions = {(await field.unit(unit)).source.session_id for unit in answer["synthesis_units"]}
    assert (answer["synthesis_units_created"], sessions) == (3, {"one", "two", None})


@requirement("akashik:compact:tombstone")
async def test_a_purged_unit_is_gone_for_good_and_leaves_a_tombstone(field: Rig) -> None:
    units = await findings(field, 3)
    answer = await compact(field, "purge", filter={"max_age_epochs": 0}, reason="asked for by the person")
    assert (answer["units_affected"], answer["residue"]) == (2, "none")
    with pytest.raises(UnitPurged) as gone:
        await field.unit(units[0])
    tombstone = gone.value.extra["tombstone"]
    assert isinstance(tombstone, dict)
    assert tombstone["unit_id"] == units[0]
    assert tombstone["reason"] == "asked for by the person"
    assert tombstone["deleted_at"].endswith("Z")
    assert await field.seen_by("ada", include_archived=True) == {units[2]}
    assert (await field.door.verify()).ok
    assert (await field.door.rebuild()).unchanged


@requirement("akashik:compact:purge-quotes")
async def test_purge_takes_archived_units_and_what_a_synthesis_quoted_of_them(field: Rig) -> None:
    await findings(field, 4)
    await field.record("ben", "The secret ingredient is cardamom 17.", type="decision")
    answer = await compact(field, "summarize")
    [synthesis] = answer["synthesis_units"]
    assert "cardamom" in (await field.unit(synthesis)).content
    purged = await compact(field, "purge", filter={"types": ["decision"]})
    assert purged["units_affected"] == 1
    with pytest.raises(UnitPurged):
        await field.unit(synthesis)
    [remade] = purged["synthesis_units"]
    unit = await field.unit(remade)
    assert "cardamom" not in unit.content
    assert len(unit.relations) == 4
    exported = b"".join([batch async for batch in field.door.export()])
    assert b"cardamom" not in exported


@requirement("akashik:compact:purge-ancestor")
async def test_purge_by_ancestor_takes_everything_that_was_derived(field: Rig) -> None:
    root = await field.record("ben", "The root.")
    child = await field.record("ben", "The child.", relations=[relation("caused_by", root)])
    grandchild = await field.record("ada", "The grandchild.", relations=[relation("elaborates", child)])
    other = await field.record("ben", "Another.")
    answer = await compact(field, "purge", filter={"ancestor_id": root})
    assert answer["units_affected"] == 2
    assert await field.seen_by("op") == {root, other}
    for unit in (child, grandchild):
        with pytest.raises(UnitPurged):
            await field.unit(unit)


@requirement("akashik:compact:purge-residue")
@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_no_byte_of_a_purged_text_is_left_in_any_file(field: Rig, tmp_path: Path) -> None:
    await findings(field, 30)
    await field.record("ben", "Quicksilver9 and xylophonist8 met at plumbago7.", session="s")
    await findings(field, 30, session="s")
    await field.attune("ada", "quicksilver9 xylophonist8")
    await compact(field, "summarize", filter={"session_id": "s"})
    await field.attune("ada", "plumbago7", include_archived=True)
    assert b"Quicksilver9" in on_disk(tmp_path)
    answer = await compact(field, "purge", filter={"session_id": "s"})
    assert answer["residue"] == "none"
    await field.restart()
    raw = on_disk(tmp_path)
    for part in (b"uicksilver9", b"ylophonist8", b"lumbago7"):
        assert part not in raw, part
    assert (await field.door.verify()).ok


@requirement("akashik:compact:guards")
async def test_held_and_pinned_units_stay_and_are_told(field: Rig) -> None:
    held, pinned, other = await findings(field, 3)
    await field.door.guard(held, "hold")
    await field.door.guard(pinned, "pin")
    for strategy in ("archive", "summarize", "purge"):
        answer = await compact(field, strategy, filter={"max_age_epochs": 0}, dry_run=True)
        told = {each["unit_id"]: each["reason"] for each in answer["skipped"]}
        assert told == {held: "held", pinned: "pinned"}
    answer = await compact(field, "purge", filter={"types": ["finding"]})
    assert answer["units_affected"] == 1
    with pytest.raises(UnitPurged):
        await field.unit(other)
    await field.door.unguard(held, "hold")
    assert (await compact(field, "archive"))["units_affected"] == 1


@requirement("akashik:compact:audit")
async def test_every_compaction_leaves_who_asked_what_matched_and_what_was_made_of_it(field: Rig) -> None:
    await findings(field, 3, session="talk")
    await compact(field, "summarize", filter={"session_id": "talk"})
    events = [line.entry.event for line in await field.log()]
    [begun] = [event for event in events if isinstance(event, CompactionBegun)]
    [archived] = [event for event in events if isinstance(event, UnitsArchived)]
    [compacted] = [event for event in events if isinstance(event, MemoryCompacted)]
    [ended] = [event for event in events if isinstance(event, CompactionEnded)]
    assert begun.strategy == "summarize"
    assert (archived.into, compacted.output) == (compacted.output, archived.into)
    assert (compacted.sources, len(compacted.units), compacted.bytes > 0) == (3, 3, True)
    assert (ended.state, ended.units, ended.syntheses) == ("done", 3, 1)


@requirement("akashik:compact:log-untouched")
async def test_the_log_is_only_appended_to_by_every_strategy(field: Rig) -> None:
    await findings(field, 6)
    before = await field.log()
    await compact(field, "archive", filter={"max_age_epochs": 4})
    await compact(field, "summarize", filter={"max_age_epochs": 2})
    await compact(field, "purge", filter={"max_age_epochs": 0})
    assert (await field.log())[: len(before)] == before
    assert (await field.door.verify()).ok
    assert any(isinstance(line.entry.event, UnitsPurged) for line in await field.log())


@requirement("akashik:compact:field-voice")
async def test_nobody_is_the_field_itself(field: Rig) -> None:
    await findings(field, 2)
    await compact(field, "summarize")
    await field.refused("AGENT_NOT_REGISTERED", "RECORD", "field", payload_of("As if I were it."))
    assert "field" not in {agent.id for agent in await field.door.agents()}


async def test_an_export_of_what_was_compacted_is_imported_whole(field: Rig, rigs: Any) -> None:
    await findings(field, 6, session="talk")
    await compact(field, "summarize", filter={"max_age_epochs": 3})
    await compact(field, "purge", filter={"max_age_epochs": 5})
    copy = await rigs()
    lines = b"".join([batch async for batch in field.door.export()]).splitlines()
    await copy.door.import_lines(lines)
    assert (await copy.door.verify()).ok
    assert [kind_of(line) for line in await copy.log()] == [kind_of(line) for line in await field.log()]
    assert await copy.seen_by("ada", include_archived=True) == await field.seen_by("ada", include_archived=True)


@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_what_was_compacted_is_so_after_a_restart(field: Rig) -> None:
    await findings(field, 6)
    answer = await compact(field, "summarize", filter={"max_age_epochs": 2})
    seen = await field.seen_by("ada")
    archived = await field.seen_by("ada", include_archived=True)
    await field.restart()
    assert await field.seen_by("ada") == seen
    assert await field.seen_by("ada", include_archived=True) == archived
    assert set(answer["synthesis_units"]) <= seen


@requirement("akashik:compact:tested")
async def test_a_summarize_is_tested_with_the_requests_that_were_really_made(field: Rig) -> None:
    await findings(field, 20)
    await field.record("ben", "The kiln of the potter cracked at 1240 degrees on Tuesday.")
    await field.attune("ada", "when did the kiln of the potter crack?", max_units=3)
    await field.record("ben", "What a read left goes with it.", session="elsewhere")
    answer = await compact(field, "summarize", dry_run=True)
    assert answer["tested"]["result"] == "tested"
    assert answer["tested"]["requests"] == 1
    assert 0 <= answer["tested"]["kept_share"] <= 1
    assert (await compact(field, "summarize", dry_run=True, verify=False))["tested"]["result"] == "skipped"


async def test_without_recorded_reads_a_summarize_is_untested(field: Rig) -> None:
    await findings(field, 4)
    assert (await compact(field, "summarize"))["tested"] == {"result": "untested", "requests": 0, "kept_share": None}


@requirement("akashik:compact:tested")
async def test_a_group_that_would_cost_too_much_is_left_as_it_is_and_told(field: Rig) -> None:
    """Every one of them was asked for, and few of them fit into a synthesis a fifth as long."""
    units = [
        await field.record("ben", f"The {word} of the old harbour was seen near the mill and the bridge that day.")
        for word in ("heron", "badger", "otter", "lynx", "marten", "kestrel", "weasel", "beaver", "osprey", "polecat")
    ]
    await field.attune("ada", "old harbour mill bridge", max_units=10)
    await field.record("ben", "What a read left goes with it.", session="elsewhere")
    answer = await compact(field, "summarize", filter={"types": ["finding"]})
    told = {each["unit_id"]: each["reason"] for each in answer["skipped"]}
    assert set(units) <= set(told)
    assert "no longer find" in told[units[0]]
    assert await field.seen_by("ada") >= set(units)
    assert (await compact(field, "summarize", verify=False))["units_affected"] >= len(units)


@requirement("akashik:compact:full-store")
@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
@pytest.mark.parametrize("strategy", ["archive", "purge"])
async def test_a_full_store_can_still_be_archived_and_purged_and_then_takes_writes_again(
    rigs: Any, strategy: str
) -> None:
    field = await rigs(max_bytes=2_000_000)
    await field.register("op", role="operator", authority=10)
    await field.register("ben")
    units, code = 0, None
    while code is None:
        body = (await field.send("RECORD", "ben", payload_of(f"{units} " + "of the same words " * 60))).body
        code = body.get("code")
        units += code is None
    assert code == "STORAGE_FULL"
    answer = await compact(field, strategy, filter={"types": ["finding"]})
    assert answer["units_affected"] == units
    assert (await field.door.verify()).ok
    await field.record("ben", "There is room again.")


async def test_a_draft_is_never_told_by_a_synthesis(field: Rig) -> None:
    await field.draft("ada", "Between us: the vault code is in the blue book.")
    await findings(field, 3)
    answer = await compact(field, "summarize", "ada", filter={"status": ["draft", "active"]})
    assert answer["units_affected"] == 3
    assert "blue book" not in (await field.unit(answer["synthesis_units"][0])).content


async def test_purge_takes_the_reasons_for_which_units_were_taken_back(field: Rig) -> None:
    wrong = await field.record("ben", "The aardvark4 sleeps.", session="s")
    await field.ask("RETRACT", "ben", {"memory_unit_id": wrong, "reason": "no aardvark4 was there"})
    draft = await field.draft("ben", "The pangolin5 sleeps.", session="s")
    await field.ask("DISCARD", "ben", {"memory_unit_id": draft, "reason": "no pangolin5 was there"})
    assert (await compact(field, "purge", filter={"session_id": "s"}))["units_affected"] == 2
    exported = b"".join([batch async for batch in field.door.export()])
    assert b"aardvark4" not in exported
    assert b"pangolin5" not in exported
    assert (await field.door.verify()).ok


async def test_a_purged_text_that_is_put_back_is_found_by_verify(rigs: Any) -> None:
    kept: list[FaultyStore] = []

    def keep(store: Any) -> FaultyStore:
        kept[:] = [FaultyStore(store)]
        return kept[0]

    field = await rigs(wrap=keep)
    await field.register("op", role="operator", authority=10)
    unit = await field.record("op", "It was here.")
    [seq] = [line.entry.seq for line in await field.log() if getattr(line.entry.event, "id", None) == unit]
    text = (await kept[0].texts.get([seq]))[seq]
    await compact(field, "purge", filter={"types": ["finding"]})
    assert (await field.door.verify()).ok
    await kept[0].commit(Commit(replaced_texts=[text]))
    fault = (await field.door.verify()).first_bad
    assert fault is not None
    assert (fault.seq, fault.part) == (seq, "text")


@requirement("akashik:compact:repeatable")
async def test_a_purge_that_is_sent_again_takes_nothing_that_came_since(field: Rig) -> None:
    await findings(field, 2, session="s")
    envelope = field.envelope("COMPACT", "op", {"strategy": "purge", "filter": {"session_id": "s"}})
    _, first = await field.send_envelope(envelope)
    later = await field.record("ben", "It came since.", session="s")
    assert (await field.send_envelope(envelope))[1] == first
    assert (await field.unit(later)).content == "It came since."
    other = envelope | {"payload": {"strategy": "purge", "filter": {"types": ["finding"]}}}
    assert (await field.send_envelope(other))[1]["code"] == "INVALID_ENVELOPE"


@requirement("akashik:compact:repeatable")
async def test_a_purge_that_found_nothing_finds_nothing_when_it_is_sent_again(field: Rig) -> None:
    envelope = field.envelope("COMPACT", "op", {"strategy": "purge", "filter": {"types": ["finding"]}})
    assert (await field.send_envelope(envelope))[1]["units_affected"] == 0
    await findings(field, 2)
    assert (await field.send_envelope(envelope))[1]["units_affected"] == 0


async def test_a_guarded_synthesis_that_quotes_a_purged_unit_is_told(field: Rig) -> None:
    await findings(field, 3)
    [synthesis] = (await compact(field, "summarize"))["synthesis_units"]
    await field.door.guard(synthesis, "pin")
    answer = await compact(field, "purge", filter={"types": ["finding"]})
    assert [(each["unit_id"], "still quotes" in each["reason"]) for each in answer["skipped"]] == [(synthesis, True)]
    assert answer["synthesis_units_created"] == 0


async def test_a_purge_that_comes_with_an_import_takes_the_texts_that_are_there(field: Rig, rigs: Any) -> None:
    await field.record("ben", "The quokka6 is gone soon.")
    copy = await rigs()
    await copy.door.import_lines(b"".join([batch async for batch in field.door.export()]).splitlines())
    await compact(field, "purge", filter={"types": ["finding"]})
    await copy.door.import_lines(b"".join([batch async for batch in field.door.export()]).splitlines())
    exported = b"".join([batch async for batch in copy.door.export()])
    assert b"quokka6" not in exported
    assert (await copy.door.verify()).ok


async def test_a_purged_synthesis_does_not_come_back(field: Rig) -> None:
    await findings(field, 6)
    [synthesis] = (await compact(field, "summarize"))["synthesis_units"]
    await compact(field, "purge", filter={"types": ["synthesis"]})
    answer = await compact(field, "purge", filter={"max_age_epochs": 4, "types": ["finding"]})
    assert answer["synthesis_units_created"] == 0
    with pytest.raises(UnitPurged):
        await field.unit(synthesis)


@requirement("akashik:compact:restore")
async def test_of_a_compaction_all_that_is_still_there_is_restored(field: Rig) -> None:
    units = await findings(field, 6)
    archived = await compact(field, "archive")
    await compact(field, "purge", filter={"max_age_epochs": 4, "types": ["finding"]})
    gone = [unit for unit in units if unit not in await field.seen_by("ada", include_archived=True)]
    assert await field.door.restore_compaction(archived["compaction_id"]) == 6 - len(gone)
    assert 0 < len(gone) < 6
    assert await field.seen_by("ada") == set(units) - set(gone)


@pytest.mark.parametrize("transport", DURABLE[:1], indirect=True)
async def test_a_clearing_that_failed_is_made_up_for_when_the_field_opens(
    field: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await field.record("ben", "The numbat7 is gone soon.", session="s")
    await compact(field, "archive", filter={"session_id": "s"})

    async def full(*_: object) -> None:
        raise StorageFull

    with monkeypatch.context() as patch:
        patch.setattr(SqliteCold, "erase", full)
        await field.send("COMPACT", "op", {"strategy": "purge", "filter": {"session_id": "s"}})
    await findings(field, 2)
    await compact(field, "archive")
    await field.restart()
    store = field.door._store  # type: ignore[attr-defined]
    assert not [text for text in await store.cold.read(after=0, limit=100) if b"numbat7" in text.body]


async def test_an_import_beside_a_compaction_holds_nobody_up(field: Rig) -> None:
    await findings(field, 40)
    lines = b"".join([batch async for batch in field.door.export()]).splitlines()
    compacting = asyncio.ensure_future(compact(field, "archive"))
    importing = asyncio.ensure_future(field.door.import_lines(lines))
    recording = asyncio.ensure_future(field.record("ben", "And another one."))
    async with asyncio.timeout(30):
        assert (await compacting)["units_affected"] >= 40
        assert (await importing).imported == 0
        assert await recording


async def test_two_sides_of_a_conflict_that_are_purged_together_are_settled_once_and_stay_gone(field: Rig) -> None:
    first = await field.record("ben", "The gate opens at nine in the morning.")
    await field.record("ada", "The gate opens at ten in the morning.", relations=[relation("contradicts", first)])
    answer = await compact(field, "purge", filter={"types": ["finding"]})
    assert answer["units_affected"] == 2
    assert await field.seen_by("op", include_archived=True) == set()
    kinds = [kind_of(line) for line in await field.log()]
    assert kinds.count("conflict.resolved") == 1
    assert "unit.reinstated" not in kinds


async def test_a_secret_in_the_reason_is_rewritten_and_the_answer_says_so(field: Rig) -> None:
    await findings(field, 3)
    answer = await compact(field, "archive", reason=f"the key {next(iter(TOKENS.values()))} was in one of them")
    assert [warning["code"] for warning in answer["warnings"]] == ["REDACTED"]
    await findings(field, 3, word="switch")
    assert "warnings" not in await compact(field, "archive", reason="they are old")
