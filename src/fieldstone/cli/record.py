"""`fieldstone record`"""

import sys
from typing import Any, Final

import click

from fieldstone.cli.door import join, opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, agent_options, json_option, where_options
from fieldstone.cli.output import print_json, print_warnings
from fieldstone.core.limits import MAX_CONTENT_CHARS
from fieldstone.core.replies import Accepted

MAX_STDIN_BYTES: Final = 4 * MAX_CONTENT_CHARS  # more cannot be a content, however it is encoded


class RelationType(click.ParamType[dict[str, str | None]]):
    name = "TYPE:TARGET[:DESCRIPTION]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str | None]:
        kind, _, rest = str(value).partition(":")
        target, _, description = rest.partition(":")
        if not kind or not target:
            self.fail("it looks like contradicts:mem-01a1… or supports:mem-01a1…:why it does.", param, ctx)
        return {"type": kind, "target_id": target, "description": description or None}


@click.command("record")
@click.argument("content")
@click.option("--intent", required=True, help="Why it is recorded: what makes it usable by others.")
@click.option("--type", "unit_type", default="finding", show_default=True, help="finding, decision, observation …")
@click.option("--confidence", type=float, metavar="0..1", help="How sure; needed unless it is a draft.")
@click.option("--reasoning", help="Why so sure; needed unless it is a draft.")
@click.option("--evidence", multiple=True, help="What it rests on. May be given several times.")
@click.option("--assumption", multiple=True, help="What it takes for granted. May be given several times.")
@click.option("--relation", "relations", type=RelationType(), multiple=True, help="To another unit. May be repeated.")
@click.option("--draft", is_flag=True, help="Only its author sees it, until it is committed.")
@click.option("--session", help="The session it belongs to.")
@click.option("--task", help="The task it belongs to.")
@click.option("--question", help="The question that it answers.")
@click.option("--id", "message_id", metavar="ID", help="Recording the same again under this id changes nothing.")
@agent_options
@json_option
@where_options
def command(where: Where, as_json: bool, agent_id: str, role: str | None, content: str, **fields: Any) -> None:
    """Add a memory unit: what is known, why, and how sure.

    CONTENT is what is known; `-` reads it from stdin.

    \b
    Examples:
      fieldstone record "The payment page takes 1.9 s" --intent "find the slow step" \\
          --confidence 0.9 --reasoning "20,000 traced sessions" --agent elin --role engineer
      fieldstone record "Guest checkout first" --type decision --draft --intent "choose what to build"
      fieldstone record "It takes 11 s" --intent "check" --confidence 0.6 --reasoning "dashboard" \\
          --relation "contradicts:mem-01a1dead6f9d70af9e947d61ac7dd17b:both times cannot be right"
      git log -1 | fieldstone record - --intent "tell the others" --confidence 1 --reasoning "it is the log"
    """
    said = _stdin() if content == "-" else content
    accepted = run(_record(where, agent_id, role, said, **fields))
    if as_json:
        print_json(accepted)
        return
    click.echo(f"{accepted.memory_unit_id} at epoch {accepted.epoch}")
    for conflict in accepted.conflicts_detected:
        click.secho(f"in conflict: {conflict}", fg="yellow")
    print_warnings(accepted.warnings)


async def _record(
    where: Where,
    agent_id: str,
    role: str | None,
    content: str,
    *,
    intent: str,
    task: str | None,
    question: str | None,
    unit_type: str,
    assumption: tuple[str, ...],
    draft: bool,
    session: str | None,
    message_id: str | None,
    **same: Any,
) -> Accepted:
    async with opened(where, make=True) as field:
        agent = await join(field, agent_id, role)
        return await agent.record(
            content,
            intent={"purpose": intent, "task_id": task, "question": question},
            type=unit_type,
            assumptions=assumption,
            mode="draft" if draft else "committed",
            session_id=session,
            id=message_id,
            **same,
        )


def _stdin() -> str:
    content = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(content) > MAX_STDIN_BYTES:
        raise Refused(f"error: stdin holds more than a content may have ({MAX_CONTENT_CHARS:,} characters).")
    try:
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise Refused(f"error: stdin is not UTF-8 text (byte {error.start}).") from error
