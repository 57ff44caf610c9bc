"""An operator whose key is limited cannot make, over HTTP, a key without its limits."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fieldstone.core.events import AccessRefused
from fieldstone.retrieval.reading import timestamp
from tests.access.tower import Holder, Tower, refused, tower
from tests.redact.fakes import noise
from tests.requirements import requirement
from tests.servers.auth.tokens import DAY_MS

LIMITS: dict[str, Any] = {"agents": ["ada"], "rate_per_second": 1_000, "quota_units": 10}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Tower]:
    async with tower(tmp_path / "tower.db", embedder="none") as served:
        yield served


@pytest.fixture
async def limited(server: Tower) -> Holder:
    expires_ms = server.house.keys._clock.now_ms() + DAY_MS
    return await server.holder("acme", "ada", authority=10, expires_ms=expires_ms, **LIMITS)


async def key_ids(server: Tower, holder: Holder) -> set[str]:
    keys = (await server.request(holder, "GET", "/v1/keys")).json()["keys"]
    return {key["id"] for key in keys}


@requirement("akashik:access:keys-bounded")
@pytest.mark.parametrize("left_out", [*LIMITS, "expires"])
async def test_a_limited_key_makes_none_without_its_limits(server: Tower, limited: Holder, left_out: str) -> None:
    [own] = [key for key in server.house.keys.list("acme") if key.id == limited.key_id]
    wish = {"tenant": "acme", "authority": 10, "expires": own.expires_at, **LIMITS}
    before = await key_ids(server, limited)
    answer = await server.request(limited, "POST", "/v1/keys", {k: v for k, v in wish.items() if k != left_out})
    assert refused(answer) == (403, "FORBIDDEN")
    assert left_out in answer.json()["message"]
    assert left_out in answer.json()["suggested_action"]
    assert await key_ids(server, limited) == before
    assert (await server.request(limited, "POST", "/v1/keys", wish)).status_code == 201


async def test_a_limited_key_rotates_itself_and_what_may_less_but_not_what_may_more(
    server: Tower, limited: Holder
) -> None:
    expires_ms = server.house.keys._clock.now_ms() + DAY_MS // 2
    less = server.make_key("acme", authority=2, expires_ms=expires_ms, **LIMITS)
    more = server.make_key("acme", authority=4)
    answer = await server.request(limited, "POST", f"/v1/keys/{more.id}/rotate")
    assert refused(answer) == (403, "FORBIDDEN")
    assert server.house.keys.caller(more.key).caller.credential == more.id
    assert (await server.request(limited, "POST", f"/v1/keys/{less.id}/rotate")).status_code == 200
    assert (await server.request(limited, "POST", f"/v1/keys/{limited.key_id}/rotate")).status_code == 200


async def test_a_limited_key_gives_no_later_end_than_its_own(server: Tower, limited: Holder) -> None:
    own_end_ms = server.house.keys._clock.now_ms() + DAY_MS
    less = server.make_key("acme", authority=2, expires_ms=own_end_ms - DAY_MS // 2, **LIMITS)
    for later_ms, expected in ((DAY_MS, 403), (-DAY_MS // 4, 200)):
        end = {"expires": timestamp(own_end_ms + later_ms)}
        answer = await server.request(limited, "POST", f"/v1/keys/{less.id}/rotate", end)
        assert answer.status_code == expected, answer.text
    unknown = await server.request(limited, "POST", f"/v1/keys/{less.id}/rotate", {"expiry": "30d"})
    assert refused(unknown) == (400, "INVALID_PAYLOAD")


async def test_a_limited_key_revokes_any_of_its_tenant(server: Tower, limited: Holder) -> None:
    more = server.make_key("acme", authority=10)
    assert (await server.request(limited, "DELETE", f"/v1/keys/{more.id}")).status_code == 204


async def test_a_key_of_another_tenant_is_not_there_whatever_it_may(server: Tower, limited: Holder) -> None:
    foreign = server.make_key("zeta", authority=10)
    answers = [await server.request(limited, "POST", f"/v1/keys/{key}/rotate") for key in (foreign.id, "key-0")]
    assert [refused(answer) for answer in answers] == [(404, "NOT_FOUND")] * 2
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize("disguise", [str, lambda text: text[::-1], lambda text: text.encode().hex()])
async def test_a_key_for_an_agent_whose_id_holds_a_secret_is_not_made(
    server: Tower, disguise: Callable[[str], str]
) -> None:
    """It would be listed with it, and lie beside the store."""
    operator = await server.holder("acme", "ada", authority=10)
    value = noise(24)
    assert (await server.request(operator, "PUT", "/v1/secrets/known", {"value": value})).status_code == 204
    before = await key_ids(server, operator)
    wish = {"tenant": "acme", "authority": 4, "agents": ["ben", disguise(value)]}
    assert (await server.request(operator, "POST", "/v1/keys", wish)).status_code == 422
    assert await key_ids(server, operator) == before


async def test_whoever_asked_for_more_goes_on_record(server: Tower, limited: Holder) -> None:
    await server.request(limited, "POST", "/v1/keys", {"tenant": "acme", "authority": 10})
    async with server.house.entrance.tenants.visit("acme") as field:
        await field._writer.drain()
        noted = [line.entry.event for line in (await field.log(limit=1_000)).entries]
    assert AccessRefused(asked="manage keys", code="FORBIDDEN", credential=limited.key_id, authority=10) in noted


async def test_where_the_server_has_a_default_rate_no_key_without_one_makes_a_faster_one(tmp_path: Path) -> None:
    async with tower(tmp_path / "tower.db", embedder="none", rate_per_second=100.0) as server:
        operator = await server.holder("acme", "ada", authority=10)
        for rate, status in ((None, 201), (100, 201), (101, 403)):
            wish = {"tenant": "acme", "rate_per_second": rate}
            assert (await server.request(operator, "POST", "/v1/keys", wish)).status_code == status, rate
