"""OpenTelemetry: what happened to memories, as log records with an event name; and nothing where nobody listens."""

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.field.field import LocalField
from fieldstone.profiles.openwop import Feed, FeedEvent, MemoryAdapter, SeedEntry
from fieldstone.servers import telemetry
from fieldstone.servers.telemetry import MARK, Telemetry, attributes, otel_tell
from fieldstone.testing import KEY
from fieldstone.testing.world import FIRST_DAY_MS
from tests.field.fields import opened
from tests.requirements import requirement

PATIENCE_S = 30


class Listener:
    """What is told, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, FeedEvent]] = []
        self._changed = asyncio.Event()

    def __call__(self, tenant: str, event: FeedEvent) -> None:
        self.heard.append((tenant, event))
        self._changed.set()

    async def until(self, count: int) -> list[Any]:
        while len(self.heard) < count:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), PATIENCE_S)
        return [event.payload["memoryId"] for _, event in self.heard]


@pytest.fixture
async def field() -> AsyncIterator[LocalField]:
    field = await opened()
    yield field
    await field.close()


# --- following --------------------------------------------------------------------------------------------------------


@requirement("openwop:telemetry:once")
async def test_what_happens_is_told_once_and_over_restarts_nothing_is_missed() -> None:
    store, listener = MemoryStore(KEY), Listener()
    field = await opened(store=store)
    await seed(field, "before")
    first = Telemetry(field, "acme", listener)
    first.start()
    await begun(field)
    await seed(field, "a", "b")
    assert await listener.until(2) == ["a", "b"]
    await noted(field)
    await first.close()
    await seed(field, "c")  # while nobody listens
    second = Telemetry(field, "acme", listener)
    second.start()
    assert await listener.until(3) == ["a", "b", "c"]
    assert {tenant for tenant, _ in listener.heard} == {"acme"}
    await second.close()
    await field.close()


@requirement("openwop:telemetry:once")
async def test_a_listener_that_breaks_is_told_again_and_breaks_nothing_else(
    field: LocalField, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "PAUSE_S", 0)
    listener, breaks = Listener(), [True]

    def breaking(tenant: str, event: FeedEvent) -> None:
        if breaks.pop() if breaks else False:
            raise RuntimeError("not now")
        listener(tenant, event)

    following = Telemetry(field, "acme", breaking)
    following.start()
    await begun(field)
    await seed(field, "a")
    assert await listener.until(1) == ["a"]
    await following.close()


# --- OpenTelemetry ----------------------------------------------------------------------------------------------------


class Emitter:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def emit(self, **record: Any) -> None:
        self.records.append(record)


class ConfiguredProvider:
    def __init__(self) -> None:
        self.emitter = Emitter()
        self.asked: list[str] = []

    def get_logger(self, name: str, version: str | None = None) -> Emitter:
        self.asked.append(name)
        return self.emitter


class ProxyLoggerProvider(ConfiguredProvider):
    """What the API gives while there is none; it is known by its name."""


def install(monkeypatch: pytest.MonkeyPatch, provider: ConfiguredProvider) -> None:
    """The part of opentelemetry-api that is used."""
    for name in ("opentelemetry", "opentelemetry._logs"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    logs: Any = sys.modules["opentelemetry._logs"]
    logs.get_logger_provider = lambda: provider
    logs.SeverityNumber = type("SeverityNumber", (), {"INFO": 9})


@requirement("openwop:telemetry:named")
async def test_a_record_has_the_events_name_time_and_fields_and_no_content(
    field: LocalField, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ConfiguredProvider()
    install(monkeypatch, provider)
    tell = otel_tell()
    assert tell is not None
    assert provider.asked == ["fieldstone"]
    await seed(field, "a", "b")
    distilled = await MemoryAdapter(field).distil("notes", 5_000)
    assert distilled is not None
    tell("acme", distilled.event)
    [record] = provider.emitter.records
    assert record["event_name"] == "openwop.memory.compacted"
    assert record["timestamp"] == FIRST_DAY_MS * 1_000_000
    assert "body" not in record
    assert record["attributes"] == attributes("acme", distilled.event)
    assert record["attributes"] == {
        "fieldstone.tenant": "acme",
        "openwop.event_id": distilled.event.id,
        "openwop.memoryRef": "notes",
        "openwop.outputId": distilled.event.payload["outputId"],
        "openwop.sourceCount": 2,
        "openwop.trigger": "host-managed",
        "openwop.byteSize": distilled.event.payload["byteSize"],
        "openwop.sourceIds": distilled.event.payload["sourceIds"],
        "openwop.distillation.tokenBudget": 5_000,
        "openwop.distillation.tokensUsed": distilled.event.payload["distillation"]["tokensUsed"],
        "openwop.distillation.indexUpdated": False,
    }


@requirement("openwop:telemetry:optional")
def test_where_nobody_has_configured_a_provider_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ProxyLoggerProvider())
    assert otel_tell() is None


@requirement("openwop:telemetry:optional")
def test_without_the_extra_nothing_of_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "find_spec", lambda name: None)
    monkeypatch.setattr(telemetry, "import_module", lambda name: pytest.fail(f"{name} was loaded"))
    assert otel_tell() is None


# --- helpers of these tests -------------------------------------------------------------------------------------------


async def seed(field: LocalField, *ids: str) -> None:
    entries = [SeedEntry(id=entry_id, content=f"Entry {entry_id} tells of pears.") for entry_id in ids]
    await MemoryAdapter(field).seed("notes", entries)


async def begun(field: LocalField) -> None:
    while await field.audit.marks.get(MARK) == 0:  # noqa: ASYNC110 (marks wake nobody)
        await asyncio.sleep(0)


async def noted(field: LocalField) -> None:
    """All that happened was told, and that is on disk."""
    last = int((await Feed(field).page()).next)
    while await field.audit.marks.get(MARK) <= last:  # noqa: ASYNC110 (marks wake nobody)
        await asyncio.sleep(0)
