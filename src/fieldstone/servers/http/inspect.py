"""What operators ask of a field: its state, its log, whether it is whole; and its log out and in again."""

import re
from collections.abc import Sequence
from typing import Final, get_args
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace
from starlette.types import Scope

from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.replies import AgentProfile
from fieldstone.core.vocabulary import ConflictStatus
from fieldstone.field.rebuild import Rebuilt
from fieldstone.servers.http.answers import JSON_LINES, Answer, reply
from fieldstone.servers.http.body import drain, read_body
from fieldstone.servers.http.entrance import Visit

IMPORT_CHUNK_BYTES: Final = 10_000_000
MOST_QUERY_FIELDS: Final = 100
LOG_LIMIT: Final = 100  # entries a page, where the caller does not say

_WHOLE_NUMBER = re.compile(r"[0-9]{1,16}")
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
    statuses = _statuses(_query(visit.scope).get("status"))
    return reply(Conflicts(await visit.field.conflicts(statuses, visit.caller)))


async def unit(visit: Visit) -> Answer:
    return reply(await visit.field.unit(visit.scope["path_params"]["id"], visit.caller))


async def log(visit: Visit) -> Answer:
    query = _query(visit.scope)
    after, limit = _number(query, "after", 0), _number(query, "limit", LOG_LIMIT)
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


def _query(scope: Scope) -> dict[str, str]:
    """A field that comes twice is refused: nobody can say which one counts."""
    text = scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_QUERY_FIELDS)
    except ValueError as error:
        raise InvalidPayload(f"The query has more than {MOST_QUERY_FIELDS} fields.") from error
    query = dict(pairs)
    if len(query) < len(pairs):
        raise InvalidPayload("A field of the query comes twice.")
    return query


def _number(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not _WHOLE_NUMBER.fullmatch(text) or int(text) > MAX_EPOCH:
        raise InvalidPayload(f"{name} must be a whole number from 0 to 2^53-1.")
    return int(text)


def _statuses(text: str | None) -> Sequence[ConflictStatus] | None:
    if text is None:
        return None
    wanted = text.split(",")
    known = [status for status in _STATUSES if status in wanted]
    if set(wanted) - set(known):
        raise InvalidPayload(f"status must be one of, or several with commas between: {', '.join(_STATUSES)}.")
    return known
