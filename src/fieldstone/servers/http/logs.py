"""The server's log: JSON or console lines on stderr. No content, no ids that callers chose, no bodies.

The message of an unexpected exception may quote what a caller wrote, so a traceback here is made of places in our code
and the exception's type, and nothing else. The same goes for what libraries log: their template, without its arguments.
"""

import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(
    level: str, form: str, stream: TextIO | None = None, *, scrub: Callable[[str], str] = lambda text: text
) -> None:
    """`form`: json, console, or auto (console in a terminal, json elsewhere). `scrub` takes known secrets out."""
    out = sys.stderr if stream is None else stream
    console = form == "console" or (form == "auto" and out.isatty())
    renderer: Processor = structlog.processors.JSONRenderer()
    if console:
        renderer = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback, sort_keys=False
        )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            places_of_exception,
            Scrubbing(scrub),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [FromLibraries()]
    root.setLevel(max(LEVELS[level], logging.WARNING))  # what libraries tell below that may quote what they handle
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    # uvicorn tells its starts and bad bytes on a connection: for whoever debugs.
    logging.getLogger("uvicorn.error").setLevel(logging.INFO if level == "debug" else logging.ERROR)


def _is_news(record: logging.LogRecord) -> bool:
    """uvicorn says so of every WebSocket that was refused with an answer: whoever likes could fill the log."""
    return record.msg != "ASGI callable returned without completing handshake."


def places_of_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """exc_info → where it happened, without what was said."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()[1]
    elif isinstance(given, tuple):
        given = given[1]
    if isinstance(given, BaseException):
        event["exception"] = "".join(_places(given))
    return event


class Scrubbing:
    """The last step before a line is written: whatever got into it, no secret leaves."""

    def __init__(self, scrub: Callable[[str], str]) -> None:
        self._scrub = scrub

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {name: self._scrub(value) if isinstance(value, str) else value for name, value in event.items()}


class FromLibraries(logging.Handler):
    """What libraries tell the standard `logging`, as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        told: dict[str, Any] = {"logger": record.name}
        if record.exc_info:
            told["exc_info"] = record.exc_info
        lines = str(record.msg).strip().splitlines()
        structlog.get_logger(record.name).log(record.levelno, lines[0] if lines else "", **told)


def _places(error: BaseException) -> Iterator[str]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _places(before)
        yield "\nwhich led to\n\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
