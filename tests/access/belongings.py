"""What a tenant has beside its units: streams, threads with runs and messages, memories, and runs of fixtures."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import httpx
from msgspec import UNSET, json

from fieldstone.core.access import LOCAL
from fieldstone.core.streams import StreamEvent
from fieldstone.field.field import LocalField
from fieldstone.field.threads import LocalThreads
from fieldstone.profiles.openwop.adapter import MemoryAdapter, SeedEntry
from tests.access.scene import Scene
from tests.access.table import Route
from tests.access.tower import Body, Holder

READER: Final = "archivist"
EVENTS: Final = {"events": [{"kind": "text-delta", "payload": {"delta": "A plain remark."}}]}


class Belongings(NamedTuple):
    """Ids of one tenant. The runs are of the thread: one that goes on, and one that was committed and decided
    something. The stream has a snapshot and events after it; the memory has two entries."""

    stream: str
    thread: str
    run: str
    done: str
    message: str
    ref: str
    entry: str
    fixture_run: str

    @property
    def ids(self) -> Sequence[str]:
        return [*self, f"run:{self.run}", f"run:{self.done}"]


UNKNOWN: Final = Belongings(
    "no-such-stream",
    "no-such-thread",
    "run-" + "0" * 32,
    "run-" + "1" * 32,
    "msg-" + "0" * 32,
    "no-such-memory",
    "no-such-entry",
    "run-" + "2" * 32,
)


async def plant(scene: Scene, owner: Holder, name: str, says: str) -> Belongings:
    """New ones, with this in their ids and that in their texts. Without a fixture's run: `start_fixture` makes one."""
    async with scene.tower.house.entrance.tenants.visit(owner.tenant) as field:
        stream, thread, ref = f"{name}/stream", f"{name}/thread", f"mem://{name}"
        await _fill_stream(field, stream, says)
        run, done, message = await _fill_thread(field, thread, says)
        adapter = MemoryAdapter(field, LOCAL)
        entries = [SeedEntry(id=f"{name}-{number}", content=f"{says} {number}", tags=(says,)) for number in (1, 2)]
        await adapter.seed(ref, entries)
    return Belongings(stream, thread, run, done, message, ref, entries[0].id, "")


async def start_fixture(scene: Scene, owner: Holder) -> str:
    answer = await scene.tower.request(owner, "POST", "/v1/runs", {"workflowId": "conformance-noop"})
    run_id: str = answer.json()["runId"]
    return run_id


async def held(scene: Scene, owner: Holder, belongings: Belongings) -> list[str]:
    """All that is there of them now."""
    async with scene.tower.house.entrance.tenants.visit(owner.tenant) as field:
        threads, streams, adapter = LocalThreads(field), field.planes.streams, MemoryAdapter(field, LOCAL)
        seen: list[Any] = [
            await streams.info(belongings.stream),
            await streams.read(belongings.stream, after=1),
            await streams.snapshot(belongings.stream),
            await streams.readers(belongings.stream),
            await threads.runs(belongings.thread),
            await threads.messages(belongings.thread, branch="all"),
            await threads.tree(belongings.thread),
            (await adapter.list(belongings.ref)).entries,
        ]
    return [json.encode(each, enc_hook=lambda _unset: None).decode() for each in seen]


async def _fill_stream(field: LocalField, stream: str, says: str) -> None:
    streams = field.planes.streams
    await streams.append(stream, [_delta(says)])
    await streams.compact(stream)
    await streams.append(stream, [_delta(says), StreamEvent("step-finished", {"stepIndex": 0})])


async def _fill_thread(field: LocalField, thread: str, says: str) -> tuple[str, str, str]:
    threads = LocalThreads(field)
    done = (await threads.begin_run(thread, UNSET)).run_id
    said = [StreamEvent("user-message", {"content": f"What of {says}?"}), _delta(f"Decision: we keep {says}.")]
    await threads.append(thread, done, said)
    await threads.commit(thread, done)
    [message, *_] = (await threads.messages(thread)).messages
    run = (await threads.begin_run(thread, UNSET)).run_id
    await threads.append(thread, run, [_delta(says)])
    return run, done, message.id


def _delta(text: str) -> StreamEvent:
    return StreamEvent("text-delta", {"delta": f"{text} "})


# --- asking for them --------------------------------------------------------------------------------------------------


def _ref(belongings: Belongings, holder: Holder) -> Body:
    return {"memoryRef": belongings.ref}


BODIES: Final[dict[Route, Callable[[Belongings, Holder], Body]]] = {
    ("POST", "/v1/streams/{id}/events"): lambda its, holder: EVENTS,
    ("POST", "/v1/streams/{id}/compact"): lambda its, holder: {},
    ("PUT", "/v1/streams/{id}/readers/{name}"): lambda its, holder: {"seq": 3},
    ("PUT", "/v1/threads/{thread}/active"): lambda its, holder: {"messageId": its.message},
    ("POST", "/v1/threads/{thread}/runs"): lambda its, holder: {},
    ("POST", "/v1/threads/{thread}/runs/{run}/events"): lambda its, holder: EVENTS,
    ("POST", "/v1/threads/{thread}/runs/{run}/recover"): lambda its, holder: {"action": "commit"},
    ("POST", "/v1/threads/{thread}/runs/{run}/remember"): lambda its, holder: {"agentId": holder.agent},
    ("POST", "/v1/reconcile"): lambda its, holder: {"threadId": its.thread},
    ("POST", "/v1/retention/streams"): lambda its, holder: {"dryRun": True},
    ("POST", "/v1/memory/{ref}"): lambda its, holder: {"content": "A plain remark."},
    ("POST", "/v1/memory/{ref}/forget"): lambda its, holder: {"source": its.entry},
    ("POST", "/v1/test/memory/seed"): lambda its, holder: {
        "memoryRef": its.ref,
        "entries": [{"id": its.entry, "content": "A plain remark."}],
    },
    ("POST", "/v1/test/memory/compact"): _ref,
    ("POST", "/v1/host/sample/memory/distill"): lambda its, holder: {
        "memoryRef": its.ref,
        "tokenBudget": 8_000,
        "sources": ["It is cold.", "It is late."],
    },
    ("POST", "/v1/host/sample/memory/consolidate"): _ref,
    ("POST", "/v1/runs"): lambda its, holder: {"workflowId": "conformance-noop"},
}
AFTER_THE_SNAPSHOT: Final = "?after=1"


def path_of(route: Route, its: Belongings) -> str:
    """Ids hold slashes: each is one part of the path."""
    _, path = route
    kind = path.split("/")[2]
    names = {
        "id": {"streams": its.stream, "memory": its.entry, "runs": its.fixture_run}.get(kind, ""),
        "thread": its.thread,
        "run": its.done if path.endswith("/remember") else its.run,
        "ref": its.ref,
        "name": READER,
    }
    query = AFTER_THE_SNAPSHOT if path.endswith(("{id}/events", "{id}/sse")) and kind == "streams" else ""
    return re.sub(r"{(\w+)}", lambda found: _part(names[found[1]]), path) + query * (route[0] == "GET")


def _part(text: str) -> str:
    return text.replace("/", "%2F").replace(":", "%3A")


async def asked_for(scene: Scene, holder: Holder | None, route: Route, its: Belongings) -> httpx.Response:
    body = BODIES[route](its, holder or scene.ada) if route in BODIES else None
    return await scene.tower.request(holder, route[0], path_of(route, its), body)


_MADE_ANEW: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "then"),
    (re.compile(r"\b(run|mem|msg|cmp)-[0-9a-f]{32}\b"), r"a \1"),
    (re.compile(r'"snapshot":"[^"]+"'), '"snapshot":"a token"'),
)


def likened(answer: httpx.Response, its: Belongings) -> tuple[int, dict[str, str], str]:
    """All that an answer says, but for the ids that were asked for and what every answer has anew."""
    told = answer.text
    for name, each in zip(its._fields, its, strict=True):
        told = told.replace(each, f"the {name}") if each else told
    for pattern, instead in _MADE_ANEW:
        told = pattern.sub(instead, told)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}
    return answer.status_code, headers, told
