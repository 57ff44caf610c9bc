"""What commands print: JSON for programs; for people text that fits the terminal and cannot play tricks on it."""

import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import UnsetType, json

from fieldstone.core.replies import Warnings

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

NARROWEST: Final = 40  # in a terminal narrower than this, words would be cut to pieces

# Controls (escape sequences among them), line separators, and marks that turn the direction of writing.
_TRICKS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def print_json(value: Any) -> None:
    click.echo(json.encode(value))


def harmless(text: str) -> str:
    """What agents wrote is not ours: a sequence that moves the cursor or sets the clipboard is shown, not sent."""
    return _TRICKS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def one_line(text: str) -> str:
    return " ".join(harmless(text).split())


def wrapped(text: str, *, indent: str = "", hanging: str = "") -> str:
    """To the terminal's width, with the text's own paragraphs kept; `hanging` is what further lines are indented by."""
    width = max(NARROWEST, shutil.get_terminal_size().columns)
    lines: list[str] = []
    for paragraph in harmless(text).splitlines() or [""]:
        first = indent + hanging if lines else indent
        lines += textwrap.wrap(paragraph, width, initial_indent=first, subsequent_indent=indent + hanging) or [""]
    return "\n".join(lines)


def print_pairs(pairs: list[tuple[str, str]], *, indent: str = "") -> None:
    """A table of two columns."""
    widest = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{indent}{name.ljust(widest)}  {one_line(value)}")


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """The first column is what it is about; the others are numbers, and stand under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        click.echo("  ".join([name.ljust(widths[0]), *cells]))


def print_warnings(warnings: Warnings) -> None:
    for warning in () if isinstance(warnings, UnsetType) else warnings:
        click.echo(f"warning {warning.code}: {one_line(warning.message)}", err=True)


def utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}Z"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1_000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} GB"


@contextmanager
def progress(label: str, whole: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, in a terminal only. What it yields is told how much of the whole is done by now."""
    if not whole or not sys.stderr.isatty():
        yield lambda done: None
        return
    bar: ProgressBar[int]
    with click.progressbar(length=whole, label=label, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.pos)
