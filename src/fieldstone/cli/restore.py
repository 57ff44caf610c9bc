"""`fieldstone restore`"""

from typing import Final

import click

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import counted, print_json

NONE_BACK: Final = (
    "None of them came back: they were never archived, are back already, were purged since, "
    "or their texts are missing; then `fieldstone verify` says so."
)


@click.command("restore")
@click.argument("unit_ids", nargs=-1, metavar="[UNIT]...")
@click.option("--compaction", "compaction_id", metavar="ID", help="All that this compaction archived.")
@json_option
@where_options
def command(where: Where, as_json: bool, unit_ids: tuple[str, ...], compaction_id: str | None) -> None:
    """Bring archived units back.

    They stand where they stood, with the status they had, and ATTUNE finds them as before. Units that are not archived
    are passed over; what was purged cannot come back.

    \b
    Examples:
      fieldstone restore mem-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
      fieldstone restore --compaction comp-01a1dead6f9d70af9e947d61ac7dd17b --db team.db
    """
    if bool(unit_ids) == (compaction_id is not None):
        raise click.UsageError("Name units, or the compaction that archived them with --compaction.")
    restored = run(_restore(where, unit_ids, compaction_id))
    if as_json:
        print_json({"restored": restored})
        return
    click.echo(f"{counted(restored, 'unit')} {'is' if restored == 1 else 'are'} back")
    if restored == 0:
        click.echo(NONE_BACK, err=True)


async def _restore(where: Where, unit_ids: tuple[str, ...], compaction_id: str | None) -> int:
    async with opened(where) as field:
        if compaction_id is not None:
            return await field.restore_compaction(compaction_id)
        return await field.restore(unit_ids)
