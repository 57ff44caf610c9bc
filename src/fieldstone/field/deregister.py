"""DEREGISTER: an agent leaves. What it recorded stays, and stays visible."""

from collections.abc import Sequence

from fieldstone.core.agents import check_move
from fieldstone.core.authority import DEREGISTER_ANOTHER, LEAST_AUTHORITY, check_authority
from fieldstone.core.events import AgentDeregistered
from fieldstone.core.replies import Cleanup, Deregistered
from fieldstone.core.requests import Deregister, Message
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.work import Wordless


class Deregistering(Wordless):
    message: Message

    def __init__(self, message: Message, request: Deregister) -> None:
        self.message = message
        self._request = request

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Deregistered]:
        leaves_itself = self._request.agent_id == self.message.agent_id
        leaving = desk.agent(self._request.agent_id)
        draft = desk.draft(self.message.epoch)
        if leaves_itself and (leaving is None or not leaving.active):
            return draft, Deregistered("not_found", Cleanup(0, 0), desk.epoch)
        by = desk.speaker(self.message)
        if leaving is None or not leaving.active:
            return draft, Deregistered("not_found", Cleanup(0, 0), desk.epoch)
        if leaves_itself:
            check_authority(by.authority, LEAST_AUTHORITY["DEREGISTER"], "DEREGISTER")
        else:
            check_authority(by.authority, DEREGISTER_ANOTHER, "DEREGISTER of another agent")
        check_move(leaving.id, leaving.status, "offline")
        draft.append(
            AgentDeregistered(
                agent=leaving.number,
                registration=leaving.registration,
                authority=leaving.authority,
                by=by.number,
                credential=leaving.credential,
            )
        )
        orphaned = desk.units_of(leaving.number, by)
        return draft, Deregistered("ok", Cleanup(orphaned, 0), draft.epoch)
