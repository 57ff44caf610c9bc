"""Everything under OpenWOP's prefixes: what is switched on, and 404 for the rest, in its own envelope."""

from collections.abc import Callable, Mapping
from typing import Final

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fieldstone.core.errors import NotFound
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.http.answers import Answer
from fieldstone.servers.http.body import drain
from fieldstone.servers.http.endpoint import Endpoint, Handler
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.memory import MEMORY_PATH, MemoryRoutes, memory_params, memory_parts

FORGET: Final = "forget"
PREFIXES: Final = ("/v1/memory", "/v1/events", "/v1/runs", "/v1/test", "/v1/host")

Handlers = Mapping[str, Handler]
MakeEndpoint = Callable[[str, Handlers], Endpoint]


class OpenWopPaths:
    """`handlers`: those of the feed and of the conformance mode, by path and method, where they are on."""

    def __init__(self, make: MakeEndpoint, host: HostFeatures | None, handlers: Mapping[str, Handlers]) -> None:
        self._nothing = make("*", dict.fromkeys(("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"), _not_found))
        self._memory: dict[int, Endpoint] = {}
        if host is not None:
            routes = MemoryRoutes(host)
            self._memory[1] = make("/v1/memory/{ref}", {"GET": routes.list, "POST": routes.put})
            self._memory[2] = make("/v1/memory/{ref}/{id}", {"GET": routes.get, "DELETE": routes.delete})
            self._forgetting = make(f"/v1/memory/{{ref}}/{FORGET}", {"POST": routes.forget})
        others = [make(path, methods) for path, methods in handlers.items()]
        self.endpoints = [*self._memory.values(), *others]
        if host is not None:
            self.endpoints.append(self._forgetting)
        self._router = Router(
            [Route(endpoint.template, endpoint) for endpoint in others], redirect_slashes=False, default=self._nothing
        )

    def takes(self, path: str) -> bool:
        return path.startswith(PREFIXES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._find(scope)(scope, receive, send)

    def _find(self, scope: Scope) -> ASGIApp:
        if not scope["path"].startswith(MEMORY_PATH):
            return self._router
        parts = memory_parts(scope)
        scope["path_params"] = memory_params(parts)
        if self._memory and parts[1:] == [FORGET] and scope["method"] == "POST":
            return self._forgetting  # an entry may have that name, and is read and deleted under it
        return self._memory.get(len(parts), self._nothing)


async def _not_found(visit: Visit) -> Answer:
    await drain(visit.receive)
    raise NotFound
