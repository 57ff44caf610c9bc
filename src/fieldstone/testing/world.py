"""Time and chance in a test's hand, and what every clock and every maker of ids promises."""

from hashlib import sha256
from typing import Final

from fieldstone.ports.world import Clock, Ids

FIRST_DAY_MS: Final = 1_750_000_000_000  # 15 June 2025: a date that looks like one in a timestamp
SALT_BYTES: Final = 16
MADE_AT_ONCE: Final = 1_000


class ManualClock:
    """It stands still until a test moves it."""

    def __init__(self, now_ms: int = FIRST_DAY_MS) -> None:
        self._started_ms = now_ms
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return float(self._now_ms - self._started_ms)

    def advance(self, ms: int) -> None:
        self._now_ms += ms


class SeededIds:
    """The same seed gives the same ids and salts, in the same order."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._made = 0

    def unit(self) -> str:
        return f"mem-{self._next()}"

    def conflict(self) -> str:
        return f"conf-{self._next()}"

    def compaction(self) -> str:
        return f"comp-{self._next()}"

    def run(self) -> str:
        return f"run-{self._next()}"

    def salt(self) -> bytes:
        return sha256(self._next().encode()).digest()[:SALT_BYTES]

    def _next(self) -> str:
        self._made += 1
        return f"{self._seed:08x}{self._made:024x}"


class ClockTests:
    """Give a fixture `clock`."""

    def test_now_is_a_whole_number_of_milliseconds_since_1970(self, clock: Clock) -> None:
        now = clock.now_ms()
        assert isinstance(now, int)
        assert now > 1_577_836_800_000, "before 2020: are these seconds?"
        assert now < 32_503_680_000_000, "after the year 3000: are these microseconds?"

    def test_time_spans_are_never_negative(self, clock: Clock) -> None:
        readings = [clock.monotonic_ms() for _ in range(MADE_AT_ONCE)]
        assert readings == sorted(readings)


class IdsTests:
    """Give a fixture `ids`."""

    def test_ids_are_never_made_twice(self, ids: Ids) -> None:
        made = [make() for _ in range(MADE_AT_ONCE) for make in (ids.unit, ids.conflict)]
        assert len(set(made)) == len(made)

    def test_ids_say_what_they_are_for(self, ids: Ids) -> None:
        assert ids.unit().startswith("mem-")
        assert ids.conflict().startswith("conf-")
        assert ids.compaction().startswith("comp-")

    def test_a_new_id_sorts_after_the_ones_before(self, ids: Ids) -> None:
        for make in (ids.unit, ids.conflict):
            made = [make() for _ in range(MADE_AT_ONCE)]
            assert made == sorted(made)

    def test_salts_have_sixteen_bytes_and_differ(self, ids: Ids) -> None:
        salts = [ids.salt() for _ in range(MADE_AT_ONCE)]
        assert {len(salt) for salt in salts} == {SALT_BYTES}
        assert len(set(salts)) == len(salts)
