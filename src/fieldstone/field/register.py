"""REGISTER: an agent joins, with a role and what it is interested in."""

import re
from collections.abc import Sequence

from fieldstone.core.agents import AgentFacts, check_move
from fieldstone.core.errors import AgentIdTaken, Forbidden, UnsupportedOperation
from fieldstone.core.events import AgentRegistered, AgentTexts
from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.replies import AgentProfile, FieldCapabilities, Registered
from fieldstone.core.requests import Message, Register
from fieldstone.core.text import CleanText
from fieldstone.field.desk import Desk, Draft

_OPERATION_NAME = re.compile(r"[A-Z]{1,14}(_[A-Z]{1,14})?")  # what is longer may be anything


class Registering:
    brings_news = True

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
        authority = self._authority()
        self._check_id(agent_id, desk.agent(agent_id))
        draft = desk.draft(self.message.epoch)
        number = await draft.number_of("agent", agent_id)
        draft.append(
            AgentRegistered(agent=number, authority=authority, credential=self.message.caller.credential),
            AgentTexts(role, tuple(interests)),
        )
        profile = AgentProfile(agent_id, role, "idle", tuple(interests), authority=authority)
        return draft, Registered(profile, self._capabilities, draft.epoch)

    def _authority(self) -> int:
        """What is claimed, as far as the credential grants it."""
        caller, claimed = self.message.caller, self._request.authority
        if claimed is None:
            return min(DEFAULT_AUTHORITY, caller.authority)
        if claimed > caller.authority:
            raise Forbidden(
                f"authority {claimed} was claimed, and this key grants {caller.authority}.",
                suggested_action=f"Claim at most {caller.authority}, or use a key that grants more.",
            )
        return claimed

    def _check_id(self, agent_id: str, known: AgentFacts | None) -> None:
        caller = self.message.caller
        if known is not None and known.active:
            raise AgentIdTaken
        if caller.agents is not None and agent_id not in caller.agents:
            raise Forbidden(
                "This key is for other agents.", suggested_action="Use an agent id that the key lists, or another key."
            )
        if known is not None:
            if not caller.may_take(agent_id, known.credential):
                raise AgentIdTaken(
                    "An agent of this id was registered with another credential.",
                    suggested_action="Choose another id, or use the key that registered it.",
                )
            check_move(agent_id, known.status, "idle")

    def _check_required_operations(self) -> None:
        supported = self._capabilities.supported_operations
        missing = [name for name in self._request.required_operations or () if name not in supported]
        if missing:
            raise UnsupportedOperation(f"This Field does not support: {', '.join(map(_told, missing))}.")


def _told(operation: str) -> str:
    """What a caller wrote is told on only where it looks like an operation."""
    return operation if _OPERATION_NAME.fullmatch(operation) else "…"
