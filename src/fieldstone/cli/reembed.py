"""`fieldstone reembed`"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click
from msgspec import Struct

from fieldstone.cli.door import local_field, opened, run, settings_for
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import print_json, progress
from fieldstone.core.replies import FieldStatus

if TYPE_CHECKING:
    from fieldstone.client.field import Field

PAUSE_S: Final = 0.1
STALLED_LOOKS: Final = 3_000  # five minutes without a single vector: a model that is slow makes some in that time


class Reembedded(Struct, frozen=True):
    """`made`: vectors that were missing when the command began."""

    model: str
    units: int
    made: int


@click.command("reembed")
@json_option
@where_options
def command(where: Where, as_json: bool) -> None:
    """Make sure that every unit has a vector of the configured model.

    A field does this by itself, in the background, whenever it is open; meanwhile the old vectors serve. This command
    opens the field and waits until it is done. Ctrl-C loses nothing: the next opening goes on where it was. A running
    server uses the model of its own settings, and is only watched.

    \b
    Examples:
      FIELDSTONE_EMBEDDER=onnx fieldstone reembed --db team.db
      fieldstone reembed --url http://127.0.0.1:8420 --json
    """
    done = run(_reembed(where))
    if as_json:
        print_json(done)
        return
    click.echo(f"{done.units:,} units, {done.made:,} vectors made now: all are searched with {done.model}")


async def _reembed(where: Where) -> Reembedded:
    async with opened(where) as field:
        if local_field(field) is None:
            click.echo("A server has this field and embeds by itself: it goes on after Ctrl-C, too.", err=True)
            if not (await field.status()).embeddings:
                raise Refused("error: The server has no vectors: its embedder is none, or does not answer.")
        elif settings_for(where).values.embedder == "none":
            raise Refused("error: embedder is none: there are no vectors to make. FIELDSTONE_EMBEDDER chooses one.")
        missing = waiting(await field.status()) or 0
        with progress("embedding", missing) as advance:
            status = await until_embedded(field, lambda left: advance(max(0, missing - left)))
        return Reembedded(status.embeddings[0].model, status.units, missing)


async def until_embedded(field: "Field", left: Callable[[int], None] = lambda count: None) -> FieldStatus:
    """Return when the model that serves has a vector of every unit. `left` is told how many are missing."""
    before, looks = None, 0
    while looks < STALLED_LOOKS:
        status = await field.status()
        count = waiting(status)
        if count is not None:
            left(count)
        if count == 0 and [each.state for each in status.embeddings] == ["serving"]:
            return status
        looks = looks + 1 if count == before else 0
        before = count
        await asyncio.sleep(PAUSE_S)
    raise Refused(
        "error: The embedding model made no vector for a long time. Nothing is lost: the field goes on with it "
        "whenever it is open."
    )


def waiting(status: FieldStatus) -> int | None:
    """How many vectors are missing; None while nobody knows which model it will be."""
    return max((each.waiting for each in status.embeddings), default=None)
