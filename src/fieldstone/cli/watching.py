"""Watching a compaction from a shell: a bar while it runs, and Ctrl-C that stops it cleanly."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from fieldstone.cli.failures import INTERRUPTED, Refused
from fieldstone.cli.output import counted, in_bytes, one_line, progress
from fieldstone.core.replies import Compacted, CompactionProgress, Skipped, Tested

if TYPE_CHECKING:
    from fieldstone.client.field import Field

SKIPPED_SHOWN = 10  # --json has all of them


async def watched(field: "Field", begun: CompactionProgress, label: str) -> Compacted:
    """Return when it is over. The first Ctrl-C cancels it: it stops after the step it is in."""
    if isinstance(begun.result, Compacted):
        return begun.result
    cancelling: list[asyncio.Task[CompactionProgress]] = []

    def cancel() -> None:
        cancelling.append(asyncio.ensure_future(field.cancel_compaction(begun.compaction_id)))

    with on_ctrl_c(cancel), progress(label, begun.units_total) as advance:
        last = begun
        async for last in field.watch_compaction(begun.compaction_id):
            advance(last.units_done)
    for task in cancelling:
        await task
    if not isinstance(last.result, Compacted):
        raise Refused(f"error: {_without_result(last)}")
    return last.result


def end_if_cancelled(*results: Compacted | None) -> None:
    """What a shell should know of a command that Ctrl-C has ended."""
    if any(result is not None and result.cancelled is True for result in results):
        click.echo("Cancelled: what is done stays done, and the rest is as it was.", err=True)
        raise SystemExit(INTERRUPTED)


def print_compacted(strategy: str, done: Compacted, *, dry_run: bool = False) -> None:
    size = "an unknown amount" if done.storage_reclaimed_bytes is None else in_bytes(done.storage_reclaimed_bytes)
    would = "would be " if dry_run else ""
    # A purge takes texts out of cold storage, too.
    gone = ("would be" if dry_run else "is") + " gone for good"
    left = ("would leave" if dry_run else "left") + " the hot store"
    where = gone if strategy == "purge" else left
    click.echo(f"{counted(done.units_affected, 'unit')} {would}{_DONE[strategy]}; {size} of text {where}")
    if strategy == "summarize":
        click.echo(f"syntheses: {done.synthesis_units_created:,}")
    _print_groups(done)
    _print_test(done)
    _print_skipped(done.skipped)
    if done.residue == "pending":
        click.echo("A reader of an older state is open: what is left in the journal goes when it ends.", err=True)
    for reason in done.fell_back if isinstance(done.fell_back, tuple) else ():
        click.echo(f"A synthesis was made without the model: {one_line(reason)}", err=True)
    if done.compaction_id:
        click.echo(f"compaction {done.compaction_id}", err=True)


_DONE = {"archive": "archived", "summarize": "summarized and archived", "purge": "purged"}


def _print_groups(done: Compacted) -> None:
    """What a dry run found."""
    for group in done.groups if isinstance(done.groups, tuple) else ():
        session = "no session" if group.session_id is None else f"session {one_line(group.session_id)}"
        after = "" if group.tokens_after is None else f" → {group.tokens_after:,}"
        size = f"{group.tokens_before:,}{after} tokens, {in_bytes(group.bytes)}"
        click.echo(f"  {counted(group.units, 'unit')} of {session}: {size}")


def _print_test(done: Compacted) -> None:
    if not isinstance(done.tested, Tested):
        return
    match done.tested.result:
        case "tested":
            share = "" if done.tested.kept_share is None else f": {done.tested.kept_share:.1%} of the relevance is kept"
            without = "; --no-verify goes without this test" if done.skipped else ""
            click.echo(f"tested with {counted(done.tested.requests, 'recent request')}{share}{without}", err=True)
        case "untested":
            click.echo("untested: no recent request is on record to test it with", err=True)
        case "skipped":
            click.echo("not tested, as you wished", err=True)


def _print_skipped(skipped: tuple[Skipped, ...]) -> None:
    for each in skipped[:SKIPPED_SHOWN]:
        click.echo(f"skipped {each.unit_id}: {one_line(each.reason)}", err=True)
    if len(skipped) > SKIPPED_SHOWN:
        click.echo(f"and {len(skipped) - SKIPPED_SHOWN:,} more were skipped: --json names all", err=True)


def _without_result(last: CompactionProgress) -> str:
    if last.state == "failed":
        return (
            f"The compaction {last.compaction_id} broke after {last.units_done:,} of {last.units_total:,} units. "
            "What is done stays done; asked for again, it goes on with the rest."
        )
    return f"The field closed. The compaction {last.compaction_id} goes on by itself when the field opens again."


@contextmanager
def on_ctrl_c(cancel: Callable[[], None]) -> Iterator[None]:
    """Call it for the first Ctrl-C. The next one finds what was there before, and ends the command at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def first(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        click.echo("\nCancelling: it stops after the step it is in. Ctrl-C again does not wait for that.", err=True)
        loop.call_soon_threadsafe(cancel)

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
