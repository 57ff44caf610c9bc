"""`fieldstone compactions`"""

from typing import TYPE_CHECKING, Final

import click

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json

if TYPE_CHECKING:
    from fieldstone.core.replies import ListedCompaction

PAGE_COMPACTIONS: Final = 1_000  # the most that a field gives at once


@click.command("compactions")
@json_option
@where_options
def command(where: Where, as_json: bool) -> None:
    """List the compactions that there were: when, whose, and of how many units.

    The newest stands last. `fieldstone restore --compaction ID` brings back what one of them archived.

    \b
    Examples:
      fieldstone compactions --db team.db
      fieldstone compactions --json --url http://127.0.0.1:8420 | jq '.compactions[-1]'
    """
    listed = run(_listed(where))
    if as_json:
        print_json({"compactions": listed})
        return
    for each in listed:
        click.echo(_told(each))
    if not listed:
        click.echo("There was no compaction yet.", err=True)


async def _listed(where: Where) -> "list[ListedCompaction]":
    async with opened(where) as field:
        page = await field.compactions(limit=PAGE_COMPACTIONS)
        listed = list(page.compactions)
        while page.next is not None:
            page = await field.compactions(after=page.next, limit=PAGE_COMPACTIONS)
            listed += page.compactions
        return listed


def _told(each: "ListedCompaction") -> str:
    what = f"{each.strategy:<9}  {each.state:<9}  {each.units_done:>9,} units"
    return f"{each.compaction_id}  {each.begun_at}  {what}  by {one_line(each.agent_id)}"
