"""One path: its methods, the refusals that every path has, and the line in the request log."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Final, TypeVar

import structlog
from starlette.types import Receive, Scope, Send

from fieldstone.core.errors import (
    FieldError,
    InternalError,
    InvalidEnvelope,
    InvalidPayload,
    MethodNotAllowed,
    PayloadTooLarge,
    RateLimited,
    ShuttingDown,
    Unauthenticated,
    UnsupportedOperation,
    with_message,
)
from fieldstone.servers.http.answers import CHALLENGE, CLOSE, Answer, Header, Refuse, refusal, send_answer
from fieldstone.servers.http.body import DRAIN_BYTES, BodyTooSlow, ClientGone, EndlessBody, drain
from fieldstone.servers.http.entrance import Entrance, Visit
from fieldstone.servers.http.exchange import answer_whole
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.query import check_known

SLOW_MS: Final = 2_500  # longer than ATTUNE may wait for min_epoch

logger = structlog.get_logger("fieldstone.http")

Handler = Callable[[Visit], Awaitable[Answer]]
PublicHandler = Callable[[Scope, Receive], Awaitable[Answer]]


async def method_not_allowed(visit: Visit) -> Answer:
    await drain(visit.receive)
    raise MethodNotAllowed


class Endpoint:
    """An ASGI application for one path. Handlers return an `Answer` or raise a `FieldError`.

    Public handlers answer anybody, and see no field. All others get a visit, once it is known who comes.
    """

    def __init__(
        self,
        template: str,
        handlers: Mapping[str, Handler],
        gate: Gate,
        entrance: Entrance,
        *,
        public: Mapping[str, PublicHandler] | None = None,
        operation: str | None = None,
        log_all: bool = False,
        answers_while_stopping: bool = False,
        otherwise: Handler = method_not_allowed,
        refuse: Refuse = refusal,
        queries: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`otherwise`: what answers the methods that have no handler. `refuse`: how errors are told.
        `queries`: the fields that each method knows behind the question mark; of other methods it is not looked at."""
        self.template = template
        self._handlers = _with_head(handlers)
        self._public = _with_head(public or {})
        self._allow = (b"allow", ", ".join(self.methods).encode())
        self._gate = gate
        self._entrance = entrance
        self._operation = operation
        self._log_all = log_all
        self._answers_while_stopping = answers_while_stopping
        self._otherwise = otherwise
        self._refuse = refuse
        self._queries = _with_head(queries or {})

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted({*self._handlers, *self._public}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = perf_counter()
        try:
            answer = await self._answer(scope, receive)
            if not answer_whole(answer, send):
                await send_answer(answer, receive, send, scope["method"])
        except ClientGone:
            return
        except Exception as broken:  # why: only a stream breaks here; it is cut off, and the caller sees that it was
            self._log_failure(scope, broken)
            return
        ms = (perf_counter() - begun) * 1e3
        if self._log_all or answer.status >= 500 or ms >= SLOW_MS:
            self._log(scope, answer, ms)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        try:
            refused = self._gate.refusal(scope["headers"])
            if refused is None or (self._answers_while_stopping and self._gate.stopping):
                if handler := self._public.get(scope["method"]):
                    return await handler(scope, receive)
                return await self._admit(scope, receive)
            await drain(receive)
            return self._refusal(refused)
        except FieldError as error:
            return self._refusal(error)
        except BodyTooSlow as slow:
            return self._refusal(InvalidEnvelope(str(slow)), close=True)
        except EndlessBody:
            return self._refusal(PayloadTooLarge(f"The request body is larger than {DRAIN_BYTES} bytes."), close=True)
        except asyncio.CancelledError:  # by a shutdown that could wait no longer; asked again, it gets the same answer
            return self._refusal(ShuttingDown())
        except ClientGone:
            raise
        except Exception as broken:  # why: whatever breaks, the caller gets a coded answer without a detail
            self._log_failure(scope, broken)
            return self._refusal(InternalError())

    async def _admit(self, scope: Scope, receive: Receive) -> Answer:
        try:
            granted = await self._entrance.identify(scope)
        except FieldError:
            await drain(receive)
            raise
        with self._entrance.tenants.enter(granted.tenant) as room:
            field = room.field or await room.opened()
            try:
                if scope["query_string"]:
                    await self._check_query(scope, receive)
                handler = self._handlers.get(scope["method"], self._otherwise)
                return await handler(self._entrance.visit(granted, scope, receive, field))
            except FieldError as error:  # its words may repeat what a caller wrote
                raise with_message(error, await field.scrubbed(error.message)) from error

    async def _check_query(self, scope: Scope, receive: Receive) -> None:
        known = self._queries.get(scope["method"])
        if known is None:
            return
        try:
            check_known(scope, known)
        except InvalidPayload:
            await drain(receive)
            raise

    def _refusal(self, error: FieldError, *, close: bool = False) -> Answer:
        if isinstance(error, MethodNotAllowed):
            return self._refuse(error, self._operation, self._allow)
        if isinstance(error, Unauthenticated):
            return self._refuse(error, self._operation, CHALLENGE)
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            return self._refuse(error, self._operation, _retry_after(error.retry_after_s))
        if close or isinstance(error, ShuttingDown):
            return self._refuse(error, self._operation, CLOSE)
        return self._refuse(error, self._operation)

    def _log(self, scope: Scope, answer: Answer, ms: float) -> None:
        tell = logger.warning if answer.status >= 500 or ms >= SLOW_MS else logger.debug
        tell(
            "request",
            method=scope["method"],
            route=self.template,
            operation=self._operation or answer.operation,
            status=answer.status,
            ms=round(ms, 2),
        )

    def _log_failure(self, scope: Scope, broken: Exception) -> None:
        logger.error(
            "request failed",
            method=scope["method"],
            route=self.template,
            operation=self._operation,
            error=type(broken).__name__,
            exc_info=broken,
        )


T = TypeVar("T")


def _with_head(by_method: Mapping[str, T]) -> dict[str, T]:
    """HEAD is GET: the protocol below leaves the body out."""
    return {"HEAD": by_method["GET"], **by_method} if "GET" in by_method else dict(by_method)


def _retry_after(seconds: float) -> Header:
    return (b"retry-after", b"%d" % max(1, math.ceil(seconds)))


def unbuilt(name: str) -> Handler:
    """A route of the contract whose operation does not exist yet."""

    async def answer(visit: Visit) -> Answer:
        await drain(visit.receive)
        raise UnsupportedOperation(f"{name} is not built yet.")

    return answer
