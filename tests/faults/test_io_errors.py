"""A disk that fails at any write or sync, from the making of a store to its closing: what was acknowledged is there.

The same short life of a field is lived once for each operation on the disk, and that one fails: for a moment, for good,
or half done. Then the disk is well again.
"""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import apsw
import pytest

from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import FieldError
from fieldstone.core.events import UnitRecorded
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Message, Record
from fieldstone.field.field import LocalField
from fieldstone.ports.store import Commit
from fieldstone.projections import text_follower
from fieldstone.testing import KEY, SeededIds
from tests.faults.disk import Blow, Failure, FaultyDisk, faulty_disk, of_index, of_store
from tests.faults.stores import open_field
from tests.messages import attune, attuned, join, record, relation
from tests.requirements import requirement

ONE_BY_ONE: Final = 3
TOGETHER: Final = 4
LEAST_OPERATIONS: Final = 80  # or the life is too short to mean anything


# Where nobody can be told of an error, as when a connection is thrown away, apsw reports what our disk raised there.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Life(NamedTuple):
    """What a field was asked, and what it answered."""

    accepted: dict[str, str]  # id → content
    refused: dict[str, Message]  # content → what can be sent again


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is a place for it: a thousand stores are made and thrown away."""
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(autouse=True)
def _quiet_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index follows when a field is opened, and not by a timer: each life has the same operations."""
    monkeypatch.setattr(text_follower, "IDLE_MS", 3_600_000)


@requirement("akashik:level:durable", "akashik:errors:storage-full", "akashik:record:refusal-changes-nothing")
@pytest.mark.parametrize(
    ("failure", "lasting"), [("full", True), ("write error", False), ("write error", True), ("torn write", False)]
)
def test_an_acknowledged_write_survives_and_a_refused_one_leaves_nothing(
    folder: Path, failure: Failure, lasting: bool
) -> None:
    path = folder / "field.db"
    with faulty_disk(of_store(path)) as disk:
        asyncio.run(_live(path, disk, SeededIds(1)))
        operations = len(disk.operations)
        assert operations > LEAST_OPERATIONS
        for at in range(1, operations + 1):
            _remove(path)
            asyncio.run(_live_through(path, disk, Blow(at, failure, lasting)))


async def _live_through(path: Path, disk: FaultyDisk, blow: Blow) -> None:
    disk.arm(blow)
    ids = SeededIds(1)
    life = await _live(path, disk, ids)
    disk.heal()
    store = SqliteStore.open(path, KEY)
    field = await open_field(store, ids=ids)
    await _check(field, life, f"after {blow}, opened again")
    await _go_on(field, life)
    await field.close()


async def _live(path: Path, disk: FaultyDisk, ids: SeededIds) -> Life:
    """Make a store, write to it, close it. Whatever fails is refused, and life goes on."""
    life = Life({}, {})
    try:
        store = SqliteStore.open(path, KEY)
        field = await open_field(store, ids=ids)
    except Exception:
        return life  # nothing was promised yet
    for agent in ("ada", "grace"):
        await _register(field, agent)
    for number in range(ONE_BY_ONE):
        await _send(field, life, record("ada", f"alone {number}", task="t-1", id=f"a-{number}"))
    known = next(iter(life.accepted), "mem-unknown")
    await asyncio.gather(
        _send(field, life, record("ada", "related", relations=[relation("contradicts", known, "why")], id="related")),
        *(_send(field, life, record("grace", f"together {number}", id=f"t-{number}")) for number in range(TOGETHER)),
    )
    if disk.struck:
        await _check_while_it_lasts(field, life)
        await _check_after_a_crash(path, life, disk.struck)
        disk.heal()
        await _check(field, life, "healed")
    try:
        await field.close()
    except apsw.Error:
        pass  # SQLite takes no notice of a disk that fails while it closes; apsw tells what our disk raised
    return life


async def _register(field: LocalField, agent: str) -> None:
    try:
        await join(field, agent)
    except Exception:
        pass  # what this agent sends is refused, then


async def _send(field: LocalField, life: Life, message: Message) -> None:
    assert isinstance(message.request, Record)
    content = message.request.content
    try:
        reply = await field.send(message)
    except FieldError:  # a coded refusal; anything else fails the test
        life.refused[content] = message
        return
    assert isinstance(reply, Accepted)
    life.accepted[reply.memory_unit_id] = content


async def _check_while_it_lasts(field: LocalField, life: Life) -> None:
    """Reads go on, whatever the disk does with writes."""
    for unit_id, content in life.accepted.items():
        assert (await field.unit(unit_id)).content == content
    assert (await field.status()).units == len(life.accepted)
    await field.log()


async def _check_after_a_crash(path: Path, life: Life, struck: str) -> None:
    """The files as they lie there now, as after kill -9."""
    with TemporaryDirectory(dir=path.parent) as name:
        copy = Path(name) / path.name
        for suffix in ("", "-wal", "-journal"):
            if (file := Path(f"{path}{suffix}")).exists():
                shutil.copy(file, f"{copy}{suffix}")
        field = await open_field(SqliteStore.open(copy, KEY))
        # When the last thing before the crash was a sync that failed, the disk may have the write all the same: whole.
        await _check(field, life, "after a crash", maybe_there=life.refused if struck == "sync" else {})
        await field.close()


async def _check(field: LocalField, life: Life, when: str, maybe_there: dict[str, Message] | None = None) -> None:
    for unit_id, content in life.accepted.items():
        assert (await field.unit(unit_id)).content == content, when
    found = await field.verify()
    assert found.ok, f"{when}: {found.first_bad}"
    assert (await field.rebuild()).unchanged, when
    contents = await _contents(field)
    assert set(contents) - set(life.accepted.values()) <= set(maybe_there or {}), when
    assert len(contents) == len(set(contents)), when


async def _contents(field: LocalField) -> list[str]:
    page = await field.log(limit=1_000)
    ids = [line.entry.event.id for line in page.entries if isinstance(line.entry.event, UnitRecorded)]
    return [(await field.unit(unit_id)).content for unit_id in ids]


async def _go_on(field: LocalField, life: Life) -> None:
    """With a disk that is well again, what was refused is taken when it is sent again, once."""
    for agent in ("ada", "grace"):
        await _register(field, agent)
    again = Life({}, {})
    for message in life.refused.values():
        await _send(field, again, message)
    lost = {content: message for content, message in again.refused.items() if content != "related"}
    assert not lost, lost
    assert sorted(await _contents(field)) == sorted([*life.accepted.values(), *again.accepted.values()])
    shown = await attuned(field, attune("ada", "alone together related", include_own=True))
    assert {unit.id for unit in shown} == {*life.accepted, *again.accepted}
    assert (await field.verify()).ok


def test_the_rig_catches_a_store_that_acknowledges_what_the_disk_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: without it, a rig that never fails says nothing."""
    honest = SqliteStore.commit

    async def optimistic(store: SqliteStore, commit: Commit) -> None:
        try:
            await honest(store, commit)
        except FieldError:
            pass

    monkeypatch.setattr(SqliteStore, "commit", optimistic)
    path = folder / "field.db"
    with faulty_disk(of_store(path)) as disk:
        asyncio.run(_live(path, disk, SeededIds(1)))
        middle = 2 * len(disk.operations) // 3  # long after the making of the store, and long before its closing
        _remove(path)
        with pytest.raises((AssertionError, FieldError, ValueError)):
            asyncio.run(_live_through(path, disk, Blow(middle, "full", lasting=True)))


@requirement("akashik:attune:acknowledged-visible")
@pytest.mark.parametrize(("failure", "lasting"), [("full", True), ("write error", False)])
def test_an_index_whose_disk_fails_hinders_nobody_and_is_made_good(
    folder: Path, failure: Failure, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_follower, "BATCH_UNITS", 3)
    path = folder / "field.db"
    with faulty_disk(of_index(path)) as disk:
        asyncio.run(_live(path, disk, SeededIds(1)))
        for at in range(1, len(disk.operations) + 1):
            _remove(path)
            asyncio.run(_index_through(path, disk, Blow(at, failure, lasting)))


async def _index_through(path: Path, disk: FaultyDisk, blow: Blow) -> None:
    disk.arm(blow)
    life = await _live(path, disk, SeededIds(1))
    assert not life.refused, f"{blow}: {life.refused}"
    disk.heal()
    store = SqliteStore.open(path, KEY)
    field = await open_field(store, ids=SeededIds(2))
    if life.accepted:
        shown = await attuned(field, attune("grace", "together", include_own=True))
        assert {unit.id for unit in shown} == set(life.accepted)
        assert {unit.content for unit in shown[:TOGETHER]} == {f"together {number}" for number in range(TOGETHER)}, blow
        [found] = await store.text_index.search([["togeth", "alon"]], most_postings=1_000)
        assert found.documents == len(life.accepted), blow
        assert {term: len(seqs) for term, seqs in found.seqs.items()} == {"togeth": TOGETHER, "alon": ONE_BY_ONE}, blow
    await field.close()


def _remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
