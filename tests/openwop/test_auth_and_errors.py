"""Who may ask, and how a refusal is told: in one envelope that repeats nothing of what was sent."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.openwop.host import COMPACT, DISCOVERY, Caller, Host, memory, serving, told
from tests.openwop.routes import ROUTES, Route, asked
from tests.openwop.shapes import assert_envelope, assert_error
from tests.requirements import requirement

AUTHORITIES: Final = (0, 2, 4, 6, 8)
WORDS: Final = ("zanzibar", "quagmire")  # of what is sent; no refusal has a use for them


def names(route: Route) -> str:
    return f"{route.method} {route.path} {route.params or route.body or ''}"


@pytest.fixture(scope="module")
def holders(host: Host) -> Iterator[dict[int, Caller]]:
    with ExitStack() as stack:
        yield {each: stack.enter_context(host.caller("acme", authority=each)) for each in AUTHORITIES}


@requirement("openwop:errors:codes", "openwop:errors:key")
@pytest.mark.parametrize("route", ROUTES, ids=names)
def test_every_route_needs_a_key(host: Host, route: Route) -> None:
    refused = asked(host.nobody, route)
    assert_error(refused, "unauthenticated")
    assert refused.headers["www-authenticate"].startswith("Bearer")


@requirement("openwop:errors:no-echo")
@pytest.mark.parametrize(
    "credential",
    [
        "Bearer hk_definitely_not_a_real_" + "key_12345",
        "Bearer",
        "Basic YTpi",
        "Bearer a b",
        "bearer fsk_0000000000000000_" + "x" * 43,
        "Bearer " + "x" * 9_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_credential_that_is_none_is_refused_and_never_repeated(host: Host, credential: str) -> None:
    told_key = credential.removeprefix("Bearer").split()
    with httpx.Client(base_url=host.url, headers={"authorization": credential}) as client:
        for route in ROUTES:
            path = route.path.replace("{", "").replace("}", "")
            refused = client.request(route.method, path, json={} if route.method == "POST" else None)
            assert_error(refused, "unauthenticated")
            assert not [word for word in told_key if len(word) > 1 and word in refused.text]


@requirement("openwop:errors:codes", "openwop:errors:authority")
@pytest.mark.parametrize("route", [route for route in ROUTES if route.least is not None], ids=names)
def test_a_key_without_the_authority_is_refused_and_one_with_it_is_not(
    holders: dict[int, Caller], route: Route
) -> None:
    assert route.least is not None
    for authority, caller in holders.items():
        answer = asked(caller, route, ref=f"mem_authority_{authority}")
        if authority < route.least:
            assert_error(answer, "forbidden")
        else:
            assert answer.status_code not in (401, 403), f"{authority}: {answer.text}"


@requirement("openwop:errors:authority")
def test_what_a_key_without_the_authority_asked_for_was_not_done(host: Host, holders: dict[int, Caller]) -> None:
    entry = host.acme.put("mem_kept", "Kept.", tags=["a"])
    assert_error(holders[2].delete(memory("mem_kept", entry["id"])), "forbidden")
    assert_error(holders[2].post(f"{memory('mem_kept')}/forget", {"tag": "a"}), "forbidden")
    assert_error(holders[2].post(memory("mem_kept"), {"content": "More."}), "forbidden")
    assert host.acme.entries("mem_kept") == [entry]


@requirement("openwop:errors:envelope", "openwop:errors:codes")
@pytest.mark.parametrize(
    "path",
    ["/v1/runs/no-such-run", "/v1/runs/no-such-run/events", "/v1/memory/mem_x/no-such-id", "/v1/test/memory/nothing"],
)
def test_what_there_is_not_is_not_found(acme: Caller, path: str) -> None:
    assert_error(acme.get(path), "not_found")


@requirement("openwop:errors:envelope")
@pytest.mark.parametrize("path", ["/v1/memory", "/v1/runs/", "/v1/host/sample/nothing", "/v1/test", "/v1/events/more"])
def test_a_path_of_openwops_that_there_is_not_answers_in_its_envelope(acme: Caller, path: str) -> None:
    assert_error(acme.get(path), "not_found")


@requirement("openwop:errors:envelope")
def test_a_path_of_the_fields_own_answers_in_the_fields_own_format(acme: Caller) -> None:
    assert acme.get("/v1/units/no-such-unit").json()["code"] == "UNIT_NOT_FOUND"


@requirement("openwop:errors:envelope")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_method_that_a_route_has_not_is_refused_in_the_envelope(acme: Caller, method: str) -> None:
    for path in (memory("mem_x"), "/v1/events", COMPACT, "/v1/runs"):
        assert_envelope(acme.http.request(method, path))


@requirement("openwop:errors:envelope", "openwop:errors:codes")
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"content": "\\ud800"}', b"7"])
def test_a_body_that_is_no_object_is_refused(acme: Caller, body: bytes) -> None:
    for path in (memory("mem_x"), "/v1/runs", COMPACT):
        assert_error(acme.http.post(path, content=body), "validation_error")
    assert acme.entries("mem_x") == []


@requirement("openwop:errors:envelope")
def test_a_body_that_is_too_large_is_refused_in_the_envelope(acme: Caller) -> None:
    answer = acme.post(memory("mem_x"), {"content": "x" * 9_000_000})
    assert answer.status_code in (400, 413)
    assert_envelope(answer)


@requirement("openwop:errors:no-echo")
def test_no_refusal_repeats_a_ref_an_id_a_tag_or_a_token(acme: Caller) -> None:
    first, second = WORDS
    for route in ROUTES:
        answer = asked(acme, route, ref=f"mem_{first}", entry_id=f"id-{second}")
        if answer.status_code >= 400:
            assert_envelope(answer)
            assert not [word for word in WORDS if word in answer.text], names(route)
    wrong = {"content": "x", "tags": [first + "t" * 300], "id": second}
    refused = acme.post(memory(f"mem_{first}"), wrong)
    assert_error(refused, "validation_error")
    assert not [word for word in WORDS if word in refused.text]
    unknown = acme.post("/v1/runs", {"workflowId": f"nonexistent-{first}"})
    assert_error(unknown, "not_found")
    assert first not in unknown.text


def test_another_key_of_the_tenant_reads_and_deletes_what_the_first_wrote(host: Host) -> None:
    entry = host.acme.put("mem_of_the_tenant", "Of the first key.")
    with host.caller("acme", authority=4) as second:
        assert second.entries("mem_of_the_tenant") == [entry]
        assert second.delete(memory("mem_of_the_tenant", entry["id"])).status_code == 204
    assert host.acme.entries("mem_of_the_tenant") == []


@requirement("openwop:errors:quota")
def test_a_key_over_its_quota_is_refused_in_the_envelope_and_keeps_reading(host: Host) -> None:
    with host.caller("acme", "--quota-units", "2", authority=4) as small:
        for number in range(2):
            small.put("mem_quota", f"Number {number}.")
        refused = small.post(memory("mem_quota"), {"content": "One too many."})
        assert refused.status_code == 429
        assert_envelope(refused)
        assert len(small.entries("mem_quota")) == 2


@requirement("openwop:errors:quota")
def test_a_key_over_its_rate_is_told_when_to_come_back(host: Host) -> None:
    with host.caller("acme", "--rate", "0.01", authority=4) as slow:
        answers = [slow.get(memory("mem_rate")) for _ in range(3)]
        refused = answers[-1]
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert_envelope(refused)


@requirement("openwop:unit:local-tenant")
def test_without_any_key_it_is_open_for_the_local_operator(tmp_path: Path) -> None:
    with serving(tmp_path, is_open=True) as local:
        entry = local.nobody.put("mem_local", "Of the local operator.")
        assert local.acme.entries("mem_local") == [entry]
        local.nobody.put("mem_local", "More.")
        assert local.nobody.compacted("mem_local")["payload"]["sourceCount"] == 2
        assert "memory" in told(local.nobody.get(DISCOVERY))
