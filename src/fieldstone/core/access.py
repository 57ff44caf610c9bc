"""Who calls, and as whom they may speak. The edge finds the caller out; every operation and read is checked against it.

An agent is bound to the credential that registered it. Agents of a time when the field was open are bound to nobody:
a key that lists them, or one of the highest authority, may go on with them.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fieldstone.core.agents import AgentFacts
from fieldstone.core.errors import AgentNotRegistered, Forbidden
from fieldstone.core.limits import MAX_AUTHORITY
from fieldstone.core.vocabulary import FIELD_AGENT_ID, RESERVED_SESSION_PREFIX


class Caller(Struct, frozen=True):
    """A credential and what it grants. `credential` None is the local operator of a field that is open."""

    credential: str | None
    authority: int
    agents: frozenset[str] | None = None  # None: any agent that it registers
    rate_per_second: float | None = None
    quota_units: int | None = None

    @property
    def is_local(self) -> bool:
        return self.credential is None

    @property
    def sees_all(self) -> bool:
        """An operator: requests of theirs that name no agent are not bound to sessions."""
        return self.authority >= MAX_AUTHORITY

    def may_take(self, agent_id: str, credential: str | None) -> bool:
        """Whether an agent of this id that this credential registered is the caller's."""
        if self.credential is None:  # the local operator
            return True
        if self.agents is not None and agent_id not in self.agents:
            return False
        return credential == self.credential or (credential is None and self._goes_on_with(agent_id))

    def _goes_on_with(self, agent_id: str) -> bool:
        return self.sees_all or (self.agents is not None and agent_id in self.agents)

    def check(self, needs: int, what: str) -> None:
        """For requests that name no agent: they act with the credential's authority."""
        if self.authority < needs:
            raise Forbidden(f"{what} needs authority {needs}; this key has {self.authority}.")


# Whoever has the file, or reaches an open server on loopback, may do everything.
LOCAL: Final = Caller(credential=None, authority=MAX_AUTHORITY)


def speaker(agent: AgentFacts | None, caller: Caller) -> AgentFacts:
    """The active agent that the caller speaks as, with no more authority than the caller's credential grants."""
    if agent is None or not agent.active or is_own_voice(agent.id):  # nobody speaks as the Field itself
        raise AgentNotRegistered
    if not caller.may_take(agent.id, agent.credential):
        raise _not_yours(of_open_time=agent.credential is None)
    return agent if agent.authority <= caller.authority else replace(agent, authority=caller.authority)


def _not_yours(*, of_open_time: bool) -> Forbidden:
    if of_open_time:
        return Forbidden(
            "This agent is of the time when the field was open, and this key does not list it.",
            suggested_action="Make a key for it with `keys create --agent ID`, or use an agent id of your own.",
        )
    return Forbidden(  # a further key that lists it would not open it
        "This agent belongs to another credential: nobody speaks as another.",
        suggested_action="Use the key that registered it (`keys rotate` renews one), or an agent id of your own.",
    )


def is_own_voice(agent_id: str) -> bool:
    """The Field itself, or the memory host that speaks for a key."""
    return agent_id == FIELD_AGENT_ID or agent_id.startswith(RESERVED_SESSION_PREFIX)
