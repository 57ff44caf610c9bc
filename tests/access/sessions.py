"""Closed sessions. No operation makes them yet: members are written through the port, so that log and views agree."""

from collections.abc import Sequence

from fieldstone.core.events import SessionCreated, SessionJoined, SessionLeft
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.field import LocalField
from fieldstone.field.work import NO_ANSWER, Wordless


async def close_session(field: LocalField, name: str, creator: str, *members: str) -> None:
    """From now on only these see what is in it."""
    await field._writer.submit(_Founding(name, creator, members))


async def leave_session(field: LocalField, name: str, member: str) -> None:
    await field._writer.submit(_Leaving(name, member))


class _Changing(Wordless):
    """It brings no text but the session's name."""

    def __init__(self, session: str) -> None:
        self._session = session

    def names(self) -> Sequence[tuple[str, str]]:
        return (("session", self._session),)


class _Founding(_Changing):
    def __init__(self, session: str, creator: str, members: Sequence[str]) -> None:
        super().__init__(session)
        self._creator = creator
        self._members = members

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        session = await draft.number_of("session", clean[0])
        draft.append(SessionCreated(session=session, by=_number(desk, self._creator)))
        for member in self._members:
            draft.append(SessionJoined(session=session, agent=_number(desk, member)))
        return draft, NO_ANSWER


class _Leaving(_Changing):
    def __init__(self, session: str, member: str) -> None:
        super().__init__(session)
        self._member = member

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        session = await draft.number_of("session", clean[0])
        draft.append(SessionLeft(session=session, agent=_number(desk, self._member)))
        return draft, NO_ANSWER


def _number(desk: Desk, agent_id: str) -> int:
    agent = desk.agent(agent_id)
    assert agent is not None, f"{agent_id} has not registered"
    return agent.number
