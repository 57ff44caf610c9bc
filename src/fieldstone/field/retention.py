"""Retention: the policies that somebody set, what they would do, what they did, and when they are due.

The policies are in the log, so that it can be said later why a unit went. A run is a compaction like any other, which
names its policy; nothing else has to be remembered, so a schedule survives restarts.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import structlog
from msgspec import UNSET, DecodeError, Struct, json, structs

from fieldstone.compaction.plan import Selection
from fieldstone.compaction.retention import Policy, check_policies
from fieldstone.core.access import Caller
from fieldstone.core.errors import InvalidPayload, StorageFull
from fieldstone.core.events import (
    CompactionBegun,
    Entry,
    RetentionSet,
    RetentionTexts,
    decode_entry,
    decode_texts,
)
from fieldstone.core.replies import Compacted, Reply
from fieldstone.core.text import CleanText
from fieldstone.core.validate import Rules
from fieldstone.core.vocabulary import CompactionState, Strategy
from fieldstone.field.compact import Compactions
from fieldstone.field.compacting import Asked
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.work import NO_ANSWER
from fieldstone.field.writer import Writer
from fieldstone.ports.views import CompactionRow
from fieldstone.ports.world import Clock
from fieldstone.retrieval.reading import timestamp

SET: Final = "retention"  # the entry that set the policies
LOOKED: Final = "retention-looked"  # no later one is up to here
LOOK_ENTRIES: Final = 1_000
MOST_RUNS_LOOKED_AT: Final = 10_000  # back from the newest: a year of hourly runs

_KIND: Final = b'"kind":"retention.set"'

logger = structlog.get_logger("fieldstone.retention")


class Outcome(Struct, frozen=True):
    """What a policy did, or would do. None: it is not enabled."""

    name: str
    strategy: Strategy
    result: Compacted | None


class PolicyRun(Struct, frozen=True):
    compaction_id: str
    at: str
    state: CompactionState
    units: int


class PolicyStatus(Struct, frozen=True):
    """`next_run` None: only when somebody applies it."""

    name: str
    enabled: bool
    last_run: PolicyRun | None
    next_run: str | None


Runs = dict[str, tuple[Entry, CompactionRow]]  # by the policy's name


class _Current(Struct, frozen=True):
    policies: tuple[Policy, ...] = ()
    set_ms: int = 0


class Retention:
    def __init__(self, state: FieldState, writer: Writer, compactions: Compactions, clock: Clock, rules: Rules) -> None:
        self._state = state
        self._writer = writer
        self._compactions = compactions
        self._clock = clock
        self._rules = rules
        self._current = _Current()
        self._looked_ms: dict[str, int] = {}  # when each was last run here, also where it had nothing to do
        self._runs: tuple[CompactionRow | None, Runs] | None = None  # up to which compaction it is known, and what

    @property
    def policies(self) -> tuple[Policy, ...]:
        return self._current.policies

    async def load(self) -> None:
        """Find the policies that hold: in what is new in the log since somebody last looked."""
        marks = self._state.store.marks
        found, looked = await marks.get(SET), await marks.get(LOOKED)
        at = looked
        while stored := await self._state.store.log.read(after=at, limit=LOOK_ENTRIES):
            found = max((each.seq for each in stored if _KIND in each.body), default=found)
            at = stored[-1].seq
        if at - looked >= LOOK_ENTRIES:
            await self._mark(found, at)
        if found:
            self._current, self._runs = await self._read(found), None

    async def set(self, policies: Sequence[Policy], caller: Caller) -> None:
        """These hold from now on, and no others."""
        check_policies(policies, self._rules.memory_types)
        setting = Setting(policies, caller.credential)
        await self._writer.submit(setting)
        self._current = _Current(tuple(policies), self._clock.now_ms())
        self._looked_ms.clear()
        self._runs = None
        await self._mark(setting.entry, setting.entry)

    async def plan(self) -> tuple[Outcome, ...]:
        """What each would do if it were applied now, by itself."""
        return tuple([Outcome(each.name, each.strategy, await self._foreseen(each)) for each in self.policies])

    async def apply(self) -> tuple[Outcome, ...]:
        """Each that is enabled, in their order. Whoever cancels one wants none after it either."""
        done: list[Outcome] = []
        epoch = self._state.epoch  # of all: what one does must not age the units of the next
        for policy in self.policies:
            result = await self._applied(policy, epoch)
            done.append(Outcome(policy.name, policy.strategy, result))
            if result is not None and result.cancelled is True:
                break
        return tuple(done)

    async def status(self) -> tuple[PolicyStatus, ...]:
        runs = await self._last_runs()
        return tuple(self._status(policy, runs) for policy in self.policies)

    def _status(self, policy: Policy, runs: "Runs") -> PolicyStatus:
        last = _told(*runs[policy.name]) if policy.name in runs else None
        due_ms = self._next_ms(policy, runs)
        return PolicyStatus(policy.name, policy.enabled, last, None if due_ms is None else timestamp(due_ms))

    async def next_due_ms(self) -> int | None:
        """When the first of them is due. A time in the past: it is late."""
        runs = await self._last_runs()
        due = [self._next_ms(policy, runs) for policy in self.policies]
        return min((at for at in due if at is not None), default=None)

    async def run_due(self) -> tuple[Outcome, ...]:
        """Run what is due by now. One that was missed several times is run once."""
        runs, now, epoch = await self._last_runs(), self._clock.now_ms(), self._state.epoch
        done: list[Outcome] = []
        for policy in self.policies:
            due = self._next_ms(policy, runs)
            if due is not None and due <= now:
                done.append(Outcome(policy.name, policy.strategy, await self._applied(policy, epoch)))
                logger.info("a retention policy was due", policy=policy.name, units=_units(done[-1]))
        return tuple(done)

    def _next_ms(self, policy: Policy, runs: "Runs") -> int | None:
        schedule = policy.due
        if schedule is None:
            return None
        ran_ms = runs[policy.name][0].at_ms if policy.name in runs else 0
        return schedule.next_after(max(ran_ms, self._current.set_ms, self._looked_ms.get(policy.name, 0)))

    async def _foreseen(self, policy: Policy) -> Compacted | None:
        return await self._compactions.foresee(await self._asked(policy, self._state.epoch)) if policy.enabled else None

    async def _applied(self, policy: Policy, epoch: int) -> Compacted | None:
        if not policy.enabled:
            return None
        at_ms = self._clock.now_ms()
        result = await self._compactions.apply(policy.name, self._digest(policy.name), await self._asked(policy, epoch))
        self._looked_ms[policy.name] = at_ms
        return result

    async def _asked(self, policy: Policy, epoch: int) -> Asked:
        session = None
        if policy.match.session is not None:
            session = await self._state.names.number("session", policy.match.session) or -1  # -1: no unit is in it
        age_ms = policy.max_age_ms
        selection = Selection(
            strategy=policy.strategy,
            epoch=epoch,
            max_age_epochs=policy.max_age_epochs,
            before=None if age_ms is None else await self._first_since(self._clock.now_ms() - age_ms),
            beyond_newest=policy.max_units,
            session=session,
            types=policy.match.types,
            statuses=policy.match.status,
        )
        return Asked(selection, Sight(None))

    async def _first_since(self, at_ms: int) -> int:
        """The first entry that was written then or later: the log grows with time, so the middle tells which half."""
        least, most = 1, self._state.head.seq + 1
        while least < most:
            middle = (least + most) // 2
            [stored] = await self._state.store.log.read(after=middle - 1, limit=1)
            if decode_entry(stored.body).at_ms < at_ms:
                least = middle + 1
            else:
                most = middle
        return least

    async def _last_runs(self) -> "Runs":
        """The newest compaction of each policy, from the log. Nothing is read again as long as there is none newer."""
        rows = sorted(await self._state.store.views.compactions(), reverse=True) if self.policies else []
        newest = rows[0] if rows else None
        if self._runs is None or self._runs[0] != newest:
            self._runs = newest, await self._runs_in(rows[:MOST_RUNS_LOOKED_AT])
        return self._runs[1]

    async def _runs_in(self, newest_first: "Sequence[CompactionRow]") -> "Runs":
        wanted: dict[str | None, str] = {self._digest(policy.name): policy.name for policy in self.policies}
        found: Runs = {}
        for row in newest_first:
            if not wanted:
                break
            entry = decode_entry((await self._state.store.log.read(after=row.seq - 1, limit=1))[0].body)
            if isinstance(entry.event, CompactionBegun) and entry.event.policy in wanted:
                found[wanted.pop(entry.event.policy)] = (entry, row)
        return found

    def _digest(self, name: str) -> str:
        """What the log says of a policy: its name is somebody's text, and has no place there."""
        return blake2b(f"policy\0{name}".encode(), key=self._state.store.digest_key, digest_size=8).hexdigest()

    async def _read(self, seq: int) -> _Current:
        entry = decode_entry((await self._state.store.log.read(after=seq - 1, limit=1))[0].body)
        stored = (await self._state.store.texts.get([seq])).get(seq)
        texts = decode_texts(stored.body, RetentionTexts).policies if stored else ()
        return _Current(tuple(policy for text in texts if (policy := self._decoded(text))), entry.at_ms)

    def _decoded(self, text: str) -> Policy | None:
        """None: a sweep has rewritten more of it than a name, or it came with an import that no field wrote."""
        try:
            policy = json.decode(text, type=Policy)
            check_policies([policy], self._rules.memory_types)
        except (DecodeError, InvalidPayload):
            logger.error("a retention policy cannot be understood, and is not applied: set the policies again")
            return None
        return policy

    async def _mark(self, found: int, looked: int) -> None:
        try:
            await self._state.store.marks.set(SET, found)
            await self._state.store.marks.set(LOOKED, looked)
        except StorageFull:
            pass  # the next opening looks once more


class Setting:
    message = None
    brings_news = True

    def __init__(self, policies: Sequence[Policy], credential: str | None) -> None:
        self._policies = policies
        self._credential = credential
        self.entry = 0

    def texts(self) -> Sequence[str]:
        return [json.encode(policy).decode() for policy in self._policies]

    def names(self) -> Sequence[tuple[str, str]]:
        """A policy whose session were rewritten would be about another one."""
        sessions = [policy.match.session for policy in self._policies]
        return [
            *(("policy", policy.name) for policy in self._policies),
            *(("session", session) for session in sessions if session is not None),
        ]

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft = desk.quiet_draft(desk.epoch)
        count = len(self._policies)
        event = RetentionSet(policies=count, credential=self._credential)
        self.entry = draft.append(event, RetentionTexts(tuple(clean[:count])))
        return draft, NO_ANSWER


def told_to(caller: Caller, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """A policy works in every session. Whoever does not see into all of them is told how many, and not which."""
    if caller.sees_all:
        return tuple(outcomes)
    return tuple(structs.replace(each, result=each.result and _counts(each.result)) for each in outcomes)


def _counts(result: Compacted) -> Compacted:
    return structs.replace(result, skipped=(), groups=UNSET, synthesis_units=UNSET, fell_back=UNSET)


def _units(outcome: Outcome) -> int:
    return 0 if outcome.result is None else outcome.result.units_affected


def _told(entry: Entry, row: CompactionRow) -> PolicyRun:
    return PolicyRun(row.id, timestamp(entry.at_ms), row.state, row.units)
