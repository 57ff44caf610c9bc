"""What `fieldstone hold` and `fieldstone pin` do: set, lift and list."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Command, Where, json_option, where_options
from fieldstone.cli.output import print_json
from fieldstone.core.vocabulary import Guard

if TYPE_CHECKING:
    from fieldstone.core.replies import GuardedUnit

PAGE_UNITS: Final = 1_000  # the most that a field gives at once

_SET: Final[Mapping[Guard, str]] = {
    "hold": "It is on hold: no compaction touches it.",
    "pin": "It is pinned: no compaction touches it.",
}
_LIFTED: Final[Mapping[Guard, str]] = {"hold": "The hold is lifted.", "pin": "It is no longer pinned."}
_NONE: Final[Mapping[Guard, str]] = {"hold": "Nothing is on hold.", "pin": "Nothing is pinned."}


def guard_options(function: Command) -> Command:
    """UNIT, or --list in its place; --release, --json, and where."""
    unit = click.argument("unit_id", metavar="[UNIT]", required=False)
    release = click.option("--release", is_flag=True, help="Lift it from the unit.")
    listed = click.option("--list", "as_list", is_flag=True, help="List the units that have it.")
    return unit(release(listed(json_option(where_options(function)))))


def guard(where: Where, guard: Guard, unit_id: str | None, *, release: bool, as_list: bool, as_json: bool) -> None:
    if as_list == (unit_id is not None) or (as_list and release):
        raise click.UsageError(f"Name a unit to {guard} or to --release; or give --list, and no unit.")
    if unit_id is None:
        _print_list(run(_listed(where, guard)), guard, as_json)
        return
    run(_guard(where, unit_id, guard, release=release))
    if as_json:
        print_json({"unit_id": unit_id, "guard": guard, "set": not release})
    else:
        click.echo((_LIFTED if release else _SET)[guard], err=True)


async def _guard(where: Where, unit_id: str, guard: Guard, *, release: bool) -> None:
    async with opened(where) as field:
        if release:
            await field.door.unguard(unit_id, guard)
        else:
            await field.door.guard(unit_id, guard)


async def _listed(where: Where, guard: Guard) -> "list[GuardedUnit]":
    async with opened(where) as field:
        page = await field.guards(guard, limit=PAGE_UNITS)
        listed = list(page.guards)
        while page.next is not None:
            page = await field.guards(guard, after=page.next, limit=PAGE_UNITS)
            listed += page.guards
        return listed


def _print_list(listed: "list[GuardedUnit]", guard: Guard, as_json: bool) -> None:
    if as_json:
        print_json({"guards": listed})
        return
    for each in listed:
        click.echo(each.unit_id)
    if not listed:
        click.echo(_NONE[guard], err=True)
