"""`fieldstone events`"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, get_args

import click
from msgspec import json

from fieldstone.cli.door import local_field, opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json
from fieldstone.compaction.retention import duration_ms
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.vocabulary import FeedKind

if TYPE_CHECKING:
    from fieldstone.client.field import Field
    from fieldstone.client.remote import RemoteField
    from fieldstone.field.field import LocalField
    from fieldstone.profiles.openwop.feed import Feed, FeedEvent, FeedPage

PAGE_EVENTS: Final = 500
AGO: Final = "Here a while ago will do, too: --since 24h."
FOLLOW_PAUSE_S: Final = 0.5
COUNTED: Final = ("sourceIds", "mergedIds")  # a line for people has their number; --json has all of them

_KINDS: Final[tuple[FeedKind, ...]] = get_args(FeedKind)


class Telling(Protocol):
    """A page of the feed, here or behind a server."""

    async def __call__(self, *, kinds: Sequence[FeedKind] | None, since: str | None, limit: int) -> "FeedPage": ...


@click.command("events")
@click.option(
    "--type",
    "kinds",
    multiple=True,
    type=click.Choice(_KINDS),
    metavar="TYPE",
    help=f"Only events of this type: {', '.join(_KINDS)}. May be repeated.",
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Begin a while ago (90m, 24h, 7d), at a time (2026-01-31T08:00:00Z), or behind the event of this id.",
)
@click.option("--limit", type=click.IntRange(min=1), default=1_000, show_default=True, help="The most events to show.")
@click.option("--follow", is_flag=True, help="Go on with what happens, until Ctrl-C; --limit does not count then.")
@json_option
@where_options
def command(
    where: Where, as_json: bool, kinds: tuple[FeedKind, ...], since: str | None, limit: int, follow: bool
) -> None:
    """Show the events of memories: what was written, compacted, consolidated.

    Events hold ids and counts, and nothing of what is remembered. Each begins with its id. All that happens in a field
    stands in `fieldstone log`.

    \b
    Examples:
      fieldstone events --type memory.compacted --since 24h
      fieldstone events --json --since 7d | jq .sourceCount
      fieldstone events --follow --url http://127.0.0.1:8420
    """
    begin = None if since is None else beginning(since, datetime.now(UTC))
    run(_events(where, as_json, kinds or None, begin, limit, follow))


async def _events(
    where: Where, as_json: bool, kinds: Sequence[FeedKind] | None, since: str | None, limit: int, follow: bool
) -> None:
    async with opened(where) as field:
        if follow and local_field(field) is not None:
            raise Refused(
                "error: Nothing can happen while this command holds the store, so there is nothing to follow. "
                "Run `fieldstone serve` on it; --follow then goes through the server."
            )
        tell, told = telling(field), 0
        events = following(tell, kinds, since) if follow else paged(tell, kinds, since, limit)
        try:
            async for event in events:
                told += 1
                if as_json:
                    print_json(event.flat())
                else:
                    click.echo(readable(event))
        except InvalidPayload as refused:  # of `since`: all else that could be wrong was looked at before
            raise InvalidPayload(refused.message, suggested_action=AGO) from refused
    if not told and not as_json:
        click.echo("There are no such events. `fieldstone log` shows what happened in the field.", err=True)


def telling(field: "Field") -> Telling:
    here: LocalField | None = local_field(field)
    if here is None:
        return cast("RemoteField", field.door).events
    kind: type[Feed] = import_module("fieldstone.profiles.openwop.feed").Feed
    return kind(here).page


async def paged(
    tell: Telling, kinds: Sequence[FeedKind] | None, since: str | None, limit: int
) -> "AsyncIterator[FeedEvent]":
    while limit > 0:
        page = await tell(kinds=kinds, since=since, limit=min(limit, PAGE_EVENTS))
        if not page.events:
            return
        for event in page.events:
            yield event
        since = page.next
        limit -= len(page.events)
    if (await tell(kinds=kinds, since=since, limit=1)).events:
        # Said where a person reads it: a list that was cut must not look whole.
        click.echo(f"There is more: --since {since}", err=True)


async def following(tell: Telling, kinds: Sequence[FeedKind] | None, since: str | None) -> "AsyncIterator[FeedEvent]":
    while True:
        page = await tell(kinds=kinds, since=since, limit=PAGE_EVENTS)
        for event in page.events:
            yield event
        since = page.next
        if not page.events:
            await asyncio.sleep(FOLLOW_PAUSE_S)


def beginning(since: str, now: datetime) -> str:
    """A while ago is a time. Whether anything else is a time or an id is for the field to say."""
    try:
        ago = timedelta(milliseconds=duration_ms(since))
        return (now - ago).isoformat()
    except InvalidPayload:
        return since
    except OverflowError:  # longer ago than there are dates
        return "0"


def readable(event: "FeedEvent") -> str:
    fields = " ".join(f"{name}={_compact(name, value)}" for name, value in event.payload.items())
    return f"{event.id:>6}  {event.ts}  {event.type:<25}  {one_line(fields)}".rstrip()


def _compact(name: str, value: Any) -> str:
    if name in COUNTED:
        return str(len(value))
    return value if isinstance(value, str) else json.encode(value).decode()
