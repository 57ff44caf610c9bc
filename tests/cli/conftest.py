"""Commands run in an empty folder, and know nothing of the variables of whoever runs the tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name.startswith("FIELDSTONE_") and name != "FIELDSTONE_WRITE_DOCS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path
