"""Holds and pins: units that no compaction touches, whoever asks for it."""

from collections.abc import Sequence

from fieldstone.core.errors import UnitNotFound
from fieldstone.core.events import UnitGuarded, UnitUnguarded
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import Guard
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.work import NO_ANSWER, Wordless


class Guarding(Wordless):
    """Set or lifted; what is so already stays so, and leaves no event."""

    def __init__(self, unit: int, guard: Guard, credential: str | None, *, lifts: bool) -> None:
        self._unit = unit
        self._guard: Guard = guard
        self._credential = credential
        self._lifts = lifts

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        if (await desk.unit_at(self._unit)).purged_seq is not None:
            raise UnitNotFound
        draft = desk.quiet_draft(desk.epoch)
        if desk.has_guard(self._unit, self._guard) == self._lifts:
            event = UnitUnguarded if self._lifts else UnitGuarded
            draft.append(event(unit=self._unit, guard=self._guard, credential=self._credential))
        return draft, NO_ANSWER
