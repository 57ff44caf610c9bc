"""Routes → one ASGI application."""

from collections.abc import Iterator
from typing import Final

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from fieldstone.core.errors import NotFound, ShuttingDown
from fieldstone.field.field import LocalField
from fieldstone.servers.http.answers import HTML, Answer, reply
from fieldstone.servers.http.body import drain
from fieldstone.servers.http.docs_page import docs_page
from fieldstone.servers.http.endpoint import Endpoint, Handler, unbuilt
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.inspect import Inspection
from fieldstone.servers.http.openapi import openapi_document
from fieldstone.servers.http.operations import Operations
from fieldstone.servers.http.routes import (
    DOCS_PATH,
    INSPECTION_ROUTES,
    MESSAGES_PATH,
    OPENAPI_PATH,
    UNBUILT_ROUTES,
    Health,
)
from fieldstone.wire.operations import OPERATION_ROUTES

# The page runs no script and loads nothing: its style is inside it.
DOCS_HEADERS: Final = ((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),)


class HttpApp:
    """The fixed paths are looked up at once; Starlette's router finds the rest."""

    def __init__(self, field: LocalField, *, bound_host: str, max_body_bytes: int, log_requests: bool = False) -> None:
        self._field = field
        self._log_requests = log_requests
        self._inspection = Inspection(field)
        self._operations = Operations(field, max_body_bytes=max_body_bytes)
        self.gate = Gate(bound_host)
        self.endpoints = list(self._endpoints())
        self._fixed = {endpoint.template: endpoint for endpoint in self.endpoints if "{" not in endpoint.template}
        self._router = Router(
            [Route(endpoint.template, endpoint) for endpoint in self.endpoints if "{" in endpoint.template],
            redirect_slashes=False,
            default=Endpoint("*", {}, self.gate, log_all=log_requests, otherwise=_not_found),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._fixed.get(scope["path"]) or self._router)(scope, receive, send)

    def _endpoints(self) -> Iterator[Endpoint]:
        for operation in OPERATION_ROUTES:
            yield self._endpoint(
                operation.path, {"POST": self._operations.handler(operation)}, operation=operation.operation
            )
        yield self._endpoint(MESSAGES_PATH, {"POST": self._operations.messages})
        for route in INSPECTION_ROUTES:
            yield self._endpoint(route.path, {route.method: getattr(self._inspection, route.name)})
        for missing in UNBUILT_ROUTES:
            yield self._endpoint(missing.path, dict.fromkeys(missing.methods, unbuilt(missing.name)))
        yield self._endpoint("/healthz", {"GET": _alive}, answers_while_stopping=True)
        yield self._endpoint("/readyz", {"GET": self._ready})
        yield self._endpoint(OPENAPI_PATH, {"GET": _openapi})
        yield self._endpoint(DOCS_PATH, {"GET": _docs})
        yield self._endpoint("/", {"GET": _to_docs})

    def _endpoint(
        self,
        template: str,
        handlers: dict[str, Handler],
        *,
        operation: str | None = None,
        answers_while_stopping: bool = False,
    ) -> Endpoint:
        return Endpoint(
            template,
            handlers,
            self.gate,
            operation=operation,
            log_all=self._log_requests,
            answers_while_stopping=answers_while_stopping,
        )

    async def _ready(self, scope: Scope, receive: Receive) -> Answer:
        if not self._field.writable:
            raise ShuttingDown
        return reply(Health())


async def _alive(scope: Scope, receive: Receive) -> Answer:
    return reply(Health())


async def _openapi(scope: Scope, receive: Receive) -> Answer:
    return reply(openapi_document())


async def _docs(scope: Scope, receive: Receive) -> Answer:
    host = dict(scope["headers"])[b"host"].decode("latin-1")  # the gate has seen that it is ours
    return Answer(200, docs_page(openapi_document(), f"http://{host}"), HTML, DOCS_HEADERS)


async def _to_docs(scope: Scope, receive: Receive) -> Answer:
    return Answer(307, b"", HTML, ((b"location", DOCS_PATH.encode()),))


async def _not_found(scope: Scope, receive: Receive) -> Answer:
    await drain(receive)
    raise NotFound
