"""The feed of events over HTTP: page by page, or as server-sent events that go on from where a caller left off."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, get_args

from msgspec import Struct, json
from starlette.types import Scope

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.vocabulary import FeedKind
from fieldstone.profiles.openwop.feed import PAGE_EVENTS, Feed, FeedEvent
from fieldstone.servers.http.answers import EVENT_STREAM, Answer, Header, reply
from fieldstone.servers.http.body import drain
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.query import number_in, query_of

HEARTBEAT: Final = b":\n\n"  # a comment: it keeps the line from being taken for dead, and finds out who went away
LOOK_S: Final = 0.5  # how soon a stream sees that the server stops
LOOKS_PER_BEAT: Final = 30
NEVER_STORED: Final[Header] = (b"cache-control", b"no-store")

_KINDS: Final[tuple[FeedKind, ...]] = get_args(FeedKind)

StillKnown = Callable[[Scope], Awaitable[bool]]


class Events(Struct, frozen=True):
    """`next` goes on from here, as `since`."""

    events: Sequence[dict[str, Any]]
    next: str


class EventRoutes:
    """`still_known`: whether the credential of a request counts to this moment. A stream is a long request."""

    def __init__(
        self, gate: Gate, still_known: StillKnown, *, look_s: float = LOOK_S, looks_per_beat: int = LOOKS_PER_BEAT
    ) -> None:
        self._gate = gate
        self._still_known = still_known
        self._look_s = look_s
        self._looks_per_beat = looks_per_beat

    async def events(self, visit: Visit) -> Answer:
        query = query_of(visit.scope)
        kinds, since = _kinds(query.get("type")), query.get("since")
        limit = number_in(query, "limit", PAGE_EVENTS)
        feed = Feed(visit.field, visit.caller)
        headers = dict(visit.scope["headers"])
        if not _takes_stream(headers.get(b"accept", b"")):
            page = await feed.page(kinds=kinds, since=since, limit=limit)
            return reply(Events([event.flat() for event in page.events], page.next))
        await drain(visit.receive)  # what comes next on this line is that the caller went away
        if b"last-event-id" in headers:  # a caller that comes again comes with the address of the first time
            since = headers[b"last-event-id"].decode("latin-1")
        # Before the status is sent: a stream that cannot even begin is an error that can still be told.
        first = await feed.page(kinds=kinds, since=since, limit=limit)
        pieces = visit.held(self._pieces(visit.scope, feed, kinds, first.next))
        return Answer(200, _encoded(first.events) or HEARTBEAT, EVENT_STREAM, (NEVER_STORED,), pieces)

    async def _pieces(
        self, scope: Scope, feed: Feed, kinds: Sequence[FeedKind] | None, since: str
    ) -> AsyncIterator[bytes]:
        while not self._gate.stopping and await self._still_known(scope):
            head = feed.head
            page = await feed.page(kinds=kinds, since=since)
            since = page.next
            if page.events:
                yield _encoded(page.events)
            elif await self._stays_quiet(feed, head):
                yield HEARTBEAT

    async def _stays_quiet(self, feed: Feed, head: int) -> bool:
        """Whether nothing happens until the next beat."""
        for _ in range(self._looks_per_beat):
            if self._gate.stopping or await feed.grown(head, timeout_s=self._look_s):
                return False
        return True


def _encoded(events: Iterable[FeedEvent]) -> bytes:
    return b"".join(
        b"event: %b\nid: %b\ndata: %b\n\n" % (event.type.encode(), event.id.encode(), json.encode(event.flat()))
        for event in events
    )


def _takes_stream(accept: bytes) -> bool:
    kinds = (kind.partition(b";")[0].strip().lower() for kind in accept.split(b","))
    return EVENT_STREAM in kinds


def _kinds(text: str | None) -> Sequence[FeedKind] | None:
    if text is None:
        return None
    wanted = text.split(",")
    known = [kind for kind in _KINDS if kind in wanted]
    if set(wanted) - set(known):
        raise InvalidPayload(f"type must be one of, or several with commas between: {', '.join(_KINDS)}.")
    return known
