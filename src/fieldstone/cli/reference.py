"""The reference page of the command line, made from the commands themselves."""

from collections.abc import Iterator
from typing import Final

import click

from fieldstone.cli.main import cli

WIDTH: Final = 100
HEADER: Final = """\
<!-- Made from the commands' help by src/fieldstone/cli/reference.py: do not edit. -->

# The command line

Exit codes: 0 done; 1 refused, failed, or (verify) not as it was written; 2 wrong usage; 130 Ctrl-C; 141 broken pipe.
"""


def cli_reference() -> str:
    context = click.Context(cli, info_name="fieldstone", terminal_width=WIDTH, **cli.context_settings)
    return "\n".join([HEADER, *_sections(cli, context)])


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _sections(below, click.Context(below, parent=context, info_name=name, terminal_width=WIDTH))
