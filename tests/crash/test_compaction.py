"""kill -9 at any step of a compaction: it goes on from there, and in the end it is as if nothing had happened."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import UnitPurged
from fieldstone.core.replies import Accepted, AttuneReply
from fieldstone.core.requests import Attune, Message, Record, Register, Scope
from fieldstone.core.units import Confidence, Intent
from fieldstone.field.field import LocalField
from tests.crash.compactor import Job, open_at
from tests.crash.mortal import Mother, borne, mother
from tests.requirements import requirement
from tests.scripted import eventually

UNITS = 24
MOST_STEPS = 60


@pytest.fixture(scope="module")
def compactor() -> Iterator[Mother]:
    with mother("tests.crash.compactor") as process:
        yield process


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("prepared")
    return folder, asyncio.run(_prepare(folder / "field.db"))


async def _prepare(path: Path) -> list[str]:
    _, field = await open_at(str(path))
    await field.send(Message("REGISTER", "op", Register("op", "operator", authority=10)))
    await field.send(Message("REGISTER", "ben", Register("ben", "reader")))
    units = [await _record(field, at, "old") for at in range(UNITS)]
    await _record(field, UNITS, "new")
    await field.send(Message("ATTUNE", "ben", Attune(Scope("reader", 5), context_hint="kiln1qx and kiln2qx")))
    await field.close()
    return units


async def _record(field: LocalField, at: int, session: str) -> str:
    content = f"The kiln{at}qx of potter {at} cracked at {1000 + at} degrees in {session} days."
    request = Record("committed", "finding", content, Intent("remember it"), Confidence(0.9, "seen"))
    answer = await field.send(Message("RECORD", "op", request, session_id=session))
    assert isinstance(answer, Accepted)
    return answer.memory_unit_id


@requirement("akashik:compact:resumable")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("strategy", ["archive", "summarize", "purge"])
def test_a_compaction_that_is_killed_at_any_step_goes_on_and_ends_as_it_would_have(
    compactor: Mother,
    prepared: tuple[Path, list[str]],
    tmp_path: Path,
    strategy: str,
    when: str,
) -> None:
    folder, units = prepared
    for step in range(1, MOST_STEPS):
        place = tmp_path / f"{step}"
        shutil.copytree(folder, place)
        job = Job(str(place / "field.db"), strategy, step, when)  # type: ignore[arg-type]
        how = borne(compactor, job)
        asyncio.run(_check(place, units, strategy, f"{strategy} {when} step {step}: {how}"))
        if how == "done":
            assert step > 4, "it was killed at several steps"
            return
        assert how == "dead 9"
    pytest.fail("it never came to its end")


async def _check(folder: Path, units: list[str], strategy: str, told: str) -> None:
    store, field = await open_at(str(folder / "field.db"))
    begun = await store.views.compactions()
    await _ended(field, begun[0].id if begun else None)
    if begun:  # one that was killed before it was on record has never been
        await _check_whole(field, units, strategy, told)
    assert (await field.verify()).ok, told
    assert (await field.rebuild()).unchanged, told
    await _check_vectors(store, told)
    await field.close()
    if begun and strategy == "purge":
        raw = _on_disk(folder)
        assert not [at for at in range(UNITS) if f"iln{at}qx".encode() in raw], told


async def _check_vectors(store: SqliteStore, told: str) -> None:
    """Each unit has one, where it belongs; one that is purged has none."""
    rows = await store.views.scan_units(after=0, limit=2 * UNITS)
    [model] = await store.vectors.models()
    for cold in (False, True):
        expected = [row.seq for row in rows if row.purged_seq is None and (row.archived_epoch is not None) == cold]

        async def is_so(cold: bool = cold, expected: list[int] = expected) -> bool:
            scan = store.vectors.scan(model.number, cold=cold)
            return [seq async for piece in scan for seq in piece.seqs.tolist()] == expected

        await eventually(is_so)


def _on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def _ended(field: LocalField, compaction_id: str | None) -> None:
    """Until the compaction that goes on by itself has come to its end."""
    if compaction_id is None:
        return
    rows = [row for row in await field._store.views.compactions() if row.id == compaction_id]
    if rows[0].state == "running":
        async for _ in field.watch_compaction(compaction_id):
            pass


async def _check_whole(field: LocalField, units: list[str], strategy: str, told: str) -> None:
    [row] = await field._store.views.compactions()
    assert (row.state, row.units, row.syntheses) == ("done", UNITS, 1 if strategy == "summarize" else 0), told
    answer = await field.send(Message("ATTUNE", "ben", Attune(Scope("reader", 100))))
    assert isinstance(answer, AttuneReply)
    types = [each.memory_unit.type for each in answer.record]  # type: ignore[union-attr]
    assert types.count("finding") == 1, told
    assert types.count("synthesis") == (1 if strategy == "summarize" else 0), told
    for unit in units:
        if strategy == "purge":
            with pytest.raises(UnitPurged):
                await field.unit(unit)
        else:
            assert (await field.unit(unit)).content.startswith("The kiln"), told
    if strategy != "purge":
        scope = Scope("reader", 100, include_archived=True)
        found = await field.send(Message("ATTUNE", "ben", Attune(scope, context_hint="kiln7qx")))
        assert isinstance(found, AttuneReply)
        assert "kiln7qx" in found.record[0].memory_unit.content, told  # type: ignore[union-attr]
