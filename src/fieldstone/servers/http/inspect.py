"""What operators ask of a field: its state, its log, whether it is whole; and its log out and in again."""

from collections.abc import Sequence
from typing import Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.replies import AgentProfile
from fieldstone.core.vocabulary import ConflictStatus
from fieldstone.field.rebuild import Rebuilt
from fieldstone.servers.http.answers import JSON_LINES, Answer, reply
from fieldstone.servers.http.body import drain, read_body
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.query import number_in, query_of

IMPORT_CHUNK_BYTES: Final = 10_000_000
LOG_LIMIT: Final = 100  # entries a page, where the caller does not say

_STATUSES: Final[tuple[ConflictStatus, ...]] = get_args(ConflictStatus)


class Agents(Struct, frozen=True):
    agents: Sequence[AgentProfile]


class Conflicts(Struct, frozen=True):
    conflicts: Sequence[Conflict]


class Views(Struct, frozen=True):
    views: Rebuilt


async def status(visit: Visit) -> Answer:
    return reply(replace(await visit.field.status(visit.caller), open_mode=visit.caller.is_local))


async def agents(visit: Visit) -> Answer:
    return reply(Agents(await visit.field.agents(visit.caller)))


async def conflicts(visit: Visit) -> Answer:
    statuses = _statuses(query_of(visit.scope).get("status"))
    return reply(Conflicts(await visit.field.conflicts(statuses, visit.caller)))


async def unit(visit: Visit) -> Answer:
    return reply(await visit.field.unit(visit.scope["path_params"]["id"], visit.caller))


async def log(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    after, limit = number_in(query, "after", 0), number_in(query, "limit", LOG_LIMIT)
    return reply(await visit.field.log(after=after, limit=limit, caller=visit.caller))


async def verify(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await visit.field.verify(caller=visit.caller))


async def rebuild(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(Views(await visit.field.rebuild(caller=visit.caller)))


async def export(visit: Visit) -> Answer:
    await drain(visit.receive)
    pieces = visit.held(visit.field.export(visit.caller))
    # Before the status is sent: a stream that cannot even begin is an error that can still be told.
    first = await anext(pieces, b"")
    return Answer(200, first, JSON_LINES, stream=pieces)


async def take_in(visit: Visit) -> Answer:
    body = await read_body(visit.scope, visit.receive, most_bytes=IMPORT_CHUNK_BYTES)
    try:
        return reply(await visit.field.import_lines(body.split(b"\n"), visit.caller))
    except (RecursionError, OverflowError) as error:
        raise InvalidPayload(
            "a line is not a line of an export: it is nested too deeply, or a number is too large."
        ) from error


def _statuses(text: str | None) -> Sequence[ConflictStatus] | None:
    if text is None:
        return None
    wanted = text.split(",")
    known = [status for status in _STATUSES if status in wanted]
    if set(wanted) - set(known):
        raise InvalidPayload(f"status must be one of, or several with commas between: {', '.join(_STATUSES)}.")
    return known
