"""The real clock and real chance keep what the ports promise, and so do those in a test's hand."""

import pytest

from fieldstone.backends.system import SystemClock, SystemIds
from fieldstone.ports.world import Clock, Ids
from fieldstone.testing import ClockTests, IdsTests, ManualClock, SeededIds


class TestSystemClock(ClockTests):
    @pytest.fixture
    def clock(self) -> Clock:
        return SystemClock()


class TestManualClock(ClockTests):
    @pytest.fixture
    def clock(self) -> Clock:
        return ManualClock()


class TestSystemIds(IdsTests):
    @pytest.fixture
    def ids(self) -> Ids:
        return SystemIds()


class TestSeededIds(IdsTests):
    @pytest.fixture
    def ids(self) -> Ids:
        return SeededIds(seed=7)


def test_the_same_seed_gives_the_same_ids_and_another_seed_others() -> None:
    def made(seed: int) -> list[str | bytes]:
        ids = SeededIds(seed)
        return [ids.unit(), ids.salt(), ids.conflict(), ids.unit()]

    assert made(1) == made(1)
    assert not set(made(1)) & set(made(2))


def test_a_manual_clock_moves_only_when_it_is_moved() -> None:
    clock = ManualClock(1_750_000_000_000)
    clock.advance(1_500)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1_750_000_001_500, 1_500.0)
