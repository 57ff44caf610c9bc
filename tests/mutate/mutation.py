"""A mutation: a piece of source text, and what stands there when a scrub is left out."""

from pathlib import Path
from typing import Final, NamedTuple

SOURCES: Final = "src/fieldstone"


class Mutation(NamedTuple):
    """All else goes on as before: else any test would fail, and not the one that looks for secrets."""

    name: str
    removes: str
    file: str  # in the package
    text: str  # stands there exactly once
    replacement: str
    tests: tuple[str, ...]  # that are to fail, as pytest names them

    @property
    def path(self) -> str:
        return f"{SOURCES}/{self.file}"


class Outdated(Exception):
    """The source has changed: the mutation has to follow it."""


def place(mutation: Mutation, source: str) -> range:
    """Where in the source its text stands."""
    times = source.count(mutation.text)
    if times != 1:
        raise Outdated(f"{mutation.name}: its text stands {times} times in {mutation.path}, and not once.")
    start = source.index(mutation.text)
    return range(start, start + len(mutation.text))


def mutated(mutation: Mutation, source: str) -> str:
    where = place(mutation, source)
    return source[: where.start] + mutation.replacement + source[where.stop :]


def read(mutation: Mutation, root: Path) -> str:
    path = root / mutation.path
    if not path.is_file():
        raise Outdated(f"{mutation.name}: there is no {mutation.path}.")
    return path.read_text(encoding="utf-8")
