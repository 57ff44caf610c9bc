"""`fieldstone threads`"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, assert_never, get_args

import click
from msgspec import json

from fieldstone.cli.door import local_field, opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import counted, harmless, one_line, print_json, print_pairs, progress, wrapped
from fieldstone.core.transcripts import (
    Branch,
    FilePart,
    ReasoningPart,
    RecoveryAction,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

if TYPE_CHECKING:
    from fieldstone.client.field import Field
    from fieldstone.core.transcripts import CanonicalMessage, Node, ThreadReceipt, Tree
    from fieldstone.planes.compaction import StreamCompaction
    from fieldstone.planes.reconcile import Reconciliation
    from fieldstone.planes.retention import RetainedStream, StreamRetention

MINUTE_MS: Final = 60_000
NO_THREADS: Final = "There are no threads yet: the first run of a thread makes it (see docs/guides/threads.md)."
HELD: Final = {
    "uncommitted_run": "its run has not ended",
    "reader": "a reader is there",
    "fork_base": "a run that has not ended forks there",
    "hold": "a hold",
    "undecided_text": "its last text may still begin a secret",
    "kept_events": "the newest are to stay",
}


@click.group("threads")
def command() -> None:
    """Threads: the transcripts of conversations, and the logs of their runs.

    A run is streamed into a log, event by event. Once it is committed, its messages are in the thread's transcript, as
    a branch of its tree. The log can then be compacted; the transcript stays until it is deleted.

    \b
    Examples:
      fieldstone threads list --db team.db
      fieldstone threads show support-17 --db team.db
      fieldstone threads compact --all --dry-run --db team.db
      fieldstone threads reconcile --db team.db
    """


@command.command("list")
@json_option
@where_options
def list_threads(where: Where, as_json: bool) -> None:
    """List the threads, by id, with their last activity.

    With --json there is one thread a line.

    \b
    Example:
      fieldstone threads list --db team.db
    """
    run(_list(where, as_json))


@command.command()
@click.argument("thread")
@click.option(
    "--branch",
    type=click.Choice(get_args(Branch)),
    default="active",
    show_default=True,
    help="The active path, or the messages of all branches in the order of their creation.",
)
@click.option("--through", metavar="MESSAGE", help="The path through this message instead; the active one stays.")
@json_option
@where_options
def show(where: Where, as_json: bool, thread: str, branch: Branch, through: str | None) -> None:
    """Show a thread's messages.

    With --json there is one message a line.

    \b
    Examples:
      fieldstone threads show support-17 --db team.db
      fieldstone threads show support-17 --branch all --json | jq .role
    """
    if through is not None and branch == "all":
        raise click.UsageError("--through names a path, and --branch all has no path.")
    run(_show(where, as_json, thread, branch, through))


@command.command()
@click.argument("thread")
@json_option
@where_options
def tree(where: Where, as_json: bool, thread: str) -> None:
    """Show how a thread's messages hang together.

    A branch is indented. The active path is marked with *.

    \b
    Example:
      fieldstone threads tree support-17 --db team.db
    """
    found = run(_tree(where, thread))
    if as_json:
        print_json(found)
        return
    for line in _drawn(found):
        click.echo(line)


@command.command()
@click.argument("stream", required=False)
@click.option("--all", "every", is_flag=True, help="The streams of all runs that ended some time ago.")
@click.option(
    "--finished-days",
    type=click.FloatRange(min=0),
    default=7,
    show_default=True,
    metavar="DAYS",
    help="With --all: leave alone what ended later than so many days ago.",
)
@click.option("--without-run", is_flag=True, help="With --all: also streams that belong to no run.")
@click.option(
    "--keep-events",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of each stream the newest N events stay.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option
@where_options
def compact(
    where: Where, as_json: bool, stream: str | None, every: bool, dry_run: bool, keep_events: int, **which: Any
) -> None:
    """Compact logs: a snapshot stands for events.

    STREAM is a run's stream, such as run:run-01a1dead6f9d70af9e947d61ac7dd17b. The snapshot is written, read back and
    checked before any event goes. What is still needed stays, and is named: events of a run that has not ended, behind
    a reader's cursor, behind a message that such a run forks from, or on hold. Transcripts lose nothing.

    \b
    Examples:
      fieldstone threads compact run:run-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone threads compact --all --finished-days 30 --dry-run --db team.db
    """
    if (stream is None) != every:
        raise click.UsageError("Name a stream, or say --all.")
    if stream is not None:
        done = run(_compact(where, stream, dry_run, keep_events))
        _print_compacted(done, stream, as_json=as_json, dry_run=dry_run)
        return
    kind: type[StreamRetention] = import_module("fieldstone.planes.retention").StreamRetention
    retention = kind(keep_events=keep_events, **which)
    _print_all(run(_compact_all(where, retention, dry_run)), as_json=as_json, dry_run=dry_run)


@command.command()
@click.argument("thread", required=False)
@click.option("--dry-run/--apply", default=True, show_default=True, help="Only say what would be done, or do it.")
@click.option(
    "--recover",
    type=click.Choice(get_args(RecoveryAction)),
    help="End the runs whose writer is gone; without it they are only named.",
)
@click.option(
    "--stale-minutes",
    type=click.FloatRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="A run's writer is gone when it told nothing for so long.",
)
@json_option
@where_options
def reconcile(
    where: Where, as_json: bool, thread: str | None, dry_run: bool, recover: RecoveryAction | None, stale_minutes: float
) -> None:
    """Find where logs and transcripts disagree.

    It says what would be done about it, and with --apply does it. The log is the authority on what was told and in
    which order, the transcript on ids and parents of messages, and on all that the log has let go. Without THREAD it is
    about all of them. A run that was never committed is left alone, unless --recover says what becomes of it: fail,
    cancel, or commit what is there.

    \b
    Examples:
      fieldstone threads reconcile --db team.db
      fieldstone threads reconcile --recover fail --stale-minutes 120 --apply --db team.db
    """
    found = run(_reconcile(where, thread, dry_run, int(stale_minutes * MINUTE_MS), recover))
    if as_json:
        print_json(found)
    else:
        _print_reconciled(found)


@command.command()
@click.argument("thread")
@click.option("--yes", is_flag=True, help="Delete without asking first; only a terminal is asked.")
@json_option
@where_options
def delete(where: Where, as_json: bool, thread: str, yes: bool) -> None:
    """Delete a thread and all that is its, for good.

    Its messages, runs, logs and snapshots. Every reader loses it at once.

    \b
    Example:
      fieldstone threads delete support-17 --db team.db
    """
    if not yes and sys.stdin.isatty():
        click.confirm("The thread and all of its branches are gone for good. Go on?", abort=True, err=True)
    receipt = run(_delete(where, thread))
    if as_json:
        print_json(receipt)
        return
    print_pairs(
        [
            ("thread", receipt.thread_id),
            ("messages", f"{receipt.messages:,}"),
            ("runs", f"{receipt.runs:,}"),
            ("streams", f"{receipt.streams:,}"),
            ("snapshots", f"{receipt.snapshots:,}"),
            ("deleted at", receipt.deleted_at),
        ]
    )


async def _list(where: Where, as_json: bool) -> None:
    none = True
    async with opened(where) as field:
        async for thread in field.threads.threads():
            none = False
            if as_json:
                print_json(thread)
            else:
                click.echo(f"{thread.last_activity_at}  {one_line(thread.thread_id)}")
    if none and not as_json:
        click.echo(NO_THREADS, err=True)


async def _show(where: Where, as_json: bool, thread: str, branch: Branch, through: str | None) -> None:
    async with opened(where) as field:
        selections = None if through is None else _leading_to(through, await field.threads.tree(thread))
        async for message in field.threads.transcript(thread, branch=branch, selections=selections):
            if as_json:
                print_json(message)
            else:
                _print_message(message)


async def _tree(where: Where, thread: str) -> "Tree":
    async with opened(where) as field:
        return await field.threads.tree(thread)


async def _compact(where: Where, stream: str, dry_run: bool, keep_events: int) -> "StreamCompaction":
    async with opened(where) as field:
        done = await field.threads.compact(stream, dry_run=dry_run, keep_events=keep_events)
        await _settled(field)
        return done


async def _compact_all(where: Where, retention: "StreamRetention", dry_run: bool) -> "Sequence[RetainedStream]":
    """First what is due, then one after the other: it shows how far it is, and Ctrl-C leaves the rest as it was."""
    async with opened(where) as field:
        due = await field.threads.compact_all(retention, dry_run=True)
        if dry_run:
            return due
        done: list[RetainedStream] = []
        with progress("compact", len(due)) as advance:
            for each in due:
                compacted = await field.threads.compact(each.stream_id, keep_events=retention.keep_events)
                done.append(type(each)(each.stream_id, compacted))
                advance(len(done))
        await _settled(field)
        return done


async def _settled(field: "Field") -> None:
    """A server deletes in the background; here nobody does once the command has ended."""
    here = local_field(field)
    if here is not None:
        await here.planes.streams.settled()


async def _reconcile(
    where: Where, thread: str | None, dry_run: bool, stale_ms: int, recover: RecoveryAction | None
) -> "Reconciliation":
    async with opened(where) as field:
        return await field.threads.reconcile(thread=thread, dry_run=dry_run, stale_ms=stale_ms, recover=recover)


async def _delete(where: Where, thread: str) -> "ThreadReceipt":
    async with opened(where) as field:
        return await field.threads.delete(thread)


def _leading_to(message_id: str, tree: "Tree") -> Mapping[str, str]:
    """What to choose at each fork on the way to it."""
    nodes = {node.id: node for node in tree.nodes}
    if message_id not in nodes:
        raise click.UsageError(f"{one_line(message_id)} is no message of this thread.")
    way = [nodes[each] for each in _upwards(message_id, nodes)]
    if way[-1].parent_message_id is not None and way[-1].id not in _upwards(tree.active_leaf, nodes):
        raise Refused("error: The message is on a chain whose beginning is not here. --branch all shows it.")
    branches = Counter(node.parent_message_id for node in tree.nodes)
    forks = [node for node in way if branches[node.parent_message_id] > 1]
    return {node.parent_message_id or "": node.id for node in forks}


def _print_message(message: "CanonicalMessage") -> None:
    click.echo(click.style(f"{message.role}  {message.created_at}  {message.id}", bold=True))
    for text in _told(message):
        click.echo(wrapped(text, indent="  "))
    click.echo()


def _told(message: "CanonicalMessage") -> Iterator[str]:
    for part in message.parts:
        match part:
            case TextPart():
                yield part.text
            case ReasoningPart():
                yield f"(thinks) {part.text}"
            case ToolCallPart():
                yield f"→ {part.tool_name} {json.encode(part.input).decode()}"
            case ToolResultPart():
                output = part.output if isinstance(part.output, str) else json.encode(part.output).decode()
                yield f"← {part.tool_name}{' failed:' if part.is_error else ''} {output}"
            case FilePart():
                yield f"file {part.mime_type} {part.url}"
            case _:
                assert_never(part)


def _print_compacted(done: "StreamCompaction", stream: str, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json(done)
        return
    click.echo(_compacted(stream, done, dry_run=dry_run))


def _print_all(done: "Sequence[RetainedStream]", *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json({"streams": done})
        return
    for each in done:
        click.echo(_compacted(each.stream_id, each.compaction, dry_run=dry_run))
    events = sum(each.compaction.eligible for each in done)
    click.echo(f"{counted(events, 'event')} of {counted(len(done), 'stream')} {'would go' if dry_run else 'went'}")


def _compacted(stream: str, done: "StreamCompaction", *, dry_run: bool) -> str:
    go = "would go" if dry_run else "went"
    held = "".join(f"; behind {each.seq:,} they stay: {HELD[each.reason]}" for each in done.held)
    return f"{one_line(stream)}: {counted(done.eligible, 'event')} {go}{held}"


def _print_reconciled(found: "Reconciliation") -> None:
    for each in found.disagreements:
        about = " ".join(filter(None, (each.run_id, each.message_id)))
        click.echo(f"{one_line(each.thread_id)}  {each.kind}  {about}".rstrip())
        click.echo(wrapped(f"{each.found} {'Would be done' if found.dry_run else 'Done'}: {each.action}.", indent="  "))
    count = len(found.disagreements)
    looked_at = f"{counted(found.threads, 'thread')}, {counted(found.runs, 'run')}"
    click.echo(f"{looked_at}: {counted(count, 'disagreement')}")
    if count and found.dry_run:
        click.echo("Nothing was changed: --apply does it.", err=True)


def _drawn(tree: "Tree") -> Iterator[str]:
    """A chain goes straight down, however long it is; only branches beside it are indented."""
    nodes = {node.id: node for node in tree.nodes}
    below: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        below[node.parent_message_id if node.parent_message_id in nodes else None].append(node)
    active = set(_upwards(tree.active_leaf, nodes))
    left = dict(nodes)
    waiting = _beside(below[None], 0, active)
    while waiting or left:
        depth, node = waiting.pop() if waiting else (0, next(iter(left.values())))  # the latter: of a circle
        if left.pop(node.id, None) is None:
            continue
        mark = "*" if node.id in active else " "
        parent = node.parent_message_id
        lost = "" if parent is None or parent in nodes else f"  (behind {parent}, which is not here)"
        yield harmless(f"{mark} {'│ ' * depth}{node.id}  {node.role}  {node.created_at}  {node.run_id}{lost}")
        waiting += _beside(below[node.id], depth, active)


def _upwards(leaf: str | None, nodes: "Mapping[str, Node]") -> Iterator[str]:
    seen: set[str] = set()  # parents are what writers said: they may lead in a circle
    while leaf is not None and leaf in nodes and leaf not in seen:
        seen.add(leaf)
        yield leaf
        leaf = nodes[leaf].parent_message_id


def _beside(branches: "Sequence[Node]", depth: int, active: set[str]) -> "list[tuple[int, Node]]":
    """The last one is drawn first. The active branch, else the newest, comes at the end and goes straight on."""
    if not branches:
        return []
    straight = next((node for node in branches if node.id in active), branches[-1])
    others = [(depth + 1, node) for node in branches if node is not straight]
    return [(depth, straight), *reversed(others)]
