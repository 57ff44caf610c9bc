"""Made-up agent memories: the same rows, hints and vectors on every machine, with the word statistics of real text.

Words follow Zipf's law as Mandelbrot bent it, so that a search meets what it meets in life: function words in most
rows, a few hundred words above 1% of them, and a long tail. Standard library only: the peers' environment runs it too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

VECTOR_DIMENSIONS = 256
VOCABULARY_WORDS = 30_000
AGENTS = 64
SESSIONS = 20
CONTENT_MIN_CHARS = 60
CONTENT_MAX_CHARS = 400

ROLES = ("planner", "researcher", "coder", "reviewer", "tester", "operator", "analyst", "writer")
# Agents observe and find more than they decide.
TYPES = (
    *("observation",) * 6,
    *("finding",) * 5,
    *("decision",) * 3,
    *("intention", "assumption", "constraint", "question") * 2,
    *("synthesis", "correction", "human_directive"),
)


@dataclass(frozen=True, slots=True)
class Row:
    type: str
    content: str
    purpose: str
    reasoning: str
    score: float
    agent: str
    role: str
    session: str


def rows(count: int, *, seed: int = 7) -> Iterator[Row]:
    """The first `count` of an endless sequence: a larger count continues a smaller one."""
    rng = random.Random(seed)
    words = _zipf_words(rng)
    chance = rng.random  # int(chance() * n) is more than twice as fast as randrange, and fair enough here
    target_span = CONTENT_MAX_CHARS - CONTENT_MIN_CHARS - 60  # the last sentence overshoots: most rows end uncut
    for _ in range(count):
        agent = int(chance() * AGENTS)
        yield Row(
            type=TYPES[int(chance() * len(TYPES))],
            content=_content(words, rng, target_chars=CONTENT_MIN_CHARS + int(chance() * target_span)),
            purpose=_sentence(PURPOSES, words, rng),
            reasoning=_sentence(REASONS, words, rng),
            score=int(chance() * 101) / 100,
            agent=f"agent-{agent:02d}",
            role=ROLES[agent % len(ROLES)],  # an agent keeps its role
            session=f"session-{int(chance() * SESSIONS):02d}",
        )


def hints(count: int, *, seed: int = 11) -> Iterator[str]:
    """What agents ask for: 5 to 15 words, a quarter of them function words."""
    rng = random.Random(seed)
    words = _zipf_words(rng)
    for _ in range(count):
        drawn = itertools.islice(words, rng.randint(5, 15))
        yield " ".join(rng.choice(FUNCTION_WORDS) if rng.random() < 0.25 else word for word in drawn)


def vector(index: int) -> list[float]:
    """The embedding of row `index`: unit length, no two alike, and no model needed."""
    raw = [byte - 127.5 for byte in hashlib.shake_256(index.to_bytes(8, "little")).digest(VECTOR_DIMENSIONS)]
    length = math.hypot(*raw)
    return [x / length for x in raw]


def write_rows_file(path: Path, count: int, *, seed: int = 7) -> None:
    """Rows as JSON lines with an id: what the peers' scripts read."""
    with path.open("w", encoding="utf-8") as file:
        for index, row in enumerate(rows(count, seed=seed)):
            file.write(json.dumps({"id": f"unit-{index:07d}", **asdict(row)}) + "\n")


# {0} is a number, {1} to {6} are words.
SENTENCES = (
    "The {1} service returned {0} when the {2} was {3} by the {4}.",
    "We use {1} for the {2} because {3} does not support {4} with {5}.",
    "{1} depends on {2}, and {3} must run before {4}.",
    "The customer asked for {1} and {2} in the {3} report.",
    "After {0} ms the {1} gave up and the {2} was left {3}.",
    "Tests of {1} fail on {2} unless {3} is set to {0}.",
    "{1} is owned by the {2} team; ask them about {3}, {4} and {5}.",
    "There is no {1} in {2}, so {3} has to be {4} from the {5} file.",
    "Version {0} of {1} changed how {2} and {3} are {4}.",
    "It was not {1} but {2} that made the {3} so {4}.",
    "The {1} on {2} is now {3}, as {4} and {5} wanted.",
    "Between {1} and {2} there are {0} {3} that nobody has {4} yet.",
    "{1}, {2}, {3}, {4}, {5} and {6} are done.",
    "Move {1} to {2}: the {3} {4} costs {0} a month.",
)
PURPOSES = (
    "find out why {1} {2} was {3}",
    "make {1} work with {2} for the {3} release",
    "decide whether {1} or {2} is used for {3}",
    "answer the question about {1} and {2}",
    "keep {1} {2} below {0} ms",
)
REASONS = (
    "seen in {0} runs of {1} with {2}",
    "the {1} log and the {2} of {3} agree",
    "{1} said so, and {2} was not {3} yet",
    "measured on {1} with {2} and {3}",
    "only a guess from {1}; {2} may be wrong",
)
FUNCTION_WORDS = ("the", "of", "and", "to", "in", "is", "for", "on", "that", "with", "was", "by", "what", "why", "how")

ZIPF_SHIFT = 20  # without it (plain Zipf) the first word would be in nearly every row
DRAW_TABLE_SLOTS = 1 << 20  # the rarest word still gets five of them
DRAW_WORDS = 8_192  # drawn at once: one call for random bytes instead of one for each word

ONSETS = (
    *"bcdfghjklmnprstvwz",
    "br",
    "ch",
    "cl",
    "dr",
    "fl",
    "gr",
    "kr",
    "pl",
    "pr",
    "qu",
    "sh",
    "sk",
    "st",
    "th",
    "tr",
)
VOWELS = (*"aeiou", "ai", "ea", "io", "ou")
CODAS = ("", "", "", *"lmnrstx", "nd", "nt", "rk", "st")


def _content(words: Iterator[str], rng: random.Random, *, target_chars: int) -> str:
    content = _sentence(SENTENCES, words, rng)
    while len(content) < target_chars:
        content += " " + _sentence(SENTENCES, words, rng)
    if len(content) > CONTENT_MAX_CHARS:
        content = content[:CONTENT_MAX_CHARS].rsplit(" ", 1)[0]
    return content


def _sentence(templates: tuple[str, ...], words: Iterator[str], rng: random.Random) -> str:
    template = templates[int(rng.random() * len(templates))]
    return template.format(int(rng.random() * 10_000), *itertools.islice(words, 6))


def _zipf_words(rng: random.Random) -> Iterator[str]:
    table = _draw_table()
    slots = len(table)
    while True:
        numbers = memoryview(rng.randbytes(4 * DRAW_WORDS)).cast("I")
        yield from [table[number % slots] for number in numbers]


@cache
def _draw_table() -> list[str]:
    """Each word as many times as it is frequent: drawing is one look-up instead of a search in the sums."""
    weights = [1 / (rank + ZIPF_SHIFT) for rank in range(1, VOCABULARY_WORDS + 1)]
    slots_per_weight = DRAW_TABLE_SLOTS / sum(weights)
    table: list[str] = []
    for word, weight in zip(_vocabulary(), weights, strict=True):
        table += [word] * round(weight * slots_per_weight)
    return table


def _vocabulary() -> list[str]:
    """Pronounceable words that are not English, the frequent ones short."""
    rng = random.Random("vocabulary")
    english = set(" ".join((*SENTENCES, *PURPOSES, *REASONS, *FUNCTION_WORDS)).lower().split())
    words: dict[str, None] = {}  # a set that keeps the order
    while len(words) < VOCABULARY_WORDS:
        syllables = rng.choice((1, 2) if len(words) < 300 else (2, 2, 3) if len(words) < 5_000 else (2, 3, 3, 4))
        word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)) + rng.choice(CODAS)
        if len(word) > 2 and word not in english:
            words[word] = None
    return list(words)
