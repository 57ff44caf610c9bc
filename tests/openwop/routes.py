"""Every route of the host that needs a key, as data."""

from typing import Any, Final, NamedTuple

import httpx

from tests.openwop.host import COMPACT, CONSOLIDATE, DISTILL, SEED, Caller, memory, part


class Route(NamedTuple):
    """`{ref}` and `{id}` stand in the path, the parameters and the body, wherever the route takes one."""

    method: str
    path: str
    body: Any = None
    params: dict[str, str] | None = None
    least: int | None = None  # authority; None: the contract does not say


ROUTES: Final = (
    Route("GET", "/v1/memory/{ref}", least=2),
    Route("GET", "/v1/memory/{ref}", params={"rank": "relevance", "query": "{id}"}, least=2),
    Route("GET", "/v1/memory/{ref}", params={"tag": "{id}", "limit": "0"}, least=2),
    Route("GET", "/v1/memory/{ref}", params={"snapshot": "{id}"}, least=2),
    Route("GET", "/v1/memory/{ref}/{id}", least=2),
    Route("POST", "/v1/memory/{ref}", {"content": "A plain remark.", "tags": ["mine"]}, least=4),
    Route("DELETE", "/v1/memory/{ref}/{id}", least=4),
    Route("POST", "/v1/memory/{ref}/forget", {"tag": "{id}"}, least=8),
    Route("POST", "/v1/memory/{ref}/forget", {"source": "{id}"}, least=8),
    Route("GET", "/v1/events", least=0),
    Route("GET", "/v1/events", params={"since": "{id}"}, least=0),
    Route("POST", "/v1/runs", {"workflowId": "conformance-noop"}),
    Route("GET", "/v1/runs/{id}"),
    Route("GET", "/v1/runs/{id}/events"),
    Route("GET", "/v1/runs/{id}/events/poll"),
    Route("POST", SEED, {"memoryRef": "{ref}", "entries": []}),
    Route("POST", COMPACT, {"memoryRef": "{ref}"}),
    Route("POST", DISTILL, {"memoryRef": "{ref}", "tokenBudget": 8_000, "sources": ["One.", "Two."]}),
    Route("POST", CONSOLIDATE, {"memoryRef": "{ref}"}),
)


def asked(caller: Caller, route: Route, *, ref: str = "mem_some", entry_id: str = "some-id") -> httpx.Response:
    """The route, with this ref and this id in all their places."""
    if route.path.startswith("/v1/memory/"):
        path = memory(ref, entry_id) if route.path.endswith("/{id}") else memory(ref)
        path += "/forget" * route.path.endswith("/forget")
    else:
        path = route.path.replace("{id}", part(entry_id))
    filled = [_filled(each, ref, entry_id) for each in (route.body, route.params)]
    return caller.http.request(route.method, path, json=filled[0], params=filled[1])


def _filled(value: Any, ref: str, entry_id: str) -> Any:
    if isinstance(value, str):
        return value.replace("{ref}", ref).replace("{id}", entry_id)
    if isinstance(value, dict):
        return {name: _filled(each, ref, entry_id) for name, each in value.items()}
    return value
