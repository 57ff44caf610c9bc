"""Whether what differs between two statements excludes, and if so how.

A difference can be harmless (a synonym, a more general word, a detail), it can tell two subjects apart (another host,
another day, another step of a list), it can be unknown, or it can oppose: both cannot be true of the same thing.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from fieldstone.detection.alignment import Gap, gaps
from fieldstone.detection.grammar import LIGHT_WORDS, NUMBERED, SCOPES, TELLING_PREPOSITIONS
from fieldstone.detection.lexicon import GENERAL, HOLDS, MEMBERS, OPPOSITES
from fieldstone.detection.places import NAME_WORDS_MAX, Opposed, Place, Reason
from fieldstone.detection.quantities import can_be_one, can_both_hold, same_version, share_a_field
from fieldstone.detection.statements import Statement
from fieldstone.detection.tokens import Token

Difference = Opposed | Literal["same", "other subject", "unknown"]
Extra = tuple[Statement, int]  # what one side says and the other does not: the side, and where

# A reason is as strong as it is seldom wrong.
STRENGTHS: Final[dict[Reason, float]] = {
    "negation": 0.9,
    "antonym": 0.85,
    "number": 0.85,
    "moment": 0.8,
    "kind": 0.75,
    "name": 0.65,
}
# Several of these at once tell two subjects apart, rather than oppose.
ONLY_ALONE: Final[frozenset[Reason]] = frozenset({"moment", "kind", "name"})
SHARED_SHARE_MIN = 0.5
EXTRAS_MAX = 3
# "it" may be anything: then much else has to be shared.
VAGUE_SHARED_MIN = 4
# "Sorry!" denies nothing.
DENIED_SHARED_MIN = 2
# Groups of words for how often or how bad: exclusive with any verb.
DEGREES: Final = frozenset({"cadence", "severity"})
# The shortest stem that a prefix turns round: "inform" is no opposite of "form".
_NEGATIVE_PREFIXES: Final = {"un": 4, "non": 4, "dis": 5, "in": 5, "im": 5, "ir": 5, "il": 5}
_SAME_BEGINNING_MIN = 6
_SHORT_NAME_MIN = 3


class Opposition(NamedTuple):
    reason: Reason
    a: str
    b: str
    shared_share: float

    @property
    def strength(self) -> float:
        return round(STRENGTHS[self.reason] * (0.6 + 0.4 * self.shared_share), 3)


def oppose(a: Statement, b: Statement) -> Opposition | None:
    shared = len(a.bag & b.bag)
    longest = max(len(a.keys), len(b.keys))
    if not shared or shared < SHARED_SHARE_MIN * longest or not _comparable(a, b, shared):
        return None
    if a.keys <= b.keys:
        found = _opposed(a, b, shared)
        return found and Opposition(found.reason, found.a, found.b, shared / longest)
    # Always looked at in one order, so that the order of the two never matters.
    found = _opposed(b, a, shared)
    return found and Opposition(found.reason, found.b, found.a, shared / longest)


def _opposed(a: Statement, b: Statement, shared: int) -> Opposed | None:
    extras: list[Extra] = []
    opposed: list[Opposed] = []
    for gap in gaps(a, b):
        for difference in _differences(gap, a, b, extras):
            if isinstance(difference, Opposed):
                if difference not in opposed:  # the same change in two places is one
                    opposed.append(difference)
            elif difference != "same":
                return None
    return _verdict(opposed, a, b, extras, shared)


def _comparable(a: Statement, b: Statement, shared: int) -> bool:
    """Whether both speak of how things are, or both of how they were or will be."""
    if a.possible or b.possible or a.past_state != b.past_state:
        return False
    return shared >= VAGUE_SHARED_MIN or not (a.vague or b.vague)


def _verdict(opposed: list[Opposed], a: Statement, b: Statement, extras: list[Extra], shared: int) -> Opposed | None:
    antonyms = sum(difference.reason == "antonym" for difference in opposed)
    if (a.negations - b.negations) % 2:
        # "not open" and "closed" agree: each turn of the meaning undoes another.
        if opposed or shared < DENIED_SHARED_MIN or not (a.denied or b.denied) or not _denies(a, b, extras):
            return None
        return Opposed("negation", *_negation_words(a, b))
    if not opposed or _hold_for_others(extras):
        return None
    if a.planned != b.planned and antonyms:
        return None
    if antonyms == len(opposed):
        return opposed[0] if antonyms == 1 else None
    alone = any(difference.reason in ONLY_ALONE for difference in opposed)
    if alone and (len(opposed) > 1 or a.beside or b.beside):
        return None
    return opposed[0]


def _denies(a: Statement, b: Statement, extras: list[Extra]) -> bool:
    """To deny a detail is not to deny the whole: what the negative side says more, the positive one did not say."""
    if a.planned != b.planned:
        return False
    negative = a if a.negations > b.negations else b
    if any(side is negative for side, _ in extras):
        return False
    # "not during the backup" and "after the backup" speak of different times.
    places = {at for _, at in extras}
    elsewhere = any(side.keys[at] in TELLING_PREPOSITIONS and at + 1 not in places for side, at in extras)
    return not elsewhere and len(extras) <= EXTRAS_MAX


def _negation_words(a: Statement, b: Statement) -> tuple[str, str]:
    negative = a if a.negations > b.negations else b
    yes, no = negative.denied, f"not {negative.denied}"
    return (no, yes) if negative is a else (yes, no)


def _hold_for_others(extras: list[Extra]) -> bool:
    """Whether one side says for whom, where or when it holds, and the other does not."""
    if len(extras) > EXTRAS_MAX:
        return True
    return any(at < side.verb_at or side.tokens[at].preposition in SCOPES for side, at in extras)


def _differences(gap: Gap, a: Statement, b: Statement, extras: list[Extra]) -> Iterator[Difference]:
    ones, others = list(gap.a), list(gap.b)
    if len(ones) != len(others):
        ones = [at for at in ones if a.keys[at] not in LIGHT_WORDS]
        others = [at for at in others if b.keys[at] not in LIGHT_WORDS]
    if not ones or not others:
        extras.extend((a, at) for at in ones)
        extras.extend((b, at) for at in others)
    elif len(ones) == len(others) == 1:
        yield _difference(a, ones[0], b, others[0])
    else:
        yield from _longer(ones, others, a, b, extras)


def _longer(
    ones: list[int], others: list[int], a: Statement, b: Statement, extras: list[Extra]
) -> Iterator[Difference]:
    """More than a word in the same place: two names of several parts, or words that face each other in pairs."""
    if _is_name(a, ones) and _is_name(b, others):
        yield _of_names(a, ones, b, others)
        return
    while ones and others:
        pair = _best_pair(ones, others, a, b)
        if pair is None:
            break
        one, other = pair
        difference = _difference(a, one, b, other)
        if isinstance(difference, Opposed) and difference.reason in ONLY_ALONE and len(ones) != len(others):
            yield "unknown"  # "React" is a "JavaScript framework"
            return
        yield difference
        ones, others = [at for at in ones if at != one], [at for at in others if at != other]
    if ones and others:
        yield "unknown"
    extras.extend((a, at) for at in ones)
    extras.extend((b, at) for at in others)


def _best_pair(ones: list[int], others: list[int], a: Statement, b: Statement) -> tuple[int, int] | None:
    for one in ones:
        for other in others:
            if _difference(a, one, b, other) != "unknown":
                return one, other
    return None


def _is_name(side: Statement, places: Iterable[int]) -> bool:
    tokens = [side.tokens[at] for at in places]
    named = all(token.kind in {"name", "label"} or token.key in MEMBERS for token in tokens)
    return len(tokens) <= NAME_WORDS_MAX and named and tokens[0].kind != "label"


def _of_names(a: Statement, ones: list[int], b: Statement, others: list[int]) -> Difference:
    difference = _difference(a, ones[0], b, others[0])
    if not isinstance(difference, Opposed):
        return difference
    return Opposed(difference.reason, _words(a, ones), _words(b, others))


def _words(side: Statement, places: Iterable[int]) -> str:
    return " ".join(side.tokens[at].text for at in places)


def _difference(a: Statement, at_a: int, b: Statement, at_b: int) -> Difference:
    one, other = a.tokens[at_a], b.tokens[at_b]
    if one.kind in {"word", "name"} and other.kind in {"word", "name"}:
        return _of_words(a, at_a, b, at_b)
    if one.kind != other.kind:
        return "unknown"
    place = Place(a, at_a, b, at_b)
    match one.kind:
        case "number":
            return _of_numbers(one, other)
        case "label":
            return _of_labels(one, other, place)
        case "ordinal":
            return place.opposed("number") if place.is_value and not place.is_numbered else "other subject"
        case "moment":
            return _of_moments(one, other, place)
        case _:
            return place.opposed("name") if place.is_governed else "other subject"


def _of_numbers(one: Token, other: Token) -> Difference:
    if one.quantity is None or other.quantity is None or one.quantity.unit != other.quantity.unit:
        return "unknown"
    return "same" if can_both_hold(one.quantity, other.quantity) else Opposed("number", one.text, other.text)


def _of_labels(one: Token, other: Token, place: Place) -> Difference:
    if same_version(one.text, other.text):
        return "same"
    if one.label != other.label or place.in_subject or one.label in NUMBERED or not place.is_governed:
        return "other subject"
    return place.opposed("number")


def _of_moments(one: Token, other: Token, place: Place) -> Difference:
    if one.moment is None or other.moment is None or can_be_one(one.moment, other.moment):
        return "same" if one.moment and other.moment and share_a_field(one.moment, other.moment) else "unknown"
    return place.opposed("moment") if place.is_governed and not place.in_subject else "other subject"


def _of_words(a: Statement, at_a: int, b: Statement, at_b: int) -> Difference:
    one, other = a.tokens[at_a], b.tokens[at_b]
    place = Place(a, at_a, b, at_b)
    if are_antonyms(one.stem, other.stem) or (one.key, other.key) in OPPOSITES:
        return place.opposed("antonym") if place.may_be_antonym else "other subject"
    if _is_above(one, other) or _is_above(other, one):
        return "same"
    if groups := _common_groups(one, other):
        if place.is_value and not place.is_enumerated:
            return place.opposed("kind")
        return place.opposed("kind") if groups & DEGREES and not place.in_subject else "other subject"
    if _begin_alike(one, other):
        return "same"
    if place.in_subject:
        return place.opposed("name") if place.holds_a_role else "other subject"
    if place.names_one and not (one.key in MEMBERS and other.key in MEMBERS):
        return place.opposed("name")
    return "unknown"


def are_antonyms(one: str, other: str) -> bool:
    if (one, other) in OPPOSITES:
        return True
    short, long = (one, other) if len(one) < len(other) else (other, one)
    return long.endswith(short) and len(short) >= _NEGATIVE_PREFIXES.get(long[: -len(short)], len(long))


def _is_above(one: Token, other: Token) -> bool:
    """Whether one is the more general word: "an instrument", "a violin"."""
    groups = MEMBERS.get(other.key, ())
    known = bool(groups) or other.kind == "name"
    return (known and one.key in GENERAL) or one.key in groups or (one.key, other.key) in HOLDS


def _begin_alike(one: Token, other: Token) -> bool:
    """Forms that the stems keep apart ("compatible", "compatibility"), and short names ("Sam", "Samuel")."""
    short = min(len(one.stem), len(other.stem))
    if one.kind == other.kind == "name":
        return short >= _SHORT_NAME_MIN and one.stem[:short] == other.stem[:short]
    return short > _SAME_BEGINNING_MIN and one.stem[: short - 1] == other.stem[: short - 1]


def _common_groups(one: Token, other: Token) -> set[str]:
    first, second = MEMBERS.get(one.key), MEMBERS.get(other.key)
    if not first or not second:
        return set()
    return {group for group in first.keys() & second.keys() if first[group] != second[group]}
