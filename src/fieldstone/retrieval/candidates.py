"""Which units a request may see: exact filters over every unit, before anything is ranked."""

from collections.abc import Collection

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.projections.columns import LAST_SHOWN_STATUS, STATUS_CODES, Snapshot

Mask = NDArray[np.bool_]


class Filter(Struct, frozen=True):
    """What a scope asks for, in numbers. `sessions` None: all of them."""

    caller: int
    since_epoch: int = 0
    include_own: bool = False
    include_archived: bool = False
    include_drafts: bool = False
    sessions: Collection[int] | None = None


def candidates(units: Snapshot, wanted: Filter) -> Mask:
    """Everything visible: not the caller's own, not superseded, retracted, archived or a draft, unless asked for."""
    mask: Mask = units.status <= LAST_SHOWN_STATUS
    caller = units.agent_code(wanted.caller)
    if not wanted.include_own:
        mask &= units.agent != caller
    if wanted.include_drafts:
        mask |= (units.status == STATUS_CODES["draft"]) & (units.agent == caller)
    if not wanted.include_archived:
        mask &= ~units.archived
    if wanted.since_epoch > 0:
        mask &= units.unit_epoch >= wanted.since_epoch
    if wanted.sessions is not None:
        mask &= np.isin(units.session, np.fromiter(wanted.sessions, np.int64))
    return mask
