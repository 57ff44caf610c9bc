"""`fieldstone rebuild`"""

from importlib import import_module
from typing import TYPE_CHECKING

import click

from fieldstone.cli.door import on_store, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import print_json, progress
from fieldstone.ports.store import Store

if TYPE_CHECKING:
    from fieldstone.field.rebuild import Rebuilt


@click.command("rebuild")
@json_option
@where_options
def command(where: Where, as_json: bool) -> None:
    """Build the views again from the log.

    It throws them away first, and says whether they came out as they were.

    \b
    Examples:
      fieldstone rebuild --db team.db
      fieldstone rebuild --url http://127.0.0.1:8420 --json
    """
    rebuilt = run(_rebuild(where))
    if as_json:
        print_json(rebuilt)
        return
    result = "they are what they were" if rebuilt.unchanged else "they were not what the log says, and now they are"
    click.echo(f"views rebuilt from {rebuilt.entries:,} entries: {result} (checksum {rebuilt.checksum})")


async def _rebuild(where: Where) -> "Rebuilt":
    # On the bare store, since views that are damaged may keep a field from opening.
    async def here(store: Store) -> "Rebuilt":
        names = import_module("fieldstone.projections.names").Names(store.views, store.texts, store.digest_key)
        with progress("rebuilding", (await store.log.head()).seq) as advance:
            rebuilt: Rebuilt = await import_module("fieldstone.field.rebuild").rebuild(store, names.digest, advance)
        return rebuilt

    return await on_store(where, here, lambda field: field.rebuild())
