"""REGISTER: an agent joins, with a role and what it is interested in."""

import re
from collections.abc import Sequence

from fieldstone.core.agents import check_move
from fieldstone.core.errors import AgentIdTaken, UnsupportedOperation
from fieldstone.core.events import AgentRegistered, AgentTexts
from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.replies import AgentProfile, FieldCapabilities, Registered
from fieldstone.core.requests import Message, Register
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft

_OPERATION_NAME = re.compile(r"[A-Z]{1,14}(_[A-Z]{1,14})?")  # what is longer may be anything


class Registering:
    def __init__(self, message: Message, request: Register, capabilities: FieldCapabilities) -> None:
        self.message = message
        self._request = request
        self._capabilities = capabilities

    def texts(self) -> Sequence[str]:
        return (self._request.role, *(self._request.interests or ()))

    def names(self) -> Sequence[tuple[str, str]]:
        return (("agent", self._request.id),)

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Registered]:
        self._check_required_operations()
        role, *interests, agent_id = clean
        known = desk.agent(agent_id)
        if known is not None:
            if known.active:
                raise AgentIdTaken
            check_move(agent_id, known.status, "idle")
        draft = desk.draft(self.message.epoch)
        number = await draft.number_of("agent", agent_id)
        authority = DEFAULT_AUTHORITY if self._request.authority is None else self._request.authority
        draft.append(AgentRegistered(agent=number, authority=authority), AgentTexts(role, tuple(interests)))
        profile = AgentProfile(agent_id, role, "idle", tuple(interests), authority=authority)
        return draft, Registered(profile, self._capabilities, draft.epoch)

    def _check_required_operations(self) -> None:
        supported = self._capabilities.supported_operations
        missing = [name for name in self._request.required_operations or () if name not in supported]
        if missing:
            raise UnsupportedOperation(f"This Field does not support: {', '.join(map(_told, missing))}.")


def _told(operation: str) -> str:
    """What a caller wrote is told on only where it looks like an operation."""
    return operation if _OPERATION_NAME.fullmatch(operation) else "…"
