"""Which units a request may see: exact filters over every unit, before anything is ranked."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fieldstone.core.requests import TemporalLayer
from fieldstone.projections.columns import LAST_SHOWN_STATUS, STATUS_CODES, Mask, Snapshot
from fieldstone.projections.relations import Relations
from fieldstone.retrieval.vouching import vouched

OPEN_ENDED_TYPES: Final = ("intention", "question")

PRESENT_AND_FUTURE: Final[frozenset[TemporalLayer]] = frozenset(("present", "future"))


class Filter(Struct, frozen=True):
    """What a scope asks for, in numbers. `sessions` None: all of them."""

    caller: int
    hidden: Collection[int] = ()  # closed sessions that the caller does not see into
    vouched_from: int = 0  # what is trusted less needs a voucher; 0: nothing does
    since_epoch: int = 0
    include_own: bool = False
    include_archived: bool = False
    include_drafts: bool = False
    sessions: Collection[int] | None = None
    layers: frozenset[TemporalLayer] = PRESENT_AND_FUTURE
    narrator: int | None = None  # the Field's own agent, whose syntheses repeat what others said


def candidates(units: Snapshot, wanted: Filter, relations: Relations) -> Mask:
    """Everything visible: not the caller's own, not superseded, retracted, archived or a draft, unless asked for."""
    mask: Mask = units.status <= LAST_SHOWN_STATUS
    caller = units.agent_code(wanted.caller)
    if not wanted.include_own:
        mask &= units.agent != caller
    if wanted.include_drafts:
        mask |= (units.status == STATUS_CODES["draft"]) & (units.agent == caller)
    mask &= _in_layers(units, wanted, relations)
    if wanted.hidden:
        mask &= ~np.isin(units.session, np.fromiter(wanted.hidden, np.int64))
    if wanted.vouched_from > 0:
        mask &= vouched(units, relations, wanted.vouched_from) | (units.agent == caller)
    if wanted.since_epoch > 0:
        mask &= units.unit_epoch >= wanted.since_epoch
    if wanted.sessions is not None:
        mask &= np.isin(units.session, np.fromiter(wanted.sessions, np.int64))
    if wanted.include_archived and wanted.narrator is not None:
        mask[_repeating(units, mask, wanted.narrator, relations)] = False
    return mask


def _repeating(units: Snapshot, mask: Mask, narrator: int, relations: Relations) -> list[int]:
    """The Field's own syntheses of which every original is a candidate itself: they would only take its place."""
    syntheses = [code for code, kind in enumerate(units.types) if kind == "synthesis"]
    rows = np.flatnonzero(mask & (units.agent == units.agent_code(narrator)) & np.isin(units.type, syntheses))
    return [int(row) for row in rows if _all_seen(units, mask, relations.elaborated_by(int(units.seq[row])))]


def _all_seen(units: Snapshot, mask: Mask, originals: Sequence[int]) -> bool:
    rows = np.searchsorted(units.seq, originals)
    said = rows[units.status[rows] <= LAST_SHOWN_STATUS]
    return bool(len(said)) and bool(mask[said].all())


def _in_layers(units: Snapshot, wanted: Filter, relations: Relations) -> Mask:
    """Past: what is archived. Future: intentions and questions that nobody has answered. Present: the rest."""
    layers = wanted.layers
    if layers >= PRESENT_AND_FUTURE:
        now: Mask = ~units.archived
    else:
        ahead = _open_ended(units, relations)
        now = ~units.archived & (ahead if "future" in layers else ~ahead if "present" in layers else False)
    return now | units.archived if "past" in layers or wanted.include_archived else now


def _open_ended(units: Snapshot, relations: Relations) -> Mask:
    codes = [code for code, kind in enumerate(units.types) if kind in OPEN_ENDED_TYPES]
    mask = np.isin(units.type, codes)
    for source, target in relations.answers:
        answer, question = np.searchsorted(units.seq, (source, target))
        if answer < units.size and units.status[answer] <= LAST_SHOWN_STATUS:
            mask[question] = False
    return mask
