"""`fieldstone attune`"""

from collections.abc import Iterator, Mapping, Sequence, Set
from importlib import import_module
from typing import Any, Final

import click
from msgspec import UNSET, UnsetType

from fieldstone.cli.door import join, opened, run, settings_for
from fieldstone.cli.explain import parts_of, print_parts
from fieldstone.cli.options import Where, agent_options, json_option, where_options
from fieldstone.cli.output import counted, one_line, print_json, print_warnings, wrapped
from fieldstone.core.conflicts import Conflict
from fieldstone.core.replies import Attunement, AttunementOfIds, ContextBudget, LeftOut
from fieldstone.core.requests import Format
from fieldstone.core.units import MemoryUnit, ScopedMemoryUnit, UnitRef

INDENT: Final = "     "
CONFLICTS_SHOWN: Final = 10  # --json has all of them


@click.command("attune")
@click.argument("hint", required=False)
@click.option("--max-units", type=int, default=20, show_default=True, help="The most that is shown.")
@click.option("--max-tokens", type=int, metavar="TOKENS", help="What fits is shown, in full or as a summary.")
@click.option("--task", "active_task_id", metavar="ID", help="The task that the agent works on.")
@click.option("--interest", "interests", multiple=True, help="What the agent cares about. May be given several times.")
@click.option("--threshold", "relevance_threshold", type=float, metavar="0..1", help="Only what scores at least this.")
@click.option("--recency-weight", type=float, metavar="0..1", help="The share of the score that being new decides.")
@click.option("--since-epoch", type=int, metavar="EPOCH", help="Only what was recorded at or after it.")
@click.option("--min-epoch", type=int, metavar="EPOCH", help="Wait up to 2 s until the field has reached it.")
@click.option("--session", "sessions", multiple=True, help="Only from this session. May be given several times.")
@click.option(
    "--layer",
    "temporal_layers",
    type=click.Choice(["past", "present", "future"]),
    multiple=True,
    help="Only what has passed, stands, or is still open. May be given several times.  [default: present and future]",
)
@click.option("--order", type=click.Choice(["relevance", "epoch"]), default="relevance", show_default=True)
@click.option("--include-own", is_flag=True, help="The agent's own units, too.")
@click.option("--include-drafts", is_flag=True, help="The agent's own drafts, too.")
@click.option("--include-archived", is_flag=True, help="Archived units, too.")
@click.option("--include-unvouched", is_flag=True, help="Units that vouch_authority keeps back, too.")
@click.option("--format", type=click.Choice(["full", "summary", "ids_only"]), default="full", show_default=True)
@click.option("--explain", is_flag=True, help="What each score is made of, as bars.")
@agent_options
@json_option
@where_options
def command(
    where: Where, as_json: bool, explain: bool, agent_id: str, role: str | None, hint: str | None, **asked: Any
) -> None:
    """Show what matters to an agent now, and why.

    Best first, each unit with a score and the reason for it. HINT is what the agent is about to do; without it,
    interests, recency, role and the kind of unit decide.

    \b
    Examples:
      fieldstone attune "why do customers leave the checkout?" --agent amir --role analyst
      fieldstone attune "plan the release" --max-tokens 2000 --explain
      fieldstone attune --max-units 5 --include-own
      fieldstone attune --since-epoch 120 --order epoch --json      poll for what is new, losing nothing
    """
    reply = run(_attune(where, agent_id, role, hint, **asked))
    if as_json:
        print_json(reply)
        return
    weights = _weights(where, reply, asked["recency_weight"]) if explain else None
    print_units(reply.record, weights)
    print_conflicts(reply.conflicts, {scoped.memory_unit.id for scoped in reply.record})
    print_budget(reply.context_budget, reply.epoch)
    print_warnings(reply.warnings)


async def _attune(
    where: Where, agent_id: str, role: str | None, hint: str | None, *, format: Format, **scope: Any
) -> Attunement | AttunementOfIds:
    scope |= {name: scope[name] or None for name in ("interests", "sessions", "temporal_layers")}
    async with opened(where) as field:
        agent = await join(field, agent_id, role)
        scope["role"] = role or agent.role
        if format == "ids_only":
            return await agent.attune_ids(hint, **scope)
        return await agent.attune(hint, format=format, **scope)


def _weights(where: Where, reply: Attunement | AttunementOfIds, recency_weight: float | None) -> Mapping[str, float]:
    """The table that these settings make. A server may have another one; `parts_of` notices."""
    score = import_module("fieldstone.retrieval.score")
    weights: dict[str, float] = {**score.WEIGHTS, **settings_for(where).values.weights}
    if recency_weight is None or not reply.record:
        return weights
    factors = reply.record[0].factors  # a request has the same factors for every unit
    names = () if isinstance(factors, UnsetType) else factors
    changed: Mapping[str, float] = score.with_recency_weight(weights, names, recency_weight)
    return changed


def print_units(
    units: Sequence[ScopedMemoryUnit[MemoryUnit] | ScopedMemoryUnit[UnitRef]], weights: Mapping[str, float] | None
) -> None:
    """With `weights` each one with what its score is made of."""
    for place, scoped in enumerate(units, start=1):
        unit = scoped.memory_unit
        click.echo(
            f"{place:>3}. {click.style(f'{scoped.relevance_score:.2f}', bold=True)}  {', '.join(_about(scoped))}"
        )
        click.secho(wrapped(one_line(scoped.relevance_reason), indent=INDENT), dim=True)
        if weights is not None:
            print_parts(parts_of(scoped.relevance_score, scoped.factors, weights), indent=INDENT)
        if isinstance(unit, MemoryUnit):
            print_unit(unit)
        click.echo()


def _about(scoped: ScopedMemoryUnit[MemoryUnit] | ScopedMemoryUnit[UnitRef]) -> Iterator[str]:
    unit = scoped.memory_unit
    yield unit.id
    yield f"epoch {unit.epoch}"
    if isinstance(unit, MemoryUnit) and unit.status != "active":
        yield unit.status
    if scoped.format == "summary":
        yield "summary"
    if scoped.untrusted is True:
        yield "untrusted"
    if not isinstance(scoped.duplicate_of, UnsetType):
        yield f"says the same as {scoped.duplicate_of}"


def print_unit(unit: MemoryUnit) -> None:
    click.echo(wrapped(unit.content, indent=INDENT))
    click.echo(wrapped(f"why: {one_line(unit.intent.purpose or '')}", indent=INDENT))
    sure = unit.confidence
    if sure is not None and sure.score is not None:
        because = f", {one_line(sure.reasoning)}" if sure.reasoning else ""
        click.echo(wrapped(f"sure: {sure.score:.2f}{because}", indent=INDENT))


def print_conflicts(conflicts: Sequence[Conflict], shown: Set[str]) -> None:
    """Those of the units that are `shown` first: a field may have hundreds, and the answer would scroll away."""
    nearest = sorted(conflicts, key=lambda each: shown.isdisjoint((each.unit_a, each.unit_b)))
    for conflict in nearest[:CONFLICTS_SHOWN]:
        sides = f"{conflict.unit_a} and {conflict.unit_b}"
        line = f"conflict {conflict.id} ({conflict.type}, {conflict.status}): {one_line(conflict.description)}"
        click.secho(wrapped(line), fg="yellow")
        click.echo(wrapped(f"between {sides}", indent=INDENT))
    if len(conflicts) > CONFLICTS_SHOWN:
        click.echo(f"and {counted(len(conflicts) - CONFLICTS_SHOWN, 'more conflict')}: --json names all")
    if conflicts:
        click.echo()


def print_budget(budget: ContextBudget, epoch: int) -> None:
    click.echo(budget_line(budget, epoch))
    if budget.tokens_budget is not None:
        click.echo(f"{budget.tokens_used:,} of {budget.tokens_budget:,} tokens, counted with {budget.tokenizer}.")
    if not isinstance(budget.left_out, UnsetType) and (receipt := left_out_line(budget.left_out)):
        click.echo(wrapped(receipt))


def budget_line(budget: ContextBudget, epoch: int) -> str:
    line = f"{budget.units_returned} of {budget.units_available} units, at epoch {epoch}."
    if not budget.units_available:
        return f"{line} What an agent recorded itself is left out: --include-own shows it, --agent asks for another."
    if budget.next_since_epoch is not UNSET:
        return f"{line} Go on with --since-epoch {budget.next_since_epoch}."
    return f"{line} See more with --max-units." if _page_was_full(budget) else line


def _page_was_full(budget: ContextBudget) -> bool:
    if isinstance(budget.left_out, UnsetType):
        return budget.units_returned < budget.units_available
    return budget.left_out.over_max_units > 0


def left_out_line(left_out: LeftOut) -> str:
    """Why units are missing, where it is not just the page that was full."""
    counts = {
        "over the budget": left_out.over_budget,
        "below the threshold": left_out.below_threshold,
        "duplicates": left_out.duplicate,
    }
    if not any(counts.values()):
        return ""
    counts["over --max-units"] = left_out.over_max_units
    return "Left out: " + ", ".join(f"{count:,} {why}" for why, count in counts.items() if count) + "."
