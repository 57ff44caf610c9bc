"""DETECT: the conflicts of the Field: listed, looked for around one unit, or looked for everywhere."""

from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from fieldstone.core.authority import LEAST_AUTHORITY, check_authority
from fieldstone.core.errors import InvalidPayload, UnitNotFound
from fieldstone.core.events import ConflictsListed
from fieldstone.core.replies import Detection, ScanCoverage
from fieldstone.core.requests import Detect, DetectFilter, Message
from fieldstone.core.vocabulary import UNRESOLVED_STATUSES, ConflictStatus, ConflictType
from fieldstone.field.detecting import Detecting
from fieldstone.field.reads import Reads
from fieldstone.field.sight import Sight
from fieldstone.ports.views import ConflictRow
from fieldstone.projections.columns import LAST_SHOWN_STATUS

SCAN_MS: Final = 2_000  # a scan of a large field is gone on with by the next call
SCANNED_AT_ONCE: Final = 16

_STATUSES: Final = frozenset(get_args(ConflictStatus))
_TYPES: Final = frozenset(get_args(ConflictType))
_NO_FILTER: Final = DetectFilter()


async def detect(reads: Reads, detecting: Detecting, message: Message, request: Detect) -> Detection:
    caller = reads.speaker(message)
    sight = reads.sight_of(caller)
    check_authority(caller.authority, LEAST_AUTHORITY["DETECT"], "DETECT")
    wanted = request.filter or _NO_FILTER
    _check(wanted)
    await reads.learn_epoch(message)
    if request.mode == "check":
        rows, coverage = await _check_unit(reads, detecting, sight, request)
    elif request.mode == "scan":
        rows, coverage = await _scan(reads, detecting, sight, request)
    else:
        rows, coverage = list(await reads.views.conflicts()), ScanCoverage(0, 0)
    seen = await sight.conflicts(rows, reads.views)
    rows = [row for row in seen if await _passes(reads, row, wanted)]
    epoch = reads.epoch
    if rows:
        reads.leave(message, ConflictsListed(agent=caller.number, returned=len(rows)), epoch=epoch)
    return Detection(tuple(await reads.reading.conflicts(rows)), coverage, epoch)


async def _check_unit(
    reads: Reads, detecting: Detecting, sight: Sight, request: Detect
) -> tuple[list[ConflictRow], ScanCoverage]:
    """What one unit is in conflict with, by what is on record and by a fresh look."""
    target = await reads.views.unit(request.target_id or "")
    if target is None or not sight.sees(target):
        raise UnitNotFound  # nobody learns of what they do not see
    found = await detecting.detect([target.seq], both_ways=True)
    rows = await reads.views.conflicts(UNRESOLVED_STATUSES)
    new = sum(len(conflicts) for conflicts in found.values())
    return [row for row in rows if target.seq in (row.unit_a, row.unit_b)], ScanCoverage(1, new)


async def _scan(
    reads: Reads, detecting: Detecting, sight: Sight, request: Detect
) -> tuple[list[ConflictRow], ScanCoverage]:
    """Compare the units after an epoch, oldest first, for as long as one call may take."""
    units = reads.snapshot()
    seen = sight.units(units) & (units.status <= LAST_SHOWN_STATUS)
    rows = np.flatnonzero(seen & (units.unit_epoch > (request.after_epoch or 0)))
    rows = rows[np.argsort(units.unit_epoch[rows], kind="stable")]
    began, done = detecting.clock.monotonic_ms(), 0
    found: list[str] = []
    while done < len(rows) and (not done or detecting.clock.monotonic_ms() - began < SCAN_MS):
        end = _end_of_epoch(units.unit_epoch[rows], done + SCANNED_AT_ONCE)
        conflicts = await detecting.detect_each(units.seq[rows[done:end]].tolist())
        found += [conflict for each in conflicts.values() for conflict in each]
        done = end
    complete = done >= len(rows)
    next_after = None if complete else int(units.unit_epoch[rows[done - 1]])
    new = set(found)
    known = [row for row in await reads.views.conflicts() if row.id in new] if new else []
    return known, ScanCoverage(done, len(found), complete, next_after)


def _end_of_epoch(epochs: NDArray[np.int64], at: int) -> int:
    """Units of one epoch are not torn apart: the next call goes on after an epoch."""
    while 0 < at < len(epochs) and epochs[at] == epochs[at - 1]:
        at += 1
    return min(at, len(epochs))


async def _passes(reads: Reads, row: ConflictRow, wanted: DetectFilter) -> bool:
    if wanted.status and row.status not in wanted.status:
        return False
    if wanted.types and row.type not in wanted.types:
        return False
    if not wanted.involving_agents:
        return True
    sides = (await reads.views.units([row.unit_a, row.unit_b])).values()
    names = [await reads.names.name(side.agent) for side in sides]
    return any(name in wanted.involving_agents for name in names)


def _check(wanted: DetectFilter) -> None:
    for name, values, known in (("status", wanted.status, _STATUSES), ("types", wanted.types, _TYPES)):
        unknown = [value for value in values or () if value not in known]
        if unknown:
            raise InvalidPayload(f"filter.{name} takes {', '.join(sorted(known))}.")
