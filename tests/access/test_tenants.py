"""Two tenants on one server and in one file: neither gets a byte of the other, nor is held up by it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from fieldstone.core.errors import FieldError
from fieldstone.core.vocabulary import BUILT_OPERATIONS
from fieldstone.field.field import LocalField
from fieldstone.servers.tenants import Tenants
from tests.access import table
from tests.access.tower import Body, Holder, Tower, attunement, ids, refused, tower
from tests.field.fields import opened
from tests.messages import join
from tests.requirements import requirement
from tests.servers.live import message, unit

CANARY: Final = "quokka"  # in every text, name and id that zeta chooses


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tower]:
    async with tower(tmp_path_factory.mktemp("tenants") / "tower.db") as served:
        yield served


@pytest.fixture(scope="module")
async def acme(server: Tower) -> Holder:
    """An operator, who may do everything: in acme."""
    holder = await server.holder("acme", "ada", authority=10)
    await server.record(holder, "The market opens at 9 in the morning.")
    return holder


@pytest.fixture(scope="module")
async def zeta(server: Tower) -> Holder:
    holder = await server.holder(f"{CANARY}-zeta", f"zoe-{CANARY}", authority=10)
    for number in range(5):
        intent = {
            "purpose": f"to know {CANARY}",
            "task_id": f"{CANARY}-task",
            "question": f"Where is {CANARY} {number}?",
        }
        sure = {"score": 0.9, "reasoning": f"{CANARY} was seen", "evidence": [f"{CANARY} tracks"]}
        how: Body = {"intent": intent, "confidence": sure, "session": f"{CANARY}-room"}
        await server.record(holder, f"The market opens at {number + 10} in the morning, says {CANARY}.", **how)
    secret = {"value": f"{CANARY} and marmalade"}
    assert (await server.request(holder, "PUT", f"/v1/secrets/{CANARY}", secret)).status_code == 204
    return holder


@pytest.fixture(scope="module")
async def foreign_ids(server: Tower, zeta: Holder) -> list[str]:
    """Every id that zeta has: units, a draft, conflicts, keys, agents, sessions, secrets."""
    draft = await server.record(zeta, f"Perhaps {CANARY}.", mode="draft")
    units = ids(await server.attune(zeta, include_own=True))
    against = unit(f"No {CANARY}.", relations=[{"type": "contradicts", "target_id": units[0]}])
    conflicts = (await server.ask(zeta, "RECORD", against))["conflicts_detected"]
    keys = [key["id"] for key in (await server.request(zeta, "GET", "/v1/keys")).json()["keys"]]
    assert len(units) == 5
    assert conflicts
    return [draft, *units, *conflicts, *keys, zeta.agent, f"{CANARY}-room", f"{CANARY}-task", CANARY, zeta.tenant]


def assert_nothing_of_zeta(answer: httpx.Response, foreign: list[str], asked: str) -> None:
    """But what was asked itself may stand in the answer."""
    told = f"{answer.headers} {answer.text}".replace(asked, "")
    assert CANARY not in told
    assert [each for each in foreign if each in told] == []


@requirement("akashik:access:tenants-apart")
async def test_no_route_tells_an_operator_anything_of_another_tenant_whatever_id_is_asked_for(
    server: Tower, acme: Holder, foreign_ids: list[str]
) -> None:
    elsewhere = {("PUT", "/v1/secrets/{id}"), *table.PLANES, *table.MEMORY}  # see also test_planes_and_memories.py
    routes = sorted(table.all_routes() - elsewhere)
    for foreign in foreign_ids:
        for method, path in routes:
            if "{id}" in path or foreign == foreign_ids[0]:
                answer = await server.request(acme, method, path.replace("{id}", foreign))
                assert answer.status_code != 500
                assert_nothing_of_zeta(answer, foreign_ids, foreign)
                if "{id}" in path:
                    assert answer.status_code in (404, 501), (method, path, answer.text)


def envelopes(agent: str, foreign: str) -> list[Body]:
    """Every operation, with a foreign id wherever it takes one."""
    about = {"memory_unit_id": foreign}
    payloads: list[tuple[str, Body]] = [
        ("REGISTER", {"id": agent, "role": "researcher", "interests": [foreign]}),
        ("DEREGISTER", {"agent_id": foreign}),
        *[
            ("RECORD", unit("A plain remark.", mode="draft", relations=[{"type": kind, "target_id": foreign}]))
            for kind in ("supersedes", "contradicts")
        ],
        ("ATTUNE", attunement(foreign, sessions=[foreign], active_task_id=foreign)),
        ("ATTUNE", attunement(foreign, include_own=True)),
        *[("DETECT", {"mode": mode, "target_id": foreign}) for mode in ("list", "check", "scan")],
        ("DETECT", {"mode": "list", "filter": {"involving_agents": [foreign]}}),
        ("COMMIT", about),
        ("DISCARD", about),
        ("RETRACT", {**about, "reason": "because"}),
    ]
    if "COMPACT" in BUILT_OPERATIONS:
        wanted = {"ancestor_id": foreign}, {"session_id": foreign}
        payloads += [("COMPACT", {"strategy": "purge", "filter": each, "dry_run": True}) for each in wanted]
    assert {operation for operation, _ in payloads} == set(BUILT_OPERATIONS)
    return [message(operation, payload, agent_id=agent) for operation, payload in payloads]


async def test_no_operation_tells_anything_of_another_tenant_whatever_id_is_asked_for(
    server: Tower, acme: Holder, foreign_ids: list[str]
) -> None:
    for foreign in foreign_ids:
        answer = await server.request(acme, "POST", "/v1/messages", envelopes(acme.agent, foreign))
        assert answer.status_code == 200
        assert_nothing_of_zeta(answer, foreign_ids, foreign)
        codes = {(each["operation"], each["code"]) for each in answer.json() if each.get("code")}
        about_a_unit = ("RECORD", "DETECT", "COMMIT", "DISCARD", "RETRACT")
        assert {(operation, "UNIT_NOT_FOUND") for operation in about_a_unit} <= codes


async def test_an_export_holds_ones_own_tenant_and_nothing_else(
    server: Tower, zeta: Holder, foreign_ids: list[str]
) -> None:
    own = await server.holder("exporting", "ada", authority=10)
    await server.record(own, "The fair closes at noon.")
    ours, theirs = [(await server.request(each, "GET", "/v1/export")).text for each in (own, zeta)]
    assert "The fair closes" in ours
    assert [each for each in (CANARY, *foreign_ids) if each in ours] == []
    assert CANARY in theirs
    assert "The fair closes" not in theirs


async def test_the_same_names_in_two_tenants_are_two_things(server: Tower) -> None:
    both = [await server.holder(tenant, "twin", authority=10) for tenant in ("left", "right")]
    for holder in both:
        assert (await server.request(holder, "PUT", "/v1/secrets/same", {"value": "correct horse"})).status_code == 204
        await server.record(holder, f"I am of {holder.tenant}.", session="same")
    assert (await server.request(both[0], "DELETE", "/v1/secrets/same")).status_code == 204
    assert (await server.request(both[1], "GET", "/v1/secrets")).json()["secrets"][0]["id"] == "same"
    for holder in both:
        told = await server.attune(holder, include_own=True, sessions=["same"])
        assert [found["memory_unit"]["content"] for found in told["record"]] == [f"I am of {holder.tenant}."]


async def test_a_secret_of_one_tenant_is_none_of_the_others_business(server: Tower) -> None:
    first, second = [await server.holder(tenant, "sam", authority=10) for tenant in ("silent", "loud")]
    value = "a brass lantern burns"
    assert (await server.request(first, "PUT", "/v1/secrets/lamp", {"value": value})).status_code == 204
    for holder, comes_back in ((first, False), (second, True)):
        recorded = await server.record(holder, f"Say {value} at the door.")
        found = (await server.request(holder, "GET", f"/v1/units/{recorded}")).json()
        assert (value in found["content"]) is comes_back


async def test_what_one_tenant_does_moves_no_number_of_another(server: Tower, zeta: Holder) -> None:
    still = await server.holder("still", "ada", authority=10)
    await server.record(still, "Nothing moves here.")
    async with server.house.entrance.tenants.visit("still") as field:
        await field._writer.drain()

    async def seen() -> list[Any]:
        status: Body = (await server.request(still, "GET", "/v1/field/status")).json()
        del status["text_index_position"]  # its own index may still be catching up
        pages = [await server.request(still, "GET", path) for path in ("/v1/log", "/v1/export", "/v1/agents")]
        return [status, *(page.content for page in pages)]

    before = await seen()
    for number in range(20):
        await server.record(zeta, f"Number {number} of {CANARY}. " + "x" * 5_000)
    assert await seen() == before


async def test_keys_of_one_tenant_are_listed_to_its_operators_alone(server: Tower, acme: Holder, zeta: Holder) -> None:
    for holder in (acme, zeta):
        keys = (await server.request(holder, "GET", "/v1/keys")).json()["keys"]
        assert {key["tenant"] for key in keys} == {holder.tenant}
        assert holder.key_id in {key["id"] for key in keys}


async def test_an_operator_can_neither_make_rotate_nor_revoke_a_key_of_another_tenant(
    server: Tower, acme: Holder, zeta: Holder
) -> None:
    wish = {"tenant": zeta.tenant, "authority": 2}
    assert refused(await server.request(acme, "POST", "/v1/keys", wish)) == (403, "FORBIDDEN")
    rotating = await server.request(acme, "POST", f"/v1/keys/{zeta.key_id}/rotate")
    assert refused(rotating) == (404, "NOT_FOUND")
    revoking = await server.request(acme, "DELETE", f"/v1/keys/{zeta.key_id}")
    assert refused(revoking) == (404, "NOT_FOUND")
    assert (await server.request(zeta, "GET", "/v1/agents")).status_code == 200


@requirement("akashik:access:tenant-from-credential")
@pytest.mark.parametrize("place", ["query", "header", "body"])
async def test_the_tenant_comes_from_the_credential_and_from_nowhere_else(
    server: Tower, acme: Holder, zeta: Holder, foreign_ids: list[str], place: str
) -> None:
    path, headers, body = "/v1/attune", dict(acme.headers), message("ATTUNE", attunement(CANARY), agent_id="ada")
    if place == "query":
        path += f"?tenant={zeta.tenant}"
    elif place == "header":
        headers |= {"x-tenant": zeta.tenant, "x-forwarded-user": zeta.agent}
    else:
        body["tenant"] = zeta.tenant
    answer = await server.client.post(path, json=body, headers=headers)
    assert answer.status_code == (200 if place == "header" else 400)
    assert_nothing_of_zeta(answer, foreign_ids, CANARY)


# --- nobody holds up the others ---------------------------------------------------------------------------------------


@requirement("akashik:access:tenants-apart")
async def test_a_flood_of_one_tenant_does_not_stop_another(server: Tower, acme: Holder) -> None:
    noisy = await server.holder("noisy", "nora", authority=4)  # zeta's units are counted, in whatever order tests run
    flood = [message("RECORD", unit(f"Wave {number}."), agent_id=noisy.agent) for number in range(500)]
    flooding = [asyncio.create_task(server.request(noisy, "POST", "/v1/messages", flood)) for _ in range(2)]
    went_on = 0
    while not all(task.done() for task in flooding):
        await server.record(acme, "We go on.")
        went_on += 1
    assert went_on
    assert {answer.status_code for answer in await asyncio.gather(*flooding)} == {200}


@requirement("akashik:access:tenants-apart")
async def test_a_field_that_breaks_does_not_stop_another_and_works_again(
    server: Tower, acme: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await server.holder("broken", "bob", authority=10)

    async def explode(*_: Any) -> Any:
        raise ZeroDivisionError(f"the {CANARY} of zeta")

    async with server.house.entrance.tenants.visit("broken") as field:
        with monkeypatch.context() as patched:
            patched.setattr(field, "send", explode)
            answer = await server.send(broken, "ATTUNE", attunement())
            assert refused(answer) == (500, "INTERNAL_ERROR")
            assert CANARY not in answer.text
            assert (await server.send(acme, "ATTUNE", attunement())).status_code == 200
    assert (await server.send(broken, "ATTUNE", attunement())).status_code == 200


async def test_a_tenant_whose_field_cannot_be_opened_is_told_so_and_asked_again_later() -> None:
    attempts = 0

    async def opening(tenant: str) -> LocalField:
        nonlocal attempts
        attempts += tenant == "bad"
        if tenant == "bad" and attempts == 1:
            raise OSError("no such disk")
        return await opened()

    tenants = Tenants(opening)
    with pytest.raises(OSError, match="no such disk"):
        async with tenants.visit("bad"):
            pass
    async with tenants.visit("good") as good, tenants.visit("bad") as bad:
        await join(good, "ada")
        await join(bad, "ben")
    assert attempts == 2
    await tenants.close()


async def test_fields_that_nobody_is_in_make_room_and_lose_nothing(tmp_path: Path) -> None:
    async with tower(tmp_path / "many.db", embedder="none") as server:
        tenants = server.house.entrance.tenants
        tenants._most_open = 2
        holders = [await server.holder(f"tenant-{number}", "ada", authority=10) for number in range(6)]
        for turn in range(2):
            for holder in holders:
                await server.record(holder, f"Turn {turn} of {holder.tenant}.")
                assert len(tenants.open_fields()) <= 2
        for holder in holders:
            told = await server.attune(holder, include_own=True)
            contents = {found["memory_unit"]["content"] for found in told["record"]}
            assert contents == {f"Turn {turn} of {holder.tenant}." for turn in range(2)}
            assert (await server.request(holder, "POST", "/v1/verify")).json()["ok"] is True


async def test_a_field_that_somebody_is_in_is_not_closed_to_make_room() -> None:
    async def opening(_tenant: str) -> LocalField:
        return await opened()

    tenants = Tenants(opening, most_open=1)
    async with tenants.visit("first") as first:
        async with tenants.visit("second"), tenants.visit("third"):
            await join(first, "ada")
    await tenants.close()
    with pytest.raises(FieldError):
        async with tenants.visit("first"):
            pass


async def test_a_field_that_is_being_closed_is_opened_again_only_when_it_is_closed() -> None:
    closing, may_close = asyncio.Event(), asyncio.Event()
    is_open: Counter[str] = Counter()

    async def opening(tenant: str) -> LocalField:
        is_open[tenant] += 1
        assert is_open[tenant] == 1, "two writers of one field"
        field = await opened()
        close = field.close

        async def close_slowly() -> None:
            closing.set()
            await may_close.wait()
            await close()
            is_open[tenant] -= 1

        field.close = close_slowly  # type: ignore[method-assign]
        return field

    tenants = Tenants(opening, most_open=1)
    for tenant in ("first", "second"):
        async with tenants.visit(tenant):
            pass
    await closing.wait()
    asyncio.get_running_loop().call_soon(may_close.set)
    async with tenants.visit("first") as field:
        await join(field, "ada")
    await tenants.close()
    assert not is_open.total()


async def test_who_waited_for_an_opening_that_failed_does_not_lose_the_next_one() -> None:
    openings = 0

    async def opening(_tenant: str) -> LocalField:
        nonlocal openings
        openings += 1
        if openings == 1:
            await asyncio.sleep(0)
            raise OSError("no such disk")
        return await opened()

    tenants = Tenants(opening)

    async def insist() -> LocalField:
        try:
            async with tenants.visit("acme") as field:
                return field
        except OSError:
            return await insist()

    assert len(set(await asyncio.gather(*(insist() for _ in range(5))))) == 1
    assert openings == 2
    await tenants.close()


async def test_many_at_once_open_a_tenants_field_once() -> None:
    openings = 0

    async def opening(_tenant: str) -> LocalField:
        nonlocal openings
        openings += 1
        return await opened()

    tenants = Tenants(opening)

    async def visit() -> LocalField:
        async with tenants.visit("acme") as field:
            return field

    assert len(set(await asyncio.gather(*(visit() for _ in range(20))))) == 1
    assert openings == 1
    await tenants.close()
