"""One path: its methods, the refusals that every path has, and the line in the request log."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Final

import structlog
from starlette.types import Receive, Scope, Send

from fieldstone.core.errors import (
    FieldError,
    InternalError,
    MethodNotAllowed,
    PayloadTooLarge,
    ShuttingDown,
    UnsupportedOperation,
)
from fieldstone.servers.http.answers import CLOSE, Answer, refusal, send_answer
from fieldstone.servers.http.body import DRAIN_BYTES, ClientGone, EndlessBody, drain
from fieldstone.servers.http.gate import Gate

SLOW_MS: Final = 2_500  # longer than ATTUNE may wait for min_epoch

logger = structlog.get_logger("fieldstone.http")

Handler = Callable[[Scope, Receive], Awaitable[Answer]]


class Endpoint:
    """An ASGI application for one path. Handlers return an `Answer` or raise a `FieldError`."""

    def __init__(
        self,
        template: str,
        handlers: Mapping[str, Handler],
        gate: Gate,
        *,
        operation: str | None = None,
        log_all: bool = False,
        answers_while_stopping: bool = False,
        otherwise: Handler | None = None,
    ) -> None:
        """`otherwise`: what answers the methods that have no handler, instead of 405."""
        self.template = template
        self._handlers = dict(handlers)
        if "GET" in handlers:
            self._handlers.setdefault("HEAD", handlers["GET"])  # the protocol below leaves the body out
        self._allow = (b"allow", ", ".join(self.methods).encode())
        self._gate = gate
        self._operation = operation
        self._log_all = log_all
        self._answers_while_stopping = answers_while_stopping
        self._otherwise = otherwise

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted(self._handlers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = perf_counter()
        try:
            answer = await self._answer(scope, receive)
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
                handler = self._handlers.get(scope["method"], self._otherwise)
                if handler is not None:
                    return await handler(scope, receive)
                refused = MethodNotAllowed()
            await drain(receive)
            return self._refusal(refused)
        except FieldError as error:
            return self._refusal(error)
        except EndlessBody:
            return self._refusal(PayloadTooLarge(f"The request body is larger than {DRAIN_BYTES} bytes."), close=True)
        except asyncio.CancelledError:  # by a shutdown that could wait no longer; asked again, it gets the same answer
            return self._refusal(ShuttingDown())
        except ClientGone:
            raise
        except Exception as broken:  # why: whatever breaks, the caller gets a coded answer without a detail
            self._log_failure(scope, broken)
            return self._refusal(InternalError())

    def _refusal(self, error: FieldError, *, close: bool = False) -> Answer:
        if isinstance(error, MethodNotAllowed):
            return refusal(error, self._operation, self._allow)
        if close or isinstance(error, ShuttingDown):
            return refusal(error, self._operation, CLOSE)
        return refusal(error, self._operation)

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


def unbuilt(name: str) -> Handler:
    """A route of the contract whose operation does not exist yet."""

    async def answer(scope: Scope, receive: Receive) -> Answer:
        await drain(receive)
        raise UnsupportedOperation(f"{name} is not built yet.")

    return answer
