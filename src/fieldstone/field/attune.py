"""ATTUNE: context finds the agent. It says who it is and what it is about to do; the Field ranks what matters to it."""

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import UNSET, Struct, structs

from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import LEAST_AUTHORITY, check_authority
from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import EpochNotReached
from fieldstone.core.events import ContextAttuned
from fieldstone.core.limits import LOGGED_RESULTS, MIN_EPOCH_WAIT_MS
from fieldstone.core.replies import Attunement, AttunementOfIds, AttuneReply, ContextBudget, Warning
from fieldstone.core.requests import Attune, Message, Scope
from fieldstone.core.units import MemoryUnit, ScopedMemoryUnit, UnitRef
from fieldstone.core.vocabulary import SHOWN_STATUSES, UNRESOLVED_STATUSES
from fieldstone.field.reads import Reads
from fieldstone.ports.views import UnitRow
from fieldstone.projections.columns import STATUS_CODES, Snapshot
from fieldstone.retrieval.candidates import Filter, Mask, candidates
from fieldstone.retrieval.lexical import LexicalMatch
from fieldstone.retrieval.page import Rows, by_epoch, by_relevance
from fieldstone.retrieval.reason import explain
from fieldstone.retrieval.score import Scores, Values, recency, role_alignment, type_importance
from fieldstone.retrieval.words import Query

POSTINGS_SHARE: Final = 0.01  # of all units: terms more frequent than this are pruned, rarest kept first
LEAST_POSTINGS: Final = 10_000  # a small field is searched whole

# Parts of the extended scope that are not built yet: they are checked, and then have no effect.
_IGNORED_FIELDS: Final = ("max_tokens", "active_task_id", "temporal_layers", "relevance_threshold", "recency_weight")


class Page(Struct, frozen=True):
    """The rows that were chosen, and what they were chosen by."""

    rows: Rows
    scores: Scores
    match: LexicalMatch
    interests: LexicalMatch
    available: int
    next_since_epoch: int | None


async def attune(reads: Reads, message: Message, request: Attune) -> Attunement | AttunementOfIds:
    caller = reads.active_agent(message.agent_id)
    check_authority(caller.authority, LEAST_AUTHORITY["ATTUNE"], "ATTUNE")
    await reads.learn_epoch(message)
    if request.min_epoch is not None and not await reads.epoch_reached(request.min_epoch, MIN_EPOCH_WAIT_MS):
        raise EpochNotReached(f"The Field is at epoch {reads.epoch}, not yet at {request.min_epoch}.")
    units = reads.snapshot()
    mask = candidates(units, await _filter(reads, caller, request))
    page = await _page(reads, caller, request, units, mask)
    conflicts = await _conflicts(reads, caller, units, mask)
    reply = await _answer(reads, request, units, page, conflicts)
    await asyncio.sleep(0)  # whoever polls in a loop lets the others have their turn
    if page.rows.size:  # an empty poll leaves nothing
        reads.leave(message, _event(caller, request, units, page), hint=request.context_hint, epoch=units.epoch)
    return reply


async def _filter(reads: Reads, caller: AgentFacts, request: Attune) -> Filter:
    scope = request.scope
    sessions = None
    if scope.sessions is not None:
        numbers = [await reads.names.number("session", name) for name in scope.sessions]
        sessions = [number for number in numbers if number is not None]
    return Filter(
        caller=caller.number,
        since_epoch=_since_epoch(request) or 0 if reads.level >= 1 else 0,
        include_own=scope.include_own,
        include_archived=scope.include_archived,
        include_drafts=scope.include_drafts,
        sessions=sessions,
    )


async def _page(reads: Reads, caller: AgentFacts, request: Attune, units: Snapshot, mask: Mask) -> Page:
    scope = request.scope
    analyze = reads.text_index.analyze
    hint = Query([request.context_hint] if request.context_hint else (), analyze)
    asked = scope.interests or () if reads.level >= 1 else ()
    interests = Query((*caller.interests, *asked), analyze)
    tail = reads.tail()  # before the search: what leaves the tail meanwhile is in the index by then
    drafts = reads.drafts(_own_drafts(units, caller)) if scope.include_drafts else {}
    most = max(LEAST_POSTINGS, int(units.size * POSTINGS_SHARE))
    found = await reads.text_index.search(
        [list(hint.words.values()), list(interests.words.values())], most_postings=most
    )
    match, touch = (LexicalMatch(*each, tail, drafts) for each in zip((hint, interests), found, strict=True))
    factors: dict[str, Values] = {
        "recency": recency(units),
        "type": type_importance(units),
        "role": role_alignment(units, scope.role, [await reads.names.role(r) for r in units.registrations], analyze),
    }
    if hint.words:
        factors["match"] = match.shares(units)
    if interests.words:
        factors["interests"] = touch.shares(units)
    scores = Scores(factors)
    available = int(np.count_nonzero(mask))
    if scope.order == "epoch":
        rows, next_since_epoch = by_epoch(units, mask, scope.max_units)
    else:
        rows, next_since_epoch = by_relevance(units, mask, scores.total, scope.max_units), None
    return Page(rows, scores, match, touch, available, next_since_epoch)


def _own_drafts(units: Snapshot, caller: AgentFacts) -> list[int]:
    is_own = (units.status == STATUS_CODES["draft"]) & (units.agent == units.agent_code(caller.number))
    seqs: list[int] = units.seq[is_own].tolist()
    return seqs


async def _conflicts(reads: Reads, caller: AgentFacts, units: Snapshot, mask: Mask) -> Sequence[Conflict]:
    """Unresolved conflicts that concern the caller: it recorded a side, or a side is a candidate."""
    newest = int(units.seq[-1]) if units.size else 0
    # A conflict of units that are newer than the snapshot concerns the next call.
    rows = [row for row in await reads.views.conflicts(UNRESOLVED_STATUSES) if max(row.unit_a, row.unit_b) <= newest]
    if not rows:
        return ()
    sides = np.searchsorted(units.seq, [[row.unit_a, row.unit_b] for row in rows])
    concerned = (mask[sides] | (units.agent[sides] == units.agent_code(caller.number))).any(axis=1)
    return await reads.reading.conflicts([row for row, is_mine in zip(rows, concerned, strict=True) if is_mine])


async def _answer(
    reads: Reads, request: Attune, units: Snapshot, page: Page, conflicts: Sequence[Conflict]
) -> Attunement | AttunementOfIds:
    chosen = await _still_shown(reads, units, page.rows, request.scope)
    page = structs.replace(page, rows=np.asarray([at for at, _ in chosen], np.int64))
    shown = [row for _, row in chosen]
    reasons = await _reasons(reads, units, page, shown)
    warnings = tuple(_warnings(request, reads.level)) or UNSET
    budget = ContextBudget(len(shown), page.available, next_since_epoch=page.next_since_epoch or UNSET)
    total = page.scores.total
    scores = [_rounded(total[row]) for row in page.rows.tolist()]
    factors = [page.scores.of(row) for row in page.rows.tolist()]
    if request.format == "ids_only":
        refs = tuple(
            ScopedMemoryUnit[UnitRef](UnitRef(row.id, row.epoch), score, reason, "ids_only", values)
            for row, score, reason, values in zip(shown, scores, reasons, factors, strict=True)
        )
        return AttuneReply[UnitRef](refs, tuple(conflicts), budget, units.epoch, warnings=warnings)
    full = tuple(
        ScopedMemoryUnit[MemoryUnit](unit, score, reason, "full", values)
        for unit, score, reason, values in zip(await reads.reading.units(shown), scores, reasons, factors, strict=True)
    )
    return AttuneReply[MemoryUnit](full, tuple(conflicts), budget, units.epoch, warnings=warnings)


async def _still_shown(reads: Reads, units: Snapshot, rows: Rows, scope: Scope) -> list[tuple[int, UnitRow]]:
    """The page's units as they are now: what was retracted or superseded while we searched is not shown any more."""
    statuses = (*SHOWN_STATUSES, "draft") if scope.include_drafts else SHOWN_STATUSES
    found = await reads.views.units(units.seq[rows].tolist())
    pairs = [(at, found.get(seq)) for at, seq in zip(rows.tolist(), units.seq[rows].tolist(), strict=True)]
    return [(at, row) for at, row in pairs if row is not None and row.status in statuses]


async def _reasons(reads: Reads, units: Snapshot, page: Page, shown: Sequence[UnitRow]) -> list[str]:
    seqs = [row.seq for row in shown]
    hint_words, interest_words = page.match.words_in(seqs), page.interests.words_in(seqs)
    return [
        explain(
            unit_type=row.type,
            agent_id=await reads.names.name(row.agent),
            role=await reads.names.role(row.registration),
            age_epochs=units.epoch - row.epoch,
            factors=page.scores.of(at),
            weights=page.scores.weights,
            hint_words=hint_words[place],
            interest_words=interest_words[place],
        )
        for place, (row, at) in enumerate(zip(shown, page.rows.tolist(), strict=True))
    ]


def _event(caller: AgentFacts, request: Attune, units: Snapshot, page: Page) -> ContextAttuned:
    first = page.rows[:LOGGED_RESULTS]
    return ContextAttuned(
        agent=caller.number,
        max_units=request.scope.max_units,
        since_epoch=_since_epoch(request),
        order=request.scope.order,
        format=request.format,
        available=page.available,
        returned=int(page.rows.size),
        shown=tuple(
            (seq, _rounded(score))
            for seq, score in zip(units.seq[first].tolist(), page.scores.total[first].tolist(), strict=True)
        ),
    )


def _warnings(request: Attune, level: int) -> list[Warning]:
    ignored = [f"scope.{name}" for name in _IGNORED_FIELDS if getattr(request.scope, name) is not None]
    if request.format == "summary":
        ignored.append("format (summary: full text is returned)")
    if level < 1 and _since_epoch(request) is not None:
        ignored.append("since_epoch")
    if level < 1 and request.scope.interests is not None:
        ignored.append("scope.interests")
    return [Warning("FIELD_IGNORED", f"{name} has no effect on this Field yet.") for name in ignored]


def _since_epoch(request: Attune) -> int | None:
    """Given both in the payload and in the scope, the larger counts."""
    return max((epoch for epoch in (request.since_epoch, request.scope.since_epoch) if epoch is not None), default=None)


def _rounded(score: float) -> float:
    return min(1.0, max(0.0, round(float(score), 6)))
