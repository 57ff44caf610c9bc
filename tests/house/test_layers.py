"""Imports go one way. The direction is in pyproject.toml (import-linter); who may name what at all is here."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, ROOT, Source, imported_names, module_strings, python_sources

# Only these rooms, and the room itself, may name the one on the left.
MAY_NAME: dict[str, frozenset[str]] = {
    "backends": frozenset({"wiring"}),
    "settings": frozenset({"wiring", "servers", "cli"}),
    "testing": frozenset(),
}


def test_imports_go_down_the_table_of_rooms(tmp_path: Path) -> None:
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_backends_settings_and_testing_are_named_only_where_they_may_be() -> None:
    problems = [problem for source in python_sources(PACKAGE) for problem in misplaced_names(source)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("core/units.py", "import fieldstone.ports.log\n"),
        ("ports/log.py", "from fieldstone.redact import road\n"),
        ("retrieval/score.py", "from fieldstone.field import attune\n"),
        ("field/record.py", "from fieldstone.servers import http\n"),
        ("servers/http.py", "from fieldstone.cli import main\n"),
        ("core/units.py", "def f():\n    import fieldstone\n"),  # the long way round: fieldstone imports field
        ("field/record.py", "import fieldstone.testing.clock\n"),
        ("backends/sqlite/log.py", "from fieldstone.redact import road\n"),
        ("backends/sqlite/log.py", "from fieldstone.backends.memory import log\n"),
        ("engine/all.py", ""),  # a room that nobody gave a place
    ],
)
def test_an_import_against_the_direction_is_found(tmp_path: Path, path: str, text: str) -> None:
    build_rooms(tmp_path)
    assert lint_imports(tmp_path).returncode == 0
    put(tmp_path, path, text)
    verdict = lint_imports(tmp_path)
    assert verdict.returncode == 1, verdict.stdout + verdict.stderr
    assert "BROKEN" in verdict.stdout


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("field/record.py", "from fieldstone.backends.sqlite import log\n"),
        ("servers/http.py", "import fieldstone.backends.memory\n"),
        ("servers/http.py", "from fieldstone import backends\n"),
        ("cli/serve.py", "import_module('fieldstone.backends.sqlite')\n"),
        ("core/units.py", "from fieldstone.settings import Settings\n"),
        ("__init__.py", "from fieldstone.testing import ManualClock\n"),
    ],
)
def test_a_name_out_of_place_is_found(path: str, text: str) -> None:
    assert list(misplaced_names(Source(PACKAGE + path, text)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("wiring/stores.py", "from fieldstone.backends.sqlite import log\n"),
        ("backends/sqlite/log.py", "from fieldstone.backends.sqlite import rows\n"),
        ("servers/http.py", "from fieldstone.settings import Settings\n"),
        ("testing/log.py", "from fieldstone.testing.clock import ManualClock\n"),
    ],
)
def test_a_name_in_its_place_is_left_alone(path: str, text: str) -> None:
    assert not list(misplaced_names(Source(PACKAGE + path, text)))


def misplaced_names(source: Source) -> Iterator[str]:
    here = room_of(source.path)
    for line, name in [*imported_names(source.tree), *module_strings(source.tree)]:
        top, _, rest = name.partition(".")
        there = rest.split(".")[0]
        if top == "fieldstone" and there in MAY_NAME and here not in MAY_NAME[there] | {there}:
            allowed = ", ".join(sorted(MAY_NAME[there])) or "nobody"
            yield source.problem(line, f"{name}: named only by {allowed}")


def room_of(path: str) -> str:
    return re.split(r"[/.]", path.removeprefix(PACKAGE))[0]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs the contracts of our pyproject.toml on the tree under root, which may be unfinished."""
    (root / PACKAGE / "__init__.py").touch()
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--no-cache", "--no-logo", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(
        command, cwd=root, env={"PYTHONPATH": str(root / "src")}, capture_output=True, text=True, check=False
    )


def build_rooms(root: Path) -> None:
    """A small tree that keeps the direction."""
    put(root, "__init__.py", "from fieldstone.field import record\n")
    put(root, "cli/main.py", "from fieldstone.wiring import build\n")
    put(root, "wiring/stores.py", "from fieldstone.backends.sqlite import log\nimport fieldstone.settings\n")
    put(root, "servers/http.py", "from fieldstone.field import record\nfrom fieldstone.wire import codec\n")
    put(root, "field/record.py", "from fieldstone.redact import road\nfrom fieldstone.ports import log\n")
    put(root, "wire/codec.py", "from fieldstone.core import units\n")
    put(root, "retrieval/score.py", "from fieldstone.core import units\n")
    put(root, "redact/road.py", "from fieldstone.core import units\n")
    put(root, "backends/memory/log.py", "from fieldstone.ports import log\n")
    put(root, "backends/sqlite/log.py", "from fieldstone.ports import log\n")
    put(root, "ports/log.py", "from fieldstone.core import units\n")
    put(root, "core/units.py", "")
    put(root, "settings.py", "")
    put(root, "testing/clock.py", "from fieldstone.ports import log\n")


def put(root: Path, path: str, text: str) -> None:
    file = root / PACKAGE / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    for folder in file.relative_to(root / PACKAGE).parents:
        (root / PACKAGE / folder / "__init__.py").touch()
