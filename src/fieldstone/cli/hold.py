"""`fieldstone hold`"""

import click

from fieldstone.cli.guarding import guard
from fieldstone.cli.options import Where, where_options


@click.command("hold")
@click.argument("unit_id", metavar="UNIT")
@click.option("--release", is_flag=True, help="Lift the hold.")
@where_options
def command(where: Where, unit_id: str, release: bool) -> None:
    """Keep a unit for a legal reason: no compaction touches it.

    Nothing overrides a hold: no agent, no authority, no retention policy. Only its release ends it.

    \b
    Examples:
      fieldstone hold mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone hold mem-01a1dead6f9d70af9e947d61ac7dd17b --release --db team.db
    """
    guard(where, unit_id, "hold", release=release)
    click.echo("The hold is lifted." if release else "It is on hold: no compaction touches it.", err=True)
