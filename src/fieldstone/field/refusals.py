"""Refused access goes on record: who asked for what is not theirs, and how often."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.access import Caller
from fieldstone.core.errors import FieldError
from fieldstone.core.events import AccessRefused
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.work import NO_ANSWER, Wordless, Work
from fieldstone.ports.world import Clock

# Repeats within this time are counted and told with the next one: whoever is refused must not fill the log.
COUNTED_MS: Final = 60_000
MOST_COUNTED: Final = 1_000


class _Count(Struct):
    since_ms: float
    caller: Caller
    times: int = 0  # those that are not on record yet


class Refusals:
    def __init__(self, leave: Callable[[Work], None], clock: Clock) -> None:
        self._leave = leave
        self._clock = clock
        self._counts: dict[tuple[str, str, str | None], _Count] = {}

    def note(self, asked: str, error: FieldError, caller: Caller) -> None:
        key, now = (asked, error.code, caller.credential), self._clock.monotonic_ms()
        count = self._counts.get(key)
        if count is not None and now - count.since_ms < COUNTED_MS:
            count.times += 1
            return
        if len(self._counts) >= MOST_COUNTED:
            self.flush()
        self._tell(key, caller, 1 + (count.times if count else 0))
        self._counts[key] = _Count(now, caller)

    def flush(self) -> None:
        """What was only counted so far goes on record."""
        for key, count in self._counts.items():
            if count.times:
                self._tell(key, count.caller, count.times)
        self._counts.clear()

    def _tell(self, key: tuple[str, str, str | None], caller: Caller, times: int) -> None:
        asked, code, credential = key
        event = AccessRefused(asked=asked, code=code, credential=credential, authority=caller.authority, times=times)
        self._leave(Refusing(event))


class Refusing(Wordless):
    def __init__(self, event: AccessRefused) -> None:
        self._event = event

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        draft.append(self._event)
        return draft, NO_ANSWER
