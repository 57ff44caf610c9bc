"""The secrets that a tenant has told us of, so that they are found in texts."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class KeptSecret(NamedTuple):
    """`scope` is "tenant", "user:<id>" or "run:<id>": it says when the value is dropped, not where it is looked for."""

    id: str
    scope: str
    value: str

    def __repr__(self) -> str:
        return f"KeptSecret({self.id!r}, {self.scope!r}, ***)"


class Vault(Protocol):
    """One tenant's secrets. Values are never in plain on disk; other processes' changes are seen at once."""

    def version(self) -> int:
        """Another number than before whenever anybody has changed anything. Cheap: asked for every group of writes."""
        ...

    def secrets(self) -> Sequence[KeptSecret]: ...

    def put(self, secret: KeptSecret) -> None:
        """Keep it, in the place of an earlier one of this id. On disk when it returns."""
        ...

    def drop(self, secret_id: str) -> bool:
        """Whether there was one."""
        ...
