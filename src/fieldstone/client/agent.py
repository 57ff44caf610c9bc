"""An agent's side of a field: record what it found, attune to what matters to it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

from fieldstone.client.door import Door
from fieldstone.core.replies import (
    Accepted,
    AgentProfile,
    Attunement,
    AttunementOfIds,
    AttuneReply,
    Compacted,
    CompactionProgress,
    Deregistered,
    Detection,
    Done,
    Reply,
)
from fieldstone.core.requests import Message, Order, TemporalLayer
from fieldstone.core.units import Confidence, Intent, Relation
from fieldstone.core.vocabulary import Mode, Operation, Strategy, UnitStatus
from fieldstone.wire.messages import request_from

T = TypeVar("T")
DEFAULT_MAX_UNITS: Final = 20


class AttuneScope(TypedDict, total=False):
    """What an agent may say of the context that it wants; the role is its own unless said."""

    max_units: int
    max_tokens: int | None
    role: str
    interests: Sequence[str] | None
    active_task_id: str | None
    temporal_layers: Sequence[TemporalLayer] | None
    relevance_threshold: float | None
    recency_weight: float | None
    since_epoch: int | None
    min_epoch: int | None
    sessions: Sequence[str] | None
    order: Order
    include_own: bool
    include_drafts: bool
    include_archived: bool
    include_unvouched: bool


class CompactionWish(TypedDict, total=False):
    """Which units a compaction is about, and how it goes about it. What is not said does not restrict."""

    max_age_epochs: int | None
    session_id: str | None
    types: Sequence[str] | None
    status: Sequence[UnitStatus] | None
    ancestor_id: str | None
    dry_run: bool
    reason: str | None
    verify: bool


class Agent:
    """It remembers the epoch of the last answer, so that what it does next sorts after what it has seen."""

    def __init__(
        self,
        door: Door,
        profile: AgentProfile,
        *,
        role: str | None = None,
        interests: Sequence[str] = (),
        epoch: int = 0,
    ) -> None:
        """`role` and `interests` beside the registered ones: what this handle says when it attunes."""
        self._door = door
        self._interests = tuple(interests)
        self.profile = profile
        self._role = role or profile.role
        self.epoch = epoch

    def __repr__(self) -> str:
        return f"<agent {self.id} ({self.role})>"

    @property
    def id(self) -> str:
        return self.profile.id

    @property
    def role(self) -> str:
        return self.profile.role

    async def record(
        self,
        content: str,
        *,
        intent: str | Intent | Mapping[str, Any],
        type: str = "finding",
        confidence: float | Confidence | Mapping[str, Any] | None = None,
        reasoning: str | None = None,
        evidence: Sequence[str] = (),
        assumptions: Sequence[str] = (),
        relations: Sequence[Relation | Mapping[str, Any]] = (),
        mode: Mode = "committed",
        session_id: str | None = None,
        id: str | None = None,
    ) -> Accepted:
        """Add a unit. `intent` says why; a committed unit needs `confidence` (0 to 1) and its `reasoning`.

        With an `id`, sending the same record again returns the first answer and changes nothing.
        """
        fields: dict[str, Any] = {
            "mode": mode,
            "type": type,
            "content": content,
            "intent": {"purpose": intent} if isinstance(intent, str) else _plain(intent),
        }
        if not isinstance(confidence, float) and isinstance(confidence, Confidence | Mapping):
            fields["confidence"] = _plain(confidence)
        elif confidence is not None or reasoning is not None or evidence or assumptions:
            fields["confidence"] = {
                "score": confidence,
                "reasoning": reasoning,
                "evidence": evidence,
                "assumptions": assumptions,
            }
        if relations:
            fields["relations"] = [_plain(relation) for relation in relations]
        return await self._send("RECORD", fields, Accepted, session_id=session_id, message_id=id)

    async def attune(
        self,
        context_hint: str | None = None,
        *,
        format: Literal["full", "summary"] = "full",
        **scope: Unpack[AttuneScope],
    ) -> Attunement:
        """What matters to this agent now, best first, each unit with a score and a reason. At most 20, unless said.

        With `max_tokens` it fits into a prompt: in full, as a summary, or left out and named in the receipt.
        """
        fields = self._attune_fields(context_hint, scope) | {"format": format}
        return await self._send("ATTUNE", fields, AttuneReply)

    async def attune_ids(self, context_hint: str | None = None, **scope: Unpack[AttuneScope]) -> AttunementOfIds:
        """The same, with ids and epochs only."""
        fields = self._attune_fields(context_hint, scope) | {"format": "ids_only"}
        return await self._send("ATTUNE", fields, AttuneReply)

    async def detect(self, **filter: Sequence[str]) -> Detection:
        """The field's conflicts. Filters: status, types, involving_agents."""
        fields: dict[str, Any] = {"mode": "list"}
        if filter:
            fields["filter"] = filter
        return await self._send("DETECT", fields, Detection)

    async def commit(
        self,
        memory_unit_id: str,
        *,
        confidence: float | None = None,
        reasoning: str | None = None,
        id: str | None = None,
    ) -> Accepted:
        """A draft takes effect."""
        fields: dict[str, Any] = {"memory_unit_id": memory_unit_id}
        if confidence is not None or reasoning is not None:
            fields["confidence"] = {"score": confidence, "reasoning": reasoning}
        return await self._send("COMMIT", fields, Accepted, message_id=id)

    async def discard(self, memory_unit_id: str, *, reason: str | None = None, id: str | None = None) -> Done:
        """A draft is given up."""
        fields = {"memory_unit_id": memory_unit_id, "reason": reason}
        return await self._send("DISCARD", fields, Done, message_id=id)

    async def retract(self, memory_unit_id: str, *, reason: str, id: str | None = None) -> Done:
        """A unit no longer stands."""
        fields = {"memory_unit_id": memory_unit_id, "reason": reason}
        return await self._send("RETRACT", fields, Done, message_id=id)

    async def compact(self, strategy: Strategy, *, id: str | None = None, **wish: Unpack[CompactionWish]) -> Compacted:
        """Archive, summarize or purge the units that match, and wait until it is done.

        With `dry_run` nothing is done, and the answer says what would be. A purge has to say what it is about.
        """
        return await self._send("COMPACT", _compact_fields(strategy, wish), Compacted, message_id=id)

    async def begin_compaction(
        self, strategy: Strategy, *, id: str | None = None, **wish: Unpack[CompactionWish]
    ) -> CompactionProgress:
        """The same in the background: `Field.watch_compaction` follows it. Without an id it had nothing to do."""
        request = request_from("COMPACT", _compact_fields(strategy, wish))
        message = Message("COMPACT", self.id, request, None, self.epoch, id)
        return await self._door.begin_compaction(message)

    async def deregister(self) -> Deregistered:
        """Leave. What was recorded stays."""
        return await self._send("DEREGISTER", {"agent_id": self.id}, Deregistered)

    async def _send(
        self,
        operation: Operation,
        fields: Mapping[str, Any],
        reply: type[T],
        *,
        session_id: str | None = None,
        message_id: str | None = None,
    ) -> T:
        message = Message(operation, self.id, request_from(operation, fields), session_id, self.epoch, message_id)
        answer = as_expected(await self._door.send(message), reply)
        self.epoch = max(self.epoch, getattr(answer, "epoch", 0))
        return answer

    def _attune_fields(self, context_hint: str | None, scope: AttuneScope) -> dict[str, Any]:
        own: dict[str, Any] = {"role": self._role, "max_units": DEFAULT_MAX_UNITS}
        if self._interests:
            own["interests"] = self._interests
        wanted = {**own, **scope}
        since_epoch, min_epoch = wanted.pop("since_epoch", None), wanted.pop("min_epoch", None)
        return {"scope": wanted, "context_hint": context_hint, "since_epoch": since_epoch, "min_epoch": min_epoch}


def as_expected(answer: Reply, reply: type[T]) -> T:
    """The answer, which is of the operation's own kind unless the door is broken."""
    if not isinstance(answer, reply):
        raise TypeError(f"a {reply.__name__} was asked for, and the answer was a {type(answer).__name__}")
    return answer


def _compact_fields(strategy: Strategy, wish: CompactionWish) -> dict[str, Any]:
    asked: dict[str, Any] = dict(wish)
    how: dict[str, Any] = {name: asked.pop(name) for name in ("dry_run", "reason", "verify") if name in asked}
    filter = {name: value for name, value in asked.items() if value is not None}
    return {"strategy": strategy, **how, **({"filter": filter} if filter else {})}


def _plain(value: Any) -> Any:
    """Structs go through the same check as mappings."""
    return (
        {name: getattr(value, name) for name in value.__struct_fields__}
        if hasattr(value, "__struct_fields__")
        else value
    )
