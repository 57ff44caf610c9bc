"""What a compaction is about: which units match, which stay, and which of them belong together. Pure."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from fieldstone.core.vocabulary import Strategy
from fieldstone.projections.columns import PURGED, STATUS_CODES, Mask, Snapshot
from fieldstone.projections.vector_index import Rows

# A group's synthesis is written in one transaction, which others wait for.
MOST_GROUP_UNITS: Final = 64
BATCH_UNITS: Final = 256

# What they say was taken back: they are archived with the others, and no synthesis says it again.
GONE: Final = (STATUS_CODES["superseded"], STATUS_CODES["retracted"])


class Selection(Struct, frozen=True):
    """What a filter asks for, in numbers. None: no restriction."""

    strategy: Strategy
    epoch: int  # the Field's when it was asked for: age is counted from it
    max_age_epochs: int | None = None
    before: int | None = None  # recorded before this entry
    beyond_newest: int | None = None  # the oldest beyond so many; of these three limits, one that is passed is enough
    session: int | None = None
    types: Collection[str] | None = None
    statuses: Collection[str] | None = None
    derived: Collection[int] | None = None  # only these, by seq


def matching(units: Snapshot, wanted: Selection) -> Mask:
    """Already archived units are left alone, except by purge; purged ones are nowhere."""
    statuses = wanted.statuses or [status for status in STATUS_CODES if status != "draft"]
    mask: Mask = np.isin(units.status, [code for status, code in STATUS_CODES.items() if status in statuses])
    mask &= (units.status != PURGED) & (units.unit_epoch <= wanted.epoch)
    if wanted.strategy != "purge":
        mask &= ~units.archived
    if wanted.strategy == "summarize":
        mask &= units.committed  # a synthesis would tell everybody what a draft says
    if wanted.session is not None:
        mask &= units.session == wanted.session
    if wanted.types is not None:
        codes = [code for code, kind in enumerate(units.types) if kind in wanted.types]
        mask &= np.isin(units.type, codes)
    if wanted.derived is not None:
        mask &= np.isin(units.seq, np.fromiter(wanted.derived, np.int64))
    return mask & _aged(units, wanted, mask)


def _aged(units: Snapshot, wanted: Selection, mask: Mask) -> Mask:
    limits: list[Mask] = []
    if wanted.max_age_epochs is not None:
        limits.append(wanted.epoch - units.unit_epoch > wanted.max_age_epochs)
    if wanted.before is not None:
        limits.append(units.seq < wanted.before)
    if wanted.beyond_newest is not None:
        limits.append(_beyond(units, np.flatnonzero(mask), wanted.beyond_newest))
    aged: Mask = np.logical_or.reduce(limits) if limits else np.ones(units.size, np.bool_)
    return aged


def _beyond(units: Snapshot, rows: Rows, newest: int) -> Mask:
    oldest_first = rows[np.lexsort((units.seq[rows], units.unit_epoch[rows]))]
    beyond: Mask = np.zeros(units.size, np.bool_)
    beyond[oldest_first[: max(0, len(rows) - newest)]] = True
    return beyond


def batches(units: Snapshot, rows: Rows) -> Iterator[list[int]]:
    """The seqs of these rows, in pieces that one transaction takes."""
    for start in range(0, len(rows), BATCH_UNITS):
        seqs: list[int] = units.seq[rows[start : start + BATCH_UNITS]].tolist()
        yield seqs


def groups(units: Snapshot, rows: Rows, most: int = MOST_GROUP_UNITS) -> Iterator[Sequence[int]]:
    """The seqs of units that belong together: of one session and task, as they followed each other."""
    keys = np.stack((units.session[rows], units.task[rows]))
    order = np.lexsort((units.seq[rows], units.unit_epoch[rows], keys[1], keys[0]))
    rows, keys = rows[order], keys[:, order]
    if not len(rows):
        return
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))).tolist()
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        # In parts of about the same size: a remainder of one would be no group.
        parts = -(-(end - start) // most)
        for part in np.array_split(rows[start:end], parts):
            yield units.seq[part].tolist()
