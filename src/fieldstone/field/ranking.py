"""What every unit is worth to one request: the indexes are asked, and what they know becomes factors."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fieldstone.core.agents import AgentFacts
from fieldstone.core.requests import Attune
from fieldstone.field.reads import Reads
from fieldstone.ports.embedder import EmbeddingFailed
from fieldstone.projections.columns import STATUS_CODES, Mask, Snapshot
from fieldstone.projections.meaning import ELSEWHERE_PRIOR, SESSION_PRIOR, Lie
from fieldstone.projections.vector_index import Rows
from fieldstone.retrieval.candidates import Filter, candidates
from fieldstone.retrieval.lexical import LexicalMatch
from fieldstone.retrieval.proximity import MOST_SEEDS, proximity
from fieldstone.retrieval.score import (
    Kept,
    Scores,
    Values,
    authorship,
    belongs,
    confidence,
    recency,
    role_alignment,
    type_importance,
    with_recency_weight,
)
from fieldstone.retrieval.semantic import nearness
from fieldstone.retrieval.sessions import Sessions
from fieldstone.retrieval.surroundings import surroundings
from fieldstone.retrieval.words import Query, split

POSTINGS_SHARE: Final = 0.01  # of all units: terms more frequent than this are pruned, rarest kept first
SEEDS_AMONG: Final = 100_000  # the newest units: what an agent recorded before says little of what it does now
LEAST_POSTINGS: Final = 10_000  # a small field is searched whole


class Asked(Struct, frozen=True):
    """A request, as ranking needs it."""

    hint: Query
    hint_text: str | None
    named: Sequence[int]  # agents that the hint names
    interests: Query
    interests_text: str


class Ranking(Struct, frozen=True):
    scores: Scores
    hint: LexicalMatch
    interests: LexicalMatch
    words: tuple[str, ...]  # of the hint
    model_silent: bool = False  # the embedding model did not answer: words decided alone


async def rank(
    reads: Reads, caller: AgentFacts, request: Attune, units: Snapshot, mask: Mask, hidden: Collection[int]
) -> Ranking:
    """`mask`: the candidates. What stands beside a candidate may count although it is none itself: the caller's own
    unit may be the question, and a filter does not change what a unit is worth."""
    visible = candidates(units, Filter(caller.number, hidden, include_own=True, include_archived=True), reads.relations)
    asked = _asked(reads, caller, request, units, visible)
    # Meaning is looked for in a thread; whatever needs no vector is done meanwhile.
    nearing = asyncio.ensure_future(_near(reads, request, units, asked, (visible | mask, mask)))
    try:
        by_hint, by_interests = await _search(reads, caller, request, units, asked, hidden)
        lexical = by_hint.shares(units)
        kept = await _kept_factors(reads, units, request.scope.role)
        factors = {**kept.factors, **await _standing_factors(reads, caller, request, units, visible)}
    except BaseException:  # why: whatever it was, nobody waits for the thread any more
        nearing.cancel()
        raise
    near_hint, near_interests, lie, silent = await nearing
    if asked.interests.words:
        touching = by_interests.shares(units)
        factors["interests"] = touching if near_interests is None else np.maximum(touching, near_interests)
    if asked.hint_text:
        factors |= _hint_factors(reads.weights, units, visible, by_hint, lexical, near_hint, lie)
        if asked.named:
            factors["author"] = authorship(units, asked.named)
    scores = Scores(factors, reads.weights, kept)
    if request.scope.recency_weight is not None and reads.extended:
        scores = Scores(factors, with_recency_weight(reads.weights, factors, request.scope.recency_weight))
    return Ranking(scores, by_hint, by_interests, tuple(asked.hint.words.values()), silent)


def _asked(reads: Reads, caller: AgentFacts, request: Attune, units: Snapshot, visible: Mask) -> Asked:
    analyze = reads.text_index.analyze
    hint_text = request.context_hint
    hint = Query([hint_text] if hint_text else (), analyze)
    named = reads.agents_named(split(hint_text)) if hint_text else {}
    # The id of somebody of whom the caller sees nothing is a word like any other.
    named = {agent: words for agent, words in named.items() if visible[units.agent == units.agent_code(agent)].any()}
    if named:
        hint.drop({word for words in named.values() for word in words})
    wanted = request.scope.interests or () if reads.level >= 1 else ()
    interests = tuple(dict.fromkeys((*caller.interests, *wanted)))
    return Asked(hint, hint_text, list(named), Query(interests, analyze), ", ".join(interests))


async def _search(
    reads: Reads, caller: AgentFacts, request: Attune, units: Snapshot, asked: Asked, hidden: Collection[int]
) -> tuple[LexicalMatch, LexicalMatch]:
    tail = reads.tail()  # before the search: what leaves the tail meanwhile is in the index by then
    drafts = reads.drafts(_own_drafts(units, caller)) if request.scope.include_drafts else {}
    most = max(LEAST_POSTINGS, int(units.size * POSTINGS_SHARE))
    queries = (asked.hint, asked.interests)
    words = [list(query.words.values()) for query in queries]
    found = await reads.search(words, most_postings=most, archived=wants_archived(request))
    unseen = _committed_in(units, hidden)
    by_hint, by_interests = (LexicalMatch(*each, tail, drafts, unseen) for each in zip(queries, found, strict=True))
    return by_hint, by_interests


def wants_archived(request: Attune) -> bool:
    return request.scope.include_archived or "past" in (request.scope.temporal_layers or ())


def _committed_in(units: Snapshot, sessions: Collection[int]) -> Rows:
    """The seqs of the committed units in these sessions."""
    if not sessions:
        return np.empty(0, np.int64)
    is_there = np.isin(units.session, np.fromiter(sessions, np.int64)) & (units.status != STATUS_CODES["draft"])
    seqs: Rows = units.seq[is_there]
    return seqs


async def _near(
    reads: Reads, request: Attune, units: Snapshot, asked: Asked, masks: Sequence[Mask]
) -> tuple[Values | None, Values | None, Lie | None, bool]:
    """How near every unit is to hint and interests, in a thread: it looks at all vectors."""
    meaning = reads.meaning
    if meaning is None or not (asked.hint_text or asked.interests_text):
        return None, None, None, reads.model_is_silent
    try:
        hint = await reads.embed(asked.hint_text) if asked.hint_text else None
        interests = await reads.embed(asked.interests_text) if asked.interests_text else None
    except EmbeddingFailed:
        return None, None, None, True
    reach = await reads.reach(archived=wants_archived(request)) or meaning

    def look() -> tuple[Values | None, Values | None, Lie | None, bool]:
        near = [None if query is None else nearness(units, reach, query, masks) for query in (hint, interests)]
        return near[0], near[1], reach.lie(units), False

    return await asyncio.to_thread(look)


async def _kept_factors(reads: Reads, units: Snapshot, role: str) -> Kept:
    """Those that are the same for everyone of this role, until the next write: they are kept until then."""
    key = (units.size, units.epoch, role)
    if reads.kept_factors is None or reads.kept_factors[0] != key:
        roles = [await reads.names.role(registration) for registration in units.registrations]
        factors = {
            "recency": recency(units),
            "type": type_importance(units),
            "role": role_alignment(units, role, roles, reads.text_index.analyze),
        }
        if reads.extended:
            factors["confidence"] = confidence(units)
        reads.kept_factors = (key, Kept.of(factors, reads.weights))
    return reads.kept_factors[1]


async def _standing_factors(
    reads: Reads, caller: AgentFacts, request: Attune, units: Snapshot, visible: Mask
) -> dict[str, Values]:
    """Those that need no search."""
    scope = request.scope
    factors: dict[str, Values] = {}
    if not reads.extended:
        return factors
    if scope.active_task_id is not None:
        factors["task"] = belongs(units, await reads.names.number("task", scope.active_task_id))
    factors["proximity"] = proximity(units, reads.relations, _seeds(reads, caller, units), visible)
    return factors


def _hint_factors(
    weights: Mapping[str, float],
    units: Snapshot,
    visible: Mask,
    match: LexicalMatch,
    lexical: Values,
    semantic: Values | None,
    lie: Lie | None,
) -> dict[str, Values]:
    factors = {"lexical": lexical}
    if semantic is not None:
        factors["semantic"] = semantic
    rows, direct = _direct(weights, lexical, semantic, visible)
    coherence = (lie.coherence, lie.coherence_elsewhere) if lie else (SESSION_PRIOR, ELSEWHERE_PRIOR)
    sessions = Sessions(units, rows)
    about = sessions.by_words(match.places(units, visible))
    if semantic is not None:
        about = _mixed(weights, about, sessions.by_meaning(semantic[rows]))
    factors["surroundings"] = surroundings(units, rows, direct, about, coherence=coherence[0], elsewhere=coherence[1])
    return factors


def _direct(
    weights: Mapping[str, float], lexical: Values, semantic: Values | None, visible: Mask
) -> tuple[Rows, Values]:
    """Which units match by themselves, and how much. What the caller may not see must not shine through its
    neighbours."""
    matching = lexical > 0 if semantic is None else (lexical + semantic) > 0
    rows = np.flatnonzero(matching & visible)
    return rows, lexical[rows] if semantic is None else _mixed(weights, lexical[rows], semantic[rows])


def _mixed(weights: Mapping[str, float], lexical: Values, semantic: Values) -> Values:
    """Words and meaning, as they weigh in the score."""
    share = np.float32(weights["lexical"] / (weights["lexical"] + weights["semantic"] or 1))
    return lexical * share + semantic * (1 - share)


def _seeds(reads: Reads, caller: AgentFacts, units: Snapshot) -> list[int]:
    """What the caller recorded or was shown lately."""
    newest = max(0, units.size - SEEDS_AMONG)
    own = newest + np.flatnonzero(units.agent[newest:] == units.agent_code(caller.number))[-MOST_SEEDS:]
    return [*reads.shown_to(caller.number), *units.seq[own].tolist()]


def _own_drafts(units: Snapshot, caller: AgentFacts) -> list[int]:
    is_own = (units.status == STATUS_CODES["draft"]) & (units.agent == units.agent_code(caller.number))
    seqs: list[int] = units.seq[is_own].tolist()
    return seqs
