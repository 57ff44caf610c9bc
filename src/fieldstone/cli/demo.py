"""`fieldstone demo`"""

from typing import Final

import click

from fieldstone.audit.verify import Verification
from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import print_json, wrapped
from fieldstone.cli.status import print_status
from fieldstone.cli.story import INTRODUCTION, Step, Story
from fieldstone.cli.verify import verdict
from fieldstone.core.replies import Attunement, AttuneReply, FieldStatus

NOWHERE: Final = "memory:"
INDENT: Final = "   "
EPILOGUE: Final = """\
That was all of it. Now with a field of your own:
  fieldstone serve --db team.db          and from Python:  open_field("http://127.0.0.1:8420")
  fieldstone record --help               fieldstone attune --help"""


@click.command("demo")
@json_option
@where_options
def command(where: Where, as_json: bool) -> None:
    """Watch five agents contradict each other and settle it.

    They work on one question, step by step. It runs on a field in memory and leaves nothing behind. With --db or --url
    it is told on that field, and stays there; FIELDSTONE_DB and FIELDSTONE_URL do not count here.

    \b
    Examples:
      fieldstone demo
      fieldstone demo --db demo.db && fieldstone attune "checkout" --db demo.db
      fieldstone demo --json | jq .headline
    """
    if where.db is None and where.url is None:
        where = where._replace(db=NOWHERE)
    if not as_json:
        click.echo(wrapped(INTRODUCTION))
    run(_tell(where, as_json))
    if not as_json:
        click.echo(f"\n{EPILOGUE}")


async def _tell(where: Where, as_json: bool) -> None:
    async with opened(where, make=True) as field:
        story = await Story.on(field)
        async for step in story.tell():
            if as_json:
                print_json(step)
            else:
                print_step(step)


def print_step(step: Step) -> None:
    click.echo()
    click.secho(wrapped(f"{step.step}. {step.headline}"), bold=True)
    if step.said is not None:
        click.echo(wrapped(f"“{step.said}”", indent=INDENT))
    if isinstance(step.answer, AttuneReply):
        _print_context(step.answer)
    elif isinstance(step.answer, FieldStatus):
        print_status(step.answer, indent=INDENT)
    elif isinstance(step.answer, Verification):
        click.echo(wrapped(verdict(step.answer), indent=INDENT))
    for note in step.notes:
        colour = "yellow" if note.startswith("CONFLICT") else None
        click.secho(wrapped(note, indent=INDENT, hanging="  "), fg=colour)
    if step.remark is not None:
        click.echo(wrapped(f"→ {step.remark}", indent=INDENT, hanging="  "))


def _print_context(context: Attunement) -> None:
    for scoped in context.record:
        unit = scoped.memory_unit
        contested = " [contested]" if unit.status == "contested" else ""
        line = f"{scoped.relevance_score:.2f}  {unit.content}{contested}"
        click.echo(wrapped(line, indent=INDENT, hanging="      "))
        click.secho(wrapped(scoped.relevance_reason, indent=INDENT + "      "), dim=True)
