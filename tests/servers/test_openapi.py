"""The OpenAPI document and the page made from it."""

import re
import shlex
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
import schemathesis
from msgspec import json

from fieldstone.core.vocabulary import BUILT_OPERATIONS, Operation
from fieldstone.servers.http.docs_page import curl, docs_page
from fieldstone.servers.http.examples import UNIT_ID, example_message
from fieldstone.servers.http.openapi import openapi_document
from fieldstone.servers.http.openwop import PREFIXES
from fieldstone.wire.errors import HTTP_STATUS
from tests.servers.live import Live

DOCUMENT = openapi_document()
ROUTES = {
    (method.upper(), path): route for path, methods in DOCUMENT["paths"].items() for method, route in methods.items()
}


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    schemathesis.openapi.from_dict(json.decode(json.encode(DOCUMENT))).validate()


def test_every_reference_leads_somewhere_and_every_id_is_there_once() -> None:
    text = json.encode(DOCUMENT).decode()
    for kind, name in re.findall(r'"#/components/(\w+)/([^"]+)"', text):
        assert name in DOCUMENT["components"][kind]
    ids = [route["operationId"] for route in ROUTES.values()]
    assert len(set(ids)) == len(ids)


async def test_the_document_has_every_route_of_the_application_and_no_other(live: Live) -> None:
    served = {
        (method, endpoint.template)
        for endpoint in live.serving._server._app.endpoints
        for method in endpoint.methods
        if method != "HEAD"
    }
    assert served == set(ROUTES)
    assert (await live.client.get("/v1/openapi.json")).json() == json.decode(json.encode(DOCUMENT))


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_tells_its_refusals_in_the_error_format(method: str, path: str) -> None:
    responses = ROUTES[method, path]["responses"]
    refusals = {status: response for status, response in responses.items() if int(status) >= 400}
    assert {"403", "500", "503"} <= set(refusals)
    assert {int(status) for status in refusals} <= set(HTTP_STATUS.values())
    of_openwop = path.startswith(PREFIXES)
    kind, body = ("OpenWopError", "OpenWopError") if of_openwop else ("Error", "ErrorBody")
    for status, response in refusals.items():
        assert response == {"$ref": f"#/components/responses/{kind}{status}"}
        schema = DOCUMENT["components"]["responses"][f"{kind}{status}"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{body}"}


async def test_the_examples_are_accepted_in_their_order(live: Live) -> None:
    first: tuple[Operation, ...] = ("REGISTER", "RECORD", "ATTUNE", "DETECT")
    for operation in first:
        assert (await live.post(f"/v1/{operation.lower()}", example_message(operation))).status_code == 200
    draft = await live.record("ada", "A draft.", mode="draft")
    then: tuple[Operation, ...] = ("COMMIT", "RETRACT")
    for operation in then:
        body = json.decode(json.encode(example_message(operation)).replace(UNIT_ID.encode(), draft.encode()))
        assert (await live.post(f"/v1/{operation.lower()}", body)).status_code == 200
    assert (await live.post("/v1/discard", example_message("DISCARD"))).status_code == 404
    assert (await live.post("/v1/deregister", example_message("DEREGISTER"))).status_code == 200


def test_every_built_operation_has_its_request_and_answer() -> None:
    for operation in BUILT_OPERATIONS:
        route = ROUTES["POST", f"/v1/{operation.lower()}"]
        assert "200" in route["responses"]
        schema = DOCUMENT["components"]["schemas"][f"{operation.capitalize()}Message"]
        assert schema["properties"]["operation"] == {"const": operation}
        assert "$ref" in schema["properties"]["payload"]


# --- the page ---------------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.pres: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "pre":
            self.pres.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "pre" and self.pres:
            self.pres[-1] += data


async def test_the_page_needs_no_script_and_nothing_from_elsewhere(live: Live) -> None:
    answer = await live.client.get("/docs")
    page = _Page(answer.text)
    assert not page.tags & {"script", "link", "img", "iframe", "object"}
    assert "@import" not in answer.text
    assert "url(" not in answer.text
    assert all(link.startswith(("#", "/")) for link in page.links)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "{{" not in answer.text


async def test_the_page_shows_every_route_with_a_command_that_names_it(live: Live) -> None:
    page = _Page((await live.client.get("/docs")).text)
    urls = {next(word for word in shlex.split(command) if word.startswith("http")) for command in page.pres}
    assert urls == {live.serving.url + re.sub(r"{(\w+)}", lambda each: each[1].upper(), path) for _, path in ROUTES}
    assert len(page.pres) == len(ROUTES)


async def test_the_commands_of_the_page_send_what_the_server_takes(live: Live) -> None:
    await live.join("ada")
    record = example_message("RECORD")
    words = shlex.split(curl("POST", "/v1/record", live.serving.url, record))
    body = words[words.index("-d") + 1]
    assert json.decode(body) == record
    assert (await live.client.post("/v1/record", content=body)).status_code == 200


def test_what_stands_in_the_document_cannot_become_markup() -> None:
    evil: dict[str, Any] = json.decode(json.encode(DOCUMENT))
    evil["info"]["description"] = "<script>alert(1)</script>"
    assert b"<script>" not in docs_page(evil, "http://localhost")


async def test_the_root_leads_to_the_page(live: Live) -> None:
    answer: httpx.Response = await live.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")
    assert (await live.client.get("/", follow_redirects=True)).headers["content-type"].startswith("text/html")
