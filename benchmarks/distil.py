"""What a compacted talk still tells: the share of questions all of whose evidence survives, beside simpler ways."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.figures import Figure, Report, median_rate
from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.cli.eval import ADVERSARIAL
from fieldstone.cli.locomo import Conversation, read_conversations
from fieldstone.cli.output import print_table
from fieldstone.compaction.extractive import distil, filled
from fieldstone.compaction.pieces import whole
from fieldstone.compaction.shares import share_out
from fieldstone.compaction.worth import Offer
from fieldstone.compaction.writing import Span, line
from fieldstone.ports.summarizer import Distillate, Original, Quote
from fieldstone.retrieval.words import STOP_WORDS, split

TALK_FILE = "locomo_dev.json"
# How many times shorter, by tokens. Names and quotation marks count in the summary, and in the talk only what was said.
KEPT_SHARES_MIN = {5: 0.33, 10: 0.18, 20: 0.10}
UNITS_PER_S_MIN = 2_000.0
SURVIVING_SHARE = 0.8  # of a turn's content words, in their order, in one quote under its speaker's name

ROUNDS = 5
SEED = 1
DAMPING = 0.85
STEPS = 50

COUNTER = Cl100kCounter()


class Talk(NamedTuple):
    turns: list[Original]
    sessions: list[list[Original]]
    asked: list[frozenset[str]]  # the turns that hold the answer
    tokens: int


class Kept(NamedTuple):
    """Ids of turns."""

    surviving: frozenset[str]
    whole: frozenset[str]


Way = Callable[[Talk, int], list[Distillate]]
Worth = Callable[[Sequence[Original]], Sequence[float]]


def measure_distil(report: Report, data: Path) -> None:
    file = data / TALK_FILE
    if not file.exists():
        print(f"distil: {file.name} is not here, it is skipped", flush=True)
        return
    talks = [_talk(conversation) for conversation in read_conversations(file)]
    rows = {name: _shares(talks, way) for name, way in WAYS.items()}
    _print(rows)
    ours, sessions, simple = rows["extractive"], rows["extractive, by session"], rows["term weight per token"]
    for ratio, bar in KEPT_SHARES_MIN.items():
        report.add(Figure(f"LoCoMo evidence kept at 1/{ratio}", ours[ratio][0], "", bar=bar))
        report.add(Figure(f"LoCoMo evidence kept at 1/{ratio}, a group a session", sessions[ratio][0], "", bar=bar))
        name = "term weight per token"
        report.add(Figure(f"LoCoMo evidence kept at 1/{ratio}", ours[ratio][0], "", name, simple[ratio][0]))
    report.add(Figure("extractive summaries", _units_per_s(talks), "units/s", bar=UNITS_PER_S_MIN))


def _talk(conversation: Conversation) -> Talk:
    sessions: list[list[Original]] = []
    epoch = 0
    for session in conversation.sessions:
        sessions.append([])
        for turn in session.turns:
            epoch += 1
            sessions[-1].append(Original(turn.dia_id, epoch, "observation", turn.speaker, turn.text))
    turns = [turn for session in sessions for turn in session]
    asked = [question.evidence for question in conversation.questions if question.category != ADVERSARIAL]
    return Talk(turns, sessions, asked, sum(COUNTER.count(turn.text) for turn in turns))


def _print(rows: Mapping[str, Mapping[int, tuple[float, float]]]) -> None:
    head = ["evidence kept", *(f"1/{ratio}" for ratio in KEPT_SHARES_MIN), *(f"whole 1/{r}" for r in KEPT_SHARES_MIN)]
    cells = [
        [name, *(f"{shares[ratio][at]:.3f}" for at in (0, 1) for ratio in KEPT_SHARES_MIN)]
        for name, shares in rows.items()
    ]
    print_table([head, *cells])


def _units_per_s(talks: Sequence[Talk]) -> float:
    """Of the summariser alone, tokens counted: what comes before and after it is measured with COMPACT."""
    measured = []
    for _ in range(ROUNDS):
        for talk in talks:
            began = time.perf_counter()
            distil(talk.turns, talk.tokens // 10, COUNTER)
            measured.append((len(talk.turns), time.perf_counter() - began))
    return median_rate(measured)


# --- what survives ----------------------------------------------------------------------------------------------------


def _shares(talks: Sequence[Talk], way: Way) -> dict[int, tuple[float, float]]:
    """For each ratio the share of questions with all of their evidence, surviving and whole."""
    found = {}
    for ratio in KEPT_SHARES_MIN:
        surviving = entire = 0
        for talk in talks:
            kept = _kept(talk, way(talk, talk.tokens // ratio), talk.tokens // ratio)
            surviving += sum(evidence <= kept.surviving for evidence in talk.asked)
            entire += sum(evidence <= kept.whole for evidence in talk.asked)
        asked = sum(len(talk.asked) for talk in talks)
        found[ratio] = surviving / asked, entire / asked
    return found


def _kept(talk: Talk, distillates: Sequence[Distillate], most_tokens: int) -> Kept:
    """Read from the texts: what they only claim to quote does not count."""
    if sum(COUNTER.count(each.text) for each in distillates) > most_tokens:
        raise AssertionError("a summary is longer than it may be")
    turns = {turn.unit_id: turn for turn in talk.turns}
    quoted = [
        (turns[quote.unit_id], each.text[quote.at : quote.at + quote.end - quote.start])
        for each in distillates
        for quote in each.quotes
        if _names_speaker(each.text, quote, turns[quote.unit_id], talk)
    ]
    surviving = {turn.unit_id for turn, said in quoted if _survives(turn.text, said)}
    entire = {turn.unit_id for turn, said in quoted if turn.text.strip() == said}
    return Kept(frozenset(surviving), frozenset(entire))


def _names_speaker(text: str, quote: Quote, turn: Original, talk: Talk) -> bool:
    """Whether the last name before the quote, at the beginning of a line, is that of the turn's speaker."""
    last = {speaker: f"\n{text}".rfind(f"\n{speaker}: ", 0, quote.at + 1) for speaker in {t.author for t in talk.turns}}
    return last[turn.author] >= 0 and last[turn.author] == max(last.values())


def _survives(turn: str, quoted: str) -> bool:
    wanted = _content(turn)
    return _in_order(wanted, _content(quoted)) >= SURVIVING_SHARE * len(wanted)


def _content(text: str) -> list[str]:
    return [word for word in split(text) if word not in STOP_WORDS]


def _in_order(wanted: Sequence[str], said: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(said) + 1)
    for word in wanted:
        before = 0
        for at, other in enumerate(said, start=1):
            before, row[at] = row[at], before + 1 if word == other else max(row[at], row[at - 1])
    return row[-1]


# --- ways to choose ---------------------------------------------------------------------------------------------------


def _extractive(talk: Talk, most_tokens: int) -> list[Distillate]:
    return [distil(talk.turns, most_tokens, COUNTER)]


def _by_session(talk: Talk, most_tokens: int) -> list[Distillate]:
    shares = share_out(talk.sessions, most_tokens, COUNTER)
    return [distil(session, share, COUNTER) for session, share in zip(talk.sessions, shares, strict=True)]


def _whole_turns(worth: Worth) -> Way:
    """The turns that are worth most, as far as they fit, written as ours are."""

    def way(talk: Talk, most_tokens: int) -> list[Distillate]:
        worths = worth(talk.turns)
        spans = [Span(at, *whole(turn.text)) for at, turn in enumerate(talk.turns)]
        offers = [
            Offer(span, each, COUNTER.count(line(talk.turns, span))) for span, each in zip(spans, worths, strict=True)
        ]
        ranked = sorted(offers, key=lambda offer: (-offer.worth, offer.span))
        return [Distillate(*filled(talk.turns, [], ranked, most_tokens, COUNTER), "whole turns")]

    return way


def _term_weight(turns: Sequence[Original]) -> list[float]:
    held = [_content(turn.text) for turn in turns]
    frequency = Counter(word for words in held for word in set(words))
    return [sum(math.log(len(turns) / frequency[word]) for word in words) for words in held]


def _term_weight_per_token(turns: Sequence[Original]) -> list[float]:
    return [weight / COUNTER.count(turn.text) for weight, turn in zip(_term_weight(turns), turns, strict=True)]


def _text_rank(turns: Sequence[Original]) -> list[float]:
    """Turns recommend each other by the words that they share."""
    sets = [set(_content(turn.text)) for turn in turns]
    size = np.array([math.log(len(words) + 1) for words in sets])
    shared = np.array([[len(one & other) for other in sets] for one in sets], np.float64)
    likeness = shared / np.maximum(size[:, None] + size[None, :], 1.0)
    np.fill_diagonal(likeness, 0.0)
    likeness /= np.maximum(likeness.sum(axis=0), 1e-12)
    rank = np.full(len(turns), 1 / len(turns))
    for _ in range(STEPS):
        rank = (1 - DAMPING) / len(turns) + DAMPING * likeness @ rank
    return [float(each) for each in rank]


def _by_chance(turns: Sequence[Original]) -> list[float]:
    chance = random.Random(SEED)
    return [chance.random() for _ in turns]


def _oldest_first(turns: Sequence[Original]) -> list[float]:
    return [-float(at) for at in range(len(turns))]


WAYS: dict[str, Way] = {
    "extractive": _extractive,
    "extractive, by session": _by_session,
    "term weight per token": _whole_turns(_term_weight_per_token),
    "term weight": _whole_turns(_term_weight),
    "oldest first": _whole_turns(_oldest_first),
    "TextRank": _whole_turns(_text_rank),
    "random": _whole_turns(_by_chance),
}
