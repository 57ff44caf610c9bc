"""What operators ask of a field: its state, its log, whether it is whole; and its log out and in again."""

import re
from collections.abc import Sequence
from typing import Final, get_args
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.types import Receive, Scope

from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.replies import AgentProfile
from fieldstone.core.vocabulary import ConflictStatus
from fieldstone.field.field import LocalField
from fieldstone.field.rebuild import Rebuilt
from fieldstone.servers.http.answers import JSON_LINES, Answer, reply
from fieldstone.servers.http.body import drain, read_body

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


class Inspection:
    def __init__(self, field: LocalField) -> None:
        self._field = field

    async def status(self, scope: Scope, receive: Receive) -> Answer:
        return reply(await self._field.status())

    async def agents(self, scope: Scope, receive: Receive) -> Answer:
        return reply(Agents(await self._field.agents()))

    async def conflicts(self, scope: Scope, receive: Receive) -> Answer:
        return reply(Conflicts(await self._field.conflicts(_statuses(_query(scope).get("status")))))

    async def unit(self, scope: Scope, receive: Receive) -> Answer:
        return reply(await self._field.unit(scope["path_params"]["id"]))

    async def log(self, scope: Scope, receive: Receive) -> Answer:
        query = _query(scope)
        after, limit = _number(query, "after", 0), _number(query, "limit", LOG_LIMIT)
        return reply(await self._field.log(after=after, limit=limit))

    async def verify(self, scope: Scope, receive: Receive) -> Answer:
        await drain(receive)
        return reply(await self._field.verify())

    async def rebuild(self, scope: Scope, receive: Receive) -> Answer:
        await drain(receive)
        return reply(Views(await self._field.rebuild()))

    async def export(self, scope: Scope, receive: Receive) -> Answer:
        await drain(receive)
        pieces = self._field.export()
        # Before the status is sent: a stream that cannot even begin is an error that can still be told.
        first = await anext(pieces, b"")
        return Answer(200, first, JSON_LINES, stream=pieces)

    async def take_in(self, scope: Scope, receive: Receive) -> Answer:
        body = await read_body(scope, receive, most_bytes=IMPORT_CHUNK_BYTES)
        try:
            return reply(await self._field.import_lines(body.split(b"\n")))
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
