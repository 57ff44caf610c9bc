"""What the guide to threads shows is run."""

import re
import subprocess
import sys
from pathlib import Path

from fieldstone.cli.threads import command

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "threads.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_python_lines_of_the_guide_work(tmp_path: Path) -> None:
    first, branches = blocks("python")
    assert ran(first, tmp_path) == "user Where is my parcel?\nassistant It is in Lisbon.\n"
    assert ran(branches, tmp_path).splitlines() == [
        "['A name for a cat?', 'Schrödinger.']",
        "['A name for a cat?', 'Whiskers.', 'Schrödinger.']",
        "['A name for a cat?', 'Whiskers.']",
    ]


def test_the_commands_of_the_guide_are_those_that_there_are() -> None:
    [lines] = blocks("console")
    named = [line.split()[2] for line in lines.splitlines()]
    assert sorted(named) == sorted(command.commands)


def ran(code: str, where: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
