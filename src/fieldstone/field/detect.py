"""DETECT: the conflicts of the Field. At this level: list."""

from typing import Final, get_args

from fieldstone.core.authority import LEAST_AUTHORITY, check_authority
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import ConflictsListed
from fieldstone.core.replies import Detection, ScanCoverage
from fieldstone.core.requests import Detect, DetectFilter, Message
from fieldstone.core.vocabulary import ConflictStatus, ConflictType
from fieldstone.field.reads import Reads
from fieldstone.ports.views import ConflictRow

_STATUSES: Final = frozenset(get_args(ConflictStatus))
_TYPES: Final = frozenset(get_args(ConflictType))
_NO_FILTER: Final = DetectFilter()


async def detect(reads: Reads, message: Message, request: Detect) -> Detection:
    caller = reads.active_agent(message.agent_id)
    check_authority(caller.authority, LEAST_AUTHORITY["DETECT"], "DETECT")
    wanted = request.filter or _NO_FILTER
    _check(wanted)
    await reads.learn_epoch(message)
    rows = [row for row in await reads.views.conflicts() if await _passes(reads, row, wanted)]
    epoch = reads.epoch
    if rows:
        reads.leave(message, ConflictsListed(agent=caller.number, returned=len(rows)), epoch=epoch)
    return Detection(tuple(await reads.reading.conflicts(rows)), ScanCoverage(0, 0), epoch)


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
