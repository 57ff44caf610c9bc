"""A memory host in a process of its own, and callers with keys to it, as OpenWOP's suite meets one."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx

from tests.cli.running import PROGRAM, answer

Body = dict[str, Any]

TIMEOUT_S: Final = 30
FINISHED: Final = ("completed", "failed", "cancelled")
POLLS_MOST: Final = 5_000  # a run of a fixture is over long before

DISCOVERY: Final = "/.well-known/openwop"
SEED: Final = "/v1/test/memory/seed"
COMPACT: Final = "/v1/test/memory/compact"
DISTILL: Final = "/v1/host/sample/memory/distill"
CONSOLIDATE: Final = "/v1/host/sample/memory/consolidate"
SEAMS: Final = (SEED, COMPACT, DISTILL, CONSOLIDATE)


class Caller:
    """Who has a key of a tenant, or none."""

    def __init__(self, url: str, key: str | None) -> None:
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self.http = httpx.Client(base_url=url, timeout=TIMEOUT_S, headers=headers)

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.http.get(path, params=params or None)

    def post(self, path: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.http.post(path, json=body, params=params or None)

    def delete(self, path: str, **params: Any) -> httpx.Response:
        return self.http.delete(path, params=params or None)

    # --- the MemoryAdapter over HTTP ---

    def page(self, ref: str, **params: Any) -> Body:
        """What a list answers: the entries, and the snapshot's token."""
        return told(self.get(memory(ref), **params))

    def entries(self, ref: str, **params: Any) -> list[Body]:
        found: list[Body] = self.page(ref, **params)["entries"]
        return found

    def contents(self, ref: str, **params: Any) -> list[str]:
        return [entry["content"] for entry in self.entries(ref, **params)]

    def entry(self, ref: str, entry_id: str, **params: Any) -> httpx.Response:
        return self.get(memory(ref, entry_id), **params)

    def put(self, ref: str, content: str, *, snapshot: str | None = None, **fields: Any) -> Body:
        params = {} if snapshot is None else {"snapshot": snapshot}
        return told(self.post(memory(ref), {"content": content, **fields}, **params), 201)

    # --- the conformance seam ---

    def seed(self, ref: str, contents: Mapping[str, str], **fields: Any) -> None:
        entries = [{"id": each, "content": content, **fields} for each, content in contents.items()]
        told(self.post(SEED, {"memoryRef": ref, "entries": entries}), 201)

    def compacted(self, ref: str) -> Body:
        return told(self.post(COMPACT, {"memoryRef": ref}))

    def distilled(self, ref: str, token_budget: int, **fields: Any) -> Body:
        return told(self.post(DISTILL, {"memoryRef": ref, "tokenBudget": token_budget, **fields}))

    def consolidated(self, ref: str, **fields: Any) -> Body:
        return told(self.post(CONSOLIDATE, {"memoryRef": ref, **fields}))

    def started(self, workflow: str, **fields: Any) -> str:
        run = told(self.post("/v1/runs", {"workflowId": workflow, **fields}), 201)
        run_id: str = run["runId"]
        return run_id

    def finished(self, workflow: str, **fields: Any) -> Body:
        """The run's last state, polled for as the suite does."""
        run_id = self.started(workflow, **fields)
        for _ in range(POLLS_MOST):
            run = told(self.get(f"/v1/runs/{run_id}"))
            if run["status"] in FINISHED:
                return run
        raise AssertionError(f"{workflow} does not end")

    def variables(self, workflow: str) -> Body:
        run = self.finished(workflow)
        assert run["status"] == "completed", run
        variables: Body = run["variables"]
        return variables

    def run_events(self, run_id: str) -> list[Body]:
        events: list[Body] = told(self.get(f"/v1/runs/{run_id}/events"))["events"]
        return events

    # --- the feed ---

    def feed(self, **params: Any) -> Body:
        return told(self.get("/v1/events", **params))

    def events(self, type: str | None = None, **params: Any) -> list[Body]:
        """All of them, page by page."""
        if type is not None:
            params["type"] = type
        found: list[Body] = []
        while True:
            page = self.feed(**params)
            found += page["events"]
            if not page["events"] or page["next"] is None:
                return found
            params["since"] = page["next"]

    def events_of(self, ref: str, type: str) -> list[Body]:
        return [event for event in self.events(type) if event["memoryRef"] == ref]


class Host(NamedTuple):
    """The server, an operator of acme, one of zeta, somebody without a key, and what the server wrote and keeps."""

    url: str
    acme: Caller
    zeta: Caller
    nobody: Caller
    folder: Path
    log: Path

    @contextmanager
    def caller(self, tenant: str, *options: str, authority: int = 10) -> Iterator[Caller]:
        """With a new key: the server notices it at once."""
        caller = Caller(self.url, new_key(self.folder / "team.db", tenant, authority, *options))
        with caller.http:
            yield caller


@contextmanager
def serving(
    folder: Path,
    *options: str,
    conformance: bool = True,
    is_open: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Host]:
    """`is_open`: there are no keys, and everybody is the local operator."""
    store, log = folder / "team.db", folder / "server.log"
    keys = [None if is_open else new_key(store, tenant, 10) for tenant in ("acme", "zeta")]
    command = [*PROGRAM, "serve", "--db", str(store), "--port", "0", *options]
    with ExitStack() as stack:
        url = stack.enter_context(_process(command + ["--conformance"] * conformance, log, environ or {}))
        served = Host(url, Caller(url, keys[0]), Caller(url, keys[1]), Caller(url, None), folder, log)
        for caller in (served.acme, served.zeta, served.nobody):
            stack.callback(caller.http.close)
        yield served


@contextmanager
def _process(command: Sequence[str], log: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Its URL. It knows nothing of the variables of whoever runs the tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FIELDSTONE_")}
    with (
        log.open("wb") as written,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True, env={**own, **environ}) as server,
    ):
        assert server.stdout is not None
        ready = server.stdout.readline()
        url = re.search(r"http://[\d.]+:\d+", ready)
        try:
            assert url is not None, f"{ready}{log.read_text()}"
            yield url.group()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


@contextmanager
def listening(caller: Caller, *, after: str | None = None, **params: Any) -> Iterator[Iterator[tuple[str, Body]]]:
    """The feed as server-sent events: each with its id, as they come."""
    headers = {"accept": "text/event-stream"} | ({"last-event-id": after} if after else {})
    with caller.http.stream("GET", "/v1/events", params=params, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _sent(response.iter_lines())


def _sent(lines: Iterator[str]) -> Iterator[tuple[str, Body]]:
    event_id, data = "", ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            event_id = value
        elif name == "data":
            data += value
        elif not line and data:
            yield event_id, json.loads(data)
            data = ""


def new_key(store: Path, tenant: str, authority: int, *options: str) -> str:
    wanted = ("--tenant", tenant, "--authority", str(authority), "--db", str(store), *options)
    key: str = answer("keys", "create", *wanted)["key"]
    return key


def memory(ref: str, entry_id: str | None = None) -> str:
    """The path: a ref and an id may hold anything, a slash too."""
    return "/v1/memory/" + "/".join(map(part, (ref,) if entry_id is None else (ref, entry_id)))


def part(text: str) -> str:
    """Of a path. Dots as well: a client would take `..` for the folder above."""
    return quote(text, safe="").replace(".", "%2E")


def told(response: httpx.Response, status: int = 200) -> Body:
    assert response.status_code == status, f"{response.status_code} {response.text}"
    body: Body = response.json()
    return body
