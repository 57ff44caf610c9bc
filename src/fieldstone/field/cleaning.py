"""The harness with the secrets that are known now, loaded when the first text needs it, without holding anyone up."""

import asyncio
from collections.abc import Callable

from fieldstone.field.secrets import Secrets
from fieldstone.redact import Harness
from fieldstone.redact.known import KnownSecret


class Cleaning:
    """Its rules take 0.3 s to load, and 3 s where this machine has never compiled them: that happens in a thread."""

    def __init__(self, load: Callable[[], Harness], secrets: Secrets) -> None:
        self._load = load
        self._secrets = secrets
        self._loading: asyncio.Future[Harness] | None = None
        self._known: tuple[KnownSecret, ...] = ()
        self._knowing: Harness | None = None
        self._learning = asyncio.Lock()

    @property
    def known(self) -> tuple[KnownSecret, ...]:
        return self._secrets.known()

    async def harness(self) -> Harness:
        loading = self.begin()
        # One caller who goes away does not stop it for the others.
        base = loading.result() if loading.done() else await asyncio.shield(loading)
        known = self._secrets.known()
        if known is self._known and self._knowing is not None:
            return self._knowing
        async with self._learning:  # 0.1 s for 200 secrets: in a thread, and once for all who wait
            if known is not self._known or self._knowing is None:
                self._knowing = await asyncio.to_thread(base.knowing, known) if known else base
                self._known = known
            return self._knowing

    def begin(self) -> asyncio.Future[Harness]:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        return self._loading

    def scrub(self, text: str) -> str:
        """For the server's own log. Before the rules are loaded no text of a caller has come in yet."""
        if self._loading is None or not self._loading.done():
            return text
        known = self._secrets.known()
        if self._knowing is None or known is not self._known:
            self._known, self._knowing = known, self._loading.result().knowing(known)
        return self._knowing.clean_one(text).text
