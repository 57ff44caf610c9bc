"""`fieldstone pin`"""

import click

from fieldstone.cli.guarding import guard
from fieldstone.cli.options import Where, where_options


@click.command("pin")
@click.argument("unit_id", metavar="UNIT")
@click.option("--release", is_flag=True, help="Unpin it.")
@where_options
def command(where: Where, unit_id: str, release: bool) -> None:
    """Keep a unit where it is: no compaction touches it.

    For what a team wants at hand however old it gets. A legal hold is `fieldstone hold`.

    \b
    Examples:
      fieldstone pin mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone pin mem-01a1dead6f9d70af9e947d61ac7dd17b --release --db team.db
    """
    guard(where, unit_id, "pin", release=release)
    click.echo("It is no longer pinned." if release else "It is pinned: no compaction touches it.", err=True)
