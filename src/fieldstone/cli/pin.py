"""`fieldstone pin`"""

import click

from fieldstone.cli.guarding import guard, guard_options
from fieldstone.cli.options import Where


@click.command("pin")
@guard_options
def command(where: Where, unit_id: str | None, release: bool, as_list: bool, as_json: bool) -> None:
    """Keep a unit where it is: no compaction touches it.

    For what a team wants at hand however old it gets. A legal hold is `fieldstone hold`.

    \b
    Examples:
      fieldstone pin mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone pin mem-01a1dead6f9d70af9e947d61ac7dd17b --release --db team.db
      fieldstone pin --list --json --url http://127.0.0.1:8420
    """
    guard(where, "pin", unit_id, release=release, as_list=as_list, as_json=as_json)
