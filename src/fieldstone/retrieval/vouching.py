"""Whose word is enough: a unit of little trust counts once somebody of more authority supports it."""

import numpy as np

from fieldstone.projections.columns import LAST_SHOWN_STATUS, Mask, Snapshot
from fieldstone.projections.relations import Relations


def vouched(units: Snapshot, relations: Relations, authority: int) -> Mask:
    """The units that are trusted this far, by themselves or by one that stands and supports them."""
    mask: Mask = units.trust >= authority
    if mask.all() or not relations.supports:
        return mask
    pairs = np.asarray(relations.supports, np.int64)
    supporting, supported = np.searchsorted(units.seq, pairs[:, 0]), np.searchsorted(units.seq, pairs[:, 1])
    there = (supporting < units.size) & (supported < units.size)  # a pair may be newer than the snapshot
    supporting, supported = supporting[there], supported[there]
    counts = mask[supporting] & (units.status[supporting] <= LAST_SHOWN_STATUS)
    mask[supported[counts]] = True
    return mask
