"""Do two units contradict each other? Decided by rules, the same on every machine; no model is asked."""

from itertools import product
from typing import Final, NamedTuple

from fieldstone.core.vocabulary import DetectedBy
from fieldstone.detection.opposition import Opposition, oppose
from fieldstone.detection.places import Reason
from fieldstone.detection.statements import Prepared, Statement, prepare

# An older unit this sure is established: a newer one has to be at least as sure to replace it in silence.
ESTABLISHED_SCORE_MIN = 0.7
# Below it the embeddings say that the texts have different subjects, whatever words they share.
SIMILARITY_MIN = 0.3
# Of two long texts: a judgement stays within a millisecond or two.
PAIRS_MAX = 32
# Quoted words are cut to this: a description is a sentence, and says what opposes what.
QUOTED_CHARS_MAX = 40

# A question claims nothing, and a contradiction speaks about two claims.
CLAIMS_NOTHING: Final = frozenset({"question", "contradiction"})
ESTABLISHED_TYPES: Final = frozenset({"finding", "observation", "decision", "constraint", "correction", "synthesis"})


_SAID: Final[dict[Reason, str]] = {
    "negation": "One denies what the other says",
    "antonym": "Opposite words about the same",
    "number": "Different numbers for the same",
    "moment": "Different times for the same",
    "kind": "Words that exclude each other, about the same",
    "name": "Different names in the same place",
}


class Claim(NamedTuple):
    """What a unit says, and how much weight it has. `prepared`: the text, read before."""

    text: str
    type: str
    epoch: int
    score: float | None
    agent: int = 0
    session: int | None = None
    prepared: Prepared | None = None


class Verdict(NamedTuple):
    detected_by: DetectedBy
    strength: float
    description: str


def judge(a: Claim, b: Claim, similarity: float | None = None) -> Verdict | None:
    """Whether `a`, the newer, and `b` cannot both be true. The order changes the words of the answer, not whether."""
    if a.type in CLAIMS_NOTHING or b.type in CLAIMS_NOTHING:
        return None
    if similarity is not None and similarity < SIMILARITY_MIN:
        return None
    found = _strongest(a, b)
    if found is None:
        return None
    return Verdict(_detected_by(a, b), found.strength, _description(found))


def _strongest(a: Claim, b: Claim) -> Opposition | None:
    strongest: Opposition | None = None
    for one, other in _pairs(a, b):
        found = oppose(one, other)
        if found and (strongest is None or found.strength > strongest.strength):
            strongest = found
    return strongest


def _pairs(a: Claim, b: Claim) -> list[tuple[Statement, Statement]]:
    """The statements that may be about the same; of long texts only those that share most."""
    ones = (a.prepared or prepare(a.text)).statements
    others = (b.prepared or prepare(b.text)).statements
    pairs = [
        (one, other)
        for one, other in product(ones, others)
        if not one.bag.isdisjoint(other.bag) and _speak_of_the_same(a, one, b, other)
    ]
    return pairs if len(pairs) <= PAIRS_MAX else sorted(pairs, key=_closeness)[:PAIRS_MAX]


def _closeness(pair: tuple[Statement, Statement]) -> tuple[object, ...]:
    one, other = pair
    return -len(one.bag & other.bag), *sorted((one.keys, other.keys))


def _speak_of_the_same(a: Claim, one: Statement, b: Claim, other: Statement) -> bool:
    """ "I" is another agent's "you"; "today" is another session's "last week"."""
    if a.agent != b.agent and (one.indexical or other.indexical):
        return False
    same_session = a.session == b.session and a.session is not None
    return same_session or not (one.deictic or other.deictic)


def _detected_by(a: Claim, b: Claim) -> DetectedBy:
    if (a.type == "assumption") != (b.type == "assumption"):
        return "logical"
    newer, older = (a, b) if a.epoch >= b.epoch else (b, a)
    if {a.type, b.type} <= ESTABLISHED_TYPES and older.score is not None and older.score >= ESTABLISHED_SCORE_MIN:
        return "temporal" if newer.score is not None and newer.score < older.score else "semantic"
    return "semantic"


def _description(found: Opposition) -> str:
    return f"{_SAID[found.reason]}: “{_quoted(found.a)}” against “{_quoted(found.b)}”."


def _quoted(words: str) -> str:
    return words if len(words) <= QUOTED_CHARS_MAX else words[: QUOTED_CHARS_MAX - 1] + "…"
