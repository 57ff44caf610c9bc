"""Log lines of a field in this process: on stderr, and without what was said."""

from __future__ import annotations

import sys


def log_to_stderr() -> None:
    """structlog prints to stdout unless told otherwise; warnings have no place among a program's output.

    Where rich is installed, it would also show the variables of every frame of a traceback: texts of units, and such
    as were not redacted yet.
    """
    import structlog

    plain = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[*structlog.get_config()["processors"][:-1], plain],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
