"""The server against input that nobody thought of: from the OpenAPI document, and from messages bent out of shape.

`make test` sends the same requests every time; `make fuzz` sends many more, and others each time.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks as openapi_checks

from fieldstone.core.vocabulary import BUILT_OPERATIONS, Operation
from fieldstone.servers.http.examples import example_message
from fieldstone.servers.http.openapi import openapi_document
from tests.fuzz.bent import CODED_5XX, ERROR_FIELDS, MANY, check_error
from tests.fuzz.served import guarded, served

document = schemathesis.openapi.from_dict(json.loads(json.dumps(openapi_document())))
schema = document.exclude(path=["/", "/v1/streams/{id}/sse"])  # one redirects, the other has no end


@schemathesis.serializer("application/jsonl")
def lines(context: schemathesis.SerializationContext, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@schemathesis.deserializer("application/jsonl")
def text(context: schemathesis.DeserializationContext, response: schemathesis.Response) -> Any:
    return response.content.decode()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served() as address:
        join(address)
        yield address


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as one:
        yield one


class Operator(NamedTuple):
    """Of a server with keys: on an open one, the first key that is made would lock out everybody."""

    url: str
    session: requests.Session


@pytest.fixture(scope="module")
def operator() -> Iterator[Operator]:
    with guarded() as server, requests.Session() as session:
        session.headers["authorization"] = f"Bearer {server.operator.token}"
        join(server.url, session)
        yield Operator(server.url, session)


def join(url: str, session: requests.Session | None = None) -> None:
    answer = (session or requests).post(f"{url}/v1/register", json=example_message("REGISTER"), timeout=10)
    assert answer.status_code == 200


def no_uncoded_failure(context: schemathesis.CheckContext, response: schemathesis.Response, case: Any) -> None:
    assert response.status_code < 500 or response.status_code in CODED_5XX, response.text
    if response.status_code >= 400:
        check_error(case.path, response.status_code, set(response.json()))


CHECKS = [
    no_uncoded_failure,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.negative_data_rejection,
    openapi_checks.unsupported_method,
]


@schema.parametrize()
@settings(max_examples=500 if MANY else 8)
def test_every_route_keeps_what_the_document_says(case: Any, operator: Operator) -> None:
    case.call_and_validate(base_url=operator.url, session=operator.session, checks=CHECKS, timeout=30)


# --- messages bent out of shape ---------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 2**53, 2**63, 2**64, 10**400])
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = st.sampled_from(
    [
        "",
        "ada",
        "field",
        "draft",
        "committed",
        "human_directive",
        "contradicts",
        "openwop:x",
        "\u200b",
        "\x00",
        "x" * 2000,
    ]
)


@st.composite
def bent_messages(draw: st.DrawFn) -> tuple[Operation, bytes]:
    """A message of a built operation in which a few places hold something else."""
    operation = draw(st.sampled_from(BUILT_OPERATIONS))
    message: Any = {**example_message(operation), "id": draw(st.text(max_size=8))}
    message = json.loads(json.dumps(message))
    for _ in range(draw(st.integers(0, 3))):
        _bend(draw, message)
    body = json.dumps(message).encode()
    return operation, draw(st.just(body) | bent_bytes(body))


def _bend(draw: st.DrawFn, node: Any) -> None:
    """Walk down to some place, and put something else there."""
    while True:
        key = draw(st.sampled_from(sorted(node))) if node else "x"
        if isinstance(node.get(key), dict) and draw(st.booleans()):
            node = node[key]
            continue
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                node[key] = draw(JSON | WORDS)
            case "remove":
                node.pop(key, None)
            case _:
                node[draw(st.sampled_from(["relations", "epoch", "status", "source", "min_epoch", "y"]))] = draw(JSON)
        return


@st.composite
def bent_bytes(draw: st.DrawFn, body: bytes) -> bytes:
    at = draw(st.integers(0, len(body)))
    cut = draw(st.integers(0, 4))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + cut :]


@given(bent=bent_messages())
@settings(max_examples=5_000 if MANY else 150)
def test_a_bent_message_is_answered_or_refused_with_a_code_and_a_refused_one_changes_nothing(
    url: str, session: requests.Session, bent: tuple[Operation, bytes]
) -> None:
    operation, body = bent
    for path in (f"/v1/{operation.lower()}", "/v1/messages"):
        before = entries(url, session)
        answer = session.post(url + path, data=body, timeout=30)
        assert answer.status_code < 500 or answer.status_code in CODED_5XX, answer.text
        if answer.status_code >= 400:
            assert set(answer.json()) >= ERROR_FIELDS
            assert entries(url, session) == before


@given(lines=st.lists(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()), max_size=4))
@settings(max_examples=2_000 if MANY else 50)
def test_what_is_not_an_export_is_refused_with_a_code(url: str, session: requests.Session, lines: list[bytes]) -> None:
    answer = session.post(f"{url}/v1/import", data=b"\n".join(lines), timeout=30)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert answer.json() == {"imported": 0, "skipped": 0}


@given(
    path=st.text(st.characters(codec="utf-8"), max_size=30),
    query=st.dictionaries(st.sampled_from(["after", "limit", "status", "x"]), st.text(max_size=8), max_size=3),
)
@settings(max_examples=2_000 if MANY else 50)
def test_no_address_breaks_the_server(url: str, session: requests.Session, path: str, query: dict[str, str]) -> None:
    for prefix in ("/", "/v1/units/", "/v1/log/", "/v1/conflicts"):
        answer = session.get(url + prefix + path, params=query, timeout=30, allow_redirects=False)
        assert answer.status_code < 500 or answer.status_code in CODED_5XX


def entries(url: str, session: requests.Session) -> int:
    count: int = session.get(f"{url}/v1/field/status", timeout=10).json()["log_entries"]
    return count
