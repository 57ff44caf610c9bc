"""What a host does with its memories by itself: expired entries go, and compaction, distillation and consolidation come
when they are due.

When each of them last ran is a mark in the store, so a restart neither repeats a run nor forgets one. A run that was
cut off is due again: what it had done by then is in the log, and is not there to be done any more.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import structlog
from msgspec import Struct

from fieldstone.compaction.schedule import Schedule, parse_schedule
from fieldstone.core.access import LOCAL
from fieldstone.core.errors import FieldError, ShuttingDown, TokenBudgetExceeded
from fieldstone.field.field import LocalField
from fieldstone.ports.world import Clock
from fieldstone.profiles.openwop.limits import HostLimits

Chore = Literal["consolidation", "compaction", "distillation"]

# Consolidation goes first: what it takes away need not be compacted.
CHORES: Final[tuple[Chore, ...]] = ("consolidation", "compaction", "distillation")
SETTLING_MS: Final = 60_000  # a run that was missed is made up for, but not while the server is about to start
LOOK_EVERY_MS: Final = 60_000  # clocks are set, machines sleep: a long sleep would wake at the wrong time
SWEEP_EVERY_MS: Final = 600_000
COUNTED_AT_ONCE: Final = 100  # texts whose tokens are counted in one go
WHY: Final = "scheduled"

logger = structlog.get_logger("fieldstone.openwop.schedules")


class HostSchedules(Struct, frozen=True, kw_only=True):
    """The five fields of cron, in UTC; None: only when somebody asks for it."""

    consolidation: str | None = None
    compaction: str | None = None
    distillation: str | None = None
    min_entries: int = 50  # a memory with fewer is left as it is
    keep_newest: int = 20  # these are never compacted


class MemorySchedules:
    """One task for a field, from `start` to `close`. Raises `BadSchedule` for what is no schedule."""

    def __init__(
        self, field: LocalField, clock: Clock, schedules: HostSchedules, limits: HostLimits = HostLimits()
    ) -> None:
        self._field = field
        self._memories = field.memories
        self._clock = clock
        self._settings = schedules
        self._limits = limits
        self._due: dict[Chore, Schedule] = {
            chore: parse_schedule(text) for chore in CHORES if (text := getattr(schedules, chore)) is not None
        }
        self._ran_ms: dict[Chore, int] = {}
        self._swept_ms = 0
        self._not_before_ms = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._not_before_ms = self._clock.now_ms() + SETTLING_MS
        self._task = asyncio.create_task(self._run_for_ever())

    async def close(self) -> None:
        """A run that is under way is due again when the field opens."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def look(self) -> tuple[Chore, ...]:
        """Do what is due, and tell what that was. A run that was missed several times is made up for once."""
        now_ms = self._clock.now_ms()
        if now_ms < self._not_before_ms:
            return ()
        if not 0 <= now_ms - self._swept_ms < SWEEP_EVERY_MS:
            await self._sweep()
        due = [chore for chore in self._due if await self._next_ms(chore) <= now_ms]
        for chore in due:
            await self._run(chore)
        return tuple(due)

    async def pause_ms(self) -> int:
        """How long to sleep before the next look."""
        due_ms = [await self._next_ms(chore) for chore in self._due]
        next_ms = min([*due_ms, self._swept_ms + SWEEP_EVERY_MS])
        wait_ms = max(next_ms, self._not_before_ms) - self._clock.now_ms()
        return min(wait_ms, LOOK_EVERY_MS) if wait_ms > 0 else LOOK_EVERY_MS

    async def _run_for_ever(self) -> None:
        while True:
            try:
                await asyncio.sleep(await self.pause_ms() / 1000)
                await self.look()
            except ShuttingDown:
                return  # what was not done is due when the field opens again
            except Exception as broken:  # why: a store that cannot be read now is asked again
                logger.error("memories were not seen to", error=type(broken).__name__, exc_info=broken)
                await asyncio.sleep(LOOK_EVERY_MS / 1000)

    # --- when ---------------------------------------------------------------------------------------------------------

    async def _next_ms(self, chore: Chore) -> int:
        """A time in the past: it is late."""
        return self._due[chore].next_after(await self._last_ms(chore))

    async def _last_ms(self, chore: Chore) -> int:
        now_ms = self._clock.now_ms()
        last_ms = self._ran_ms.get(chore) or await self._field.audit.marks.get(_mark(chore))
        if not 0 < last_ms <= now_ms:  # nobody has looked before, or the clock was ahead: it counts from now on
            await self._note(chore, now_ms)
            return now_ms
        self._ran_ms[chore] = last_ms
        return last_ms

    async def _note(self, chore: Chore, at_ms: int) -> None:
        self._ran_ms[chore] = at_ms
        try:
            await self._field.audit.marks.set(_mark(chore), at_ms)
        except FieldError as full:
            logger.warning("when a memory chore ran is not on disk", chore=chore, code=full.code)

    # --- what ---------------------------------------------------------------------------------------------------------

    async def _run(self, chore: Chore) -> None:
        """One memory after the other. What goes wrong in one is told, and hinders no other."""
        began_ms = self._clock.now_ms()
        await self._sweep()
        failed = 0
        memories = await self._memories.entries.memories()
        for memory, count in memories.items():
            try:
                await self._do(chore, memory, count)
            except ShuttingDown:
                raise
            except FieldError as refused:
                failed += 1
                logger.warning("a memory was left as it is", chore=chore, code=refused.code)
            except Exception as broken:  # why: whatever is wrong with one memory, the others have their turn
                failed += 1
                logger.error("a memory was left", chore=chore, error=type(broken).__name__, exc_info=broken)
        await self._note(chore, began_ms)
        logger.info("memories were seen to", chore=chore, memories=len(memories), failed=failed)

    async def _sweep(self) -> None:
        self._swept_ms = self._clock.now_ms()
        try:
            await self._memories.entries.drop_expired()
        except ShuttingDown:
            raise
        except FieldError as refused:  # they are not shown any more, and go the next time
            logger.warning("expired entries are still in the store", code=refused.code)

    async def _do(self, chore: Chore, memory: str, count: int) -> None:
        if chore == "consolidation":
            if count > 1:
                await self._memories.consolidating.consolidate(memory)
            return
        if count < self._settings.min_entries:
            return
        chosen = to_compact(
            await self._listed(memory), min_entries=self._settings.min_entries, keep_newest=self._settings.keep_newest
        )
        if chore == "compaction":
            await self._compact(memory, chosen)
        else:
            await self._distil(memory, chosen)

    async def _listed(self, memory: str) -> list["Listed"]:
        return [
            Listed(each.row.unit, each.is_output, each.row.expires_ms is not None)
            async for page in self._memories.entries.pages(memory, None)
            for each in page
        ]

    async def _compact(self, memory: str, chosen: Sequence[int]) -> None:
        for units in in_runs(chosen, self._limits.max_input_entries):
            await self._memories.condensing.compact(
                memory,
                units,
                why=WHY,
                group_entries=self._limits.group_entries,
                output_bytes=self._limits.max_output_bytes,
                deletes=self._limits.deletes,
            )

    async def _distil(self, memory: str, chosen: Sequence[int]) -> None:
        """The oldest, as many as the budget has room for. The others are older the next time."""
        budget = self._limits.max_token_budget
        units = that_fit(await self._sizes(chosen, budget), budget)
        while len(units) > 1:
            try:
                await self._memories.condensing.distil(LOCAL, memory, budget, units=frozenset(units), index=True)
            except TokenBudgetExceeded:  # input alone would fit, and what is made from it needs room, too
                units = units[: len(units) * 3 // 4]
            else:
                return

    async def _sizes(self, units: Sequence[int], budget: int) -> list[tuple[int, int]]:
        """Each with its tokens; no more of them than the budget could hold."""
        sizes: list[tuple[int, int]] = []
        spent = 0
        for start in range(0, len(units), COUNTED_AT_ONCE):
            rows = await self._field.audit.entries_of(units[start : start + COUNTED_AT_ONCE])
            kept = await self._memories.entries.told([rows[unit] for unit in sorted(rows)])
            counts = await asyncio.to_thread(self._count, [each.content for each in kept])
            sizes += [(each.row.unit, count) for each, count in zip(kept, counts, strict=True)]
            spent += sum(count for count in counts if count <= budget)
            if spent > budget:
                break
        return sizes

    def _count(self, texts: Sequence[str]) -> list[int]:
        return [self._memories.count_tokens(text) for text in texts]


# --- choosing, without a field ----------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """An entry as a schedule looks at it."""

    unit: int
    is_output: bool = False
    expires: bool = False


def to_compact(newest_first: Sequence[Listed], *, min_entries: int, keep_newest: int) -> list[int]:
    """Which entries of a memory become fewer, oldest first; none where there are too few to begin with.

    What expires goes by itself, and would take along what is made from it. What earlier compactions made is made
    shorter once more only where there is as much of it as makes a memory long.
    """
    lasting = [each for each in newest_first if not each.expires]
    raw = [each.unit for each in lasting if not each.is_output]
    outputs = [each.unit for each in lasting if each.is_output]
    chosen: list[int] = []
    if len(raw) >= min_entries:
        chosen += raw[keep_newest:]
    if len(outputs) > min_entries:
        chosen += outputs[keep_newest:]
    return sorted(chosen)


def in_runs(units: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """In parts of about the same size, none larger than `most`: a remainder of one could not be compacted."""
    parts = -(-len(units) // most)
    for part in range(parts):
        yield units[part * len(units) // parts : (part + 1) * len(units) // parts]


def that_fit(sizes: Sequence[tuple[int, int]], budget: int) -> list[int]:
    """The oldest units whose tokens fit together, of units and tokens, oldest first. One that is larger than all of the
    budget is passed over, or it would be in the way for ever."""
    fit: list[int] = []
    room = budget
    for unit, tokens in sizes:
        if tokens > budget:
            continue
        room -= tokens
        if room < 0:
            break
        fit.append(unit)
    return fit


def _mark(chore: Chore) -> str:
    """Its value is a time in milliseconds."""
    return f"openwop-{chore}"
