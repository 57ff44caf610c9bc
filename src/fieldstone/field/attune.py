"""ATTUNE: context finds the agent. It says who it is and what it is about to do; the Field ranks what matters to it."""

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import UNSET, UnsetType, structs

from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import LEAST_AUTHORITY, check_authority
from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import EpochNotReached
from fieldstone.core.events import ContextAttuned
from fieldstone.core.limits import DEFAULT_AUTHORITY, LOGGED_RESULTS, MIN_EPOCH_WAIT_MS
from fieldstone.core.replies import Attunement, AttunementOfIds, AttuneReply, Warning
from fieldstone.core.requests import Attune, Message
from fieldstone.core.units import DerivedFrom, MemoryUnit, ScopedMemoryUnit, UnitRef
from fieldstone.core.vocabulary import UNRESOLVED_STATUSES
from fieldstone.field.paging import Page, turn_page
from fieldstone.field.ranking import Ranking, rank
from fieldstone.field.reads import Reads
from fieldstone.projections.columns import Mask, Snapshot
from fieldstone.retrieval.candidates import PRESENT_AND_FUTURE, Filter, candidates
from fieldstone.retrieval.reason import explain
from fieldstone.retrieval.vouching import vouched

# Parts of the scope that a lowered level leaves out: they are checked, and then have no effect.
_EXTENDED_FIELDS: Final = ("max_tokens", "active_task_id", "temporal_layers", "relevance_threshold", "recency_weight")


async def attune(reads: Reads, message: Message, request: Attune) -> Attunement | AttunementOfIds:
    caller = reads.speaker(message)
    check_authority(caller.authority, LEAST_AUTHORITY["ATTUNE"], "ATTUNE")
    await reads.learn_epoch(message)
    if request.min_epoch is not None and not await reads.epoch_reached(request.min_epoch, MIN_EPOCH_WAIT_MS):
        raise EpochNotReached(f"The Field is at epoch {reads.epoch}, not yet at {request.min_epoch}.")
    units = reads.snapshot()
    wanted = await _filter(reads, caller, request)
    mask = candidates(units, wanted, reads.relations)
    ranking = await rank(reads, caller, request, units, mask, wanted.hidden)
    page = await turn_page(reads, request, units, mask, ranking)
    conflicts = await _conflicts(reads, caller, units, mask)
    reply = await _answer(reads, request, units, page, conflicts)
    await asyncio.sleep(0)  # whoever polls in a loop lets the others have their turn
    if page.shown:  # an empty poll leaves nothing
        reads.leave(message, _event(caller, request, page), hint=request.context_hint, epoch=units.epoch)
    return reply


async def _filter(reads: Reads, caller: AgentFacts, request: Attune) -> Filter:
    scope = request.scope
    sessions = None
    if scope.sessions is not None:
        numbers = [await reads.names.number("session", name) for name in scope.sessions]
        sessions = [number for number in numbers if number is not None]
    layers = frozenset(scope.temporal_layers or PRESENT_AND_FUTURE) if reads.extended else PRESENT_AND_FUTURE
    return Filter(
        caller=caller.number,
        hidden=reads.sight_of(caller).hidden,
        vouched_from=0 if scope.include_unvouched else reads.vouch_authority,
        since_epoch=_since_epoch(request) or 0 if reads.level >= 1 else 0,
        include_own=scope.include_own,
        include_archived=scope.include_archived,
        include_drafts=scope.include_drafts,
        sessions=sessions,
        layers=layers,
        narrator=reads.narrator,
    )


async def _conflicts(reads: Reads, caller: AgentFacts, units: Snapshot, mask: Mask) -> Sequence[Conflict]:
    """Unresolved conflicts that concern the caller: it recorded a side, or a side is a candidate."""
    newest = int(units.seq[-1]) if units.size else 0
    # A conflict of units that are newer than the snapshot concerns the next call.
    rows = [row for row in await reads.views.conflicts(UNRESOLVED_STATUSES) if max(row.unit_a, row.unit_b) <= newest]
    if not rows:
        return ()
    sides = np.searchsorted(units.seq, [[row.unit_a, row.unit_b] for row in rows])
    concerned = (mask[sides] | (units.agent[sides] == units.agent_code(caller.number))).any(axis=1)
    concerning = [row for row, is_mine in zip(rows, concerned, strict=True) if is_mine]
    return await reads.reading.conflicts(await reads.sight_of(caller).conflicts(concerning, reads.views))


async def _answer(
    reads: Reads, request: Attune, units: Snapshot, page: Page, conflicts: Sequence[Conflict]
) -> Attunement | AttunementOfIds:
    told = await _told(reads, units, page)
    warnings = tuple(_warnings(request, reads, page.ranking)) or UNSET
    if request.format == "ids_only":
        refs = tuple(
            ScopedMemoryUnit[UnitRef](UnitRef(shown.row.id, shown.row.epoch), *each)
            for shown, each in zip(page.shown, told, strict=True)
        )
        return AttuneReply[UnitRef](refs, tuple(conflicts), page.budget, units.epoch, warnings=warnings)
    read = await reads.reading.units([shown.row for shown in page.shown])
    full = tuple(
        ScopedMemoryUnit[MemoryUnit](
            unit if shown.content is None else structs.replace(unit, content=shown.content), *each
        )
        for unit, shown, each in zip(read, page.shown, told, strict=True)
    )
    return AttuneReply[MemoryUnit](full, tuple(conflicts), page.budget, units.epoch, warnings=warnings)


Told = tuple[float, str, str, dict[str, float], str | UnsetType, int, DerivedFrom | UnsetType, bool | UnsetType]


async def _told(reads: Reads, units: Snapshot, page: Page) -> list[Told]:
    """What is told of each unit: score, reason, format, factors, what it is a duplicate of, and how far to trust it."""
    scores = page.ranking.scores
    reasons = await _reasons(reads, units, page)
    trusted = vouched(units, reads.relations, reads.vouch_authority or DEFAULT_AUTHORITY)
    return [
        (
            _rounded(scores.total[shown.at]),
            reason,
            shown.format,
            scores.of(shown.at),
            shown.duplicate_of or UNSET,
            int(units.trust[shown.at]),
            await reads.derived_from(shown.row),
            UNSET if trusted[shown.at] else True,
        )
        for shown, reason in zip(page.shown, reasons, strict=True)
    ]


async def _reasons(reads: Reads, units: Snapshot, page: Page) -> list[str]:
    ranking = page.ranking
    seqs = [shown.row.seq for shown in page.shown]
    hint_words, interest_words = ranking.hint.words_in(seqs), ranking.interests.words_in(seqs)
    return [
        explain(
            unit_type=row.type,
            agent_id=await reads.names.name(row.agent),
            role=await reads.names.role(row.registration),
            age_epochs=units.epoch - row.epoch,
            factors=ranking.scores.of(at),
            weights=ranking.scores.weights,
            hint_words=hint_words[place],
            interest_words=interest_words[place],
            confidence=row.score,
        )
        for place, (at, row, *_) in enumerate(page.shown)
    ]


def _event(caller: AgentFacts, request: Attune, page: Page) -> ContextAttuned:
    total = page.ranking.scores.total
    return ContextAttuned(
        agent=caller.number,
        max_units=request.scope.max_units,
        since_epoch=_since_epoch(request),
        order=request.scope.order,
        format=request.format,
        available=page.budget.units_available,
        returned=len(page.shown),
        shown=tuple((shown.row.seq, _rounded(total[shown.at])) for shown in page.shown[:LOGGED_RESULTS]),
    )


def _warnings(request: Attune, reads: Reads, ranking: Ranking) -> list[Warning]:
    ignored: list[str] = []
    if not reads.extended:
        ignored = [f"scope.{name}" for name in _EXTENDED_FIELDS if getattr(request.scope, name) is not None]
        if request.format == "summary":
            ignored.append("format (summary: full text is returned)")
    if reads.level < 1 and _since_epoch(request) is not None:
        ignored.append("since_epoch")
    if reads.level < 1 and request.scope.interests is not None:
        ignored.append("scope.interests")
    warnings = [Warning("FIELD_IGNORED", f"{name} has no effect at this conformance level.") for name in ignored]
    if ranking.model_silent:
        warnings.append(Warning("ENRICHMENT_FAILED", "The embedding model does not answer: ranked by words alone."))
    return warnings


def _since_epoch(request: Attune) -> int | None:
    """Given both in the payload and in the scope, the larger counts."""
    return max((epoch for epoch in (request.since_epoch, request.scope.since_epoch) if epoch is not None), default=None)


def _rounded(score: float) -> float:
    return min(1.0, max(0.0, round(float(score), 6)))
