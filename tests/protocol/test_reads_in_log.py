"""What reads leave in the log: who was shown what, at which epoch, and the last hints as erasable text."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fieldstone.core import limits
from fieldstone.core.events import ConflictsListed, ContextAttuned, UnitRecorded
from fieldstone.field import desk
from fieldstone.field.field import LogLine
from fieldstone.field.options import Options
from tests.protocol.rig import OpenRig, Rig, relation, scores, unit
from tests.protocol.ways import DURABLE, on_disk
from tests.requirements import requirement


async def flushed(field: Rig) -> list[LogLine]:
    """The log, when all that reads left before is in it: it joins the next write."""
    await field.record("ada", "Flush.", mode="draft")
    return await field.log()


async def attuned(field: Rig) -> list[ContextAttuned]:
    return [line.entry.event for line in await flushed(field) if isinstance(line.entry.event, ContextAttuned)]


@requirement("akashik:level:log-of-all-operations")
async def test_an_attune_leaves_who_was_shown_what_at_which_epoch(team: Rig) -> None:
    recorded = [await team.record("ada") for _ in range(3)]
    answer = await team.attune("eve", max_units=2, since_epoch=1, payload={"format": "ids_only"})
    lines = await flushed(team)
    [line] = [line for line in lines if isinstance(line.entry.event, ContextAttuned)]
    event = line.entry.event
    assert isinstance(event, ContextAttuned)
    assert line.entry.epoch == answer["epoch"]
    assert (event.max_units, event.available, event.returned) == (2, 3, 2)
    assert (event.order, event.format) == ("relevance", "ids_only")
    ids_by_seq = {
        entry.entry.seq: entry.entry.event.id for entry in lines if isinstance(entry.entry.event, UnitRecorded)
    }
    assert {ids_by_seq[seq]: score for seq, score in event.shown} == scores(answer)
    assert set(ids_by_seq.values()) >= set(recorded)


@requirement("akashik:level:log-of-all-operations")
async def test_the_entry_of_a_read_says_who_it_was_by_number_and_since_when_it_asked(team: Rig) -> None:
    await team.register("a-telling-name")
    epoch = (await team.ask("RECORD", "ada", unit()))["epoch"]
    for payload, scope in (
        ({"since_epoch": epoch}, {}),
        ({}, {"since_epoch": epoch}),
        ({"since_epoch": 1}, {"since_epoch": epoch}),
    ):
        await team.attune("a-telling-name", payload=payload, **scope)
    events = await attuned(team)
    assert [event.since_epoch for event in events] == [epoch] * 3
    assert "telling" not in str(events)
    assert len({event.agent for event in events}) == 1


@requirement("akashik:level:log-of-all-operations")
async def test_every_kind_of_operation_leaves_its_entry(field: Rig) -> None:
    await field.register("ada", "ben")
    target, draft, discarded = await field.record("ada"), await field.draft("ben"), await field.draft("ben")
    await field.record("ben", relations=[relation("contradicts", target)])
    confidence = {"score": 0.5, "reasoning": "checked"}
    await field.ask("COMMIT", "ben", {"memory_unit_id": draft, "confidence": confidence})
    await field.ask("DISCARD", "ben", {"memory_unit_id": discarded})
    await field.attune("ada")
    await field.ask("DETECT", "ada", {"mode": "list"})
    await field.ask("RETRACT", "ada", {"memory_unit_id": target, "reason": "wrong"})
    await field.ask("DEREGISTER", "ben", {"agent_id": "ben"})
    kinds = [type(line.entry.event).__name__ for line in await flushed(field)]
    for expected in (
        "AgentRegistered",
        "UnitRecorded",
        "ConflictDetected",
        "UnitContested",
        "UnitCommitted",
        "UnitDiscarded",
        "ContextAttuned",
        "ConflictsListed",
        "UnitRetracted",
        "ConflictResolved",
        "AgentDeregistered",
    ):
        assert expected in kinds


@requirement("akashik:level:log-never-rewritten")
async def test_whatever_happens_the_entries_before_stay_as_they_were(team: Rig) -> None:
    first, draft = await team.record("ada"), await team.draft("ada")
    before = await flushed(team)
    await team.record("ben", relations=[relation("contradicts", first)])
    await team.record("ada", relations=[relation("supersedes", first)])
    await team.ask("DISCARD", "ada", {"memory_unit_id": draft})
    await team.send("RECORD", "ada", unit(content=""))
    await team.attune("eve")
    await team.ask("DEREGISTER", "eve", {"agent_id": "eve"})
    await team.door.rebuild()
    after = await flushed(team)
    assert after[: len(before)] == before
    assert [line.entry.seq for line in after] == list(range(1, len(after) + 1))
    assert (await team.door.verify()).ok


@requirement("akashik:level:log-never-rewritten")
async def test_the_log_itself_holds_no_word_from_outside(field: Rig) -> None:
    """Texts and names lie beside it, from where they can be erased without touching an entry."""
    telling = "telling-{}".format
    await field.register(telling("agent"), role=telling("role"), interests=[telling("interest")])
    intent = {"purpose": telling("purpose"), "task_id": telling("task"), "question": telling("question")}
    confidence = {"score": 1, "reasoning": telling("r"), "evidence": [telling("e")], "assumptions": [telling("a")]}
    relations = [relation("supports", telling("target"), description=telling("description"))]
    texts = {"intent": intent, "confidence": confidence, "relations": relations}
    unit_id = await field.record(telling("agent"), telling("content"), session=telling("session"), **texts)
    await field.attune(telling("agent"), telling("hint"), include_own=True)
    await field.ask("RETRACT", telling("agent"), {"memory_unit_id": unit_id, "reason": telling("reason")})
    lines = await field.log()
    assert len(lines) > 5
    assert "telling" not in str(lines)
    assert b"telling-reason" in await exported(field)


@requirement("akashik:level:log-of-all-operations")
async def test_a_read_that_found_nothing_leaves_nothing(team: Rig) -> None:
    await team.attune("eve", "anything")
    epoch = (await team.ask("RECORD", "ada", unit()))["epoch"]
    await team.attune("eve", since_epoch=epoch + 1, order="epoch")
    await team.ask("DETECT", "eve", {"mode": "list"})
    lines = await flushed(team)
    assert not [line for line in lines if isinstance(line.entry.event, ContextAttuned | ConflictsListed)]


@requirement("akashik:level:log-of-all-operations")
async def test_the_log_of_reads_can_be_turned_off(rigs: OpenRig) -> None:
    field = await rigs(Options(log_reads=False))
    await field.register("ada", "eve")
    target = await field.record("ada")
    await field.record("eve", relations=[relation("contradicts", target)])
    assert (await field.attune("eve", "a telling hint"))["record"]
    assert (await field.ask("DETECT", "eve", {"mode": "list"}))["conflicts"]
    lines = await flushed(field)
    assert not [line for line in lines if isinstance(line.entry.event, ContextAttuned | ConflictsListed)]
    assert b"telling" not in await exported(field)


@requirement("akashik:clock:reads-do-not-step")
async def test_what_reads_leave_moves_no_clock(team: Rig) -> None:
    await team.record("ada")
    before = await team.epoch()
    for _ in range(5):
        await team.attune("eve")
    assert await team.epoch() == before
    assert (await team.ask("RECORD", "ada", unit()))["epoch"] == before + 1


async def test_a_hint_is_kept_beside_the_log_and_not_in_it(team: Rig) -> None:
    await team.record("ada")
    await team.attune("eve", "a telling hint")
    await team.attune("eve")
    hinted, plain = [line.entry for line in await flushed(team) if isinstance(line.entry.event, ContextAttuned)]
    assert hinted.text is not None
    assert plain.text is None
    assert "telling" not in str(hinted)
    assert b"a telling hint" in await exported(team)


async def test_only_the_last_hints_are_kept_and_the_history_stays_whole(
    team: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert limits.KEPT_HINTS == 1_000
    monkeypatch.setattr(desk, "KEPT_HINTS", 5)
    await team.record("ada")
    await ask_with_hints(team, range(12))
    assert await kept_hints(team) == [f"hint number {n:02}" for n in range(7, 12)]
    assert len(await attuned(team)) == 12
    assert (await team.door.verify()).ok
    assert (await team.door.rebuild()).unchanged


@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_older_hints_are_gone_from_the_files_and_the_count_goes_on_after_a_restart(
    team: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "KEPT_HINTS", 5)
    await team.record("ada")
    await ask_with_hints(team, range(8))
    await flushed(team)
    await team.restart()
    await ask_with_hints(team, range(8, 11))
    assert await kept_hints(team) == [f"hint number {n:02}" for n in range(6, 11)]
    await team.restart()  # closing folds the write-ahead log into the file
    raw = on_disk(tmp_path)
    assert not [n for n in range(6) if b"hint number %02d" % n in raw]
    assert b"hint number 10" in raw


async def ask_with_hints(field: Rig, numbers: Sequence[int]) -> None:
    for n in numbers:
        await field.attune("eve", f"hint number {n:02}")


async def kept_hints(field: Rig) -> list[str]:
    await flushed(field)
    raw = (await exported(field)).decode()
    return sorted({part[:14] for part in raw.split('"hint":"')[1:]})


async def exported(field: Rig) -> bytes:
    return b"".join([batch async for batch in field.door.export()])
