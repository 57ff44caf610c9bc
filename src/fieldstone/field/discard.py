"""DISCARD: a draft that will not be committed."""

from collections.abc import Sequence

from fieldstone.core.authority import LEAST_AUTHORITY, check_authority
from fieldstone.core.events import ReasonText, UnitDiscarded
from fieldstone.core.replies import Done
from fieldstone.core.requests import Discard, Message
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.drafts import find_own_draft


class Discarding:
    brings_news = True

    def __init__(self, message: Message, request: Discard) -> None:
        self.message = message
        self._request = request

    def texts(self) -> Sequence[str]:
        return () if self._request.reason is None else (self._request.reason,)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Done]:
        author = desk.speaker(self.message)
        check_authority(author.authority, LEAST_AUTHORITY["DISCARD"], "DISCARD")
        unit = await find_own_draft(desk, author, self._request.memory_unit_id)
        draft = desk.draft(self.message.epoch)
        draft.append(UnitDiscarded(unit=unit.seq, by=author.number), ReasonText(clean[0]) if clean else None)
        return draft, Done(unit.id, draft.epoch)
