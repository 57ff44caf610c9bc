"""`fieldstone lineage`"""

from typing import TYPE_CHECKING, Final, Literal

import click
from msgspec import Struct

from fieldstone.cli.door import opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json
from fieldstone.core.errors import UnitPurged

if TYPE_CHECKING:
    from fieldstone.client.field import Field

SHOWN_CHARS: Final = 60
MOST_UNITS: Final = 10_000  # of one tree: what is larger is read from the log

Direction = Literal["made_from", "made_into"]


class Ancestry(Struct, frozen=True):
    """A unit, and what it was made from and into, all the way. `seen`: it stands above already, with its branches."""

    unit_id: str
    type: str | None  # None: it is purged
    content: str | None
    made_from: "tuple[Ancestry, ...]" = ()
    made_into: "tuple[Ancestry, ...]" = ()
    seen: bool = False


@click.command("lineage")
@click.argument("unit_id", metavar="UNIT")
@json_option
@where_options
def command(where: Where, as_json: bool, unit_id: str) -> None:
    """Show what a unit was made from, and into what.

    From a synthesis down to its originals, and from an original up to all that was made of it, through every level.

    \b
    Examples:
      fieldstone lineage mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone lineage mem-01a1dead6f9d70af9e947d61ac7dd17b --json --url http://127.0.0.1:8420
    """
    found = run(_ancestry(where, unit_id))
    if as_json:
        print_json(found)
        return
    click.echo(_told(found))
    for direction, title in (("made_from", "made from"), ("made_into", "made into")):
        branches: tuple[Ancestry, ...] = getattr(found, direction)
        if branches:
            click.echo(title)
            _print_branches(branches, direction, "")


async def _ancestry(where: Where, unit_id: str) -> Ancestry:
    async with opened(where) as field:
        unit = await field.unit(unit_id)
        down, up = [await _branches(field, unit_id, direction, {unit_id}) for direction in ("made_from", "made_into")]
        return Ancestry(unit_id, unit.type, unit.content, down, up)


async def _branches(field: "Field", unit_id: str, direction: Direction, seen: set[str]) -> tuple[Ancestry, ...]:
    try:
        ids: tuple[str, ...] = getattr(await field.lineage(unit_id), direction)
    except UnitPurged:  # what it was made from went with it, or is found from the other side
        return ()
    return tuple([await _branch(field, each, direction, seen) for each in ids])


async def _branch(field: "Field", unit_id: str, direction: Direction, seen: set[str]) -> Ancestry:
    is_seen = unit_id in seen
    seen.add(unit_id)
    if len(seen) > MOST_UNITS:
        raise Refused(f"error: It is related to more than {MOST_UNITS:,} units. `fieldstone log --json` has them all.")
    try:
        unit = await field.unit(unit_id)
    except UnitPurged:
        return Ancestry(unit_id, None, None, seen=is_seen)
    further = () if is_seen else await _branches(field, unit_id, direction, seen)
    down, up = (further, ()) if direction == "made_from" else ((), further)
    return Ancestry(unit_id, unit.type, unit.content, down, up, is_seen)


def _print_branches(branches: tuple[Ancestry, ...], direction: str, indent: str) -> None:
    for at, branch in enumerate(branches, 1):
        is_last = at == len(branches)
        click.echo(f"{indent}{'└─' if is_last else '├─'} {_told(branch)}")
        _print_branches(getattr(branch, direction), direction, indent + ("   " if is_last else "│  "))


def _told(unit: Ancestry) -> str:
    if unit.type is None:
        return f"{unit.unit_id}  purged"
    content = one_line(unit.content or "")
    short = content if len(content) <= SHOWN_CHARS else content[: SHOWN_CHARS - 1].rstrip() + "…"
    return f"{unit.unit_id}  {one_line(unit.type)}: {short}{' (above already)' if unit.seen else ''}"
