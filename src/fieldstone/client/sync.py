"""The one sync face: any object of the native API, without await.

Coroutines run on an event loop in a thread of their own; what comes back and is itself asynchronous is faced, too.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol


class Opens(Protocol):
    """Something with `async with`."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None: ...


class SyncFace:
    """Looks like what it faces; every coroutine method waits for its result and returns it."""

    def __init__(self, faced: Any, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        self._faced = faced
        self._loop = loop
        self._thread = thread

    @classmethod
    def start(cls, opens: Opens) -> "SyncFace":
        """Open it on a loop of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="fieldstone-loop", daemon=True)
        thread.start()
        face = cls(opens, loop, thread)
        try:
            face._wait(opens.__aenter__())
        except BaseException:  # why: whatever it was, the thread ends
            face._end_loop()
            raise
        return face

    def stop(self) -> None:
        try:
            self._wait(self._faced.__aexit__(None, None, None))
        finally:
            self._end_loop()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._faced, name)
        return self._sync(found) if callable(found) else self._face(found)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._faced) if not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<sync {self._faced!r}>"

    def _sync(self, method: Any) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._loop.is_closed():
                raise RuntimeError("The field is closed: it is open inside its `with` block.")
            result = method(*args, **kwargs)
            if inspect.isawaitable(result):
                result = self._wait(result)
            return self._face(result)

        return call

    def _face(self, result: Any) -> Any:
        if isinstance(result, AsyncIterator):
            return self._iterate(result)
        is_asynchronous = any(inspect.iscoroutinefunction(member) for member in vars(type(result)).values())
        return SyncFace(result, self._loop, self._thread) if is_asynchronous else result

    def _iterate(self, iterator: AsyncIterator[Any]) -> Iterator[Any]:
        async def step() -> Any:
            return await anext(iterator, _END)

        while (item := self._wait(step())) is not _END:
            yield item

    def _wait(self, awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


_END = object()


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable
