"""Pages that are made from code are what the code says."""

import os
from pathlib import Path

import pytest

from tests.docs.reference import PAGES

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_is_what_the_code_says(name: str) -> None:
    page = PAGES[name]()
    if os.environ.get("FIELDSTONE_WRITE_DOCS"):
        (REFERENCE / name).write_text(page)
    assert (REFERENCE / name).read_text() == page, "run FIELDSTONE_WRITE_DOCS=1 make unit ARGS=tests/docs"


def test_every_method_says_what_it_does() -> None:
    _, *methods = PAGES["python.md"]().split("### ")
    silent = [each.split("\n")[0] for each in methods if not each.rpartition("```\n")[2].strip()]
    assert silent == []
