"""Routes → one ASGI application."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from fieldstone.core.errors import NotFound, ShuttingDown
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.auth.keys import Keys
from fieldstone.servers.http import compactions, inspect, retention, secrets
from fieldstone.servers.http.answers import HTML, Answer, openwop_refusal, reply
from fieldstone.servers.http.body import drain
from fieldstone.servers.http.conformance import ConformanceRoutes
from fieldstone.servers.http.docs_page import docs_page
from fieldstone.servers.http.endpoint import Endpoint, Handler, PublicHandler, unbuilt
from fieldstone.servers.http.entrance import Entrance, Visit
from fieldstone.servers.http.events import EventRoutes
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.keys import KeyRoutes
from fieldstone.servers.http.memory import DISCOVERY_PATH, Discovery
from fieldstone.servers.http.openapi import PLANE_ROUTES, openapi_document
from fieldstone.servers.http.openwop import Handlers, OpenWopPaths
from fieldstone.servers.http.operations import Operations
from fieldstone.servers.http.routes import (
    DOCS_PATH,
    INSPECTION_ROUTES,
    MEMORY_ROUTES,
    MESSAGES_PATH,
    OPENAPI_PATH,
    UNBUILT_ROUTES,
    Health,
)
from fieldstone.servers.http.stream_socket import SocketEndpoint
from fieldstone.servers.http.streams import Following
from fieldstone.servers.http.thread_routes import PlanePaths
from fieldstone.wire.operations import OPERATION_ROUTES

# The page runs no script and loads nothing: its style is inside it.
DOCS_HEADERS: Final = ((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),)
# What routes know behind the question mark, by path and method. Of pages, and of OpenWOP's seams, it is not looked at.
QUERIES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    **{(path, "POST"): () for path in (MESSAGES_PATH, *(route.path for route in OPERATION_ROUTES))},
    **{(route.path, route.method): route.query for route in (*INSPECTION_ROUTES, *PLANE_ROUTES, *MEMORY_ROUTES)},
}


class HttpApp:
    """The fixed paths are looked up at once; Starlette's router finds the rest."""

    def __init__(
        self,
        entrance: Entrance,
        keys: Keys,
        gate: Gate,
        *,
        max_body_bytes: int,
        log_requests: bool = False,
        host: HostFeatures | None = None,
        conformance: ConformanceRoutes | None = None,
    ) -> None:
        """`host`: the OpenWOP memory host; None: it is off, and its routes are not there. `conformance`: the seams of
        its test suite."""
        self._entrance = entrance
        self._log_requests = log_requests
        self._host = host
        self._operations = Operations(max_body_bytes=max_body_bytes)
        self._answering = _answering(KeyRoutes(keys, default_rate=entrance.default_rate))
        self.gate = gate
        self._sockets = SocketEndpoint(gate, entrance)
        self._openwop = OpenWopPaths(self._openwop_endpoint, host, self._openwop_handlers(conformance))
        nothing = Endpoint("*", {}, gate, entrance, log_all=log_requests, otherwise=_not_found)
        self._planes = PlanePaths(self._endpoint, Following(gate, entrance.still_knows), nothing)
        self.endpoints = [*self._endpoints(), *self._openwop.endpoints, *self._planes.endpoints]
        self._fixed = {endpoint.template: endpoint for endpoint in self.endpoints if "{" not in endpoint.template}
        self._router = Router(
            [
                Route(endpoint.template, endpoint)
                for endpoint in self.endpoints
                if "{" in endpoint.template and not self._cuts(endpoint.template)
            ],
            redirect_slashes=False,
            default=nothing,
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        app = self._sockets if scope["type"] == "websocket" else self._find(scope["path"])
        return app(scope, receive, send)

    def _find(self, path: str) -> ASGIApp:
        if endpoint := self._fixed.get(path):
            return endpoint
        if self._planes.takes(path):
            return self._planes
        return self._openwop if self._openwop.takes(path) else self._router

    def _cuts(self, path: str) -> bool:
        """Whether its ids may hold slashes: such paths are cut before they are decoded."""
        return self._planes.takes(path) or self._openwop.takes(path)

    def _endpoints(self) -> Iterator[Endpoint]:
        for operation in OPERATION_ROUTES:
            yield self._endpoint(
                operation.path, {"POST": self._operations.handler(operation)}, operation=operation.operation
            )
        yield self._endpoint(MESSAGES_PATH, {"POST": self._operations.messages})
        for path, routes in groupby(INSPECTION_ROUTES, key=lambda route: route.path):
            yield self._endpoint(path, {route.method: self._answering[route.name] for route in routes})
        for missing in UNBUILT_ROUTES:
            yield self._endpoint(missing.path, dict.fromkeys(missing.methods, unbuilt(missing.name)))
        yield self._endpoint("/healthz", {}, public=_alive, answers_while_stopping=True)
        yield self._endpoint("/readyz", {}, public=self._ready)
        yield self._endpoint(OPENAPI_PATH, {}, public=_openapi)
        if self._host is not None:
            yield self._endpoint(DISCOVERY_PATH, {}, public=Discovery(self._host).answer)
        yield self._endpoint(DOCS_PATH, {"GET": _docs})
        yield self._endpoint("/", {"GET": _to_docs})

    def _endpoint(
        self,
        template: str,
        handlers: Mapping[str, Handler],
        *,
        operation: str | None = None,
        public: PublicHandler | None = None,
        answers_while_stopping: bool = False,
    ) -> Endpoint:
        return Endpoint(
            template,
            handlers,
            self.gate,
            self._entrance,
            public={} if public is None else {"GET": public},
            operation=operation,
            log_all=self._log_requests,
            answers_while_stopping=answers_while_stopping,
            queries=_queries(template, handlers),
        )

    def _openwop_handlers(self, conformance: ConformanceRoutes | None) -> dict[str, Handlers]:
        if self._host is None:
            return {}
        feed: dict[str, Handlers] = {"/v1/events": {"GET": EventRoutes(self.gate, self._entrance.still_knows).events}}
        return {**feed, **(conformance.handlers() if conformance is not None else {})}

    def _openwop_endpoint(self, template: str, handlers: Mapping[str, Handler]) -> Endpoint:
        return Endpoint(
            template,
            handlers,
            self.gate,
            self._entrance,
            log_all=self._log_requests,
            refuse=openwop_refusal,
            queries=_queries(template, handlers),
        )

    async def _ready(self, scope: Scope, receive: Receive) -> Answer:
        if not self._entrance.tenants.writable:
            raise ShuttingDown
        return reply(Health())


def _queries(template: str, methods: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {method: QUERIES[template, method] for method in methods if (template, method) in QUERIES}


async def _alive(scope: Scope, receive: Receive) -> Answer:
    return reply(Health())


async def _openapi(scope: Scope, receive: Receive) -> Answer:
    return reply(openapi_document())


async def _docs(visit: Visit) -> Answer:
    host = dict(visit.scope["headers"])[b"host"].decode("latin-1")  # the gate has seen that it is ours
    return Answer(200, docs_page(openapi_document(), f"{visit.scope['scheme']}://{host}"), HTML, DOCS_HEADERS)


async def _to_docs(visit: Visit) -> Answer:
    return Answer(307, b"", HTML, ((b"location", DOCS_PATH.encode()),))


async def _not_found(visit: Visit) -> Answer:
    await drain(visit.receive)
    raise NotFound


def _answering(key_routes: KeyRoutes) -> dict[str, Handler]:
    """The handlers of INSPECTION_ROUTES, by their names there."""
    return {
        "status": inspect.status,
        "agents": inspect.agents,
        "conflicts": inspect.conflicts,
        "unit": inspect.unit,
        "log": inspect.log,
        "verify": inspect.verify,
        "rebuild": inspect.rebuild,
        "export": inspect.export,
        "take_in": inspect.take_in,
        "compactions": compactions.compactions,
        "compaction": compactions.compaction,
        "cancel_compaction": compactions.cancel_compaction,
        "compaction_events": compactions.compaction_events,
        "restore": compactions.restore,
        "guards": compactions.guards,
        "set_hold": compactions.guarding("hold"),
        "lift_hold": compactions.unguarding("hold"),
        "set_pin": compactions.guarding("pin"),
        "lift_pin": compactions.unguarding("pin"),
        "lineage": compactions.lineage,
        "policies": retention.policies,
        "set_policies": retention.set_policies,
        "plan_retention": retention.plan,
        "apply_retention": retention.apply,
        "retention_status": retention.status,
        "secrets": secrets.secrets,
        "put_secret": secrets.put_secret,
        "drop_secret": secrets.drop_secret,
        "sweep": secrets.sweep,
        "keys": key_routes.keys,
        "create_key": key_routes.create_key,
        "revoke_key": key_routes.revoke_key,
        "rotate_key": key_routes.rotate_key,
    }
