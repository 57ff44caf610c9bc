"""`fieldstone export`"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click
from msgspec import Struct

from fieldstone.cli.door import opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import in_bytes, print_json, progress

STDOUT = "-"


class Exported(Struct, frozen=True):
    file: str
    entries: int
    bytes: int


@click.command("export")
@click.argument("file", default=STDOUT, type=click.Path(allow_dash=True))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@json_option
@where_options
def command(where: Where, as_json: bool, file: str, force: bool) -> None:
    """Write the log and its texts as JSON lines.

    They go to FILE, or to stdout (`-`, the default), and `fieldstone import` reads them. FILE appears when it is whole,
    and not before.

    \b
    Examples:
      fieldstone export team.jsonl --db team.db
      fieldstone export --url http://127.0.0.1:8420 | gzip > team.jsonl.gz
    """
    if file == STDOUT:
        run(_export(where, file, sys.stdout.buffer))
        return
    with written_whole(Path(file), force=force) as out:
        exported = run(_export(where, file, out))
    if as_json:
        print_json(exported)
    else:
        click.echo(f"{exported.entries:,} entries, {in_bytes(exported.bytes)}: {exported.file}")


async def _export(where: Where, file: str, out: IO[bytes]) -> Exported:
    entries = size = 0
    async with opened(where) as field:
        known = (await field.status()).log_entries
        with progress("exporting", known) as advance:
            async for chunk in field.export():
                out.write(chunk)
                size += len(chunk)
                entries += chunk.count(b"\n")
                advance(entries)
        out.flush()
    if entries < known:
        raise Refused(f"error: The export broke off after {entries:,} of {known:,} entries.")
    return Exported(file, entries, size)


@contextmanager
def written_whole(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """A file that is there when all of it is on disk: before that it is a .part, and after a failure nothing."""
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():
        raise Refused(f"error: {path} is not a file. `-` writes to stdout.")
    if path.exists() and not force:
        raise Refused(f"error: {path} exists. --force overwrites it.")
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
