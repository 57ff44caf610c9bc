"""From a ranking to the page: the best units, each once, within the budget, with a receipt of what was left out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import UNSET, Struct

from fieldstone.core.replies import ContextBudget, LeftOut, LeftOutUnit
from fieldstone.core.requests import Attune, Format
from fieldstone.core.vocabulary import SHOWN_STATUSES, UNRESOLVED_STATUSES
from fieldstone.field.ranking import Ranking, wants_archived
from fieldstone.field.reads import Reads
from fieldstone.ports.views import UnitRow
from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.retrieval.budget import Piece, condense, pack
from fieldstone.retrieval.duplicates import find_duplicates
from fieldstone.retrieval.page import Rows, by_epoch, by_relevance, pool_of

NAMED_LEFT_OUT: Final = 100

Reasons = Mapping[int, str]  # row → why it is not on the page


class Shown(NamedTuple):
    """A unit on the page. `content` None: as it is."""

    at: int
    row: UnitRow
    format: Format
    content: str | None
    duplicate_of: str | None


class Page(Struct, frozen=True):
    shown: Sequence[Shown]
    ranking: Ranking
    budget: ContextBudget


class _Choice(NamedTuple):
    rows: Rows
    pool: Rows  # best first
    duplicates: Mapping[int, int]
    below: Mask  # candidates under the threshold
    next_since_epoch: int | None


async def turn_page(reads: Reads, request: Attune, units: Snapshot, mask: Mask, ranking: Ranking) -> Page:
    choice = await _choose(reads, request, units, mask, ranking)
    rows = await _still_shown(reads, units, choice.rows, request)
    contents, tokens_used = await _fit(reads, request, rows, ranking)
    originals = await _originals(reads, units, [row for row in rows if row in choice.duplicates], choice.duplicates)
    shown = [
        Shown(at, rows[at], contents[at].format, contents[at].text, originals.get(at)) for at in rows if at in contents
    ]
    budget = ContextBudget(
        units_returned=len(shown),
        units_available=int(np.count_nonzero(mask)),
        tokens_used=tokens_used,
        tokens_budget=_max_tokens(reads, request),
        tokenizer=UNSET if tokens_used is None else reads.counter.name,
        left_out=await _receipt(reads, units, mask, choice, rows, contents, ranking),
        next_since_epoch=_go_on_from(request, choice, rows, contents) or UNSET,
    )
    return Page(shown, ranking, budget)


def _go_on_from(request: Attune, choice: _Choice, rows: Mapping[int, UnitRow], contents: Collection[int]) -> int | None:
    """Where a poll goes on: at the first unit that this answer leaves out, for the number of units or of tokens."""
    if request.scope.order != "epoch":
        return None
    cut = [row.epoch for at, row in rows.items() if at not in contents]
    if choice.next_since_epoch is not None:
        cut.append(choice.next_since_epoch)
    return min(cut, default=None)


async def _choose(reads: Reads, request: Attune, units: Snapshot, mask: Mask, ranking: Ranking) -> _Choice:
    scope, scores = request.scope, ranking.scores.total
    below: Mask = np.zeros_like(mask)
    if scope.relevance_threshold is not None and reads.extended:
        below = mask & (scores < scope.relevance_threshold)
    above = mask & ~below
    pool = pool_of(units, above, scores, scope.max_units)
    if scope.order == "epoch":
        rows, next_since_epoch = by_epoch(units, above, scope.max_units)
        return _Choice(rows, pool, {}, below, next_since_epoch)
    duplicates = await _duplicates(reads, request, units, pool) if reads.extended else {}
    return _Choice(by_relevance(units, pool, scores, scope.max_units, duplicates), pool, duplicates, below, None)


async def _duplicates(reads: Reads, request: Attune, units: Snapshot, pool: Rows) -> dict[int, int]:
    """A unit that contradicts another one does not restate it, however alike they are."""
    reach = await reads.reach(archived=wants_archived(request))
    found = await find_duplicates(units, reach, pool, reads.contents)
    if not found:
        return found
    disputes = {(row.unit_a, row.unit_b) for row in await reads.views.conflicts(UNRESOLVED_STATUSES)}
    pairs = {row: (int(units.seq[row]), int(units.seq[original])) for row, original in found.items()}
    return {row: found[row] for row, pair in pairs.items() if disputes.isdisjoint((pair, pair[::-1]))}


async def _still_shown(reads: Reads, units: Snapshot, rows: Rows, request: Attune) -> dict[int, UnitRow]:
    """The page's units as they are now: what was retracted or superseded while we searched is not shown any more."""
    statuses = (*SHOWN_STATUSES, "draft") if request.scope.include_drafts else SHOWN_STATUSES
    found = await reads.views.units(units.seq[rows].tolist())
    pairs = [(at, found.get(seq)) for at, seq in zip(rows.tolist(), units.seq[rows].tolist(), strict=True)]
    return {at: row for at, row in pairs if row is not None and row.status in statuses}


class _Form(NamedTuple):
    format: Format
    text: str | None


async def _fit(
    reads: Reads, request: Attune, rows: Mapping[int, UnitRow], ranking: Ranking
) -> tuple[dict[int, _Form], int | None]:
    """How each unit is shown; those that do not fit are not in it. And the tokens of all that is shown."""
    format = request.format if reads.extended or request.format == "ids_only" else "full"
    budget = _max_tokens(reads, request)
    if format == "ids_only":
        return {at: _Form("ids_only", None) for at in rows}, None if budget is None else 0
    if format == "full" and budget is None:
        return {at: _Form("full", None) for at in rows}, None
    texts = await reads.contents([row.seq for row in rows.values()])
    said = {at: texts.get(row.seq, "") for at, row in rows.items()}
    if budget is None:
        return {at: _Form("summary", condense(text, reads.counter, ranking.words)) for at, text in said.items()}, None
    places = list(said)
    pieces = [Piece(said[at], float(ranking.scores.total[at])) for at in places]
    packed = pack(pieces, budget, reads.counter, wanted=ranking.words, format=format)
    return {places[at]: _Form(form, text) for at, text, form in packed.contents}, packed.tokens_used


def _max_tokens(reads: Reads, request: Attune) -> int | None:
    return request.scope.max_tokens if reads.extended else None


async def _originals(
    reads: Reads, units: Snapshot, rows: Sequence[int], duplicates: Mapping[int, int]
) -> dict[int, str]:
    ids = await _ids(reads, units, [duplicates[row] for row in rows])
    return {row: ids[duplicates[row]] for row in rows if duplicates[row] in ids}


async def _receipt(
    reads: Reads,
    units: Snapshot,
    mask: Mask,
    choice: _Choice,
    rows: Mapping[int, UnitRow],
    contents: Mapping[int, _Form],
    ranking: Ranking,
) -> LeftOut:
    over_budget = [at for at in rows if at not in contents]
    chosen = set(choice.rows.tolist())
    duplicates = [at for at in choice.pool.tolist() if at in choice.duplicates and at not in chosen]
    below = int(np.count_nonzero(choice.below))
    over_max_units = int(np.count_nonzero(mask)) - below - len(duplicates) - len(chosen)
    originals = await _originals(reads, units, duplicates[:NAMED_LEFT_OUT], choice.duplicates)
    reasons: dict[int, str] = {}
    reasons |= dict.fromkeys(over_budget, "over budget")
    reasons |= {at: f"duplicate of {original}" for at, original in originals.items()}
    for at in choice.pool.tolist():
        if len(reasons) >= NAMED_LEFT_OUT:
            break
        if at not in chosen:
            reasons.setdefault(at, "over max_units")
    for at in _best(np.flatnonzero(choice.below), ranking, NAMED_LEFT_OUT - len(reasons)):
        reasons[at] = "below threshold"
    named = dict(list(reasons.items())[:NAMED_LEFT_OUT])
    ids = await _ids(reads, units, list(named))
    return LeftOut(
        over_budget=len(over_budget),
        below_threshold=below,
        duplicate=len(duplicates),
        over_max_units=over_max_units,
        units=tuple(LeftOutUnit(ids[at], reason) for at, reason in named.items() if at in ids),
    )


def _best(rows: Rows, ranking: Ranking, most: int) -> Iterator[int]:
    if most <= 0 or not rows.size:
        return iter(())
    scores = ranking.scores.total[rows]
    if rows.size > most:
        top = np.argpartition(-scores, most)[:most]
        rows, scores = rows[top], scores[top]
    return iter(rows[np.argsort(-scores, kind="stable")].tolist())


async def _ids(reads: Reads, units: Snapshot, rows: Sequence[int]) -> dict[int, str]:
    seqs = units.seq[np.asarray(rows, np.int64)].tolist()
    found = await reads.views.units(seqs)
    return {at: found[seq].id for at, seq in zip(rows, seqs, strict=True) if seq in found}
