"""`fieldstone compact`"""

import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from fieldstone.cli.door import join, opened, run
from fieldstone.cli.options import Where, agent_options, json_option, where_options
from fieldstone.cli.output import print_json
from fieldstone.cli.watching import end_if_cancelled, print_compacted, watched
from fieldstone.core.replies import Compacted
from fieldstone.core.vocabulary import Strategy, UnitStatus

if TYPE_CHECKING:
    from fieldstone.client.agent import CompactionWish


@click.command("compact")
@click.argument("strategy", type=click.Choice(get_args(Strategy)), metavar="STRATEGY")
@click.option("--max-age-epochs", type=click.IntRange(min=0), metavar="N", help="Only units older than N epochs.")
@click.option("--session", "session_id", metavar="ID", help="Only units of this session.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only units of this type. May be repeated.")
@click.option(
    "--status",
    multiple=True,
    type=click.Choice(get_args(UnitStatus)),
    metavar="STATUS",
    help="Only units with this status; without it, all but drafts. May be repeated.",
)
@click.option("--ancestor", "ancestor_id", metavar="UNIT", help="Only what was derived from this unit.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--reason", help="Why: it stands in the log, and on the tombstones of a purge.")
@click.option("--verify/--no-verify", default=True, help="Whether recent requests must still find what they found.")
@click.option("--yes", is_flag=True, help="Purge without asking first; only a terminal is asked.")
@agent_options
@json_option
@where_options
def command(
    where: Where, as_json: bool, agent_id: str, role: str | None, strategy: Strategy, yes: bool, **wish: Any
) -> None:
    """Archive, summarize or purge aged units; the history stays whole.

    STRATEGY is archive (into cold storage: `attune --include-archived` and `restore` still find them), summarize
    (syntheses stand for them, and they are archived) or purge (their text is gone for good, everywhere). Units on hold
    and pinned ones stay. Ctrl-C stops it after the step it is in; what is done stays done.

    \b
    Examples:
      fieldstone compact archive --max-age-epochs 1000 --db team.db
      fieldstone compact summarize --session sprint-7 --dry-run --db team.db
      fieldstone compact purge --ancestor mem-01a1dead6f9d70af9e947d61ac7dd17b --reason "its source was withdrawn"
    """
    if strategy == "purge" and not wish["dry_run"] and not yes and sys.stdin.isatty():
        click.confirm("What matches is gone for good. Go on?", abort=True, err=True)
    done = run(_compact(where, agent_id, role, strategy, _said(wish)))
    if as_json:
        print_json(done)
    else:
        print_compacted(strategy, done, dry_run=wish["dry_run"])
    end_if_cancelled(done)


async def _compact(
    where: Where, agent_id: str, role: str | None, strategy: Strategy, wish: "CompactionWish"
) -> Compacted:
    async with opened(where) as field:
        agent = await join(field, agent_id, role)
        return await watched(field, await agent.begin_compaction(strategy, **wish), strategy)


def _said(wish: dict[str, Any]) -> Any:
    """What was not said does not restrict."""
    return {name: value for name, value in wish.items() if value not in (None, ())}
