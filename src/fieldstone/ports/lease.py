"""Who holds a store: one writer at a time."""

from typing import Protocol

from msgspec import Struct


class Holder(Struct, frozen=True):
    """What the holder tells of itself, for the sentence that the next one gets."""

    pid: int
    host: str
    program: str
    since: str
    url: str | None = None


class StoreHeld(Exception):
    """Another process holds this store."""

    def __init__(self, store: str, holder: Holder | None) -> None:
        self.store = store
        self.holder = holder
        super().__init__(_sentence(store, holder))


class Lease(Protocol):
    """Taken for as long as the process lives; a process that dies, however it dies, gives it back."""

    def acquire(self, holder: Holder) -> None:
        """Take it, or raise `StoreHeld` with what its holder told of itself."""
        ...

    def announce(self, holder: Holder) -> None:
        """Tell where the holder can be reached, once that is known."""
        ...

    def release(self) -> None: ...


def _sentence(store: str, holder: Holder | None) -> str:
    if holder is None:
        return f"{store} is held by another process."
    where = f", serving at {holder.url}" if holder.url else ""
    advice = (
        f"Connect to {holder.url} instead, or stop it."
        if holder.url
        else "Stop it, or share the store by running `fieldstone serve` and connecting by URL."
    )
    who = f"{holder.program} (process {holder.pid} on {holder.host}, since {holder.since}{where})"
    return f"{store} is held by {who}. {advice}"
