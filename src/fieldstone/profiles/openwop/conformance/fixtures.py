"""The workflows of OpenWOP's memory scenarios. Each does on the real memory what its scenario then asks about."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple

from fieldstone.core.access import LOCAL, Caller
from fieldstone.field.field import LocalField
from fieldstone.ports.world import Ids
from fieldstone.profiles.openwop.adapter import MemoryAdapter, MemoryEntry, SeedEntry
from fieldstone.profiles.openwop.conformance.known_secret import known_secret
from fieldstone.profiles.openwop.limits import HostLimits
from fieldstone.profiles.openwop.snapshots import token

FRESH_FOR: Final = timedelta(days=1)  # longer than any suite takes to look at it
OVER_SINCE_MS: Final = 60_000
TOKEN_BUDGET: Final = 200
QUERY: Final = "when is a refund paid"
CANARY: Final = "openwop-conformance-canary-secret"
RESOLVE_SECRET: Final = "resolve-secret"

Variables = dict[str, Any]
# The field of another tenant of the same server.
Elsewhere = Callable[[], AbstractAsyncContextManager[LocalField]]


class Place(NamedTuple):
    """Where a run takes place, and for whom."""

    field: LocalField
    caller: Caller
    limits: HostLimits
    elsewhere: Elsewhere


class Stage:
    """What a fixture acts with: a memory that no other run has, as it stood when the run began."""

    def __init__(self, place: Place, run: str, node: str, ids: Ids) -> None:
        self._place = place
        self._run = run
        self._node = node
        self._ids = ids
        entries = place.field.memories.entries
        self.moment = entries.begin()
        self.snapshot = token(self.moment, entries.seal_key)
        self.ref = f"openwop-conformance:{run}"
        self.adapter = MemoryAdapter(place.field, place.caller, place.limits)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._place.field.memories.now_ms() / 1_000, UTC)

    async def put(self, content: str, **fields: Any) -> MemoryEntry:
        """It belongs to the run."""
        return await self.adapter.put(self.ref, content=content, node_id=self._node, snapshot=self.snapshot, **fields)

    async def get(self, entry_id: str) -> MemoryEntry | None:
        return await self.adapter.get(self.ref, entry_id, snapshot=self.snapshot)

    async def list(self, **options: Any) -> tuple[MemoryEntry, ...]:
        return (await self.adapter.list(self.ref, snapshot=self.snapshot, **options)).entries

    def secret(self) -> AbstractAsyncContextManager[str]:
        return known_secret(self._place.field, self._ids, self._run, CANARY)

    def count_tokens(self, text: str) -> int:
        return self._place.field.memories.count_tokens(text)

    async def probe(self, entry_id: str | None = None, **options: Any) -> Sequence[MemoryEntry]:
        """What an operator of another tenant finds under the ref, and under the id of an entry in it."""
        async with self._place.elsewhere() as field:
            there = MemoryAdapter(field, LOCAL, self._place.limits)
            found = list((await there.list(self.ref, **options)).entries)
            got = None if entry_id is None else await there.get(self.ref, entry_id)
        return found if got is None else [*found, got]


async def _noop(stage: Stage) -> Variables:
    await stage.put("A run that does nothing else came by.")
    return {}


async def _roundtrip(stage: Stage) -> Variables:
    entry = await stage.put("The customer prefers e-mail.", tags=["source:conformance"])
    return {"memoryReadback": await stage.get(entry.id)}


async def _ttl(stage: Stage) -> Variables:
    over_ms = int(stage.now.timestamp() * 1_000) - OVER_SINCE_MS
    over = SeedEntry(id="over", content="This was over before it came.", expires_ms=over_ms)
    await stage.adapter.seed(stage.ref, [over])
    fresh = await stage.put("This stays for a day.", expires_at=stage.now + FRESH_FOR)
    # Without the snapshot: it would hide what is over for another reason.
    listed = await stage.adapter.list(stage.ref)
    return {"memoryList": listed.entries, "freshId": fresh.id, "expiredId": over.id}


async def _redaction(stage: Stage) -> Variables:
    async with stage.secret() as value:
        entry = await stage.put(f"The archive is opened with {value} on Mondays.")
    return {"memoryReadback": await stage.get(entry.id)}


async def _cross_tenant(stage: Stage) -> Variables:
    entry = await stage.put("This is for its owner alone.")
    return {
        "ownerProbe": await stage.list(),
        "ownerEntryId": entry.id,
        "crossTenantProbe": await stage.probe(entry.id),
    }


async def _injection_budget(stage: Stage) -> Variables:
    await stage.put("A refund is paid within 14 days of the return.")  # the oldest is what the query is about
    await stage.put("Lunch on Tuesday is soup with bread.")
    large = await stage.put("The minutes of the meeting say little. " * TOKEN_BUDGET)
    async with stage.secret() as value:
        secretive = await stage.put(f"The archive is opened with {value}.")
    await stage.put("The fair is on the green this year.")
    listed = await stage.list(token_budget=TOKEN_BUDGET)
    return {
        "tokenBudget": TOKEN_BUDGET,
        "budgetedEntries": listed,
        "budgetedTokenTotal": sum(stage.count_tokens(entry.content) for entry in listed),
        "overBudgetEntryId": large.id,
        "overBudgetEntryOmitted": large.id not in {entry.id for entry in listed},
        "redactedContentSample": next((entry.content for entry in listed if entry.id == secretive.id), None),
        "crossTenantBudgetedProbe": await stage.probe(token_budget=TOKEN_BUDGET),
        "recencyOrder": [entry.id for entry in await stage.list()],
        "relevanceOrder": [entry.id for entry in await stage.list(rank="relevance", query=QUERY)],
    }


async def _byok(stage: Stage) -> Variables:
    """The host provides the secret for the run, and says of it what gives nothing away."""
    async with stage.secret() as value:
        await stage.put(f"A node resolved {value} once.")  # and no memory keeps it
        resolved = {"secretSha256": sha256(value.encode()).hexdigest(), "secretLength": len(value)}
    return {RESOLVE_SECRET: resolved}


class Fixture(NamedTuple):
    node: str
    act: Callable[[Stage], Awaitable[Variables]]


WORKFLOWS: Final = {
    "conformance-noop": Fixture("noop", _noop),
    "conformance-agent-memory-roundtrip": Fixture("memory-roundtrip", _roundtrip),
    "conformance-agent-memory-ttl": Fixture("memory-ttl", _ttl),
    "conformance-agent-memory-redaction": Fixture("memory-redaction", _redaction),
    "conformance-agent-memory-cross-tenant": Fixture("memory-cross-tenant", _cross_tenant),
    "conformance-agent-memory-injection-budget": Fixture("memory-injection-budget", _injection_budget),
    "openwop-smoke-byok-roundtrip": Fixture(RESOLVE_SECRET, _byok),
}

FIXTURES: Final[tuple[str, ...]] = tuple(WORKFLOWS)
