"""A summarize is tested before it takes effect: would the field's recent requests still find what they found?

They are asked once, as things are. What was among the first ten and matched by words or meaning has to stay reachable:
by itself, or by a synthesis that quotes the sentence it was found by and would stand on the same page.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from fieldstone.core.agents import AgentFacts
from fieldstone.core.events import ContextAttuned, HintText, decode_entry, decode_texts
from fieldstone.core.requests import Attune, Scope
from fieldstone.field.distilling import Distilled
from fieldstone.field.paging import turn_page
from fieldstone.field.ranking import Ranking, rank
from fieldstone.field.reads import Reads
from fieldstone.field.state import FieldState
from fieldstone.ports.world import Clock
from fieldstone.projections.vector_index import Floats
from fieldstone.retrieval.candidates import Filter, candidates
from fieldstone.retrieval.score import TYPE_IMPORTANCE
from fieldstone.retrieval.semantic import Chance, by_chance
from fieldstone.retrieval.sentences import sentences_of

MOST_REQUESTS: Final = 50
MOST_MS: Final = 2_000
TOP: Final = 10
MOST_LOST_SHARE: Final = 0.05  # of the relevance mass: a group that costs more stays as it is


class Top(NamedTuple):
    """A result that is to stay reachable, and the sentence that it was found by."""

    unit: int
    score: float
    sentence: str


class Rehearsed(NamedTuple):
    """A request as it was answered. `floor`: the least score on its page; below it nothing is shown."""

    ranking: Ranking
    vector: Floats | None
    chance: Chance | None
    floor: float
    tops: Sequence[Top]


class Rehearsal:
    """For one compaction. `mass` is what all requests together have to lose."""

    def __init__(self, reads: Reads, requests: Sequence[Rehearsed]) -> None:
        self._reads = reads
        self._requests = requests
        self.mass = sum(top.score for request in requests for top in request.tops)
        self.lost = 0.0

    @property
    def requests(self) -> int:
        return len(self._requests)

    @property
    def kept_share(self) -> float | None:
        return round(1 - self.lost / self.mass, 4) if self.mass else None

    async def costs(self, distilled: Distilled) -> float:
        """The share of the relevance mass that this group's synthesis would make unreachable."""
        units = {row.seq for row in distilled.rows}
        text = distilled.distillate.text if distilled.distillate else ""
        concerned = [(request, top) for request in self._requests for top in request.tops if top.unit in units]
        if not concerned:
            return 0.0
        terms = frozenset(self._reads.text_index.analyze(text))
        vector = await self._reads.embed(text) if text else None
        scores = [row.score for row in distilled.rows if row.score is not None]
        worth = {id(request): _worth(request, terms, vector, min(scores, default=0.0)) for request, _ in concerned}
        lost = sum(
            top.score for request, top in concerned if top.sentence not in text or worth[id(request)] < request.floor
        )
        return lost / self.mass

    def accept(self, cost: float) -> None:
        self.lost += cost * self.mass


async def rehearse(state: FieldState, reads: Reads, clock: Clock) -> Rehearsal:
    """The last requests whose hints are kept, as many as there is time for."""
    began = clock.monotonic_ms()
    requests: list[Rehearsed] = []
    for seq in list(state.hints)[: -MOST_REQUESTS - 1 : -1]:
        if clock.monotonic_ms() - began > MOST_MS:
            break
        if found := await _asked_again(state, reads, seq):
            requests.append(found)
    return Rehearsal(reads, requests)


async def _asked_again(state: FieldState, reads: Reads, seq: int) -> Rehearsed | None:
    event = decode_entry((await state.store.log.read(after=seq - 1, limit=1))[0].body).event
    stored = (await state.store.texts.get([seq])).get(seq)
    if not isinstance(event, ContextAttuned) or stored is None or event.order != "relevance":
        return None
    caller = next((agent for agent in state.agents.values() if agent.number == event.agent), None)
    if caller is None:
        return None
    hint = decode_texts(stored.body, HintText).hint
    scope = Scope(role=caller.role or "agent", max_units=event.max_units, since_epoch=event.since_epoch)
    return await _rehearsed(reads, caller, Attune(scope=scope, context_hint=hint, format="ids_only"), hint)


async def _rehearsed(reads: Reads, caller: AgentFacts, request: Attune, hint: str) -> Rehearsed:
    units = reads.snapshot()
    hidden = reads.sight_of(caller).hidden
    wanted = Filter(caller.number, hidden, since_epoch=request.scope.since_epoch or 0)
    mask = candidates(units, wanted, reads.relations)
    ranking = await rank(reads, caller, request, units, mask, hidden)
    page = await turn_page(reads, request, units, mask, ranking)
    scores, factors = ranking.scores.total, ranking.scores.factors
    matched = [
        shown
        for shown in page.shown[:TOP]
        if any(name in factors and factors[name][shown.at] > 0 for name in ("lexical", "semantic"))
    ]
    texts = await reads.contents([shown.row.seq for shown in matched])
    tops = [
        Top(shown.row.seq, float(scores[shown.at]), _sentence(reads, ranking, texts.get(shown.row.seq, "")))
        for shown in matched
    ]
    full = len(page.shown) >= request.scope.max_units
    floor = min((float(scores[shown.at]) for shown in page.shown), default=0.0) if full else -1.0
    vector = None if reads.meaning is None else await reads.embed(hint)
    chance = None
    if vector is not None and reads.meaning is not None:
        chance = by_chance(units, reads.meaning, vector)
    return Rehearsed(ranking, vector, chance, floor, tops)


def _sentence(reads: Reads, ranking: Ranking, text: str) -> str:
    """The sentence with most of what was asked for; of one that matched by meaning alone the longest."""
    said = [sentence.text.strip() for sentence in sentences_of(text)]
    shares = [ranking.hint.share_in(reads.text_index.analyze(sentence)) for sentence in said]
    best = max(zip(shares, map(len, said), said, strict=True), default=(0.0, 0, ""))
    return best[2]


def _worth(request: Rehearsed, terms: Collection[str], vector: Floats | None, confidence: float) -> float:
    """What a synthesis with these words would be worth to the request: new, by the Field, and about nobody's task."""
    weights: Mapping[str, float] = request.ranking.scores.weights
    factors = {
        "lexical": request.ranking.hint.share_in(terms),
        "semantic": _nearness(request, vector),
        "recency": 1.0,
        "type": TYPE_IMPORTANCE["synthesis"],
        "confidence": confidence,
    }
    whole = sum(weights.values()) or 1.0
    return sum(weights.get(name, 0.0) * value for name, value in factors.items()) / whole


def _nearness(request: Rehearsed, vector: Floats | None) -> float:
    if vector is None or request.vector is None or request.chance is None:
        return 0.0
    return float(request.chance.worth(np.dot(vector, request.vector)))
