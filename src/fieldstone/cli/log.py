"""`fieldstone log`"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import json, to_builtins

from fieldstone.cli.door import local_field, opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json, utc

if TYPE_CHECKING:
    from fieldstone.client.field import Field
    from fieldstone.field.field import LogLine

PAGE_ENTRIES: Final = 1_000  # the most that a field gives at once
FOLLOW_PAUSE_S: Final = 0.5


@click.command("log")
@click.option("--after", type=click.IntRange(min=0), default=0, show_default=True, help="Begin behind this entry.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The most entries to show.")
@click.option("--follow", is_flag=True, help="Go on with what is appended, until Ctrl-C; --limit does not count then.")
@json_option
@where_options
def command(where: Where, as_json: bool, after: int, limit: int, follow: bool) -> None:
    """Show the log: what happened, and when.

    Its entries hold ids and numbers; the texts lie beside it.

    \b
    Examples:
      fieldstone log --db team.db --after 200 --limit 50
      fieldstone log --json | jq 'select(.entry.event.kind == "unit.recorded")'
      fieldstone log --follow --url http://127.0.0.1:8420
    """
    run(_log(where, as_json, after, limit, follow))


async def _log(where: Where, as_json: bool, after: int, limit: int, follow: bool) -> None:
    async with opened(where) as field:
        if follow and local_field(field) is not None:
            raise Refused(
                "error: Nothing can be appended while this command holds the store, so there is nothing to follow. "
                "Run `fieldstone serve` on it; --follow then goes through the server."
            )
        lines = following(field, after) if follow else paged(field, after, limit)
        async for line in lines:
            if as_json:
                print_json(line)
            else:
                click.echo(readable(line))


async def paged(field: "Field", after: int, limit: int) -> "AsyncIterator[LogLine]":
    while limit > 0:
        page = await field.log(after=after, limit=min(limit, PAGE_ENTRIES))
        for line in page.entries:
            yield line
        if page.next is None:
            return
        after = page.next
        limit -= len(page.entries)
    # Said where a person reads it: a list that was cut must not look whole.
    click.echo(f"There is more: --after {after}", err=True)


async def following(field: "Field", after: int) -> "AsyncIterator[LogLine]":
    while True:
        page = await field.log(after=after, limit=PAGE_ENTRIES)
        for line in page.entries:
            yield line
            after = line.entry.seq
        if page.next is None:
            await asyncio.sleep(FOLLOW_PAUSE_S)


def readable(line: "LogLine") -> str:
    entry = line.entry
    event = to_builtins(entry.event)
    kind = event.pop("kind")
    fields = " ".join(f"{name}={_compact(value)}" for name, value in event.items() if name != "v")
    return f"{entry.seq:>6}  {entry.epoch:>6}  {utc(entry.at_ms)}  {kind:<18}  {one_line(fields)}".rstrip()


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.encode(value).decode()
