"""A field, as its users hold it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from fieldstone.audit.verify import Verification
from fieldstone.client.agent import Agent, as_expected
from fieldstone.client.door import Door, ServedDoor
from fieldstone.client.sync import SyncFace
from fieldstone.client.threads import Threads
from fieldstone.compaction.retention import Policy
from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import AgentIdTaken
from fieldstone.core.replies import (
    AgentProfile,
    CompactionPage,
    CompactionProgress,
    FieldStatus,
    GuardPage,
    Lineage,
    Registered,
)
from fieldstone.core.requests import Message
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import ConflictStatus, Guard
from fieldstone.field.field import TENANT_SCOPE, LocalField, LogPage
from fieldstone.field.rebuild import Rebuilt
from fieldstone.field.retention import Outcome, PolicyStatus
from fieldstone.field.secrets import ListedSecret, SecretScope
from fieldstone.field.sweep import Swept
from fieldstone.field.threads import LocalThreads
from fieldstone.field.transfer import Imported
from fieldstone.planes.context.execution import ContextManager
from fieldstone.wire.messages import request_from
from fieldstone.wire.policies import policies_from


class Field:
    """Open it with `async with` (native) or with `with` (the same methods, without await)."""

    def __init__(self, open_door: Callable[[], Awaitable[Door]]) -> None:
        self._open_door = open_door
        self._door: Door | None = None
        self._face: SyncFace | None = None

    async def __aenter__(self) -> "Field":
        self._door = await self._open_door()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __enter__(self) -> Any:
        self._face = SyncFace.start(self)
        return self._face

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._face is not None:
            self._face.stop()
            self._face = None

    async def agent(self, id: str, *, role: str, interests: Sequence[str] = (), authority: int | None = None) -> Agent:
        """Join as this agent, or resume as it where it is registered already.

        One that resumes stays registered as it was; `role` and `interests` count for what this handle attunes to.
        """
        try:
            return await self.register(id, role=role, interests=interests, authority=authority)
        except AgentIdTaken:
            for profile in await self.door.agents():
                if profile.id == id:
                    return Agent(self.door, profile, role=role, interests=interests)
            raise

    async def register(
        self,
        id: str,
        *,
        role: str,
        interests: Sequence[str] = (),
        authority: int | None = None,
        required_operations: Sequence[str] = (),
    ) -> Agent:
        """Join as a new agent. An id that another active agent has is refused (AGENT_ID_TAKEN)."""
        fields: dict[str, Any] = {"id": id, "role": role, "interests": interests}
        if authority is not None:
            fields["authority"] = authority
        if required_operations:
            fields["required_operations"] = required_operations
        message = Message("REGISTER", id, request_from("REGISTER", fields))
        registered = as_expected(await self.door.send(message), Registered)
        return Agent(self.door, registered.agent, epoch=registered.epoch)

    async def status(self) -> FieldStatus:
        """What the field holds, archived units among it, and how it is doing."""
        return await self.door.status()

    async def agents(self) -> Sequence[AgentProfile]:
        """Every agent that was registered, each with its status."""
        return await self.door.agents()

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[Conflict]:
        """The conflicts that are in one of these states; without any, all of them."""
        return await self.door.conflicts(statuses)

    async def unit(self, unit_id: str) -> MemoryUnit:
        """One unit, archived or not. A purged one is refused (UNIT_PURGED), with its tombstone."""
        return await self.door.unit(unit_id)

    async def log(self, *, after: int = 0, limit: int = 100) -> LogPage:
        """What happened, entry by entry; `next` of a page is `after` of the one behind it."""
        return await self.door.log(after=after, limit=limit)

    async def verify(self) -> Verification:
        """Whether log and texts are as they were written; if not, `first_bad` says where they first are not."""
        return await self.door.verify()

    async def rebuild(self) -> Rebuilt:
        """Throw the views away, and build them again from log and texts."""
        return await self.door.rebuild()

    def export(self) -> AsyncIterator[bytes]:
        """The log and its texts as JSON lines, with their hashes; `import_lines` reads them in."""
        return self.door.export()

    async def import_lines(self, lines: Iterable[bytes]) -> Imported:
        """Continue an empty field, or one that holds the beginning of the same history, with what `export` gave."""
        return await self.door.import_lines(lines)

    async def compaction(self, compaction_id: str) -> CompactionProgress:
        """Where a compaction is that runs, or was the last since the field was opened."""
        return await self.door.compaction(compaction_id)

    async def compactions(self, *, after: int = 0, limit: int = 100) -> CompactionPage:
        """The compactions that there were, the oldest first; `next` of a page is `after` of the one behind it."""
        return await self.door.compactions(after=after, limit=limit)

    def watch_compaction(self, compaction_id: str) -> AsyncIterator[CompactionProgress]:
        """Where it is, again with every step, and in the end with its result."""
        return self.door.watch_compaction(compaction_id)

    async def cancel_compaction(self, compaction_id: str) -> CompactionProgress:
        """It stops after the step it is in; what is done stays done."""
        return await self.door.cancel_compaction(compaction_id)

    async def restore(self, unit_ids: str | Sequence[str]) -> int:
        """Bring an archived unit back, or several; how many came. Those that are not archived are passed over."""
        return await self.door.restore([unit_ids] if isinstance(unit_ids, str) else unit_ids)

    async def restore_compaction(self, compaction_id: str) -> int:
        """Bring back all that one compaction archived, and that is still there; how many came."""
        return await self.door.restore_compaction(compaction_id)

    async def hold(self, unit_id: str) -> None:
        """Keep it for a legal reason: no compaction touches it until the hold is lifted, whoever asks for it."""
        await self.door.guard(unit_id, "hold")

    async def unhold(self, unit_id: str) -> None:
        """Lift the hold."""
        await self.door.unguard(unit_id, "hold")

    async def pin(self, unit_id: str) -> None:
        """Keep it where it is: no compaction touches it until it is unpinned."""
        await self.door.guard(unit_id, "pin")

    async def unpin(self, unit_id: str) -> None:
        """Unpin it."""
        await self.door.unguard(unit_id, "pin")

    async def guards(self, guard: Guard | None = None, *, after: int = 0, limit: int = 100) -> GuardPage:
        """The units that are held or pinned, page by page as `compactions`."""
        return await self.door.guards(guard, after=after, limit=limit)

    async def lineage(self, unit_id: str) -> Lineage:
        """What a unit was made from, and what was made from it: one level in each direction."""
        return await self.door.lineage(unit_id)

    async def retention(self) -> Sequence[Policy]:
        """The retention policies that hold."""
        return await self.door.retention()

    async def set_retention(self, policies: Sequence[Policy | Mapping[str, Any]]) -> Sequence[Policy]:
        """These policies hold from now on, and no others. One without a schedule acts only when it is applied."""
        return await self.door.set_retention(policies_from(policies))

    async def plan_retention(self) -> Sequence[Outcome]:
        """What each policy would do if it were applied now, by itself; nothing is done."""
        return await self.door.plan_retention()

    async def apply_retention(self) -> Sequence[Outcome]:
        """Carry out every policy that is enabled, in their order."""
        return await self.door.apply_retention()

    async def retention_status(self) -> Sequence[PolicyStatus]:
        """When each policy last ran, and when it runs next."""
        return await self.door.retention_status()

    async def put_secret(self, secret_id: str, value: str, scope: SecretScope = TENANT_SCOPE) -> bool:
        """Register a value that must never be stored. True: it is easy to guess, and found in plain form only."""
        return await self.door.put_secret(secret_id, value, scope)

    async def secrets(self) -> Sequence[ListedSecret]:
        """The secrets that are registered, without their values."""
        return await self.door.secrets()

    async def drop_secret(self, secret_id: str) -> None:
        """Forget it. What was redacted stays so."""
        await self.door.drop_secret(secret_id)

    async def sweep(self) -> Swept:
        """Clear secrets that were registered late from every text that is stored."""
        return await self.door.sweep()

    @property
    def threads(self) -> Threads:
        """Runs that are streamed in, and the branching transcripts that they leave."""
        door = self.door
        return Threads(LocalThreads(door) if isinstance(door, LocalField) else cast(ServedDoor, door).threads)

    def context(self, max_tokens: int, *, thread: str | None = None, **options: Any) -> ContextManager:
        """Execution memory: the messages of one generation, kept within a budget of tokens. Nothing of it is stored.

        With a `thread`, what a summary stands for is found again in its transcript. `options` are the manager's:
        strategy, triggers, keep_last, background, before, after.
        """
        door = self.door
        if isinstance(door, LocalField):
            return door.planes.context(max_tokens, thread=thread, **options)
        return cast(ServedDoor, door).context(max_tokens, thread=thread, **options)

    async def close(self) -> None:
        """Finish what was accepted, and let go of the store or the server. Leaving `with` does it."""
        if self._door is not None:
            await self._door.close()
            self._door = None

    @property
    def door(self) -> Door:
        if self._door is None:
            raise RuntimeError("The field is not open: use `async with open_field(…)`, or `with open_field(…)`.")
        return self._door
