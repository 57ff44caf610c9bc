"""`fieldstone attune`"""

from collections.abc import Sequence
from typing import Any

import click
from msgspec import UNSET

from fieldstone.cli.door import join, opened, run
from fieldstone.cli.options import Where, agent_options, json_option, where_options
from fieldstone.cli.output import one_line, print_json, print_warnings, wrapped
from fieldstone.core.conflicts import Conflict
from fieldstone.core.replies import Attunement, AttunementOfIds, ContextBudget
from fieldstone.core.units import MemoryUnit, ScopedMemoryUnit, UnitRef


@click.command("attune")
@click.argument("hint", required=False)
@click.option("--max-units", type=int, default=20, show_default=True, help="The most that is shown.")
@click.option("--interest", "interests", multiple=True, help="What the agent cares about. May be given several times.")
@click.option("--since-epoch", type=int, metavar="EPOCH", help="Only what was recorded at or after it.")
@click.option("--min-epoch", type=int, metavar="EPOCH", help="Wait up to 2 s until the field has reached it.")
@click.option("--session", "sessions", multiple=True, help="Only from this session. May be given several times.")
@click.option("--order", type=click.Choice(["relevance", "epoch"]), default="relevance", show_default=True)
@click.option("--include-own", is_flag=True, help="The agent's own units, too.")
@click.option("--include-drafts", is_flag=True, help="The agent's own drafts, too.")
@click.option("--include-archived", is_flag=True, help="Archived units, too.")
@click.option("--format", type=click.Choice(["full", "ids_only"]), default="full", show_default=True)
@agent_options
@json_option
@where_options
def command(where: Where, as_json: bool, agent_id: str, role: str | None, hint: str | None, **asked: Any) -> None:
    """Show what matters to an agent now, and why.

    Best first, each unit with a score and the reason for it. HINT is what the agent is about to do; without it,
    interests, recency, role and the kind of unit decide.

    \b
    Examples:
      fieldstone attune "why do customers leave the checkout?" --agent amir --role analyst
      fieldstone attune --max-units 5 --include-own
      fieldstone attune --since-epoch 120 --order epoch --json      poll for what is new, losing nothing
    """
    reply = run(_attune(where, agent_id, role, hint, **asked))
    if as_json:
        print_json(reply)
        return
    print_units(reply.record)
    print_conflicts(reply.conflicts)
    click.echo(budget_line(reply.context_budget, reply.epoch))
    print_warnings(reply.warnings)


async def _attune(
    where: Where,
    agent_id: str,
    role: str | None,
    hint: str | None,
    *,
    format: str,
    since_epoch: int | None,
    min_epoch: int | None,
    **scope: Any,
) -> Attunement | AttunementOfIds:
    scope |= {"interests": scope["interests"] or None, "sessions": scope["sessions"] or None}
    async with opened(where) as field:
        agent = await join(field, agent_id, role)
        attune = agent.attune_ids if format == "ids_only" else agent.attune
        wanted = {"role": role or agent.role, "since_epoch": since_epoch, "min_epoch": min_epoch, **scope}
        reply: Attunement | AttunementOfIds = await attune(hint, **wanted)
        return reply


def print_units(units: Sequence[ScopedMemoryUnit[MemoryUnit] | ScopedMemoryUnit[UnitRef]]) -> None:
    for place, scoped in enumerate(units, start=1):
        unit = scoped.memory_unit
        about = f"{unit.id}, epoch {unit.epoch}"
        if isinstance(unit, MemoryUnit):
            contested = "" if unit.status == "active" else f", {unit.status}"
            about += contested
        click.echo(f"{place:>3}. {click.style(f'{scoped.relevance_score:.2f}', bold=True)}  {about}")
        click.secho(wrapped(one_line(scoped.relevance_reason), indent="     "), dim=True)
        if isinstance(unit, MemoryUnit):
            print_unit(unit)
        click.echo()


def print_unit(unit: MemoryUnit) -> None:
    click.echo(wrapped(unit.content, indent="     "))
    click.echo(wrapped(f"why: {one_line(unit.intent.purpose or '')}", indent="     "))
    sure = unit.confidence
    if sure is not None and sure.score is not None:
        because = f", {one_line(sure.reasoning)}" if sure.reasoning else ""
        click.echo(wrapped(f"sure: {sure.score:.2f}{because}", indent="     "))


def print_conflicts(conflicts: Sequence[Conflict]) -> None:
    for conflict in conflicts:
        sides = f"{conflict.unit_a} and {conflict.unit_b}"
        line = f"conflict {conflict.id} ({conflict.type}, {conflict.status}): {one_line(conflict.description)}"
        click.secho(wrapped(line), fg="yellow")
        click.echo(wrapped(f"between {sides}", indent="     "))
    if conflicts:
        click.echo()


def budget_line(budget: ContextBudget, epoch: int) -> str:
    line = f"{budget.units_returned} of {budget.units_available} units, at epoch {epoch}."
    if not budget.units_available:
        return f"{line} What an agent recorded itself is left out: --include-own shows it, --agent asks for another."
    if budget.next_since_epoch is not UNSET:
        return f"{line} Go on with --since-epoch {budget.next_since_epoch}."
    return line if budget.units_returned == budget.units_available else f"{line} See more with --max-units."
