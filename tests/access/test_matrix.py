"""Every operation and route × authority × session × tenant × credential, against the table of §9: no leak, no wrongful
refusal, and what one must not see is as if it did not exist."""

import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from msgspec import json

from fieldstone.backends.system import SystemIds
from fieldstone.core.vocabulary import BUILT_OPERATIONS
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.http.app import HttpApp
from fieldstone.servers.http.conformance import ConformanceRoutes
from fieldstone.servers.http.gate import Gate
from fieldstone.servers.http.routes import UNBUILT_ROUTES
from tests.access import table
from tests.access.scene import ABROAD, HALL, STANDINGS, UNKNOWN_ID, VAULT, Own, Scene, Standing, played_scene
from tests.access.table import ASKS, AUTHORITIES, LEAST, PUBLIC, Ask, Route
from tests.access.tower import Body, Holder, attunement, refused
from tests.requirements import requirement
from tests.servers.auth.tokens import with_id, with_secret
from tests.servers.live import message, unit

UNKNOWN_AGENT = "nobody-of-this-name"
SURE: Body = {"score": 0.9, "reasoning": "seen twice"}


@pytest.fixture(scope="module")
async def scene() -> AsyncIterator[Scene]:
    async with played_scene() as played:
        yield played


# --- the table is whole -----------------------------------------------------------------------------------------------


async def test_the_table_has_every_route_of_the_server_and_no_other(scene: Scene) -> None:
    host, seams = HostFeatures(), {*table.SEAMS, table.NO_SEAM}
    assert served_routes(scene, host) == table.all_routes()
    assert served_routes(scene, host, ConformanceRoutes(host, SystemIds())) == table.all_routes() | seams
    without_host = served_routes(scene)
    assert table.all_routes() - without_host == {*table.MEMORY, ("GET", "/.well-known/openwop")}


def served_routes(
    scene: Scene, host: HostFeatures | None = None, conformance: ConformanceRoutes | None = None
) -> set[Route]:
    house, gate = scene.tower.house, Gate("127.0.0.1")
    app = HttpApp(house.entrance, house.keys, gate, max_body_bytes=1_000, host=host, conformance=conformance)
    return {(method, endpoint.template) for endpoint in app.endpoints for method in endpoint.methods} - {
        ("HEAD", endpoint.template) for endpoint in app.endpoints
    }


def test_the_table_has_every_operation_that_is_built() -> None:
    assert {ask.operation for ask in ASKS} >= set(BUILT_OPERATIONS)


BUILT_ASKS = [ask for ask in ASKS if ask.operation in BUILT_OPERATIONS]


# --- operations -------------------------------------------------------------------------------------------------------


def titled(ask: Ask) -> str:
    return " ".join(filter(None, (ask.operation, ask.how, ask.target)))


@requirement("akashik:access:least-authority")
@pytest.mark.parametrize("standing", STANDINGS)
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("ask", BUILT_ASKS, ids=titled)
async def test_an_operation_is_answered_as_the_table_says(
    scene: Scene, ask: Ask, authority: int, standing: Standing
) -> None:
    holder = scene.holder(authority, standing)
    target = await target_of(scene, ask, holder, standing)
    answer = await asked(scene, ask, holder, authority, standing, target)
    assert not scene.leaks(answer, holder, table.operation_route(ask.operation), authority)
    if target is not None and is_hidden(ask, standing):
        unknown = UNKNOWN_AGENT if ask.operation == "DEREGISTER" else UNKNOWN_ID
        as_unknown = await asked(scene, ask, holder, authority, standing, unknown)
        assert told(answer, target) == told(as_unknown, unknown)
        if authority < ask.least or (ask.operation, ask.how) in ACCEPTED_ANYWAY:
            return
        assert answer.json().get("code") == "UNIT_NOT_FOUND", answer.text
        return
    code = expected(ask, authority, standing)
    assert (answer.json().get("code"), answer.status_code) == (code, 403 if code else 200), answer.text


# What may name something unknown: the other relations dangle, and who is not there cannot be sent away.
ACCEPTED_ANYWAY = {("RECORD", "supports"), ("DEREGISTER", "leaves"), ("DEREGISTER", "sends away")}


def is_hidden(ask: Ask, standing: Standing) -> bool:
    if ask.operation == "DEREGISTER":  # who takes part is no secret within the tenant
        return standing == "foreign"
    return standing in ("outsider", "foreign") or ask.target == "another's draft"


def expected(ask: Ask, authority: int, standing: Standing) -> str | None:
    if authority < ask.least:
        return "FORBIDDEN"
    if ask.operation == "RECORD" and ask.target is None and standing == "outsider":
        return "FORBIDDEN"  # it is for members to record in a closed session
    return ask.otherwise


async def target_of(scene: Scene, ask: Ask, holder: Holder, standing: Standing) -> str | None:
    """What it is about: of one's own from before, of another's as new."""
    match ask.target:
        case None:
            return None
        case "own" | "own draft" if standing == "foreign":
            return scene.foreign_unit if ask.target == "own" else scene.foreign_draft
        case "own" | "own draft":
            session = HALL if standing == "open" else VAULT
            return scene.own[Own(holder.agent, session, ask.how or ask.operation)]
        case "another's":
            return await scene.unit(standing)
        case "another's draft":
            return await scene.unit(standing, mode="draft")
        case "oneself" | "another" if standing == "foreign":
            return scene.zoe.agent
        case "oneself" | "another":
            agent, registered_by = f"guest-{scene.text(HALL)}", holder if ask.target == "oneself" else scene.ada
            await scene.tower.ask(registered_by, "REGISTER", {"id": agent, "role": "guest"}, agent_id=agent)
            return agent


async def asked(
    scene: Scene, ask: Ask, holder: Holder, authority: int, standing: Standing, target: str | None
) -> httpx.Response:
    session = {"open": HALL, "member": VAULT, "outsider": VAULT, "foreign": f"{ABROAD[:3]}-room"}[standing]
    envelope: Body = {}
    if ask.operation == "REGISTER":
        envelope["agent_id"] = f"guest-{scene.text(HALL)}"
    elif ask.target == "oneself":
        envelope["agent_id"] = target
    elif ask.operation == "RECORD" and ask.target is None:
        envelope["session_id"] = session
    payload = PAYLOADS[ask.operation](scene, ask, authority, target, envelope.get("agent_id"))
    return await scene.tower.send(holder, ask.operation, payload, **envelope)


def _register(scene: Scene, ask: Ask, authority: int, target: str | None, agent: str | None) -> Body:
    claim = {"authority": authority} if ask.how == "claims what the key grants" else {}
    return {"id": agent, "role": "guest", **claim}


def _record(scene: Scene, ask: Ask, authority: int, target: str | None, agent: str | None) -> Body:
    content = scene.text(HALL)
    match ask.how:
        case "committed" | "draft":
            return unit(content, mode=ask.how)
        case "human_directive":
            return unit(content, type="human_directive")
        case relation:
            return unit(content, relations=[{"type": relation, "target_id": target}])


def _detect(scene: Scene, ask: Ask, authority: int, target: str | None, agent: str | None) -> Body:
    return {"mode": ask.how, "target_id": target} if target else {"mode": ask.how}


def _compact(scene: Scene, ask: Ask, authority: int, target: str | None, agent: str | None) -> Body:
    return {"strategy": ask.how, "filter": {"types": ["finding"]}, "dry_run": True}


PAYLOADS: dict[str, Callable[[Scene, Ask, int, str | None, str | None], Body]] = {
    "REGISTER": _register,
    "DEREGISTER": lambda scene, ask, authority, target, agent: {"agent_id": target},
    "RECORD": _record,
    "ATTUNE": lambda scene, ask, authority, target, agent: attunement("door gate", include_own=True),
    "DETECT": _detect,
    "COMMIT": lambda scene, ask, authority, target, agent: {"memory_unit_id": target, "confidence": SURE},
    "DISCARD": lambda scene, ask, authority, target, agent: {"memory_unit_id": target},
    "RETRACT": lambda scene, ask, authority, target, agent: {"memory_unit_id": target, "reason": "it was wrong"},
    "COMPACT": _compact,
}

# What tells one answer from another, and is made anew each time.
_MADE_ANEW = ("epoch", "memory_unit_id")


def told(answer: httpx.Response, target: str) -> tuple[int, dict[str, str], Any]:
    """All that an answer says, but for the id that was asked for and what every answer has anew."""
    body = answer.json()
    for name in _MADE_ANEW:
        body.pop(name, None)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}
    return answer.status_code, headers, json.decode(json.encode(body).replace(target.encode(), b"it"))


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_an_agent_gets_4_or_what_the_key_grants_if_that_is_less_and_never_more(
    scene: Scene, authority: int
) -> None:
    holder = scene.outsiders[authority]
    guest = f"guest-{scene.text(HALL)}"
    joined = await scene.tower.ask(holder, "REGISTER", {"id": guest, "role": "guest"}, agent_id=guest)
    assert joined["agent"]["authority"] == min(4, authority)
    for claimed in range(authority + 1, 11):
        claim = {"id": "climber", "role": "guest", "authority": claimed}
        answer = await scene.tower.send(holder, "REGISTER", claim, agent_id="climber")
        assert refused(answer) == (403, "FORBIDDEN")


@pytest.mark.parametrize("ask", [ask for ask in BUILT_ASKS if ask.operation != "REGISTER"], ids=titled)
async def test_nobody_speaks_as_another_and_an_agent_of_another_tenant_is_nobody(scene: Scene, ask: Ask) -> None:
    holder = scene.outsiders[10]
    target = "ada" if ask.operation == "DEREGISTER" else UNKNOWN_ID
    payload = PAYLOADS[ask.operation](scene, ask, 10, target, None)
    answers = {}
    for agent in ("ada", scene.zoe.agent, UNKNOWN_AGENT):
        answers[agent] = await scene.tower.send(holder, ask.operation, payload, agent_id=agent)
    assert refused(answers["ada"]) == (403, "FORBIDDEN")
    foreign, unknown = answers[scene.zoe.agent], answers[UNKNOWN_AGENT]
    assert refused(foreign) == (403, "AGENT_NOT_REGISTERED")
    assert told(foreign, scene.zoe.agent) == told(unknown, UNKNOWN_AGENT)


async def test_a_message_among_many_is_refused_as_it_is_alone(scene: Scene) -> None:
    holder = scene.outsiders[2]
    hidden = await scene.unit("outsider")
    messages = [
        message("RECORD", unit("Nobody may read this."), agent_id=holder.agent),
        message("RETRACT", {"memory_unit_id": hidden, "reason": "why not"}, agent_id=holder.agent),
        message("RETRACT", {"memory_unit_id": UNKNOWN_ID, "reason": "why not"}, agent_id=holder.agent),
        message("ATTUNE", attunement("door"), agent_id="ada"),
        message("ATTUNE", attunement("door"), agent_id=holder.agent),
    ]
    answer = await scene.tower.request(holder, "POST", "/v1/messages", messages)
    codes = [each.get("code") for each in answer.json()]
    assert codes == ["FORBIDDEN", "UNIT_NOT_FOUND", "UNIT_NOT_FOUND", "FORBIDDEN", None]
    assert answer.json()[1] == answer.json()[2]
    assert not scene.leaks(answer, holder, table.operation_route("ATTUNE"), 2)


# --- routes that name no agent ----------------------------------------------------------------------------------------

NOT_BUILT = {(method, route.path) for route in UNBUILT_ROUTES for method in route.methods}
BUILT_ROUTES = [route for route in LEAST if route not in NOT_BUILT]
RESTORE: Route = ("POST", "/v1/restore")
UNIT_ROUTES = [route for route in BUILT_ROUTES if "/units/" in route[1] or route == RESTORE]


def named(route: Route) -> str:
    return " ".join(route)


@requirement("akashik:access:least-authority")
@pytest.mark.parametrize("standing", ["member", "outsider"])
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("route", BUILT_ROUTES, ids=named)
async def test_a_route_needs_the_authority_of_the_table_and_no_more(
    scene: Scene, route: Route, authority: int, standing: Standing
) -> None:
    holder = scene.holder(authority, standing)
    answer = await requested(scene, holder, route, await own_id(scene, route, holder if authority >= 6 else scene.ada))
    assert not scene.leaks(answer, holder, route, authority)
    if authority < LEAST[route]:
        assert refused(answer) == (403, "FORBIDDEN")
    else:
        assert answer.status_code in (200, 201, 204, 307), answer.text


async def own_id(scene: Scene, route: Route, compactor: Holder) -> str:
    """One that the holder may ask for: often a new one, since some routes spoil it. A compaction is its beginner's."""
    kind = route[1].split("/")[2] if route[1].count("/") > 1 else ""
    match kind:
        case "units" | "restore":
            return await scene.unit("open")
        case "keys":
            return scene.tower.make_key("acme", authority=2).id
        case "secrets":
            await requested(scene, scene.ada, ("PUT", "/v1/secrets/{id}"), "of-acme")
            return "of-acme"
        case "compactions":
            return await scene.compaction(compactor)
        case _:
            return ""


async def requested(scene: Scene, holder: Holder, route: Route, about: str) -> httpx.Response:
    bodies: dict[Route, Body | bytes] = {
        ("PUT", "/v1/secrets/{id}"): {"value": "correct horse battery staple", "scope": {"tenant": True}},
        ("POST", "/v1/keys"): {"tenant": "acme", "authority": 2},
        ("POST", "/v1/import"): b"",
        ("PUT", "/v1/retention"): {"policies": []},
        RESTORE: {"unit_ids": [about]},
    }
    return await scene.tower.request(holder, route[0], route[1].replace("{id}", about), bodies.get(route))


@requirement("akashik:access:no-oracle")
@pytest.mark.parametrize("standing", ["member", "outsider"])
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("what", ["vault", "draft", "foreign", "foreign draft"])
@pytest.mark.parametrize("route", UNIT_ROUTES, ids=named)
async def test_a_unit_that_one_may_not_see_is_as_if_it_were_not_there(
    scene: Scene, route: Route, what: str, authority: int, standing: Standing
) -> None:
    holder = scene.holder(authority, standing)
    wanted = await {
        "vault": partial(scene.unit, "outsider"),
        "draft": partial(scene.unit, "open", mode="draft"),
        "foreign": partial(scene.unit, "foreign"),
        "foreign draft": partial(scene.unit, "foreign", mode="draft"),
    }[what]()
    answer = await requested(scene, holder, route, wanted)
    may_see = (what == "vault" and standing == "member") or (what in ("vault", "draft") and authority == table.SEES_ALL)
    if authority >= LEAST[route] and may_see:
        assert answer.status_code not in (403, 404), answer.text
    else:
        unknown = await requested(scene, holder, route, UNKNOWN_ID)
        assert told(answer, wanted) == told(unknown, UNKNOWN_ID)
        assert refused(answer) == ((404, "UNIT_NOT_FOUND") if authority >= LEAST[route] else (403, "FORBIDDEN"))


@requirement("akashik:access:tenant-from-credential", "akashik:access:no-oracle")
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("route", [route for route in BUILT_ROUTES if "{id}" in route[1]], ids=named)
async def test_an_id_of_another_tenant_is_as_unknown_as_any(scene: Scene, route: Route, authority: int) -> None:
    if route == ("PUT", "/v1/secrets/{id}"):
        return  # it makes one of this tenant's own: see test_tenants.py
    match route[1].split("/")[2]:
        case "units":
            foreign, unknown = scene.foreign_unit, UNKNOWN_ID
        case "keys":
            foreign, unknown = scene.foreign_key, "key-" + "0" * 16
        case "secrets":
            foreign, unknown = scene.foreign_secret, "no-such-secret"
        case _:
            foreign, unknown = await scene.compaction(scene.zoe), "no-such-compaction"
    holder = scene.outsiders[authority]
    answers = [told(await requested(scene, holder, route, each), each) for each in (foreign, unknown)]
    assert answers[0] == answers[1]
    assert answers[0][0] == (404 if authority >= LEAST[route] else 403)


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_a_compaction_that_another_began_is_cancelled_by_an_operator_alone(scene: Scene, authority: int) -> None:
    begun = await scene.compaction(scene.ada)
    answer = await requested(scene, scene.outsiders[authority], ("DELETE", "/v1/compactions/{id}"), begun)
    assert answer.status_code == (200 if authority == table.SEES_ALL else 403), answer.text


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_nobody_makes_a_key_for_another_tenant_whether_it_exists_or_not(scene: Scene, authority: int) -> None:
    holder = scene.outsiders[authority]
    wishes = [{"tenant": tenant, "authority": 2} for tenant in ("zeta", "no-such-tenant")]
    answers = [await scene.tower.request(holder, "POST", "/v1/keys", wish) for wish in wishes]
    assert refused(answers[0]) == (403, "FORBIDDEN")
    assert told(answers[0], "zeta") == told(answers[1], "no-such-tenant")


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_what_is_not_built_says_so_to_whoever_has_a_key(scene: Scene, authority: int) -> None:
    holder = scene.outsiders[authority]
    operations = {*table.LATER_OPERATIONS, *(ask.operation for ask in ASKS)} - set(BUILT_OPERATIONS)
    for method, path in (*NOT_BUILT, *map(table.operation_route, operations)):
        answer = await scene.tower.request(holder, method, path.replace("{id}", scene.vault_ids[0]))
        assert refused(answer) == (501, "UNSUPPORTED_OPERATION")
        assert not scene.leaks(answer, holder, (method, path), authority)


@requirement("openwop:conformance:off")
@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_the_seams_of_the_conformance_mode_are_no_addresses_of_a_server_that_is_not_in_it(
    scene: Scene, authority: int
) -> None:
    holder = scene.outsiders[authority]
    nothing = await scene.tower.request(holder, "GET", "/v1/test/no/such/seam")
    assert (nothing.status_code, set(nothing.json())) == (404, {"error", "message"})
    for method, path in (*table.SEAMS, table.NO_SEAM):
        answer = await scene.tower.request(holder, method, path.replace("{id}", "some"), {"memoryRef": "some"})
        assert (answer.status_code, answer.content) == (404, nothing.content), path


# --- credentials ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def strangers(scene: Scene) -> dict[str, Holder | None]:
    """Those who have no key that opens anything; their authority would have been the highest."""
    revoked, expired, rotated = (scene.tower.make_key("acme", authority=10) for _ in range(3))
    scene.tower.house.keys.revoke(revoked.id)
    scene.tower.change_key(expired.id, expires_ms=1)
    scene.tower.house.keys.rotate(rotated.id)
    keys = {
        "garbage": "garbage",
        "wrong secret": with_secret(scene.ada.key),
        "wrong id": with_id(scene.ada.key),
        "revoked": revoked.key,
        "expired": expired.key,
        "rotated away": rotated.key,
    }
    return {"no key": None, **{name: Holder("ada", key) for name, key in keys.items()}}


@requirement("akashik:access:key-required", "openwop:errors:key", "openwop:conformance:key")
@pytest.mark.parametrize("route", sorted({*table.all_routes(), *table.SEAMS, table.NO_SEAM} - PUBLIC), ids=named)
async def test_without_a_good_key_every_route_says_the_same_and_nothing_else(
    scene: Scene, strangers: dict[str, Holder | None], route: Route
) -> None:
    method, path = route
    body = json.encode(message("ATTUNE", attunement())) if method == "POST" else None
    said = set()
    for stranger in strangers.values():
        for wanted in (scene.vault_ids[0], scene.foreign_unit, scene.foreign_key, UNKNOWN_ID):
            answer = await scene.tower.request(stranger, method, re.sub(r"{\w+}", wanted, path), body)
            assert refused(answer) == (401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == "Bearer"
            said.add(answer.content)
    assert len(said) == 1


@requirement("akashik:access:key-required", "openwop:discovery:public")
@pytest.mark.parametrize("route", sorted(PUBLIC), ids=named)
async def test_the_public_routes_answer_anybody(
    scene: Scene, strangers: dict[str, Holder | None], route: Route
) -> None:
    answers = [await scene.tower.request(each, *route) for each in (*strangers.values(), scene.ada, scene.zoe)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1


async def test_an_address_that_does_not_exist_is_told_to_key_holders_only(
    scene: Scene, strangers: dict[str, Holder | None]
) -> None:
    for path in ("/v1/nothing", "/nothing", "/v1/units", "/v1/units/a/b/c"):
        assert refused(await scene.tower.request(scene.outsiders[0], "GET", path)) == (404, "NOT_FOUND")
        for stranger in strangers.values():
            assert refused(await scene.tower.request(stranger, "GET", path)) == (401, "UNAUTHENTICATED")
    assert refused(await scene.tower.request(None, "DELETE", "/v1/agents")) == (401, "UNAUTHENTICATED")
