"""Lamport's clock: what a Field answers sorts after all that it knew and all that it was told."""

from fieldstone.core.errors import EpochOverflow
from fieldstone.core.limits import MAX_EPOCH


def check_epoch(local: int, received: int, *, leap: int) -> None:
    """Refuse an epoch that would wreck the clock or age the field at one blow."""
    if received > MAX_EPOCH:
        raise EpochOverflow(f"epoch {received} is beyond 2^53-1.")
    if received - local > leap:
        raise EpochOverflow(f"epoch {received} is more than {leap} ahead of the Field's clock, which is at {local}.")


def after_write(local: int, received: int) -> int:
    """The epoch of a state-changing operation: strictly after both clocks."""
    epoch = max(local, received) + 1
    if epoch > MAX_EPOCH:
        raise EpochOverflow("the Field's clock has reached 2^53-1 and cannot go on.")
    return epoch


def after_read(local: int, received: int) -> int:
    """A read learns of the caller's epoch without making a step of its own."""
    return max(local, received)
