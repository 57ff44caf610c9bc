"""`fieldstone export`"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import click
from msgspec import Struct, json

from fieldstone.cli.door import opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import counted, in_bytes, print_json, progress

STDOUT = "-"
WITHOUT_TEXT: Final = b'"replaced":true}'  # how a line ends whose text is elsewhere, or nowhere
LATER_WORDS: Final = (b'"units.purged"', b'"content.replaced"')


class Exported(Struct, frozen=True, omit_defaults=True):
    file: str
    entries: int
    bytes: int
    texts_missing: int = 0


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
        _warn_of_gaps(run(_export(where, file, sys.stdout.buffer)))
        return
    with written_whole(Path(file), force=force) as out:
        exported = run(_export(where, file, out))
    _warn_of_gaps(exported)
    if as_json:
        print_json(exported)
    else:
        click.echo(f"{exported.entries:,} entries, {in_bytes(exported.bytes)}: {exported.file}")


async def _export(where: Where, file: str, out: IO[bytes]) -> Exported:
    entries = size = 0
    gaps = Gaps()
    async with opened(where) as field:
        known = (await field.status()).log_entries
        with progress("exporting", known) as advance:
            async for chunk in field.export():
                out.write(chunk)
                gaps.look(chunk)
                size += len(chunk)
                entries += chunk.count(b"\n")
                advance(entries)
        out.flush()
    if entries < known:
        raise Refused(f"error: The export broke off after {entries:,} of {known:,} entries.")
    return Exported(file, entries, size, len(gaps.missing()))


def _warn_of_gaps(exported: Exported) -> None:
    """A backup that lacks something must not look whole."""
    if exported.texts_missing:
        texts = counted(exported.texts_missing, "text")
        click.echo(
            f"warning: {texts} could not be exported: missing, or not as written. `fieldstone verify` names the first.",
            err=True,
        )


class Gaps:
    """Entries whose text is in no line, though none says that it was purged."""

    def __init__(self) -> None:
        self._rest = b""
        self._without: set[int] = set()
        self._purged: set[int] = set()

    def look(self, chunk: bytes) -> None:
        """Through a server lines come in any pieces."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.endswith(WITHOUT_TEXT) or any(kind in line for kind in LATER_WORDS):
                entry = json.decode(line)["entry"]
                self._note(entry["seq"], entry["event"], is_there=not line.endswith(WITHOUT_TEXT))

    def missing(self) -> set[int]:
        return self._without - self._purged

    def _note(self, seq: int, event: dict[str, Any], *, is_there: bool) -> None:
        if event["kind"] == "units.purged":
            self._purged.update(event["texts"])
        seq = event["entry"] if event["kind"] == "content.replaced" else seq
        # A text may be replaced several times: the last entry that says so has it.
        if is_there:
            self._without.discard(seq)
        else:
            self._without.add(seq)


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
