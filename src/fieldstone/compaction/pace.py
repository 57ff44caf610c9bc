"""Long work in a thread, at a pace at which the event loop's own work goes first.

One thread at a time has the interpreter. Whoever reads from a store lets go of it with every statement, and a thread
that computes keeps it then for a switch interval each time: beside one in full swing a list of 50 entries took 95 ms,
and 2 ms without. So long work rests now and then until the loop has gone round, and soon where somebody waits.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from fieldstone.ports.threads import background_threads

STRETCH_S: Final = 0.002  # of work between two rests: what a turn of the loop may wait for it
SHORT_S: Final = 0.0002  # the same while somebody waits for an answer
LONGEST_REST_S: Final = 0.1  # a loop that turns no more keeps nobody waiting

P = ParamSpec("P")
T = TypeVar("T")

_somebody_waits: ContextVar[Callable[[], bool]] = ContextVar("somebody waits", default=lambda: False)
_rest: ContextVar[Callable[[], None] | None] = ContextVar("rest", default=None)  # None: nobody waits


@contextmanager
def giving_way(somebody_waits: Callable[[], bool]) -> Iterator[None]:
    """What goes on in threads meanwhile rests sooner while somebody waits. It is asked from those threads, and often.

    A request lets go of the interpreter with every statement of its transaction: each time it would wait for a thread
    in the middle of a stretch."""
    before = _somebody_waits.set(somebody_waits)
    try:
        yield
    finally:
        _somebody_waits.reset(before)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `asyncio.to_thread`, behind all others. The work rests wherever it goes through its items by `unhurried`."""
    loop = asyncio.get_running_loop()
    before = _rest.set(_Rests(loop, _somebody_waits.get()).rest_if_due)
    thread = background_threads(1, "fieldstone-compaction")  # a new one costs little beside work that is long
    try:
        return await loop.run_in_executor(thread, partial(copy_context().run, work, *args, **kwargs))
    finally:
        thread.shutdown(wait=False)
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
    def __init__(self, loop: asyncio.AbstractEventLoop, somebody_waits: Callable[[], bool]) -> None:
        self._loop = loop
        self._somebody_waits = somebody_waits
        self._rested_s = time.perf_counter()

    def rest_if_due(self) -> None:
        worked_s = time.perf_counter() - self._rested_s
        if worked_s < SHORT_S or (worked_s < STRETCH_S and not self._somebody_waits()):
            return
        self._rest()
        self._rested_s = time.perf_counter()

    def _rest(self) -> None:
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        turned.wait(LONGEST_REST_S)
