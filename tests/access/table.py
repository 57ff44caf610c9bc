"""§9 of the contract as data: the least authority of every operation and route. Written from its text, not from code.

A number is the least authority. What is not built yet stands here too: it answers 501 to whoever has a key.
"""

from typing import Final, Literal, NamedTuple

AUTHORITIES: Final = (0, 2, 4, 6, 8, 10)

Target = Literal["own", "own draft", "another's", "another's draft", "oneself", "another"]


class Ask(NamedTuple):
    """An operation, one way to ask for it, and about what. `otherwise`: what one gets who has the authority."""

    operation: str
    how: str
    least: int
    target: Target | None = None
    otherwise: str | None = None


ASKS: Final = (
    Ask("REGISTER", "claims nothing", 0),
    Ask("REGISTER", "claims what the key grants", 0),
    Ask("DEREGISTER", "leaves", 4, "oneself"),
    Ask("DEREGISTER", "sends away", 8, "another"),
    Ask("RECORD", "committed", 4),
    Ask("RECORD", "draft", 2),
    Ask("RECORD", "human_directive", 10),
    Ask("RECORD", "supersedes", 4, "own"),
    Ask("RECORD", "supersedes", 4, "another's"),
    Ask("RECORD", "contradicts", 4, "another's"),
    Ask("RECORD", "supports", 4, "another's"),
    Ask("ATTUNE", "everything", 2),
    Ask("DETECT", "list", 4),
    Ask("DETECT", "check", 4, "another's"),
    Ask("DETECT", "scan", 4),
    Ask("COMMIT", "", 4, "own draft"),
    Ask("COMMIT", "", 4, "another's", otherwise="FORBIDDEN"),
    Ask("COMMIT", "", 4, "another's draft", otherwise="UNIT_NOT_FOUND"),
    Ask("DISCARD", "", 2, "own draft"),
    Ask("DISCARD", "", 2, "another's", otherwise="FORBIDDEN"),
    Ask("DISCARD", "", 2, "another's draft", otherwise="UNIT_NOT_FOUND"),
    Ask("RETRACT", "", 0, "own"),  # the author's right, whatever the authority
    Ask("RETRACT", "", 8, "another's"),
    Ask("RETRACT", "", 0, "another's draft", otherwise="UNIT_NOT_FOUND"),
    Ask("COMPACT", "archive", 6),
    Ask("COMPACT", "summarize", 6),
    Ask("COMPACT", "purge", 10),
)

# Operations that the matrix does not ask for yet: where there are several ways, the least of them.
LATER_OPERATIONS: Final = {
    "SUBSCRIBE": 2,
    "MERGE": 6,
    "REPLAY": 0,
    "COORDINATE": 4,
    "HANDOFF": 4,
    "SESSION": 2,
}

Route = tuple[str, str]  # method and path

# HEAD is GET, and stands for itself nowhere.
PUBLIC: Final[frozenset[Route]] = frozenset(
    {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v1/openapi.json"), ("GET", "/.well-known/openwop")}
)

# Requests that name no agent act with their key's authority.
LEAST: Final[dict[Route, int]] = {
    ("GET", "/v1/field/status"): 2,
    ("GET", "/v1/agents"): 2,
    ("GET", "/v1/conflicts"): 2,
    ("GET", "/v1/units/{id}"): 2,
    ("GET", "/v1/log"): 0,
    ("POST", "/v1/verify"): 0,
    ("POST", "/v1/rebuild"): 10,
    ("GET", "/v1/export"): 8,
    ("POST", "/v1/import"): 10,
    ("GET", "/v1/secrets"): 8,
    ("PUT", "/v1/secrets/{id}"): 8,
    ("DELETE", "/v1/secrets/{id}"): 8,
    ("POST", "/v1/sweep"): 10,
    ("GET", "/v1/keys"): 10,
    ("POST", "/v1/keys"): 10,
    ("POST", "/v1/keys/{id}/rotate"): 10,
    ("DELETE", "/v1/keys/{id}"): 10,
    ("GET", "/docs"): 0,
    ("GET", "/"): 0,
    ("GET", "/v1/subscriptions/{id}/events"): 2,
    ("GET", "/v1/subscriptions/{id}/ws"): 2,
    ("GET", "/v1/compactions"): 6,  # as each of them
    ("GET", "/v1/compactions/{id}"): 6,
    ("DELETE", "/v1/compactions/{id}"): 6,
    ("GET", "/v1/compactions/{id}/events"): 6,
    ("POST", "/v1/restore"): 6,
    ("GET", "/v1/guards"): 6,  # §9 does not name it: a compaction, 6, tells of guards too
    ("PUT", "/v1/units/{id}/hold"): 8,
    ("DELETE", "/v1/units/{id}/hold"): 8,
    ("PUT", "/v1/units/{id}/pin"): 6,
    ("DELETE", "/v1/units/{id}/pin"): 6,
    ("GET", "/v1/units/{id}/lineage"): 2,
    ("GET", "/v1/retention"): 6,
    ("PUT", "/v1/retention"): 8,
    ("POST", "/v1/retention/plan"): 6,
    ("POST", "/v1/retention/apply"): 8,
    ("GET", "/v1/retention/status"): 6,
}

# Streams and threads: read 2, write 4, delete 8, compaction of a stream 6. To remember a run is to record.
# §9 does not name reconciling, which may end runs of others: ours, 8.
PLANES: Final[dict[Route, int]] = {
    ("GET", "/v1/streams/{id}"): 2,
    ("DELETE", "/v1/streams/{id}"): 8,
    ("GET", "/v1/streams/{id}/events"): 2,
    ("POST", "/v1/streams/{id}/events"): 4,
    ("GET", "/v1/streams/{id}/sse"): 2,
    ("GET", "/v1/streams/{id}/snapshot"): 2,
    ("POST", "/v1/streams/{id}/compact"): 6,
    ("PUT", "/v1/streams/{id}/readers/{name}"): 4,
    ("DELETE", "/v1/streams/{id}/readers/{name}"): 4,
    ("GET", "/v1/threads"): 2,
    ("DELETE", "/v1/threads/{thread}"): 8,
    ("GET", "/v1/threads/{thread}/messages"): 2,
    ("GET", "/v1/threads/{thread}/tree"): 2,
    ("GET", "/v1/threads/{thread}/context"): 2,
    ("PUT", "/v1/threads/{thread}/active"): 4,
    ("GET", "/v1/threads/{thread}/runs"): 2,
    ("POST", "/v1/threads/{thread}/runs"): 4,
    ("GET", "/v1/threads/{thread}/runs/{run}"): 2,
    ("POST", "/v1/threads/{thread}/runs/{run}/events"): 4,
    ("POST", "/v1/threads/{thread}/runs/{run}/commit"): 4,
    ("POST", "/v1/threads/{thread}/runs/{run}/fail"): 4,
    ("POST", "/v1/threads/{thread}/runs/{run}/cancel"): 4,
    ("POST", "/v1/threads/{thread}/runs/{run}/recover"): 4,
    ("POST", "/v1/threads/{thread}/runs/{run}/remember"): 4,
    ("POST", "/v1/reconcile"): 8,
    ("POST", "/v1/retention/streams"): 6,  # to plan it; to carry it out, 8
}
# What is not there cannot be recorded from: whoever may read is told so.
FIRST_READS: Final[dict[Route, int]] = {("POST", "/v1/threads/{thread}/runs/{run}/remember"): 2}
SOCKET: Final = "/v1/streams/ws"  # it reads streams: 2

# OpenWOP's: memory entries read 2, write 4, forget 8; the event feed 0.
MEMORY: Final[dict[Route, int]] = {
    ("GET", "/v1/memory/{ref}"): 2,
    ("POST", "/v1/memory/{ref}"): 4,
    ("GET", "/v1/memory/{ref}/{id}"): 2,
    ("DELETE", "/v1/memory/{ref}/{id}"): 4,
    ("POST", "/v1/memory/{ref}/forget"): 8,
    ("GET", "/v1/events"): 0,
}

# Only in the conformance mode. They do what the routes above do: write 4, compact 6, read 2.
SEAMS: Final[dict[Route, int]] = {
    ("POST", "/v1/test/memory/seed"): 4,
    ("POST", "/v1/test/memory/compact"): 6,
    ("POST", "/v1/host/sample/memory/distill"): 6,
    ("POST", "/v1/host/sample/memory/consolidate"): 6,
    ("POST", "/v1/runs"): 4,
    ("GET", "/v1/runs/{id}"): 2,
    ("GET", "/v1/runs/{id}/events"): 2,
    ("GET", "/v1/runs/{id}/events/poll"): 2,
}
NO_SEAM: Final[Route] = ("POST", "/v1/runs/{id}")  # commands of a workflow engine: 404 to whoever has a key

OPENWOP: Final[frozenset[Route]] = frozenset({*MEMORY, *SEAMS, NO_SEAM})  # errors are {error, message}
NAMELESS: Final[dict[Route, int]] = {**LEAST, **PLANES, **MEMORY, **SEAMS}  # they name no agent

# Each operation has its route; a route of messages takes them all, and each needs what it needs.
MESSAGES: Final[Route] = ("POST", "/v1/messages")

# The chain can only be checked whole: the log tells ids, and no texts, of all that happened in the tenant, closed
# sessions included; an export, and what an operator asks for without an agent, tells the texts, too.
TELLS_IDS: Final[frozenset[Route]] = frozenset({("GET", "/v1/log")})
TELLS_ALL: Final[frozenset[Route]] = frozenset({("GET", "/v1/export")})
SEES_ALL: Final = 10  # a request of this authority that names no agent is bound to no session


def operation_route(operation: str) -> Route:
    return "POST", f"/v1/{operation.lower()}"


def all_routes() -> frozenset[Route]:
    """Of a server as it is started; the seams come on top where it is started for the conformance suite."""
    operations = {ask.operation for ask in ASKS} | set(LATER_OPERATIONS)
    return frozenset({*PUBLIC, *LEAST, *PLANES, *MEMORY, MESSAGES, *map(operation_route, operations)})
