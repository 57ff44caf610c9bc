"""The operation table: which route each operation has, what it takes and what it answers."""

from typing import Any, Final

from msgspec import Struct

from fieldstone.core.replies import Accepted, Attunement, Compacted, Deregistered, Detection, Done, Registered
from fieldstone.core.requests import REQUESTS, Request
from fieldstone.core.vocabulary import OPERATION_LEVELS, Operation


class OperationRoute(Struct, frozen=True):
    operation: Operation
    path: str
    summary: str
    reply: Any = None  # None: not built yet

    @property
    def request(self) -> type[Request] | None:
        return REQUESTS.get(self.operation)

    @property
    def level(self) -> int:
        return OPERATION_LEVELS[self.operation]


OPERATION_ROUTES: Final = (
    OperationRoute("REGISTER", "/v1/register", "An agent joins, with a role and its interests.", Registered),
    OperationRoute("DEREGISTER", "/v1/deregister", "An agent leaves; its units stay.", Deregistered),
    OperationRoute("RECORD", "/v1/record", "Add a memory unit: what was found, why, and how sure.", Accepted),
    OperationRoute("ATTUNE", "/v1/attune", "The context that matters to this agent, ranked and explained.", Attunement),
    OperationRoute("DETECT", "/v1/detect", "The conflicts of the field.", Detection),
    OperationRoute("COMMIT", "/v1/commit", "A draft takes effect.", Accepted),
    OperationRoute("DISCARD", "/v1/discard", "A draft is given up.", Done),
    OperationRoute("RETRACT", "/v1/retract", "A unit no longer stands.", Done),
    OperationRoute("MERGE", "/v1/merge", "Resolve a conflict."),
    OperationRoute("REPLAY", "/v1/replay", "What happened, and what led to it."),
    OperationRoute("COMPACT", "/v1/compact", "Archive, summarize or purge aged units.", Compacted),
    OperationRoute("SUBSCRIBE", "/v1/subscribe", "Push. Until it is built: ATTUNE with since_epoch, order epoch."),
    OperationRoute("COORDINATE", "/v1/coordinate", "Tasks."),
    OperationRoute("HANDOFF", "/v1/handoff", "Hand a task over, with its context."),
    OperationRoute("SESSION", "/v1/session", "Sessions."),
)
