"""Webhooks: every event reaches every hook that wants it, signed, in order, however often the hook fails before."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldstone.backends.sqlite.store import SqliteStore
from fieldstone.core.errors import StorageFull
from fieldstone.core.vocabulary import FeedKind
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import Feed, MemoryAdapter, SeedEntry
from fieldstone.servers import webhooks
from fieldstone.servers.tenants import Tenants
from fieldstone.servers.webhooks import Hook, Webhooks, hooks_from, signature
from fieldstone.settings import BadSettings, Secret, Settings, WebhookSettings
from fieldstone.testing import KEY, ManualClock
from fieldstone.testing.world import FIRST_DAY_MS
from tests.field.fields import opened
from tests.requirements import requirement

SIGNING_KEY: Final = "a key " + "for signatures"
PATIENCE_S: Final = 30

Answer = Callable[[int], int]  # from which request it is, the first being 0, to the status


class Receiver:
    """A real server that keeps what comes. `answer` None: it takes the request and never answers."""

    def __init__(self, answer: Answer | None) -> None:
        self._answer = answer
        self._changed = asyncio.Condition()
        self._lines: set[asyncio.StreamWriter] = set()
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.taken: list[dict[str, Any]] = []
        self.at_once = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(": ", 1) for line in head.decode().splitlines()[1:] if line)
                body = await reader.readexactly(int(fields["content-length"]))
                await self._take({"target": head.decode().split()[1]} | fields, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def until_taken(self, count: int) -> list[dict[str, Any]]:
        await self._until(lambda: len(self.taken) >= count)
        return self.taken

    async def until_came(self, count: int) -> list[tuple[dict[str, str], bytes]]:
        await self._until(lambda: len(self.came) >= count)
        return self.came

    def hang_up(self) -> None:
        for writer in self._lines:
            writer.close()

    async def _take(self, fields: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> None:
        self.at_once += 1
        assert self.at_once == 1, "one delivery at a time"
        self.came.append((fields, body))
        status = None if self._answer is None else self._answer(len(self.came) - 1)
        if status is not None and 200 <= status < 300:
            self.taken.append(json.loads(body))
        async with self._changed:
            self._changed.notify_all()
        if status is not None:
            moved = b"location: /elsewhere\r\n" if status in (301, 307) else b""
            writer.write(b"HTTP/1.1 %d X\r\n%bcontent-length: 2\r\n\r\nok" % (status, moved))
            await writer.drain()
        self.at_once -= 1

    async def _until(self, reached: Callable[[], bool]) -> None:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(reached), PATIENCE_S)


@asynccontextmanager
async def receiving(answer: Answer | None = lambda number: 204) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?team=1"
    try:
        yield receiver
    finally:
        server.close()
        receiver.hang_up()
        await server.wait_closed()


@asynccontextmanager
async def hooked(field: LocalField, *hooks: Hook) -> AsyncIterator[ManualClock]:
    async def the_field(_tenant: str) -> LocalField:
        return field

    clock = ManualClock()
    sending = Webhooks(hooks, Tenants(the_field), clock, first_pause_s=0.001)
    sending.start()
    try:
        await begun(field, hooks)
        yield clock
    finally:
        await sending.close()


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await opened()
    yield field
    await field.close()


# --- deliveries -------------------------------------------------------------------------------------------------------


@requirement("openwop:webhooks:signed")
async def test_an_event_is_posted_flat_and_signed_over_time_and_body(field: LocalField) -> None:
    async with receiving() as receiver, hooked(field, hook(receiver)) as clock:
        clock.advance(60_000)
        await seed(field, "a")
        [event] = await receiver.until_taken(1)
        [(headers, body)] = receiver.came
    assert event == (await told(field))[0]
    assert headers["content-type"] == "application/json"
    assert headers["target"] == "/hook?team=1"
    at_s = FIRST_DAY_MS // 1000 + 60
    expected = hmac.new(SIGNING_KEY.encode(), f"{at_s}.".encode() + body, sha256).hexdigest()
    assert headers["fieldstone-signature"] == f"t={at_s},v1={expected}"


@requirement("openwop:webhooks:types")
async def test_only_the_types_that_a_hook_wants_are_sent(field: LocalField) -> None:
    async with (
        receiving() as some,
        receiving() as all_of_them,
        hooked(field, hook(some, "memory.compacted"), hook(all_of_them)),
    ):
        await seed(field, "a", "b")
        await MemoryAdapter(field).compact("notes", why="asked", whole=True)
        assert [event["type"] for event in await some.until_taken(1)] == ["memory.compacted"]
        assert await all_of_them.until_taken(4) == await told(field)


@requirement("openwop:webhooks:retried")
@pytest.mark.parametrize("status", [301, 307, 400, 404, 410, 429, 500, 503])
async def test_whatever_is_not_a_success_is_sent_again_and_a_redirect_is_not_followed(
    field: LocalField, status: int
) -> None:
    async with receiving(lambda number: status if number < 3 else 200) as receiver, hooked(field, hook(receiver)):
        await seed(field, "a")
        await receiver.until_taken(1)
    assert len({body for _, body in receiver.came}) == 1
    assert {headers["target"] for headers, _ in receiver.came} == {"/hook?team=1"}
    assert len(receiver.came) == 4


@requirement("openwop:webhooks:retried")
@settings(max_examples=15)  # each has a server of its own
@given(failures=st.lists(st.integers(0, 3), min_size=1, max_size=6))
async def test_however_often_each_one_fails_all_arrive_once_and_in_order(failures: list[int]) -> None:
    statuses = [status for count in failures for status in [503] * count + [200]]
    field = await opened()
    async with receiving(lambda number: statuses[number]) as receiver, hooked(field, hook(receiver)):
        await seed(field, *(str(number) for number in range(len(failures))))
        taken = await receiver.until_taken(len(failures))
    assert [event["memoryId"] for event in taken] == [str(number) for number in range(len(failures))]
    assert len(receiver.came) == len(statuses)
    await field.close()


@requirement("openwop:webhooks:retried")
async def test_a_hook_that_does_not_answer_is_asked_again(field: LocalField, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.05)
    async with receiving(None) as receiver, hooked(field, hook(receiver)):
        await seed(field, "a")
        await receiver.until_came(3)
    assert len({body for _, body in receiver.came}) == 1


@requirement("openwop:webhooks:apart")
async def test_a_hook_that_is_down_delays_no_other(field: LocalField) -> None:
    async with (
        receiving(lambda number: 503) as down,
        receiving() as up,
        hooked(field, hook(down), hook(up)),
    ):
        await seed(field, *(str(number) for number in range(20)))
        assert len(await up.until_taken(20)) == 20
    assert {json.loads(body)["memoryId"] for _, body in down.came} <= {"0"}


@requirement("openwop:webhooks:purged-not-sent")
async def test_what_was_purged_before_a_hook_took_it_is_not_sent_any_more(field: LocalField) -> None:
    is_up = False
    async with receiving(lambda number: 200 if is_up else 503) as receiver, hooked(field, hook(receiver)):
        await MemoryAdapter(field).seed("notes", [SeedEntry(id="mine", content="Rain.", tags=("weather",))])
        await receiver.until_came(1)
        await MemoryAdapter(field).delete("notes", "mine")
        is_up = True
        [event] = await receiver.until_taken(1)
    assert "tags" not in event
    assert event["memoryId"].startswith("mem-")


# --- over restarts ----------------------------------------------------------------------------------------------------


@requirement("openwop:webhooks:retried")
async def test_what_a_hook_did_not_take_before_a_restart_it_gets_after_it_and_nothing_twice(tmp_path: Path) -> None:
    is_up = True
    async with receiving(lambda number: 200 if is_up else 503) as receiver:
        field = await opened(store=SqliteStore.open(tmp_path / "field.db", KEY))
        async with hooked(field, hook(receiver)):
            await seed(field, "a")
            await receiver.until_taken(1)
            await noted(field, hook(receiver), 1)
            is_up = False
            await seed(field, "b", "c")
            await receiver.until_came(2)
        await seed(field, "d")  # while nobody sends
        await field.close()
        is_up = True
        field = await opened(store=SqliteStore.open(tmp_path / "field.db", KEY), seed=2)
        async with hooked(field, hook(receiver)):
            taken = await receiver.until_taken(4)
        await field.close()
    assert [event["memoryId"] for event in taken] == ["a", "b", "c", "d"]


async def test_a_new_hook_is_told_what_happens_from_now_on(field: LocalField) -> None:
    await seed(field, "before")
    async with receiving() as receiver, hooked(field, hook(receiver)):
        await seed(field, "after")
        assert [event["memoryId"] for event in await receiver.until_taken(1)] == ["after"]


async def test_a_hook_that_wants_other_types_or_has_another_key_goes_on_where_it_was() -> None:
    def of(secret: str, *kinds: FeedKind) -> Hook:
        return Hook("https://example.org/hook", kinds or None, "local", Secret(secret))

    assert of("one " + "key").mark == of("another " + "key", "memory.written").mark
    assert of("one " + "key").mark != Hook("https://example.org/else", None, "local", Secret("x")).mark


async def test_a_mark_that_has_no_room_stops_no_delivery(field: LocalField, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver, hooked(field, hook(receiver)):

        async def full(_name: str, _seq: int) -> None:
            raise StorageFull

        monkeypatch.setattr(field.audit.marks, "set", full)
        await seed(field, "a", "b")
        taken = await receiver.until_taken(2)
    assert [event["memoryId"] for event in taken] == ["a", "b"]


async def test_a_field_that_does_not_open_at_first_is_asked_for_again(field: LocalField) -> None:
    tries = 0

    async def the_field(_tenant: str) -> LocalField:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError("not now")
        return field

    async with receiving() as receiver:
        sending = Webhooks([hook(receiver)], Tenants(the_field), ManualClock(), first_pause_s=0.001)
        sending.start()
        await begun(field, [hook(receiver)])
        await seed(field, "a")
        await receiver.until_taken(1)
        await sending.close()


# --- settings ---------------------------------------------------------------------------------------------------------


@requirement("openwop:webhooks:signed")
def test_hooks_take_their_key_from_the_environment_and_their_tenant_from_the_settings() -> None:
    given = WebhookSettings(url="https://example.org/hook", types=("memory.compacted",), secret_env="HOOK_KEY")
    other = WebhookSettings(url="https://example.org/hook", secret_env="HOOK_KEY", tenant="zeta")
    [hook, of_zeta] = hooks_from(Settings(tenant="acme", webhooks=(given, other)), {"HOOK_KEY": SIGNING_KEY})
    assert (hook.url, hook.kinds, hook.tenant) == ("https://example.org/hook", ("memory.compacted",), "acme")
    assert (of_zeta.kinds, of_zeta.tenant) == (None, "zeta")
    assert hook.secret.reveal() == SIGNING_KEY
    assert SIGNING_KEY not in repr(hook)


@requirement("openwop:webhooks:bad-settings")
@pytest.mark.parametrize(
    ("wrong", "told_of"),
    [
        ({"secret_env": "MISSING"}, "MISSING"),
        ({"secret_env": "EMPTY"}, "EMPTY"),
        ({"types": ("memory.written", "run.started")}, "run.started"),
        ({"url": "ftp://example.org/hook"}, "url"),
        ({"url": "https:///hook"}, "url"),
        ({"url": "https://example.org:99999/hook"}, "url"),
        ({"url": "https://user:word@example.org/hook"}, "password"),
    ],
)
def test_a_hook_that_could_not_work_is_refused_at_the_start(wrong: dict[str, Any], told_of: str) -> None:
    right = {"url": "https://example.org/hook", "secret_env": "HOOK_KEY"}
    settings = Settings(webhooks=(WebhookSettings(**right | wrong),))
    with pytest.raises(BadSettings, match=told_of):
        hooks_from(settings, {"HOOK_KEY": SIGNING_KEY, "EMPTY": ""})


@requirement("openwop:webhooks:bad-settings")
def test_the_same_address_twice_for_a_tenant_is_refused() -> None:
    given = WebhookSettings(url="https://example.org/hook", secret_env="HOOK_KEY")
    with pytest.raises(BadSettings, match="table 2"):
        hooks_from(Settings(webhooks=(given, given)), {"HOOK_KEY": SIGNING_KEY})


@requirement("openwop:webhooks:signed")
@given(body=st.binary(max_size=50), at_s=st.integers(0, 2**40), other=st.binary(max_size=50))
def test_a_signature_is_of_its_time_its_body_and_its_key_alone(body: bytes, at_s: int, other: bytes) -> None:
    signed = signature(Secret(SIGNING_KEY), body, at_s)
    assert signed == signature(Secret(SIGNING_KEY), body, at_s)
    assert (signature(Secret(SIGNING_KEY), other, at_s) == signed) is (other == body)
    assert signature(Secret(SIGNING_KEY + "!"), body, at_s) != signed
    assert signature(Secret(SIGNING_KEY), body, at_s + 1) != signed


# --- helpers of these tests -------------------------------------------------------------------------------------------


def hook(receiver: Receiver, *kinds: FeedKind) -> Hook:
    return Hook(receiver.url, kinds or None, "local", Secret(SIGNING_KEY))


async def begun(field: LocalField, hooks: Sequence[Hook]) -> None:
    """Every hook knows where it begins."""
    for each in hooks:
        while await field.audit.marks.get(each.mark) == 0:  # noqa: ASYNC110 (marks wake nobody)
            await asyncio.sleep(0)


async def noted(field: LocalField, hook: Hook, events: int) -> None:
    """So many were taken, and that is on disk."""
    last = int((await told(field))[events - 1]["id"])
    while await field.audit.marks.get(hook.mark) <= last:  # noqa: ASYNC110 (marks wake nobody)
        await asyncio.sleep(0)


async def seed(field: LocalField, *ids: str) -> None:
    entries = [SeedEntry(id=entry_id, content=f"Entry {entry_id} tells of pears.") for entry_id in ids]
    await MemoryAdapter(field).seed("notes", entries)


async def told(field: LocalField) -> list[dict[str, Any]]:
    return [event.flat() for event in (await Feed(field).page(limit=1_000)).events]
