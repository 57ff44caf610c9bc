"""Options that several commands share."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from fieldstone.settings import SETTING_HELP

Command = Callable[..., None]


class Where(NamedTuple):
    """The store or server that a command is about, as far as its options say."""

    db: str | None = None
    url: str | None = None
    config: Path | None = None
    field: str | None = None
    tenant: str | None = None


def setting_option(name: str, **how: Any) -> Callable[[Command], Command]:
    """An option for a setting. The settings read the variable, not click: they know where each value comes from."""
    flag = f"--{name.replace('_', '-')}"
    return click.option(flag, name, help=f"{SETTING_HELP[name]}  [env: FIELDSTONE_{name.upper()}]", **how)


config_option: Final = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A settings file, such as fieldstone.toml.",
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="JSON on stdout, and nothing else there.")

_WHERE: Final = (
    setting_option("db", metavar="PATH_OR_URL"),
    setting_option("url", metavar="URL"),
    setting_option("field", metavar="NAME"),
    config_option,
)


def where_options(function: Command) -> Command:
    """--db, --url, --field and --config, handed on as one `where`."""

    @wraps(function)
    def gathered(
        *args: Any, db: str | None, url: str | None, field: str | None, config: Path | None, **rest: Any
    ) -> None:
        if db is not None and url is not None:
            raise click.UsageError("--db and --url exclude each other: a store, or a server that holds one.")
        function(*args, where=Where(db, url, config, field), **rest)

    command: Command = gathered
    for option in reversed(_WHERE):
        command = option(command)
    return command


def agent_options(function: Command) -> Command:
    role = click.option("--role", help="The agent's role.  [default: operator]")
    agent = click.option("--agent", "agent_id", default="cli", show_default=True, help="Who does it: joins or resumes.")
    return agent(role(function))
