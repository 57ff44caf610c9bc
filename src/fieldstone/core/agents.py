"""Agents: who takes part, and in which state they are."""

from typing import Final

from msgspec import Struct

from fieldstone.core.errors import InvalidTransition
from fieldstone.core.vocabulary import AgentStatus

MOVES: Final[dict[AgentStatus, tuple[AgentStatus, ...]]] = {
    "idle": ("working", "offline", "failed"),
    "working": ("idle", "waiting", "offline", "failed"),
    "waiting": ("working", "offline", "failed"),
    "offline": ("idle",),  # by registering again
    "failed": ("idle", "offline"),
}


class AgentFacts(Struct, frozen=True, gc=False):
    """What the Field knows of an agent. `number` stands for its id in the log."""

    id: str
    number: int
    registration: int
    status: AgentStatus
    authority: int
    role: str
    interests: tuple[str, ...]
    credential: str | None = None  # of whom registered it

    @property
    def active(self) -> bool:
        return self.status not in ("offline", "failed")


def check_move(agent_id: str, now: AgentStatus, then: AgentStatus) -> None:
    if then not in MOVES[now]:
        raise InvalidTransition(f"agent {agent_id} is {now} and cannot become {then}.")
