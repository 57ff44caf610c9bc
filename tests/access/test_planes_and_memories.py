"""Streams, threads, memories and the seams × authority × tenant × credential, against the table of §9.

They know no closed sessions: within a tenant the authority alone decides. A view on the Field is the exception.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from msgspec import json
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.access import table
from tests.access.belongings import UNKNOWN, Belongings, asked_for, held, likened, path_of, plant, start_fixture
from tests.access.scene import ABROAD, BEHIND_THE_DOOR, VAULT, Scene, played_scene
from tests.access.table import AUTHORITIES, MEMORY, OPENWOP, PLANES, SEAMS, SEES_ALL, Route
from tests.access.tower import Holder, refused
from tests.requirements import requirement
from tests.servers.live import ERROR_FIELDS

LEAST: Final = {**PLANES, **MEMORY, **SEAMS}
NAMING: Final = [route for route in LEAST if "{" in route[1] or route[1].endswith(("/reconcile", "/seed", "/compact"))]
READ_SOCKET: Final = 2
APPLY_RETENTION: Final = 8


class Grounds:
    """A scene, and belongings of both tenants, new for whoever asks."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.tower = scene.tower
        self._numbers = iter(range(1, 1_000_000))

    async def own(self, route: Route) -> Belongings:
        """Of ada's: others of the tenant have as much right to them."""
        return await self._new(self.scene.ada, "of-acme", "the tower", route)

    async def foreign(self, route: Route) -> Belongings:
        """Their ids say nothing of whose they are, since they are asked for; their texts do."""
        return await self._new(self.scene.zoe, "thing", f"a {ABROAD}", route)

    def unknown(self) -> Belongings:
        name = f"nothing-{next(self._numbers)}"
        return UNKNOWN._replace(stream=f"{name}/stream", thread=f"{name}/thread", ref=f"mem://{name}", entry=name)

    async def _new(self, owner: Holder, name: str, says: str, route: Route) -> Belongings:
        planted = await plant(self.scene, owner, f"{name}-{next(self._numbers)}", says)
        if route[1].startswith("/v1/runs/"):
            return planted._replace(fixture_run=await start_fixture(self.scene, owner))
        return planted


@pytest.fixture(scope="module")
async def grounds() -> AsyncIterator[Grounds]:
    async with played_scene(conformance=True) as scene:
        # Nobody asks for these by their names, so that nothing of them may stand in any answer.
        await plant(scene, scene.zoe, f"{ABROAD}-unasked", f"an unasked {ABROAD}")
        yield Grounds(scene)


def named(route: Route) -> str:
    return " ".join(route)


# --- authority --------------------------------------------------------------------------------------------------------


@requirement("akashik:access:least-authority", "planes:http:authority", "openwop:errors:authority")
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("route", LEAST, ids=named)
async def test_a_route_of_planes_and_memories_needs_the_authority_of_the_table_and_no_more(
    grounds: Grounds, route: Route, authority: int
) -> None:
    holder, owned = grounds.scene.outsiders[authority], await grounds.own(route)
    before = await held(grounds.scene, grounds.scene.ada, owned)
    answer = await asked_for(grounds.scene, holder, route, owned)
    assert not grounds.scene.leaks(answer, holder, route, authority)
    if authority >= LEAST[route]:
        assert answer.status_code in (200, 201, 204), answer.text
        return
    assert refused(answer) == (403, "FORBIDDEN")
    assert set(answer.json()) == ({"error", "message"} if route in OPENWOP else ERROR_FIELDS)
    assert await held(grounds.scene, grounds.scene.ada, owned) == before


@requirement("akashik:access:refusals-recorded")
@pytest.mark.parametrize("route", [route for route, least in LEAST.items() if least], ids=named)
async def test_a_refusal_below_the_authority_is_in_the_log_with_who_asked(grounds: Grounds, route: Route) -> None:
    below = max(authority for authority in AUTHORITIES if authority < LEAST[route])
    agent = f"low-{named(route)}"
    holder = await grounds.tower.holder("acme", agent, authority=below)
    answer = await asked_for(grounds.scene, holder, route, await grounds.own(route))
    assert refused(answer) == (403, "FORBIDDEN")
    assert [each.get("authority", 0) for each in await refusals_of(grounds, holder)] == [below]


async def refusals_of(grounds: Grounds, holder: Holder) -> list[dict[str, Any]]:
    async with grounds.tower.house.entrance.tenants.visit(holder.tenant) as field:
        await field._writer.drain()
        newest = (await field.status()).log_entries
    page = await grounds.tower.request(grounds.scene.ada, "GET", f"/v1/log?after={max(0, newest - 20)}&limit=20")
    events = [line["entry"]["event"] for line in page.json()["entries"]]
    return [each for each in events if each["kind"] == "access.refused" and each["credential"] == holder.key_id]


@requirement("akashik:access:least-authority")
@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_to_carry_out_the_retention_of_streams_needs_more_than_to_plan_it(
    grounds: Grounds, authority: int
) -> None:
    wish = {"finishedDays": 10_000}
    answer = await grounds.tower.request(grounds.scene.outsiders[authority], "POST", "/v1/retention/streams", wish)
    assert answer.status_code == (200 if authority >= APPLY_RETENTION else 403), answer.text


@requirement("akashik:access:refusals-recorded")
async def test_a_view_on_the_field_is_written_by_nobody_and_who_tries_is_in_the_log(grounds: Grounds) -> None:
    for number, (method, path, body) in enumerate(
        (
            ("POST", "/v1/memory/field:main", {"content": "Mine."}),
            ("DELETE", "/v1/memory/field:main/mem-1", None),
            ("POST", "/v1/memory/field:main:the-hall/forget", {"tag": "any"}),
        )
    ):
        holder = await grounds.tower.holder("acme", f"writer-{number}", authority=10)
        assert refused(await grounds.tower.request(holder, method, path, body)) == (403, "FORBIDDEN")
        assert len(await refusals_of(grounds, holder)) == 1


@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_a_command_of_a_workflow_engine_is_not_there_for_anybody(grounds: Grounds, authority: int) -> None:
    holder = grounds.scene.outsiders[authority]
    own = await start_fixture(grounds.scene, grounds.scene.ada)
    answers = [await grounds.tower.request(holder, "POST", f"/v1/runs/{each}:fork") for each in (own, "run-unknown")]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, answers[0].content)}


# --- tenants ----------------------------------------------------------------------------------------------------------


@requirement(
    "akashik:access:tenant-from-credential",
    "akashik:access:no-oracle",
    "akashik:access:tenants-apart",
    "openwop:cti-1:every-route",
)
@pytest.mark.parametrize("authority", AUTHORITIES)
@pytest.mark.parametrize("route", NAMING, ids=named)
async def test_what_another_tenant_has_is_as_if_it_were_not_there_and_stays_as_it_is(
    grounds: Grounds, route: Route, authority: int
) -> None:
    scene, holder = grounds.scene, grounds.scene.outsiders[authority]
    foreign, unknown = await grounds.foreign(route), grounds.unknown()
    before = await held(scene, scene.zoe, foreign)
    answers = [await asked_for(scene, holder, route, each) for each in (foreign, unknown)]
    assert likened(answers[0], foreign) == likened(answers[1], unknown)
    assert not scene.leaks(answers[0], holder, route, authority)
    least = table.FIRST_READS.get(route, LEAST[route])
    assert (answers[0].status_code == 403) is (authority < least), answers[0].text
    assert await held(scene, scene.zoe, foreign) == before


OWN_THREAD: Final = [route for route in PLANES if "{run}" in route[1] or route[1].endswith("/active")]


@requirement("akashik:access:no-oracle", "planes:runs:own-thread")
@pytest.mark.parametrize("whose", ["another tenant's", "another thread's"])
@pytest.mark.parametrize("route", OWN_THREAD, ids=named)
async def test_in_ones_own_thread_a_run_or_message_of_elsewhere_is_unknown(
    grounds: Grounds, route: Route, whose: str
) -> None:
    scene = grounds.scene
    own = await grounds.own(route)
    other = await (grounds.foreign(route) if whose == "another tenant's" else grounds.own(route))
    elsewhere = own._replace(run=other.run, done=other.done, message=other.message)
    unknown = own._replace(run=UNKNOWN.run, done=UNKNOWN.done, message=UNKNOWN.message)
    answers = [await asked_for(scene, scene.ada, route, each) for each in (elsewhere, unknown)]
    assert likened(answers[0], elsewhere) == likened(answers[1], unknown)
    assert answers[0].status_code == (400 if route[0] == "PUT" else 404)  # a body that names what is not there


@requirement("akashik:access:no-oracle")
async def test_a_message_of_elsewhere_is_unknown_wherever_a_message_may_be_named(grounds: Grounds) -> None:
    scene, route = grounds.scene, ("GET", "/v1/threads/{thread}/messages")
    own, foreign = await grounds.own(route), await grounds.foreign(route)
    path = path_of(route, own)
    for query in ('?ids=["{}"]', '?selections={{"":"{}"}}', '?selections={{"{}":"x"}}', "?after={}"):
        told = [
            likened(await grounds.tower.request(scene.ada, "GET", path + query.format(each)), foreign)
            for each in (foreign.message, UNKNOWN.message)
        ]
        assert told[0] == told[1]
        assert ABROAD not in told[0][2]
    forks = [
        await grounds.tower.request(
            scene.ada, "POST", path_of(("POST", "/v1/threads/{thread}/runs"), own), {"forkFromMessageId": each}
        )
        for each in (foreign.message, UNKNOWN.message)
    ]
    assert likened(forks[0], foreign) == likened(forks[1], UNKNOWN)


@requirement("akashik:access:tenants-apart", "openwop:cti-1:snapshot")
async def test_the_stream_of_a_foreign_run_is_empty_and_snapshots_of_memories_count_in_their_tenant_alone(
    grounds: Grounds,
) -> None:
    scene, route = grounds.scene, ("GET", "/v1/streams/{id}/events")
    foreign = await grounds.foreign(route)
    for run in (foreign.run, foreign.done):
        answer = await asked_for(scene, scene.ada, route, foreign._replace(stream=f"run:{run}"))
        assert answer.json() == {"events": [], "head": 0, "floor": 0}
    listing = ("GET", "/v1/memory/{ref}")
    token = (await asked_for(scene, scene.zoe, listing, foreign)).json()["snapshot"]
    answer = await grounds.tower.request(scene.ada, "GET", f"{path_of(listing, foreign)}?snapshot={token}")
    assert ABROAD not in answer.text
    assert answer.status_code == 400 or answer.json()["entries"] == []


@requirement("akashik:access:tenants-apart")
async def test_lists_and_chores_of_one_tenant_tell_and_touch_nothing_of_another(grounds: Grounds) -> None:
    scene, tower = grounds.scene, grounds.tower
    foreign = await grounds.foreign(("GET", "/v1/threads"))
    before = await held(scene, scene.zoe, foreign)
    everything = {"dryRun": False, "staleMs": 0, "recover": "fail"}
    answers = [
        await tower.request(scene.ada, "POST", "/v1/reconcile", everything),
        await tower.request(scene.ada, "POST", "/v1/retention/streams", {"finishedDays": 0, "withoutRun": True}),
        await tower.request(scene.ada, "GET", "/v1/threads?limit=10000"),
        await tower.request(scene.ada, "GET", "/v1/events?limit=1000"),
        await tower.request(scene.ada, "GET", "/v1/export"),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert ABROAD not in answer.text
        assert foreign.run not in answer.text
    assert await held(scene, scene.zoe, foreign) == before


# --- a view on the Field, and recording from a run: closed sessions count ---------------------------------------------


@requirement("akashik:access:closed-sessions", "akashik:access:no-oracle")
async def test_a_view_on_the_field_shows_a_closed_session_to_its_members_and_to_nobody_else(grounds: Grounds) -> None:
    scene, tower = grounds.scene, grounds.tower
    for number in range(3):
        await tower.record(scene.ada, f"The {BEHIND_THE_DOOR} was counted: {number}.", session=VAULT)
    wish = {"strategy": "summarize", "filter": {"session_id": VAULT}, "verify": False}
    made = (await tower.ask(scene.ada, "COMPACT", wish))["synthesis_units"]
    assert made
    for authority in AUTHORITIES[1:]:
        member, outsider = scene.members[authority], scene.outsiders[authority]
        for ref in (f"field:main:{VAULT}", "field:main"):
            for each in (f"/v1/memory/{ref}", f"/v1/memory/{ref}/{made[0]}"):
                seen = await tower.request(member, "GET", each)
                assert made[0] in seen.text
                hidden = await tower.request(outsider, "GET", each)
                assert (made[0] in hidden.text) is (authority == SEES_ALL)
        feeds = [(await tower.request(each, "GET", "/v1/events?limit=1000")).text for each in (member, outsider)]
        assert made[0] in feeds[0]
        assert (made[0] in feeds[1] or BEHIND_THE_DOOR in feeds[1]) is (authority == SEES_ALL)


@requirement("akashik:access:closed-sessions")
async def test_who_is_no_member_remembers_nothing_into_a_closed_session_and_nobody_as_another(
    grounds: Grounds,
) -> None:
    scene, route = grounds.scene, ("POST", "/v1/threads/{thread}/runs/{run}/remember")
    path = path_of(route, await grounds.own(route))
    for holder, wish, status in (
        (scene.outsiders[8], {"agentId": scene.outsiders[8].agent, "sessionId": VAULT}, 403),
        (scene.outsiders[8], {"agentId": "ada"}, 403),
        (scene.outsiders[2], {"agentId": scene.outsiders[2].agent, "mode": "draft"}, 200),
        (scene.members[8], {"agentId": scene.members[8].agent, "sessionId": VAULT}, 200),
    ):
        answer = await grounds.tower.request(holder, "POST", path, wish)
        assert answer.status_code == status, (wish, answer.text)


# --- the socket -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def socket_of(grounds: Grounds, holder: Holder | None) -> AsyncIterator[ClientConnection]:
    url = str(grounds.tower.client.base_url.join(table.SOCKET)).replace("http", "ws", 1)
    headers = holder.headers if holder else {}
    async with connect(url, proxy=None, additional_headers=headers) as socket:
        await socket.send('{"type":"hello","version":1}')
        assert json.decode(await socket.recv())["type"] == "server-hello"
        yield socket


async def follow(socket: ClientConnection, stream: str) -> list[dict[str, Any]]:
    """What is replayed of it."""
    await socket.send(json.encode({"type": "subscribe", "streamId": stream, "afterSeq": 1}).decode())
    frames: list[dict[str, Any]] = []
    while not frames or frames[-1]["type"] == "event":
        frames.append(json.decode(await asyncio.wait_for(socket.recv(), 20)))
    return frames


@requirement("akashik:access:least-authority", "akashik:access:tenants-apart", "akashik:access:no-oracle")
@pytest.mark.parametrize("authority", AUTHORITIES)
async def test_a_socket_needs_the_authority_to_read_and_a_foreign_stream_is_an_empty_one(
    grounds: Grounds, authority: int
) -> None:
    scene, holder = grounds.scene, grounds.scene.outsiders[authority]
    if authority < READ_SOCKET:
        assert await refused_socket(grounds, holder) == (403, "FORBIDDEN")
        return
    route = ("POST", "/v1/streams/{id}/events")
    own, foreign = await grounds.own(route), await grounds.foreign(route)
    async with socket_of(grounds, holder) as socket:
        assert [frame["type"] for frame in await follow(socket, own.stream)] == ["event", "event", "replay-end"]
        for stream in (foreign.stream, f"run:{foreign.run}", "no-such-stream"):
            assert await follow(socket, stream) == [{"type": "replay-end", "streamId": stream, "lastReplaySeq": 0}]
        for owner, belongings in ((scene.zoe, foreign), (scene.ada, own)):  # what zoe says comes first, if it comes
            assert (await asked_for(scene, owner, route, belongings)).status_code == 201
        heard = json.decode(await asyncio.wait_for(socket.recv(), 20))
        assert (heard["type"], heard["streamId"]) == ("event", own.stream)


async def refused_socket(grounds: Grounds, holder: Holder | None) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refusal:
        async with socket_of(grounds, holder):
            pass
    response = refusal.value.response
    return response.status_code, json.decode(response.body or b"")["code"]


@requirement("akashik:access:key-required")
async def test_without_a_good_key_there_is_no_socket(grounds: Grounds) -> None:
    revoked = grounds.tower.make_key("acme", authority=10)
    grounds.tower.house.keys.revoke(revoked.id)
    for stranger in (None, Holder("ada", "garbage"), Holder("ada", revoked.key)):
        assert await refused_socket(grounds, stranger) == (401, "UNAUTHENTICATED")
