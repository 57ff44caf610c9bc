"""`make setup` installs exactly what was tested: every requirement is pinned and hashed, and matches pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.house.sources import ROOT

REQUIREMENTS = ROOT / "requirements"
PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)")


@pytest.mark.parametrize("path", sorted(REQUIREMENTS.glob("*.txt")), ids=lambda path: path.name)
def test_every_requirement_has_a_version_and_a_hash(path: Path) -> None:
    problems = unpinned(path.read_text(encoding="utf-8"))
    assert not problems, "\n".join(problems)


def test_base_and_dev_agree() -> None:
    assert pins("base").items() <= pins("dev").items(), "run `make lock`"


def test_the_pins_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"base": project["dependencies"], "dev": project["optional-dependencies"]["dev"]}
    missing = [
        f"{name} is not in requirements/{file}.txt: run `make lock`"
        for file, specifiers in asked.items()
        for name in sorted({re.split(r"[^\w.-]", specifier)[0] for specifier in specifiers} - pins(file).keys())
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    "text",
    [
        "click>=8\n",
        "click==8.5.1\n",
        "click==8.5.1 \\\n    --hash=sha256:ab\nhttpx==0.28.1\n",
        "-e .\n",
        "--trusted-host example.com\n",
    ],
)
def test_a_loose_requirement_is_found(text: str) -> None:
    assert unpinned(text)


def unpinned(text: str) -> list[str]:
    return [line for line in logical_lines(text) if not (PINNED.match(line) and "--hash=sha256:" in line)]


def pins(file: str) -> dict[str, str]:
    text = (REQUIREMENTS / f"{file}.txt").read_text(encoding="utf-8")
    return {match["name"]: match["version"] for line in logical_lines(text) if (match := PINNED.match(line))}


def logical_lines(text: str) -> list[str]:
    """Requirements with their hashes on one line, without comments."""
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    return [line for line in joined.splitlines() if line.strip()]
