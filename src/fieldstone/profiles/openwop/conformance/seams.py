"""The seams of OpenWOP's memory scenarios: compaction, distillation and consolidation at once, and what came of it.

Some scenarios name a memory that nobody has written to. Then the seam puts something there first, as a client would.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core.access import Caller
from fieldstone.field.field import LocalField
from fieldstone.ports.world import Ids
from fieldstone.profiles.openwop.adapter import MemoryAdapter, SeedEntry
from fieldstone.profiles.openwop.conformance.known_secret import known_secret
from fieldstone.profiles.openwop.limits import HostLimits

WHY: Final = "conformance"
LEAST_SOURCES: Final = 2
CANARY: Final = "openwop-consolidation-canary"

CORPUS: Final = (
    "The reading room opens at nine on weekdays.",
    "The reading room closes at noon on Saturdays.",
    "Books are lent for four weeks and can be renewed once.",
)


class Compacted(Struct, frozen=True, rename="camel"):
    type: str
    payload: dict[str, Any]
    output_content: str


class Distilled(Struct, frozen=True, rename="camel"):
    event: dict[str, Any]
    archive_checksum: str
    index_file: Any = UNSET


class Consolidated(Struct, frozen=True, rename="camel"):
    event: dict[str, Any]
    secret_leaked: bool | UnsetType = UNSET


class Seams:
    def __init__(self, field: LocalField, caller: Caller, limits: HostLimits, ids: Ids) -> None:
        self._field = field
        self._caller = caller
        self._ids = ids
        self._adapter = MemoryAdapter(field, caller, limits)

    async def seed(self, ref: str, entries: Sequence[SeedEntry]) -> None:
        await self._adapter.seed(ref, entries)

    async def compact(self, ref: str) -> Compacted | None:
        """All entries become one. None: there are fewer than two."""
        events = await self._adapter.compact(ref, why=WHY, whole=True)
        if not events:
            return None
        [event] = events
        output = await self._adapter.get(ref, event.payload["outputId"])
        assert output is not None, "an output is readable until its time is over"
        return Compacted(event.type, event.payload, output.content)

    async def distil(
        self, ref: str, token_budget: int | None, sources: Sequence[str] | None, *, index: bool
    ) -> Distilled:
        """These sources alone, or what is in the memory, or, where that is not enough, a corpus of our own."""
        made = None
        if sources is None and await self._has_sources(ref):
            made = await self._adapter.distil(ref, token_budget, index=index)
        if made is None:  # also where somebody was quicker, and nothing was left
            made = await self._adapter.distil(ref, token_budget, sources=sources or CORPUS, index=index)
        assert made is not None, "there were sources"
        return Distilled(made.event.payload, made.checksum, made.index_file if index else UNSET)

    async def consolidate(self, ref: str, *, plants_secret: bool) -> Consolidated:
        """`plants_secret`: first something comes in that there is work to do with, and a secret in it."""
        self._field.require(self._caller, "compact a memory")  # before anything is planted
        if not plants_secret:
            return Consolidated(await self._consolidated(ref))
        async with known_secret(self._field, self._ids, self._ids.run(), CANARY) as value:
            await self._adapter.seed(ref, _unconsolidated(value))
            event = await self._consolidated(ref)
            left = await self._adapter.list(ref)
        said = [str(event), *(text for entry in left.entries for text in (entry.id, entry.content, *entry.tags))]
        return Consolidated(event, any(value in text for text in said))

    async def _has_sources(self, ref: str) -> bool:
        return len((await self._adapter.list(ref, limit=LEAST_SOURCES)).entries) >= LEAST_SOURCES

    async def _consolidated(self, ref: str) -> dict[str, Any]:
        """A memory that is not there has nothing to consolidate: no event is in the log, and no ref is repeated."""
        event = await self._adapter.consolidate(ref)
        return {"inputCount": 0, "outputCount": 0} if event is None else event.payload


def _unconsolidated(secret: str) -> list[SeedEntry]:
    """Something twice, something out of date, and a secret. The ids are the same each time: they take their places."""
    contents = (
        "The customer prefers e-mail over the phone.",
        "The customer prefers e-mail over the phone.",
        "The request timeout of the gateway is 30 seconds.",
        "The request timeout of the gateway is 45 seconds.",
        f"The archive is opened with {secret} on Mondays.",
    )
    return [SeedEntry(id=f"unconsolidated-{number}", content=content) for number, content in enumerate(contents, 1)]
