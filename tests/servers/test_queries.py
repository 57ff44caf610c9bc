"""What stands behind the question mark counts, or is refused: a typo is never passed over."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from fieldstone.servers.http.app import QUERIES
from fieldstone.servers.http.openapi import openapi_document
from tests.redact.fakes import noise
from tests.requirements import requirement
from tests.servers.live import Live


def documented() -> Iterator[tuple[tuple[str, str], set[str]]]:
    """The fields of the query that the OpenAPI document tells of, by path and method."""
    paths: dict[str, Any] = openapi_document()["paths"]
    for path, methods in paths.items():
        for method, route in methods.items():
            fields = {each["name"] for each in route.get("parameters", ()) if each["in"] == "query"}
            yield (path, method.upper()), fields


def test_every_route_knows_the_fields_that_the_document_tells_of() -> None:
    told = dict(documented())
    assert {route: set(known) for route, known in QUERIES.items()} == {route: told[route] for route in QUERIES}


@requirement("akashik:http:query-known")
async def test_a_field_that_a_route_does_not_know_is_refused_before_anything_is_done(live: Live) -> None:
    before = (await live.client.get("/v1/log")).json()
    for (path, method), known in QUERIES.items():
        address = re.sub(r"{\w+}", "some", path)
        answer = await live.client.request(method, f"{address}?limti=5", content=b"{}")
        assert answer.status_code == 400, (method, path, answer.text)
        told = answer.json()
        assert told.get("code", "INVALID_PAYLOAD") == "INVALID_PAYLOAD"  # OpenWOP's envelope has another word
        assert all(field in told["message"] for field in ("limti", *known)), (method, path)
    assert (await live.client.get("/v1/log")).json() == before


async def test_head_knows_what_get_knows(live: Live) -> None:
    assert (await live.client.head("/v1/log?limit=5")).status_code == 200
    assert (await live.client.head("/v1/log?limti=5")).status_code == 400


@pytest.mark.parametrize("name", ["a" * 33, "The answer was: 42", "a%00b", "%1b[31m"])
async def test_a_field_that_is_no_name_is_refused_and_not_told_back(live: Live, name: str) -> None:
    answer = await live.client.get(f"/v1/log?{name}=1")
    assert answer.status_code == 400
    assert answer.json()["message"] == "The query has a field that is not known here. Known are: after, limit."


async def test_a_known_secret_in_place_of_a_field_is_not_told_back(live: Live) -> None:
    value = noise(24)
    await live.client.put("/v1/secrets/door", json={"value": value})
    answer = await live.client.get(f"/v1/log?{value}=1")
    assert answer.status_code == 400
    assert value not in answer.text
    assert "[REDACTED:door]" in answer.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/openapi.json", "/docs"])
async def test_pages_and_probes_may_have_a_query_that_means_nothing(live: Live, path: str) -> None:
    assert (await live.client.get(f"{path}?t=1")).status_code == 200
