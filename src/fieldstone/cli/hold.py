"""`fieldstone hold`"""

import click

from fieldstone.cli.guarding import guard, guard_options
from fieldstone.cli.options import Where


@click.command("hold")
@guard_options
def command(where: Where, unit_id: str | None, release: bool, as_list: bool, as_json: bool) -> None:
    """Keep a unit for a legal reason: no compaction touches it.

    Nothing overrides a hold: no agent, no authority, no retention policy. Only its release ends it.

    \b
    Examples:
      fieldstone hold mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone hold mem-01a1dead6f9d70af9e947d61ac7dd17b --release --db team.db
      fieldstone hold --list --db team.db
    """
    guard(where, "hold", unit_id, release=release, as_list=as_list, as_json=as_json)
