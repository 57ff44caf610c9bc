"""`fieldstone import`"""

import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from fieldstone import wiring
from fieldstone.cli.door import opened, opened_for_a_while, run, settings_for
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import print_json, progress
from fieldstone.core.errors import FieldError, with_message

if TYPE_CHECKING:
    from fieldstone.client.field import Field
    from fieldstone.field.transfer import Imported

CHUNK_LINES: Final = 1_000  # one transaction each, and an import that breaks off has lost no more than one
CHUNK_BYTES: Final = 8_000_000  # the largest body that a server takes by default
LINE_BYTES: Final = 64_000_000  # no entry is that long: what is longer is not an export, and need not fit into memory

STDIN: Final = "-"


class Tally(Struct, frozen=True):
    """What all chunks together brought."""

    imported: int
    skipped: int


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@json_option
@where_options
def command(where: Where, as_json: bool, file: str) -> None:
    """Read in what `fieldstone export` wrote.

    From FILE or from stdin (`-`), into an empty field or one that holds the beginning of the same history. An import
    that broke off goes on where it was: entries that are there already are skipped.

    \b
    Examples:
      fieldstone import team.jsonl --db copy.db
      gunzip -c team.jsonl.gz | fieldstone import - --db copy.db
    """
    if file == STDIN:
        imported = run(_import(where, sys.stdin.buffer, None))
    else:
        with Path(file).open("rb") as lines:
            imported = run(_import(where, lines, Path(file).stat().st_size))
    if as_json:
        print_json(imported)
    else:
        click.echo(f"{imported.imported:,} entries imported, {imported.skipped:,} were there already")


async def _import(where: Where, source: IO[bytes], size: int | None) -> Tally:
    imported = skipped = lines_before = bytes_done = 0
    pieces = chunks(source)
    first = next(pieces, [])
    await _try_out(where, first)
    async with opened(where, make=True) as field:
        with progress("importing", size) as advance:
            for chunk in chain([first], pieces):
                taken = await _send(field, chunk, lines_before)
                imported += taken.imported
                skipped += taken.skipped
                lines_before += len(chunk)
                bytes_done += sum(map(len, chunk))
                advance(bytes_done)
    return Tally(imported, skipped)


async def _try_out(where: Where, chunk: list[bytes]) -> None:
    """Where there is no store yet, what is refused must not leave an empty one: its beginning is tried in memory."""
    settings = settings_for(where).values
    path = None if settings.url is not None else wiring.store_path(settings.db)
    if path is None or path.exists():
        return
    async with opened_for_a_while(replace(settings, embedder="none")) as field:  # no text goes to an endpoint twice
        await _send(field, chunk, 0)


def chunks(source: IO[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    while line := source.readline(LINE_BYTES):
        if len(line) == LINE_BYTES:
            raise Refused(f"error: A line is longer than {LINE_BYTES:,} bytes: this is not an export.")
        if chunk and (len(chunk) == CHUNK_LINES or size + len(line) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += len(line)
    if chunk:
        yield chunk


async def _send(field: "Field", chunk: list[bytes], lines_before: int) -> "Imported":
    try:
        return await field.import_lines(chunk)
    except FieldError as error:
        # The field counts the lines of what it was sent; the reader counts those of the file.
        message = re.sub(r"^line (\d+)", lambda line: f"line {int(line[1]) + lines_before}", error.message)
        raise with_message(error, message) from error
