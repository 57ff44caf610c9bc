"""Parts of a known secret: what is left to find when it was cut in pieces.

A part says little by itself, and may be there by chance. Parts count when together they make up the whole secret: in
the texts of one unit, or in what the same author wrote before, see `seams`. A long part is noticed wherever it stands.
A short one, at the secret's end, is a word like others, and is asked for when a long one has been seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

# A part of this length is noticed, whatever stands around it; one letter less if it is an end and stands by itself.
LETTERS_MIN: Final = 6
# What parts are allowed to leave out: a cut through an escape or a group of base64 takes a letter with it.
LOST_MAX: Final = 2
LETTERS_PER_LOST: Final = 8
# Who has this much of a secret needs only a short rest.
MOST_SHARE: Final = 0.5
REST_LETTERS: Final = range(2, LETTERS_MIN + 1)


class Key(NamedTuple):
    """A secret, and which of its needles: what is turned around is no part of what is not.

    It outlives the needles: in a trail it may name one that is known no more, or that has other letters now.
    """

    secret_id: str
    has_signs: bool
    variant: int
    letters: int


class Part(NamedTuple):
    """Letters `first` to `last` of a secret."""

    key: Key
    first: int
    last: int

    @property
    def is_most(self) -> bool:
        return self.last - self.first >= MOST_SHARE * self.key.letters


def split(parts: Iterable[Part]) -> set[Key]:
    """The secrets that these parts make up."""
    by_secret: dict[Key, list[Part]] = {}
    for part in parts:
        by_secret.setdefault(part.key, []).append(part)
    return {key for key, its_parts in by_secret.items() if _make_up_the_whole(its_parts)}


def _make_up_the_whole(parts: Sequence[Part]) -> bool:
    covered = reached = 0
    for part in sorted(parts, key=lambda part: part.first):
        covered += max(0, part.last - max(part.first, reached))
        reached = max(reached, part.last)
    whole = parts[0].key.letters
    return covered >= whole - min(LOST_MAX, whole // LETTERS_PER_LOST)


def left_out(most: Part) -> Iterator[tuple[int, int]]:
    """The ends that a part leaves out, if they are short."""
    for first, last in ((0, most.first), (most.last, most.key.letters)):
        if last - first in REST_LETTERS:
            yield first, last
