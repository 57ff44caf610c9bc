"""`fieldstone`: the group of all commands."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final

import click

# name → where it is, and its line in the list. The list is here so that `--help` loads none of them.
COMMANDS: Final = {
    "serve": ("fieldstone.cli.serve", "Serve a field over HTTP."),
    "demo": ("fieldstone.cli.demo", "Watch five agents contradict each other and settle it."),
    "record": ("fieldstone.cli.record", "Add a memory unit: what is known, why, and how sure."),
    "attune": ("fieldstone.cli.attune", "Show what matters to an agent now, and why."),
    "unit": ("fieldstone.cli.unit", "Show one unit: what it says, who says so, and why."),
    "status": ("fieldstone.cli.status", "Show what a field holds, and how it is doing."),
    "log": ("fieldstone.cli.log", "Show the log: what happened, and when."),
    "events": ("fieldstone.cli.events", "Show the events of memories: what was written, compacted, consolidated."),
    "verify": ("fieldstone.cli.verify", "Check that the history is as it was written."),
    "rebuild": ("fieldstone.cli.rebuild", "Build the views again from the log."),
    "reembed": ("fieldstone.cli.reembed", "Make sure that every unit has a vector of the configured model."),
    "eval": ("fieldstone.cli.eval", "Measure how well ATTUNE finds what it should."),
    "export": ("fieldstone.cli.export", "Write the log and its texts as JSON lines."),
    "import": ("fieldstone.cli.import_lines", "Read in what `fieldstone export` wrote."),
    "compact": ("fieldstone.cli.compact", "Archive, summarize or purge aged units; the history stays whole."),
    "compactions": (
        "fieldstone.cli.compactions",
        "List the compactions that there were: when, whose, and of how many units.",
    ),
    "restore": ("fieldstone.cli.restore", "Bring archived units back."),
    "hold": ("fieldstone.cli.hold", "Keep a unit for a legal reason: no compaction touches it."),
    "pin": ("fieldstone.cli.pin", "Keep a unit where it is: no compaction touches it."),
    "lineage": ("fieldstone.cli.lineage", "Show what a unit was made from, and into what."),
    "retention": ("fieldstone.cli.retention", "Retention: what becomes of aged units, by policies that are set."),
    "threads": ("fieldstone.cli.threads", "Threads: the transcripts of conversations, and the logs of their runs."),
    "keys": ("fieldstone.cli.keys", "Keys: who may use a server, and for what."),
    "secrets": ("fieldstone.cli.secrets", "Known secrets: values that must never be stored, in whatever disguise."),
    "config": ("fieldstone.cli.config", "Settings: what they are, and where they come from."),
}


class Commands(click.Group):
    """Loads a command when it is called, and tells the errors of all of them in the same way."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        with import_module("fieldstone.cli.failures").told_in_words():
            return super().invoke(ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fieldstone", message="fieldstone %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """The memory that several AI agents share: they record what they know and why, and attune to what matters to them.

    \b
    Start here:
      fieldstone demo                 five agents and one contradiction, step by step
      fieldstone serve --db team.db   a durable field at http://127.0.0.1:8420
      fieldstone record "Checkout takes 1.9 s" --intent "find the slow step" \\
          --confidence 0.9 --reasoning "20,000 traced sessions" --db team.db
      fieldstone attune "why is checkout slow?" --agent bob --db team.db

    Commands work on a store (--db) or through a running server (--url); a file that a server holds is used through that
    server. What the command line does not say comes from FIELDSTONE_* variables and --config (see `config show`).
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no “ gets an answer, too
    cli(prog_name="fieldstone")
