"""Comparing units goes on, whatever is in one of them and however busy the field is."""

import asyncio

import pytest

from fieldstone.backends.memory.marks import MemoryMarks
from fieldstone.backends.memory.store import MemoryStore
from fieldstone.core.replies import Accepted, Detection
from fieldstone.core.requests import Detect, Message
from fieldstone.detection.judge import Claim, Verdict, judge
from fieldstone.field import detecting
from fieldstone.field.field import LocalField
from fieldstone.testing import KEY
from tests.field.fields import opened, staffed
from tests.messages import SURE, accepted, commit, join, record
from tests.scripted import eventually

HUNDRED = "The API rate limit is 100 requests per second."
FIFTY = "The API rate limit is 50 requests per second."
POISON = "The API rate limit is poison."


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "PAUSE_MS", 0)


class SlowMarks(MemoryMarks):
    """It takes until it is `opened` to write a mark."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.opened = asyncio.Event()

    async def set(self, name: str, seq: int) -> None:
        self.asked.set()
        await self.opened.wait()
        await super().set(name, seq)


@pytest.fixture
def choking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that breaks on one text."""

    def choke(a: Claim, b: Claim, similarity: float | None = None) -> Verdict | None:
        if POISON in (a.text, b.text):
            raise ZeroDivisionError
        return judge(a, b, similarity)

    monkeypatch.setattr(detecting, "judge", choke)


async def compared(field: LocalField) -> None:
    async def holds() -> bool:
        return (await field.status()).detection_behind == 0

    await eventually(holds)


async def recorded(field: LocalField, agent: str, content: str) -> Accepted:
    reply = await field.send(record(agent, content))
    assert isinstance(reply, Accepted)
    return reply


@pytest.mark.usefixtures("choking")
async def test_a_unit_that_cannot_be_compared_is_recorded_all_the_same() -> None:
    field = await staffed()
    await recorded(field, "ada", HUNDRED)
    assert (await recorded(field, "ben", POISON)).conflicts_detected == ()
    assert (await field.status()).detection_behind == 0
    await field.close()


@pytest.mark.usefixtures("choking")
async def test_a_unit_that_cannot_be_compared_does_not_stop_the_others_in_the_background() -> None:
    field = await staffed(detection_timeout_ms=0)
    gateway = ("The gateway is open.", "The gateway is closed.")
    for agent, content in (("ada", POISON), ("ben", FIFTY), ("ada", gateway[0]), ("ben", gateway[1])):
        await recorded(field, agent, content)
    await compared(field)
    assert len(await field.conflicts()) == 1
    await field.close()


@pytest.mark.usefixtures("choking")
async def test_a_scan_passes_over_a_unit_that_cannot_be_compared() -> None:
    field = await staffed(detect_conflicts=False)
    for agent, content in (("ada", POISON), ("ada", "The gateway is open."), ("ben", "The gateway is closed.")):
        await recorded(field, agent, content)
    reply = await field.send(Message("DETECT", "ada", Detect("scan")))
    assert isinstance(reply, Detection)
    assert (reply.scan_coverage.units_scanned, reply.scan_coverage.new_conflicts_found) == (3, 1)
    await field.close()


async def test_a_field_that_is_never_quiet_is_compared_too() -> None:
    """The manual clock stands still, so that the last write was always just now."""
    field = await staffed(detection_timeout_ms=0)
    await recorded(field, "ada", HUNDRED)
    await recorded(field, "ben", FIFTY)
    await compared(field)
    assert len(await field.conflicts()) == 1
    await field.close()


async def test_two_units_that_find_each_other_are_one_conflict() -> None:
    """A draft that took effect is compared with what came after it, which is compared with what came before."""
    store = MemoryStore(KEY)
    field = await opened(store=store, detect_conflicts=False)
    await join(field, "ada", "ben")
    draft = await accepted(field, record("ada", HUNDRED, mode="draft"))
    await recorded(field, "ben", FIFTY)
    await field.send(commit("ada", draft, confidence=SURE))
    await field.close()
    field = await opened(store=store, seed=2)
    await compared(field)
    assert len(await field.conflicts()) == 1
    assert (await field.verify()).ok
    await field.close()


async def test_closing_does_not_wait_for_the_backlog_and_loses_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detecting, "PAUSE_MS", 3_600_000)
    store = MemoryStore(KEY)
    field = await staffed(store=store, detection_timeout_ms=0)
    await asyncio.gather(*(recorded(field, "ada", f"Pump {number} runs.") for number in range(20)))
    assert (await field.status()).detection_behind == 20
    await field.close()
    field = await opened(store=store, seed=2)
    assert (await field.status()).detection_behind == 20
    await field.close()


async def test_a_unit_that_comes_while_the_last_mark_is_written_is_not_left_behind() -> None:
    store = MemoryStore(KEY)
    marks = SlowMarks()
    store.marks = marks
    field = await staffed(store=store, detection_timeout_ms=0)
    await recorded(field, "ada", HUNDRED)
    await marks.asked.wait()
    await recorded(field, "ben", FIFTY)
    marks.opened.set()
    await compared(field)
    assert len(await field.conflicts()) == 1
    await field.close()
