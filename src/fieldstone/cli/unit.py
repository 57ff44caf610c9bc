"""`fieldstone unit`"""

from collections.abc import Iterator, Mapping
from typing import Final

import click
from msgspec import UnsetType

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json, print_pairs, wrapped
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import Guard

TEXT_MISSING: Final = (
    "warning: The unit's text is missing from the store; those of archived units lie in STORE-cold. "
    "`fieldstone verify` says what is damaged, and what to do."
)
_GUARDED: Final[Mapping[Guard, str]] = {"hold": "on hold", "pin": "pinned"}


@click.command("unit")
@click.argument("unit_id", metavar="UNIT")
@json_option
@where_options
def command(where: Where, as_json: bool, unit_id: str) -> None:
    """Show one unit: what it says, who says so, and why.

    Archived ones, too. Of a purged one only its tombstone is left: when it went, and why. Whether it is on hold or
    pinned is told to whoever may list that (authority 6).

    \b
    Examples:
      fieldstone unit mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone unit mem-01a1dead6f9d70af9e947d61ac7dd17b --json --url http://127.0.0.1:8420
    """
    found = run(_unit(where, unit_id))
    if not found.content:  # no unit is recorded without one
        click.echo(TEXT_MISSING, err=True)
    if as_json:
        print_json(found)
        return
    click.echo(wrapped(found.content or "(its text is missing)"))
    click.echo()
    print_pairs(list(_pairs(found)))


async def _unit(where: Where, unit_id: str) -> MemoryUnit:
    async with opened(where) as field:
        return await field.unit(unit_id)


def _pairs(unit: MemoryUnit) -> Iterator[tuple[str, str]]:
    source = unit.source
    yield "unit", unit.id
    yield "type", unit.type
    yield "status", unit.status
    yield "by", f"{source.agent_id} ({source.agent_role}), {source.timestamp}, epoch {unit.epoch}"
    if source.session_id is not None:
        yield "session", source.session_id
    if not isinstance(unit.archived_epoch, UnsetType):
        yield "archived", f"at epoch {unit.archived_epoch}"
    if not isinstance(unit.guards, UnsetType):
        yield "guarded", " and ".join(_GUARDED[guard] for guard in unit.guards) + ": no compaction touches it"
    yield from _reasons(unit)
    for relation in unit.relations:
        why = f": {relation.description}" if relation.description else ""
        yield relation.type, f"{relation.target_id}{why}"


def _reasons(unit: MemoryUnit) -> Iterator[tuple[str, str]]:
    intent, sure = unit.intent, unit.confidence
    yield "why", intent.purpose or ""
    if intent.question is not None:
        yield "question", intent.question
    if intent.task_id is not None:
        yield "task", intent.task_id
    if sure is None:
        return
    if sure.score is not None:
        yield "sure", f"{sure.score:.2f}{f', {one_line(sure.reasoning)}' if sure.reasoning else ''}"
    for evidence in sure.evidence:
        yield "evidence", evidence
    for assumption in sure.assumptions:
        yield "assumes", assumption
