"""`fieldstone --help` is quick, and it helps."""

import subprocess
import sys
import time
from collections.abc import Iterator

import click
import pytest

from fieldstone.cli.main import COMMANDS, cli
from fieldstone.cli.reference import cli_reference
from tests.cli.running import PROGRAM, done, invoke, process

HEAVY = {"apsw", "asyncio", "httpx", "kingfisher_sdk", "msgspec", "numpy", "starlette", "structlog", "uvicorn"}
HELP_LIMIT_S = 0.3


def test_help_loads_nothing_heavy() -> None:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fieldstone", "--help"], capture_output=True, text=True, check=True
    )
    assert "Commands:" in shown.stdout
    assert loaded(shown.stderr) & HEAVY == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_does_not_load_stores_or_servers(name: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fieldstone", name, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded(shown.stderr) & (HEAVY - {"asyncio", "msgspec"}) == set()


def test_help_takes_at_most_300_ms() -> None:
    assert min(seconds(*PROGRAM, "--help") for _ in range(5)) <= HELP_LIMIT_S


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name: str) -> None:
    shown = done(name, "--help")
    assert "Example" in shown
    assert f"fieldstone {name}" in shown.split("Example")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_line_in_the_list_is_how_its_own_help_begins(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == COMMANDS[name][1]
    assert command.name == name


def test_every_command_can_answer_in_json() -> None:
    assert [" ".join(path) for path, command in commands(cli) if "--json" not in options(command)] == []


def test_version_is_one_line() -> None:
    assert done("--version").startswith("fieldstone 0.")


def test_an_unknown_command_is_a_usage_error() -> None:
    result = invoke("remember")
    assert result.exit_code == 2
    assert "No such command 'remember'" in result.stderr


def test_python_dash_m_and_the_reference_use_the_same_name() -> None:
    assert process("--help").stdout.startswith("Usage: fieldstone [OPTIONS]")
    assert "Usage: fieldstone config show [OPTIONS]" in cli_reference()


def commands(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All that are no groups, with the words that call them."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, *path, name)


def options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def loaded(import_times: str) -> set[str]:
    """The top-level packages in what -X importtime wrote."""
    names = (line.rsplit("|", 1)[1].strip() for line in import_times.splitlines() if line.startswith("import time:"))
    return {name.split(".")[0] for name in names}


def seconds(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - began
