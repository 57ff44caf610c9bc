"""The page on the command line is what the commands say."""

import os
from pathlib import Path

from fieldstone.cli.reference import cli_reference

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"


def test_the_reference_page_is_what_the_commands_say() -> None:
    page = cli_reference()
    if os.environ.get("FIELDSTONE_WRITE_DOCS"):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "run FIELDSTONE_WRITE_DOCS=1 make unit ARGS=tests/cli"


def test_the_page_does_not_depend_on_the_terminal() -> None:
    assert max(len(line) for line in cli_reference().splitlines()) <= 120
