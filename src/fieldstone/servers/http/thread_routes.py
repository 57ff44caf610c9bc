"""The routes of streams and threads: what each is for, what it answers, and how its path is found.

The ids of streams and threads are their users': they may hold slashes. So a path is cut before it is decoded.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.transcripts import Context, Run, ThreadPage, ThreadReceipt, Tree
from fieldstone.planes.compaction import StreamCompaction
from fieldstone.planes.pages import EventPage
from fieldstone.planes.reconcile import Reconciliation
from fieldstone.planes.snapshots import Snapshot
from fieldstone.planes.streams import AppendedEvents, StreamStatus
from fieldstone.servers.http import streams, threads
from fieldstone.servers.http.endpoint import Endpoint, Handler
from fieldstone.servers.http.routes import InspectionRoute

PREFIXES: Final = ("/v1/streams/", "/v1/threads/")

MakeEndpoint = Callable[[str, dict[str, Handler]], Endpoint]

STREAM_ROUTES: Final = (
    InspectionRoute(
        "GET",
        "/v1/streams/{id}",
        "stream_status",
        "Where a stream ends, what of it is gone, and its snapshot. An unknown one is empty.",
        StreamStatus,
        (400,),
    ),
    InspectionRoute(
        "DELETE",
        "/v1/streams/{id}",
        "delete_stream",
        "Delete a stream's events, for good. Its numbers go on.",
        refusals=(400, 409, 413, 507),
        status=204,
    ),
    InspectionRoute(
        "GET",
        "/v1/streams/{id}/events",
        "read_events",
        "A stream's events, page by page.",
        EventPage,
        (400, 410),
        query=("after", "limit"),
    ),
    InspectionRoute(
        "POST",
        "/v1/streams/{id}/events",
        "append_events",
        "Append events to a stream: all of them, or none.",
        AppendedEvents,
        (400, 404, 409, 413, 422, 507),
        streams.Append,
        201,
    ),
    InspectionRoute(
        "GET",
        "/v1/streams/{id}/sse",
        "follow_stream",
        "A stream's events from Last-Event-ID on, and then what comes, as server-sent events.",
        None,
        (400, 410),
        query=("after",),
    ),
    InspectionRoute(
        "GET", "/v1/streams/{id}/snapshot", "stream_snapshot", "A stream's newest snapshot.", Snapshot, (400, 404)
    ),
    InspectionRoute(
        "POST",
        "/v1/streams/{id}/compact",
        "compact_stream",
        "Let a verified snapshot stand for a stream's events; these go.",
        StreamCompaction,
        (400, 413, 507),
        streams.CompactStream,
    ),
    InspectionRoute(
        "PUT",
        "/v1/streams/{id}/readers/{name}",
        "set_reader",
        "Register a reader's cursor: nothing behind it is compacted.",
        refusals=(400, 410, 413, 422, 507),
        body=streams.Cursor,
        status=204,
    ),
    InspectionRoute(
        "DELETE",
        "/v1/streams/{id}/readers/{name}",
        "drop_reader",
        "Forget a reader's cursor.",
        refusals=(400, 413, 507),
        status=204,
    ),
)

THREAD_ROUTES: Final = (
    InspectionRoute(
        "GET", "/v1/threads", "threads", "The threads, by id.", ThreadPage, (400,), query=("after", "limit")
    ),
    InspectionRoute(
        "DELETE",
        "/v1/threads/{thread}",
        "delete_thread",
        "Delete a thread with its messages, runs, streams and snapshots, for good.",
        ThreadReceipt,
        (404, 409, 413, 507),
    ),
    InspectionRoute(
        "GET",
        "/v1/threads/{thread}/messages",
        "messages_of_thread",
        "A path of a thread's messages, all of them, or those with these ids; page by page.",
        threads.MessageList,
        (400, 404),
        query=("branch", "selections", "ids", "after", "limit"),
    ),
    InspectionRoute(
        "GET",
        "/v1/threads/{thread}/tree",
        "tree",
        "How a thread's messages hang together, without their parts.",
        Tree,
        (404,),
    ),
    InspectionRoute(
        "GET",
        "/v1/threads/{thread}/context",
        "context",
        "The end of a path for the next prompt: the last messages, within a token budget.",
        Context,
        (400, 404),
        query=("last", "maxTokens", "reasoning", "toolResults", "selections"),
    ),
    InspectionRoute(
        "PUT",
        "/v1/threads/{thread}/active",
        "set_active",
        "Lead the active path through this message, and on by the default rule.",
        threads.Activated,
        (400, 404, 413, 507),
        threads.Activate,
    ),
    InspectionRoute(
        "GET",
        "/v1/threads/{thread}/runs",
        "runs",
        "A thread's runs, newest first.",
        threads.RunList,
        (400, 404),
        query=("before", "limit"),
    ),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs",
        "begin_run",
        "Begin a run at the active leaf, at a message, or at the root. The first one makes the thread.",
        Run,
        (400, 404, 413, 422, 507),
        threads.BeginRun,
        201,
    ),
    InspectionRoute("GET", "/v1/threads/{thread}/runs/{run}", "run", "One run.", Run, (404,)),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs/{run}/events",
        "append_to_run",
        "Append events to a run: all of them, or none.",
        AppendedEvents,
        (400, 404, 409, 413, 422, 507),
        streams.Append,
        201,
    ),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs/{run}/commit",
        "commit_run",
        "Commit a run: its messages are in the transcript.",
        Run,
        (404, 409, 413, 507),
    ),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs/{run}/fail",
        "fail_run",
        "End a run that failed.",
        Run,
        (404, 409, 413, 507),
    ),
    InspectionRoute(
        "POST", "/v1/threads/{thread}/runs/{run}/cancel", "cancel_run", "Cancel a run.", Run, (404, 409, 413, 507)
    ),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs/{run}/recover",
        "recover_run",
        "End a run whose writer is gone.",
        Run,
        (400, 404, 409, 413, 507),
        threads.Recover,
    ),
    InspectionRoute(
        "POST",
        "/v1/threads/{thread}/runs/{run}/remember",
        "remember_run",
        "Record what a committed run decided and found, as units of an agent.",
        threads.RememberedUnits,
        (400, 404, 409, 413, 422, 507),
        threads.RememberRun,
    ),
    InspectionRoute(
        "POST",
        "/v1/reconcile",
        "reconcile",
        "Find where logs and transcripts disagree, and mend it unless it is a dry run.",
        Reconciliation,
        (400, 404, 413, 507),
        threads.ReconcileThreads,
    ),
    InspectionRoute(
        "POST",
        "/v1/retention/streams",
        "retain_streams",
        "Compact the streams of runs that ended some time ago.",
        threads.RetainedStreams,
        (400, 413, 507),
        threads.RetainStreams,
    ),
)


def stream_handlers(following: streams.Following) -> dict[str, Handler]:
    """Of STREAM_ROUTES, by their names there."""
    return {
        "stream_status": streams.stream_status,
        "delete_stream": streams.delete_stream,
        "read_events": streams.read_events,
        "append_events": streams.append_events,
        "follow_stream": following.follow_stream,
        "stream_snapshot": streams.stream_snapshot,
        "compact_stream": streams.compact_stream,
        "set_reader": streams.set_reader,
        "drop_reader": streams.drop_reader,
    }


THREAD_HANDLERS: Final[dict[str, Handler]] = {
    "threads": threads.threads,
    "delete_thread": threads.delete_thread,
    "messages_of_thread": threads.messages,
    "tree": threads.tree,
    "context": threads.context,
    "set_active": threads.set_active,
    "runs": threads.runs,
    "begin_run": threads.begin_run,
    "run": threads.run,
    "append_to_run": threads.append_to_run,
    "commit_run": threads.commit_run,
    "fail_run": threads.fail_run,
    "cancel_run": threads.cancel_run,
    "recover_run": threads.recover_run,
    "remember_run": threads.remember_run,
    "reconcile": threads.reconcile,
    "retain_streams": threads.retain_streams,
}

# For the OpenAPI document: bodies that need not be there, answers that are server-sent events, fields of the query that
# only these routes have, and an example of each body.
OPTIONAL_BODIES: Final = frozenset({"begin_run", "reconcile", "retain_streams"})
EVENT_STREAMS: Final = frozenset({"follow_stream"})
QUERY_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "after": {"type": "string"},  # a seq, or the `next` of an answer
    "before": {"type": "string"},
    "branch": {"enum": ["active", "all"], "default": "active"},
    "ids": {"type": "string", "contentMediaType": "application/json"},
    "last": {"type": "integer", "minimum": 0, "maximum": MAX_EPOCH},
    "maxTokens": {"type": "integer", "minimum": 0, "maximum": MAX_EPOCH},
    "reasoning": {"enum": ["true", "false"], "default": "true"},
    "selections": {"type": "string", "contentMediaType": "application/json"},
    "toolResults": {"enum": ["true", "false"], "default": "true"},
}
_DELTA: Final = {"kind": "text-delta", "payload": {"delta": "Hello."}}
EXAMPLES: Final[dict[str, Any]] = {
    "append_events": {"events": [_DELTA], "expectedSeq": 0},
    "compact_stream": {"dryRun": True},
    "set_reader": {"seq": 0},
    "begin_run": {"forkFromMessageId": None},
    "append_to_run": {"events": [_DELTA]},
    "recover_run": {"action": "commit"},
    "remember_run": {"agentId": "ada"},
    "set_active": {"messageId": "msg-0198c3f1a7de55b20198c3f1a7de55b2"},
    "reconcile": {"dryRun": True},
    "retain_streams": {"finishedDays": 7, "dryRun": True},
}


class PlanePaths:
    """The ASGI application of all paths below PREFIXES. `otherwise` answers those that are none."""

    def __init__(self, make: MakeEndpoint, following: streams.Following, otherwise: ASGIApp) -> None:
        handlers = {**stream_handlers(following), **THREAD_HANDLERS}
        self.endpoints: Final = [
            make(path, {route.method: handlers[route.name] for route in methods})
            for path, methods in groupby((*STREAM_ROUTES, *THREAD_ROUTES), key=lambda route: route.path)
        ]
        self._otherwise: Final = otherwise
        self._found: Final = [(_parts(each.template.encode()), each) for each in self.endpoints]

    def takes(self, path: str) -> bool:
        return path.startswith(PREFIXES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._find(scope)(scope, receive, send)

    def _find(self, scope: Scope) -> ASGIApp:
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        try:
            parts = _parts(raw.partition(b"?")[0])
        except UnicodeDecodeError:  # no id is written like that
            return self._otherwise
        for template, endpoint in self._found:
            if (params := _matched(template, parts)) is not None:
                scope["path_params"] = params
                return endpoint
        return self._otherwise


def _parts(path: bytes) -> list[str]:
    return [unquote_to_bytes(part).decode() for part in path.split(b"/")]


def _matched(template: Sequence[str], parts: Sequence[str]) -> dict[str, str] | None:
    """What stands in the template's places, if the rest is the same."""
    if len(template) != len(parts):
        return None
    params: dict[str, str] = {}
    for wanted, part in zip(template, parts, strict=True):
        if wanted.startswith("{"):
            params[wanted.strip("{}")] = part
        elif wanted != part:
            return None
    return params
