"""What a text is about, in words to look up: how a caller finds the units worth judging."""

from collections.abc import Iterator

from fieldstone.detection.grammar import FUNCTIONAL_NOUNS, LIGHT_WORDS, VERBS
from fieldstone.detection.lexicon import GENERAL, MEMBERS, SCENE_FIGURES
from fieldstone.detection.statements import Statement, prepare
from fieldstone.detection.tokens import Token

# A name tells more than a word, a subject more than what is said of it; and what is said of it may differ.
NAME_WEIGHT = 2.0
SUBJECT_WEIGHT = 1.5
FREQUENT_WEIGHT = -1.0
# Longer words are rarer ones, up to a point.
LETTERS_MAX = 12
LETTER_WEIGHT = 0.1

_FREQUENT = VERBS | GENERAL | SCENE_FIGURES | FUNCTIONAL_NOUNS


def subject_terms(text: str, most: int = 8) -> list[str]:
    """The most telling words first. Numbers and times are left out: units that oppose each other differ in them."""
    weights: dict[str, float] = {}
    for statement in prepare(text).statements:
        for word, weight in _weighted(statement):
            weights[word] = max(weight, weights.get(word, weight))
    return sorted(weights, key=lambda word: (-weights[word], word))[:most]


def _weighted(statement: Statement) -> Iterator[tuple[str, float]]:
    for at, token in enumerate(statement.tokens):
        if token.kind in {"word", "name", "id"} and token.stem not in LIGHT_WORDS:
            weight = _weight(token, in_subject=at < statement.verb_at)
            yield from ((word, weight) for word in token.text.lower().split())


def _weight(token: Token, *, in_subject: bool) -> float:
    weight = LETTER_WEIGHT * min(len(token.text), LETTERS_MAX)
    if token.kind != "word":
        weight += NAME_WEIGHT
    if in_subject:
        weight += SUBJECT_WEIGHT
    if token.stem in _FREQUENT or token.key in MEMBERS:
        weight += FREQUENT_WEIGHT
    return weight
