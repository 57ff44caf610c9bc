"""Applies mutations to a copy of the tree, one at a time, and runs the tests that are to notice.

First the same tests run on the copy as it is: one that fails there would catch everything, and prove nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple

from tests.mutate.mutation import Mutation, mutated, read

COPIED: Final = ("src", "tests", "pyproject.toml")
# None of the tests is schemathesis' own, and to load it takes longer than most of them.
PYTEST: Final = ("pytest", "-x", "-q", "-n0", "--tb=line", "-p", "no:cacheprovider", "-p", "no:schemathesis")
TESTS_TIMEOUT_S: Final = 180
# Exit codes of pytest. All others mean that it did not come to run the tests.
PASSED: Final = 0
FAILED: Final = 1
# A test that looked, and saw a secret or no refusal. Whatever else ends it is the mutation's own fault.
SAW_IT: Final = re.compile(r"FAILED \S+.* - (?:assert |AssertionError|Failed: DID NOT RAISE)")
WIDE: Final = "400"  # columns: pytest cuts what it says at the end of its line

Verdict = Literal["caught", "survived", "broken"]


class Outcome(NamedTuple):
    """`told`: the failure that caught it, or why nothing is known."""

    name: str
    removes: str
    verdict: Verdict
    seconds: float
    told: str


class Unsound(Exception):
    """The tests do not pass on the tree as it is."""


class Ran(NamedTuple):
    code: int | None  # None: it did not end in time
    output: str


def run(mutations: Sequence[Mutation], root: Path) -> Iterator[Outcome]:
    """Raises Outdated before any test runs, and Unsound before any mutation does."""
    for mutation in mutations:
        mutated(mutation, read(mutation, root))
    with TemporaryDirectory(prefix="fieldstone-mutate-") as folder:
        tree = Path(folder)
        _copy(root, tree)
        _check_unchanged(mutations, tree)
        for mutation in mutations:
            yield _try(mutation, tree)


def _copy(root: Path, tree: Path) -> None:
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, tree / name)  # with the compiled files: their times are kept, and so are they
        elif (root / name).is_file():
            shutil.copy2(root / name, tree / name)


def _check_unchanged(mutations: Sequence[Mutation], tree: Path) -> None:
    tests = dict.fromkeys(test for mutation in mutations for test in mutation.tests)
    ran = _run_tests(list(tests), tree, timeout_s=TESTS_TIMEOUT_S * max(1, len(tests)))
    if ran.code != PASSED:
        raise Unsound(_last_words(ran))


def _try(mutation: Mutation, tree: Path) -> Outcome:
    path, begun = tree / mutation.path, time.monotonic()
    source = read(mutation, tree)
    path.write_text(mutated(mutation, source), encoding="utf-8")
    try:
        ran = _run_tests(mutation.tests, tree, timeout_s=TESTS_TIMEOUT_S)
    finally:
        path.write_text(source, encoding="utf-8")
    told = "" if ran.code == PASSED else _last_words(ran)
    return Outcome(mutation.name, mutation.removes, _verdict(ran), time.monotonic() - begun, told)


def _verdict(ran: Ran) -> Verdict:
    if ran.code == PASSED:
        return "survived"
    return "caught" if ran.code == FAILED and SAW_IT.match(_last_words(ran)) else "broken"


def _run_tests(tests: Sequence[str], tree: Path, *, timeout_s: float) -> Ran:
    """The package is the copy's: PYTHONPATH goes before what is installed. Nothing compiled is written, which a second
    change within the same second would take for its own."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": WIDE}
    command = [sys.executable, "-m", *PYTEST, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Ran(None, f"The tests did not end within {timeout_s:g} s.")
    return Ran(done.returncode, done.stdout + done.stderr)


def _last_words(ran: Ran) -> str:
    """The lines in which pytest names what failed; if there are none, the last ones."""
    lines = [line for line in ran.output.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return "\n".join(named or lines[-5:])
