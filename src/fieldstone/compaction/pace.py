"""Long work in a thread, at a pace at which the event loop's own work goes first.

One thread at a time has the interpreter. Whoever reads from a store lets go of it with every statement, and a thread
that computes keeps it then for a switch interval each time: beside one in full swing a list of 50 entries took 95 ms,
and 2 ms without. So long work rests now and then until the loop has gone round.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar

STRETCH_S: Final = 0.002  # of work between two rests: what a turn of the loop may wait for it
LONGEST_REST_S: Final = 0.1  # a loop that turns no more keeps nobody waiting

P = ParamSpec("P")
T = TypeVar("T")

_rest: ContextVar[Callable[[], None] | None] = ContextVar("rest", default=None)  # None: nobody waits


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`. The work rests wherever it goes through its items by `unhurried`."""
    before = _rest.set(_Rests(asyncio.get_running_loop()).rest_if_due)
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    finally:
        _rest.reset(before)


def unhurried(items: Iterable[T]) -> Iterator[T]:
    """The same items, with rests in between where somebody waits."""
    rest = _rest.get()
    if rest is None:
        yield from items
        return
    for item in items:
        yield item
        rest()


class _Rests:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due_s = time.perf_counter() + STRETCH_S

    def rest_if_due(self) -> None:
        if time.perf_counter() < self._due_s:
            return
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        turned.wait(LONGEST_REST_S)
        self._due_s = time.perf_counter() + STRETCH_S
