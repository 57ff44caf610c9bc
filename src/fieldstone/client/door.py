"""The door to a field: what the API needs, whether the field is in this process or behind a server."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol

from fieldstone.audit.verify import Verification
from fieldstone.core.conflicts import Conflict
from fieldstone.core.replies import AgentProfile, FieldStatus, Reply
from fieldstone.core.requests import Message
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import ConflictStatus
from fieldstone.field.field import LogPage
from fieldstone.field.rebuild import Rebuilt
from fieldstone.field.transfer import Imported


class Door(Protocol):
    async def send(self, message: Message) -> Reply: ...

    async def status(self) -> FieldStatus: ...

    async def agents(self) -> Sequence[AgentProfile]: ...

    async def conflicts(self, statuses: Sequence[ConflictStatus] | None = None) -> Sequence[Conflict]: ...

    async def unit(self, unit_id: str) -> MemoryUnit: ...

    async def log(self, *, after: int = 0, limit: int = 100) -> LogPage: ...

    async def verify(self) -> Verification: ...

    async def rebuild(self) -> Rebuilt: ...

    def export(self) -> AsyncIterator[bytes]: ...

    async def import_lines(self, lines: Iterable[bytes]) -> Imported: ...

    async def close(self) -> None: ...
