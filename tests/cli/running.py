"""How tests run commands: in this process where that is enough, as a process of its own where it matters."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner, Result

from fieldstone.cli.main import cli

SURE = ("--confidence", "0.8", "--reasoning", "it was seen")
PROGRAM = (sys.executable, "-m", "fieldstone")


def invoke(*args: str, input: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=input, env=env, prog_name="fieldstone")


def done(*args: str, input: str | bytes | None = None, env: dict[str, str] | None = None) -> str:
    """What a command that must succeed writes to stdout."""
    result = invoke(*args, input=input, env=env)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*args: str, input: str | bytes | None = None, env: dict[str, str] | None = None) -> Any:
    """The one JSON value that a command writes with --json."""
    return json.loads(done(*args, "--json", input=input, env=env))


def refused(*args: str, exit_code: int = 1, input: str | bytes | None = None, env: dict[str, str] | None = None) -> str:
    """What a command that must be refused writes to stderr; it writes nothing to stdout."""
    result = invoke(*args, input=input, env=env)
    assert result.exit_code == exit_code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr, result.stderr
    return result.stderr


def record(content: str, *more: str, db: str = "team.db", env: dict[str, str] | None = None) -> str:
    """Record it; the unit's id."""
    accepted = answer("record", content, "--intent", "tell the others", *SURE, "--db", db, *more, env=env)
    unit_id: str = accepted["memory_unit_id"]
    return unit_id


def process(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *args], capture_output=True, text=True, check=False)


@contextmanager
def served(db: str) -> Iterator[str]:
    """A real server on this store; its URL."""
    command = [*PROGRAM, "serve", "--db", db, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        url = re.search(r"http://[\d.]+:\d+", ready)
        try:
            assert url is not None, ready
            yield url.group()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()
