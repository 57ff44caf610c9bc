"""Errors as a person at a shell should meet them: one clear sentence, an exit code, and no traceback."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

import click
from msgspec import MsgspecError

from fieldstone.cli.output import one_line
from fieldstone.core.errors import FieldError
from fieldstone.ports.lease import StoreHeld
from fieldstone.ports.store import StoreTooNew, UnknownField
from fieldstone.settings import BadSettings
from fieldstone.wiring import OtherField, UnknownStore

INTERRUPTED: Final = 130  # 128 + SIGINT and 128 + SIGPIPE, as shells report them
BROKEN_PIPE: Final = 141

# Errors of parts that `--help` must not load, or that only the wiring may name, are known by (package, class).
_SENTENCES: Final = {
    ("fieldstone", "NonLoopbackHost"): "{}.",
    ("fieldstone", "WrongSealingKey"): "{}.",
    ("fieldstone", "ForeignColdStore"): "{}.",
    ("fieldstone", "CannotListen"): "{}.",
    ("apsw", "Error"): "The store cannot be used: {}.",
    ("httpx", "HTTPError"): "The server cannot be used: {}.",
    ("httpx", "InvalidURL"): "The server's address is wrong: {}.",
}


class Refused(click.ClickException):
    """Said on stderr as it stands; exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(without_password(self.message), file=file, err=file is None)


def refusal(error: Exception) -> Refused | None:
    """What to say of an error, or None where it is a bug of ours and its traceback is wanted."""
    if isinstance(error, FieldError):
        lines = (f"error {error.code}: {error.message}", error.suggested_action, *_beside(error.extra))
        return Refused("\n".join(lines))
    if isinstance(error, BadSettings | UnknownStore | OtherField | StoreHeld | StoreTooNew | UnknownField):
        return Refused(f"error: {error}")
    if isinstance(error, OSError):
        return Refused(f"error: {_of_system(error)}")
    if isinstance(error, MsgspecError):
        return Refused(f"error: What came back is not what a field holds: {error}. Is it a Fieldstone field?")
    for kind in type(error).__mro__:
        if sentence := _SENTENCES.get((kind.__module__.partition(".")[0], kind.__name__)):
            after = advice(error) if kind.__module__ == "apsw" else ()
            return Refused("\n".join(("error: " + sentence.format(str(error).rstrip(".")), *after)))
    return None


def is_damage(error: Exception) -> bool:
    """Whether a store that raises this cannot be read: all that is not a refusal, and not the system's."""
    if isinstance(error, FieldError | BadSettings | UnknownStore | StoreHeld | OSError | click.ClickException):
        return False
    return type(error).__module__.partition(".")[0] not in ("fieldstone", "httpx")


def unreadable(error: Exception) -> str:
    return f"The store cannot be read ({type(error).__name__}: {str(error).rstrip('.')})."


def notes(error: Exception) -> tuple[str, ...]:
    """What to do about it, where whoever raised it knew."""
    return tuple(getattr(error, "__notes__", ()))


def advice(error: Exception) -> tuple[str, ...]:
    return notes(error) or ("`fieldstone verify` says where it is damaged.",)


@contextmanager
def told_in_words() -> Iterator[None]:
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # `| head` has seen enough. What is still buffered goes nowhere, or Python would complain of it at exit.
        _discard_stdout()
        raise SystemExit(BROKEN_PIPE) from None
    except Exception as error:  # why: only what is known is told in words; the rest is raised again as it came
        refused = refusal(error)
        if refused is None:
            raise
        raise refused from error


def without_password(text: str) -> str:
    """A URL may carry a password; no message shows it."""
    return re.sub(r"(?<=://)[^/@\s]+@", "***@", text)


def _beside(extra: Mapping[str, object]) -> Iterator[str]:
    """What stands beside a message: when a unit was purged and why, which compaction is running, and the like."""
    for name, value in extra.items():
        if isinstance(value, Mapping):
            yield from _beside(value)
        else:
            yield f"{name}: {one_line(str(value))}"


def _of_system(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{os.fsdecode(error.filename)}: {error.strerror}."


def _discard_stdout() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file: nothing is flushed at exit
        pass
