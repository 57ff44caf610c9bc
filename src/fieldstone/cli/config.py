"""`fieldstone config`"""

from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from fieldstone.cli.failures import without_password
from fieldstone.cli.options import config_option, json_option
from fieldstone.cli.output import one_line, print_json, wrapped
from fieldstone.settings import SETTING_HELP, load_settings


@click.group("config")
def command() -> None:
    """Settings: what they are, and where they come from.

    \b
    Example:
      fieldstone config show
    """


@command.command()
@config_option
@json_option
def show(config: Path | None, as_json: bool) -> None:
    """Show every setting and where its value comes from.

    With what it is for. The later wins: default, --config, FIELDSTONE_* variable, command line.

    \b
    Examples:
      fieldstone config show
      FIELDSTONE_PORT=9000 fieldstone config show --config fieldstone.toml --json
    """
    loaded = load_settings(config=config)
    values = {name: _shown(value) for name, value in to_builtins(loaded.values, enc_hook=str).items()}
    if as_json:
        settings = {
            name: {"value": values[name], "source": loaded.sources[name], "help": text}
            for name, text in SETTING_HELP.items()
        }
        print_json(settings)
        return
    for name, text in SETTING_HELP.items():
        click.echo(f"{click.style(name, bold=True)} = {_written(values[name])}  ({one_line(loaded.sources[name])})")
        click.echo(wrapped(text, indent="    "))


def _shown(value: Any) -> Any:
    return without_password(value) if isinstance(value, str) else value


def _written(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ", ".join(map(one_line, value)) or "none"
        case _:
            return one_line(str(value))
