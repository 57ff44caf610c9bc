"""RETRACT: what was said no longer stands. The unit stays in the log and leaves every ATTUNE."""

from collections.abc import Sequence

from fieldstone.core.authority import RETRACT_ANOTHERS, check_authority
from fieldstone.core.errors import InvalidTransition
from fieldstone.core.events import ReasonText, UnitRetracted
from fieldstone.core.replies import Done
from fieldstone.core.requests import Message, Retract
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.drafts import find_visible
from fieldstone.field.relate import settle


class Retracting:
    brings_news = True

    def __init__(self, message: Message, request: Retract) -> None:
        self.message = message
        self._request = request

    def texts(self) -> Sequence[str]:
        return (self._request.reason,)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Done]:
        by = desk.speaker(self.message)
        unit = await find_visible(desk, by, self._request.memory_unit_id)
        if unit.agent != by.number:
            check_authority(by.authority, RETRACT_ANOTHERS, "RETRACT of another agent's unit")
        if unit.status == "draft":
            raise InvalidTransition(f"{unit.id} is a draft: DISCARD it.")
        if unit.status == "retracted":
            raise InvalidTransition(f"{unit.id} is retracted already.")
        draft = desk.draft(self.message.epoch)
        draft.append(UnitRetracted(unit=unit.seq, by=by.number), ReasonText(clean[0]))
        await settle(draft, desk, [unit.seq], "retracted")
        return draft, Done(unit.id, draft.epoch)
