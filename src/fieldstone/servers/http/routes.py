"""The routes that are not operations: what each is for, and what it answers. The handlers stand in `app.py`."""

from typing import Any, Final, Literal

from msgspec import Struct

from fieldstone.audit.verify import Verification
from fieldstone.core.replies import CompactionPage, CompactionProgress, FieldStatus, GuardPage, Lineage
from fieldstone.core.units import MemoryUnit
from fieldstone.core.vocabulary import Guard
from fieldstone.field.field import LogPage
from fieldstone.field.sweep import Swept
from fieldstone.field.transfer import Imported
from fieldstone.profiles.openwop.adapter import MemoryEntry, MemoryList
from fieldstone.servers.auth.keys import NewKey, Renewal
from fieldstone.servers.http.compactions import Restore, Restored
from fieldstone.servers.http.events import Events
from fieldstone.servers.http.inspect import Agents, Conflicts, Views
from fieldstone.servers.http.keys import KeyList, KeyOnce
from fieldstone.servers.http.memory import Forget, Forgotten, NewMemory
from fieldstone.servers.http.retention import Outcomes, Policies, PolicyStatuses
from fieldstone.servers.http.secrets import NewSecret, SecretList

Method = Literal["GET", "POST", "PUT", "DELETE"]

MESSAGES_PATH: Final = "/v1/messages"
OPENAPI_PATH: Final = "/v1/openapi.json"
DOCS_PATH: Final = "/docs"


class Health(Struct, frozen=True):
    status: str = "ok"


class InspectionRoute(Struct, frozen=True):
    method: Method
    path: str
    name: str  # of what answers it, in `app.py`
    summary: str
    reply: Any = None  # None: JSON lines
    refusals: tuple[int, ...] = ()  # beside those that every route has
    body: Any = None
    status: int = 200  # 204: no body
    query: tuple[str, ...] = ()


class UnbuiltRoute(Struct, frozen=True):
    """A route of the contract whose part does not exist yet: 501."""

    methods: tuple[Method, ...]
    path: str
    name: str


def _guard_routes(guard: Guard) -> tuple[InspectionRoute, InspectionRoute]:
    path, refusals = f"/v1/units/{{id}}/{guard}", (404, 410, 413, 507)
    return (
        InspectionRoute(
            "PUT", path, f"set_{guard}", "No compaction touches the unit from now on.", refusals=refusals, status=204
        ),
        InspectionRoute(
            "DELETE", path, f"lift_{guard}", "Compactions may touch the unit again.", refusals=refusals, status=204
        ),
    )


INSPECTION_ROUTES: Final = (
    InspectionRoute("GET", "/v1/field/status", "status", "How the field is: its clock, counts and store.", FieldStatus),
    InspectionRoute("GET", "/v1/agents", "agents", "Every agent that ever registered.", Agents),
    InspectionRoute("GET", "/v1/conflicts", "conflicts", "The conflicts, by status.", Conflicts, query=("status",)),
    InspectionRoute("GET", "/v1/units/{id}", "unit", "One memory unit.", MemoryUnit, (404, 410)),
    InspectionRoute("GET", "/v1/log", "log", "Entries of the log, page by page.", LogPage, query=("after", "limit")),
    InspectionRoute("POST", "/v1/verify", "verify", "Is every entry and text as it was written?", Verification, (413,)),
    InspectionRoute("POST", "/v1/rebuild", "rebuild", "Throw the views away and build them again.", Views, (413, 507)),
    InspectionRoute("GET", "/v1/export", "export", "The log with its texts, as JSON lines."),
    InspectionRoute(
        "POST", "/v1/import", "take_in", "Take in lines of an export, at most 10 MB.", Imported, (400, 413, 507)
    ),
    InspectionRoute(
        "GET",
        "/v1/compactions",
        "compactions",
        "The compactions that there were, page by page.",
        CompactionPage,
        query=("after", "limit"),
    ),
    InspectionRoute("GET", "/v1/compactions/{id}", "compaction", "Where a compaction is.", CompactionProgress, (404,)),
    InspectionRoute(
        "DELETE",
        "/v1/compactions/{id}",
        "cancel_compaction",
        "Cancel a compaction: it stops after the step it is in.",
        CompactionProgress,
        (404, 413),
    ),
    InspectionRoute(
        "GET", "/v1/compactions/{id}/events", "compaction_events", "Its progress, as server-sent events.", None, (404,)
    ),
    InspectionRoute(
        "POST",
        "/v1/restore",
        "restore",
        "Bring archived units back.",
        Restored,
        (400, 404, 410, 413, 507),
        Restore,
    ),
    InspectionRoute(
        "GET",
        "/v1/guards",
        "guards",
        "The units that are held or pinned, page by page.",
        GuardPage,
        query=("guard", "after", "limit"),
    ),
    *_guard_routes("hold"),
    *_guard_routes("pin"),
    InspectionRoute(
        "GET", "/v1/units/{id}/lineage", "lineage", "What it was made from, and into.", Lineage, (404, 410)
    ),
    InspectionRoute("GET", "/v1/retention", "policies", "The retention policies that hold.", Policies),
    InspectionRoute(
        "PUT",
        "/v1/retention",
        "set_policies",
        "These policies hold from now on, and no others.",
        Policies,
        (400, 413, 422, 507),
        Policies,
    ),
    InspectionRoute("POST", "/v1/retention/plan", "plan_retention", "What each policy would do now.", Outcomes, (413,)),
    InspectionRoute(
        "POST",
        "/v1/retention/apply",
        "apply_retention",
        "Carry out every policy that is enabled.",
        Outcomes,
        (409, 413, 507),
    ),
    InspectionRoute(
        "GET", "/v1/retention/status", "retention_status", "When each policy ran, and runs next.", PolicyStatuses
    ),
    InspectionRoute("GET", "/v1/secrets", "secrets", "Known secrets: their ids and scopes.", SecretList),
    InspectionRoute(
        "PUT",
        "/v1/secrets/{id}",
        "put_secret",
        "Register a value that must never be stored.",
        refusals=(400, 413, 507),
        body=NewSecret,
        status=204,
    ),
    InspectionRoute(
        "DELETE", "/v1/secrets/{id}", "drop_secret", "Forget a known secret.", refusals=(404, 413, 507), status=204
    ),
    InspectionRoute(
        "POST", "/v1/sweep", "sweep", "Clear secrets that became known late from every text.", Swept, (413, 507)
    ),
    InspectionRoute("GET", "/v1/keys", "keys", "The tenant's keys, without the keys themselves.", KeyList),
    InspectionRoute(
        "POST",
        "/v1/keys",
        "create_key",
        "Make a key. It is shown this once.",
        KeyOnce,
        (400, 413, 422, 507),
        NewKey,
        201,
    ),
    InspectionRoute(
        "DELETE", "/v1/keys/{id}", "revoke_key", "Revoke a key, at once.", refusals=(404, 413, 507), status=204
    ),
    InspectionRoute(
        "POST",
        "/v1/keys/{id}/rotate",
        "rotate_key",
        "A new secret under the same id, and a new end if one is given; the old secret stops at once.",
        KeyOnce,
        (400, 404, 409, 413, 507),
        Renewal,
    ),
)

# OpenWOP's: `servers/http/openwop.py` finds their handlers, since a ref may hold slashes.
MEMORY_ROUTES: Final = (
    InspectionRoute(
        "GET",
        "/v1/memory/{ref}",
        "list_memory",
        "The entries of a memory, newest first.",
        MemoryList,
        (400,),
        query=("limit", "tag", "tokenBudget", "rank", "query", "snapshot"),
    ),
    InspectionRoute(
        "POST",
        "/v1/memory/{ref}",
        "put_memory",
        "Put an entry into a memory.",
        MemoryEntry,
        (400, 422, 507),
        NewMemory,
        201,
        ("snapshot",),
    ),
    InspectionRoute(
        "GET", "/v1/memory/{ref}/{id}", "get_memory", "One entry.", MemoryEntry, (400, 404), query=("snapshot",)
    ),
    InspectionRoute(
        "DELETE", "/v1/memory/{ref}/{id}", "delete_memory", "Delete an entry, for good.", None, (404, 507), status=204
    ),
    InspectionRoute(
        "POST",
        "/v1/memory/{ref}/forget",
        "forget_memory",
        "Delete all entries under a tag, or of one source.",
        Forgotten,
        (400, 507),
        Forget,
    ),
    InspectionRoute(
        "GET",
        "/v1/events",
        "events",
        "What happened to memories: page by page, or as server-sent events.",
        Events,
        (400,),
        query=("type", "since", "limit"),
    ),
)

UNBUILT_ROUTES: Final = (
    UnbuiltRoute(("GET",), "/v1/subscriptions/{id}/events", "Push by server-sent events"),
    UnbuiltRoute(("GET",), "/v1/subscriptions/{id}/ws", "Push by WebSocket"),
)
