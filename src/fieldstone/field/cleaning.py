"""The harness, loaded when the first text needs it and without holding anyone else up."""

import asyncio
from collections.abc import Callable

from fieldstone.redact import Harness


class Cleaning:
    """Its rules take 0.3 s to load, and 3 s where this machine has never compiled them: that happens in a thread."""

    def __init__(self, load: Callable[[], Harness]) -> None:
        self._load = load
        self._loading: asyncio.Future[Harness] | None = None

    async def harness(self) -> Harness:
        return await asyncio.shield(self.begin())  # one caller who goes away does not stop it for the others

    def begin(self) -> asyncio.Future[Harness]:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        return self._loading
