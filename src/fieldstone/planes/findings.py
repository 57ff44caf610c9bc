"""What a conversation decided and found, by its own words: sentences that say so. Rules of form, for English.

They are few, and rather miss a decision than make one up: a question, a condition, a guess, a quotation or a denial is
none. What a model thought (reasoning) and what a tool answered is not read: nobody has said it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple

from fieldstone.core.transcripts import CanonicalMessage, Role, TextPart
from fieldstone.retrieval.sentences import FENCE, Sentence, sentences_of

FindingType = Literal["decision", "finding"]
FINDING_TYPES: Final[tuple[FindingType, ...]] = ("decision", "finding")

CANDIDATES_MAX: Final = 100  # of one run: more are a listing, and would bury what others recorded
SENTENCES_MAX: Final = 2_000  # of one text
SENTENCE_CHARS_MAX: Final = 600  # a longer one is a listing, or no sentence
QUESTION_CHARS_MAX: Final = 200  # of what was asked, as a purpose tells it

LABELLED: Final = 0.9  # somebody wrote "Decision:" before it
SAID: Final = 0.7  # a rule read it out of a sentence

_SPEAKERS: Final[tuple[Role, ...]] = ("user", "assistant")

# Between who decides and that they did: "have now finally decided".
_ALREADY: Final = (
    r"(?:[’']ve| have| has)?"
    r"(?: (?:all|both|now|also|just|already|then|therefore|together|finally|jointly|unanimously))*"
)
_LABEL: Final = re.compile(
    r"(?i)(?:\*\*|__)?(?:(?P<decision>(?:final )?decision|decided)"
    r"|(?P<finding>(?:key |main )?finding|root cause|conclusion))(?:\*\*|__)? ?: ?(?:\*\*|__)? ?(?=\S)"
    r"(?!(?:none|no|not yet|tbd|n/a|open|pending|unclear|unknown|undecided)\b)"
)
_DECIDED: Final = re.compile(
    r"(?i)(?<!that )(?<!what )(?<!which )(?<!how )(?<!why )(?<!where )"
    rf"\b(?:we|i|you|they|the (?:team|group|board|user|customer|client|owner|council|committee)){_ALREADY} "
    r"(?:(?:decided|agreed|opted)(?= (?:to|on|that|against|for|not to)\b)|settled on\b|chose\b)"
    r"|\bit (?:was|is|has been) (?:decided|agreed)(?= (?:to|that|not to)\b)"
    r"|\b(?:the|our|my)(?: final)? decision (?:is|was)(?= (?:to|that|against|not to)\b)"
    r"|\b(?:we(?:[’']ll| will| shall)|let[’']s|let us) (?:go with|stay with|stick with|settle on)\b"
)
# A user who says so decides; a model that says so tells what it does next.
_DECIDED_BY_USER: Final = re.compile(r"(?i)\b(?:we(?:[’']ll| will| shall)|let[’']s|let us) (?:use|switch to|move to)\b")
_FOUND: Final = re.compile(
    rf"(?i)\b(?:we|i|you|they|the (?:team|tests?|logs?|measurements?|benchmarks?|profiler|traces?|results?|data"
    rf"|analysis|investigation|experiments?|reports?|figures)){_ALREADY} "
    r"(?:found(?: out)?|discovered|confirmed|verified|established|measured|observed|proved|proves?|shows?|showed|shown"
    r"|revealed|reveals?) that\b(?! (?:same|one|kind|sort|very)\b)"
    r"|\bit turn(?:s|ed) out that\b|\bturned out to be\b"
    r"|\bthe (?:root |real |actual )?cause (?:of [^,;:?]{1,80} )?(?:is|was)\b|\b(?:is|was|are|were) caused by\b"
)
# Before the words of a rule: told as another's, or as if.
_NOT_MEANT: Final = re.compile(r"(?i)\b(?:suppose|imagine|assum(?:e|ing)|pretend|example|e\.g)\b|[\"“”«»‘]")
# In the same clause before them: denied, or bound to a condition.
_TAKEN_BACK: Final = re.compile(
    r"(?i)\b(?:not|never|no|nobody|none|neither|without|cannot|unless|if|whether|once|until|when|before|should|could"
    r"|would)\b|n[’']t\b"
)
_CLAUSE_END: Final = re.compile(r"[,;:] |[–—]| - ")
_GUESSED: Final = re.compile(
    r"\b(?:may|might|could)\b|(?i:\b(?:maybe|perhaps|possibly|potentially|probably|likely|presumably|apparently|seems?"
    r"|i think|i guess|i suspect|not sure)\b)"
)
_ASKED: Final = re.compile(r"[?？؟][\"'”’)\]*_]*$")
_ITEM: Final = re.compile(r"(?:[-*+•‣▪]|\(?\d{1,3}[.)]|#{1,6})\s+")
_NOT_SAID: Final = re.compile(r"[>|]")  # a quotation, a row of a table
_WORD: Final = re.compile(r"[^\W_]+")
_EMPTY_WORDS: Final = frozenset(
    {"a", "against", "for", "it", "not", "on", "so", "that", "the", "them", "there", "these", "this", "those", "to"}
)


class Candidate(NamedTuple):
    """A sentence that may become a unit. `score` is how plainly it was said."""

    type: FindingType
    content: str
    purpose: str
    message_id: str
    said_by: Role
    score: float


class _Found(NamedTuple):
    type: FindingType
    content: str
    score: float


def candidates_in(
    messages: Sequence[CanonicalMessage], *, asked_before: CanonicalMessage | None = None
) -> list[Candidate]:
    """What these messages decided and found, in their order, each once; at most `CANDIDATES_MAX`.

    `asked_before` is the message that they answer, where it is none of them: a purpose tells what was asked.
    """
    found: dict[tuple[FindingType, str], Candidate] = {}
    for candidate in _candidates(messages, asked_before):
        found.setdefault((candidate.type, " ".join(candidate.content.lower().split())), candidate)
        if len(found) == CANDIDATES_MAX:
            break
    return list(found.values())


def _candidates(messages: Sequence[CanonicalMessage], asked_before: CanonicalMessage | None) -> Iterator[Candidate]:
    question = _question(asked_before) if asked_before else ""
    for message in messages:
        if message.role not in _SPEAKERS:
            continue
        for sentence in _sentences(message):
            found = _read(sentence, message.role)
            if found:
                asked = question if message.role == "assistant" else ""
                yield Candidate(
                    found.type, found.content, _purpose(found.type, asked), message.id, message.role, found.score
                )
        question = _question(message) or question


def _sentences(message: CanonicalMessage) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from (each.text for each in islice(sentences_of(part.text), SENTENCES_MAX) if _is_prose(each))


def _is_prose(sentence: Sentence) -> bool:
    text = sentence.text
    return len(text) <= SENTENCE_CHARS_MAX and not FENCE.match(text) and not _NOT_SAID.match(text)


def _read(sentence: str, role: Role) -> _Found | None:
    said = _ITEM.sub("", sentence, count=1) if _ITEM.match(sentence) else sentence
    if _ASKED.search(said) or _GUESSED.search(said):
        return None
    label = _LABEL.match(said)
    if label:
        kind: FindingType = "decision" if label["decision"] else "finding"
        name = (label["decision"] or label["finding"]).capitalize()
        return _Found(kind, f"{name}: {said[label.end() :]}", LABELLED) if _tells(said, label) else None
    if _states(_DECIDED, said) or (role == "user" and _states(_DECIDED_BY_USER, said)):
        return _Found("decision", said, SAID)
    return _Found("finding", said, SAID) if _states(_FOUND, said) else None


def _states(rule: re.Pattern[str], said: str) -> bool:
    found = rule.search(said)
    if found is None or _NOT_MEANT.search(said, 0, found.start()):
        return False
    ends = [end.end() for end in _CLAUSE_END.finditer(said, 0, found.start())]
    clause = said[ends[-1] if ends else 0 : found.end()]
    return not _TAKEN_BACK.search(clause) and _tells(said, found)


def _tells(said: str, found: re.Match[str]) -> bool:
    """Whether what follows says more than "that"."""
    return not _EMPTY_WORDS.issuperset(map(str.lower, _WORD.findall(said, found.end())))


def _question(message: CanonicalMessage) -> str:
    """What a user asked or ordered: the first sentence of it, if it is no listing."""
    if message.role != "user":
        return ""
    first = next(_sentences(message), "")
    return first if len(first) <= QUESTION_CHARS_MAX else ""


def _purpose(kind: FindingType, question: str) -> str:
    what = "decided" if kind == "decision" else "found"
    return f"Keep what was {what} on: {question}" if question else f"Keep what was {what} in a conversation."
