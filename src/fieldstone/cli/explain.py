"""What a score is made of, as bars in the terminal."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import click
from msgspec import UnsetType

from fieldstone.cli.output import NARROWEST

LONGEST_BAR: Final = 40
SHORTEST_BAR: Final = 5
FULL, EMPTY = "█", "░"
PLAIN_FULL, PLAIN_EMPTY = "#", "."  # for a terminal that knows no blocks
WHOLE_TOLERANCE: Final = 0.002  # factors come rounded to four digits


class Part(NamedTuple):
    """A factor, and which share of the score its weight decides; None where the weights are not known here."""

    name: str
    value: float
    share: float | None

    @property
    def worth(self) -> float:
        return self.value * (1.0 if self.share is None else self.share)


def parts_of(score: float, factors: Mapping[str, float] | UnsetType, weights: Mapping[str, float]) -> list[Part]:
    """The factors, those that decided first. Weights under which they do not make up the score are somebody else's."""
    if isinstance(factors, UnsetType):
        return []
    whole = sum(weights.get(name, 0.0) for name in factors) or 1.0
    shares = {name: weights.get(name, 0.0) / whole for name in factors}
    is_right = abs(sum(value * shares[name] for name, value in factors.items()) - score) <= WHOLE_TOLERANCE
    parts = [Part(name, value, shares[name] if is_right else None) for name, value in factors.items()]
    return sorted(parts, key=lambda part: -part.worth)


def print_parts(parts: Sequence[Part], *, indent: str = "") -> None:
    for line in bars(parts, _width() - len(indent)):
        click.echo(indent + line)


def bars(parts: Sequence[Part], width: int) -> list[str]:
    """A line for each: name, bar, value, and what the weight's share makes of it."""
    names = max((len(part.name) for part in parts), default=0)
    ends = [_end(part) for part in parts]
    left = width - names - max(map(len, ends), default=0) - 2
    cells = max(SHORTEST_BAR, min(LONGEST_BAR, left))
    return [f"{part.name.ljust(names)} {_bar(part.value, cells)} {end}" for part, end in zip(parts, ends, strict=True)]


def _end(part: Part) -> str:
    return f"{part.value:.2f}" if part.share is None else f"{part.value:.2f} × {part.share:>4.0%} = {part.worth:.2f}"


def _bar(value: float, cells: int) -> str:
    full, empty = _marks()
    filled = round(min(1.0, max(0.0, value)) * cells)
    return full * filled + empty * (cells - filled)


def _marks() -> tuple[str, str]:
    try:
        (FULL + EMPTY).encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return PLAIN_FULL, PLAIN_EMPTY
    return FULL, EMPTY


def _width() -> int:
    return max(NARROWEST, shutil.get_terminal_size().columns)
