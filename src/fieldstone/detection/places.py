"""The part that two facing words play in their statements: it decides whether another word there excludes."""

from typing import Literal, NamedTuple

from fieldstone.detection.grammar import (
    FUNCTIONAL_NOUNS,
    FUNCTIONAL_VERBS,
    NAMING_VERBS,
    NUMBERED,
    PLACING_VERBS,
    TELLING_APART,
)
from fieldstone.detection.statements import Statement

NAME_WORDS_MAX = 3

Reason = Literal["negation", "antonym", "number", "moment", "kind", "name"]


class Opposed(NamedTuple):
    reason: Reason
    a: str
    b: str


class Place:
    """The part that two facing tokens play in their statements."""

    __slots__ = ("_a", "_at_a", "_at_b", "_b")

    def __init__(self, a: Statement, at_a: int, b: Statement, at_b: int) -> None:
        self._a, self._at_a, self._b, self._at_b = a, at_a, b, at_b

    def opposed(self, reason: Reason) -> Opposed:
        return Opposed(reason, self._a.tokens[self._at_a].text, self._b.tokens[self._at_b].text)

    @property
    def in_subject(self) -> bool:
        return self._at_a < self._a.verb_at or self._at_b < self._b.verb_at

    @property
    def is_scene(self) -> bool:
        return self._a.scene and self._b.scene

    @property
    def is_enumerated(self) -> bool:
        a, b = self._a, self._b
        return (a.enumerates and a.tokens[self._at_a].listed) or (b.enumerates and b.tokens[self._at_b].listed)

    @property
    def is_numbered(self) -> bool:
        """ "the first task", "the third run": the word behind says that there are many."""
        after = self._at_a + 1
        return after < len(self._a.keys) and self._a.tokens[after].stem in NUMBERED

    @property
    def is_value(self) -> bool:
        """Whether it is something of which the subject has only one."""
        return self.is_scene or (self.is_governed and not self.in_subject)

    @property
    def may_be_antonym(self) -> bool:
        """In a scene all opposes. Elsewhere "the old API" is one, "the new API" another."""
        if self.is_scene:
            return True
        if self.in_subject:
            return False
        tells_apart = self._is_attribute and self._a.tokens[self._at_a].stem in TELLING_APART
        return self.is_governed or not tells_apart

    @property
    def _is_attribute(self) -> bool:
        after = self._at_a + 1
        return after < len(self._a.tokens) and not self._a.tokens[after].preposition

    @property
    def is_governed(self) -> bool:
        return _governed(self._a, self._at_a) and _governed(self._b, self._at_b)

    @property
    def holds_a_role(self) -> bool:
        """ "Ana is the lead of …": who holds what there is one of."""
        return _is_role(self._a) and _is_role(self._b)

    @property
    def names_one(self) -> bool:
        """Two names, or any two words after "is named": what the verb or the subject has one of."""
        if not self.is_governed:
            return False
        one, other = self._a.tokens[self._at_a], self._b.tokens[self._at_b]
        if one.kind == other.kind == "name":
            return True
        plain = not one.article and not other.article
        return plain and _names(self._a) and _names(self._b) and self._at_a == len(self._a.tokens) - 1


def _governed(side: Statement, at: int) -> bool:
    """Whether it is the object of a verb that has one, or stands right behind "is"."""
    if at < side.verb_at:
        return False
    behind = at - side.verb_at
    if side.copular:
        return behind == 0 or (behind <= 2 and not side.tokens[at].preposition)
    if side.verb not in FUNCTIONAL_VERBS or (side.verb == "work" and side.tokens[at].preposition == "with"):
        return False
    if side.verb in PLACING_VERBS and side.tokens[at].preposition in {"in", "on", "at"}:
        return behind <= NAME_WORDS_MAX
    return behind <= 1 or (behind <= NAME_WORDS_MAX and not side.tokens[at].preposition)


def _is_role(side: Statement) -> bool:
    return side.copular and side.verb_at == 1 < len(side.tokens) and side.tokens[1].article == "the"


def _names(side: Statement) -> bool:
    if side.verb in NAMING_VERBS:
        return True
    return side.copular and any(token.stem in FUNCTIONAL_NOUNS for token in side.tokens[: side.verb_at])
