"""One open field: it holds the ports, and one line for each thing that can be asked of it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final, NoReturn, Protocol, assert_never

import numpy as np
import structlog
from msgspec import Struct, structs

from fieldstone.audit.verify import Progress, Verification, verify
from fieldstone.compaction.retention import Policy
from fieldstone.core.access import LOCAL, Caller, is_own_voice
from fieldstone.core.authority import LEAST_TO
from fieldstone.core.conflicts import Conflict
from fieldstone.core.errors import Forbidden, InvalidPayload, ShuttingDown, UnitNotFound
from fieldstone.core.events import Entry, UnitTexts, decode_entry
from fieldstone.core.replies import (
    AgentProfile,
    CompactionPage,
    CompactionProgress,
    FieldCapabilities,
    FieldStatus,
    GuardPage,
    Lineage,
    Reply,
)
from fieldstone.core.requests import (
    Attune,
    Commit,
    Compact,
    Deregister,
    Detect,
    Discard,
    Message,
    Record,
    Register,
    Retract,
)
from fieldstone.core.units import MemoryUnit
from fieldstone.core.validate import check_message
from fieldstone.core.vocabulary import UNRESOLVED_STATUSES, ConflictStatus, Guard
from fieldstone.field.attune import attune
from fieldstone.field.audit_reads import AuditReads
from fieldstone.field.building import distilling_of, reads_of
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.commit import Committing
from fieldstone.field.compact import Compactions
from fieldstone.field.deregister import Deregistering
from fieldstone.field.detect import detect
from fieldstone.field.detecting import Detecting
from fieldstone.field.discard import Discarding
from fieldstone.field.following import Following
from fieldstone.field.foreign import Clocks
from fieldstone.field.forgetting import Forgetting
from fieldstone.field.guarding import Guarding
from fieldstone.field.idempotency import Fingerprints
from fieldstone.field.listing import Lists
from fieldstone.field.meanings import Meanings
from fieldstone.field.memories import Memories
from fieldstone.field.options import Models, Options
from fieldstone.field.planes import Planes
from fieldstone.field.rebuild import Rebuilt, rebuild
from fieldstone.field.record import Recording
from fieldstone.field.refusals import Refusals
from fieldstone.field.register import Registering
from fieldstone.field.registry import Registry
from fieldstone.field.retention import Outcome as PolicyOutcome
from fieldstone.field.retention import PolicyStatus, Retention, told_to
from fieldstone.field.retract import Retracting
from fieldstone.field.scheduling import Scheduling
from fieldstone.field.scouring import Scouring
from fieldstone.field.second_reading import SecondReading
from fieldstone.field.secrets import ListedSecret, Secrets, SecretScope
from fieldstone.field.sight import Sight
from fieldstone.field.state import FieldState
from fieldstone.field.sweep import Sweeping, Swept
from fieldstone.field.transfer import Imported, export, import_lines
from fieldstone.field.work import Work
from fieldstone.field.writer import Landed, Outcome, Writer
from fieldstone.ports.lease import Holder
from fieldstone.ports.planes import PlaneStore
from fieldstone.ports.store import Place, Store
from fieldstone.ports.views import Change, ConflictRow, UnitRow
from fieldstone.ports.world import Clock, Ids
from fieldstone.projections.text_follower import TextFollower
from fieldstone.redact import Harness

logger = structlog.get_logger("fieldstone.field")

PROTOCOL_VERSION: Final = "0.1.0"
TENANT_SCOPE: Final = SecretScope(tenant=True)
LOG_PAGE_ENTRIES: Final = 1_000


class LogLine(Struct, frozen=True):
    """An entry as the log shows it, with the hash that the chain gives it."""

    entry: Entry
    hash: str


class LogPage(Struct, frozen=True):
    entries: tuple[LogLine, ...]
    next: int | None


class Companion(Protocol):
    """What follows an open field: a schedule, somebody who is told of its events."""

    async def close(self) -> None: ...


class LocalField:
    """A field in this process. Every request goes through `send`; the rest is for operators."""

    def __init__(
        self,
        store: Store,
        state: FieldState,
        *,
        clock: Clock,
        ids: Ids,
        harness: Callable[[], Harness],
        secrets: Secrets,
        models: Models,
        options: Options,
        place: Place | None = None,
        planes: PlaneStore | None = None,
    ) -> None:
        self._store, self._state, self._clock, self._ids = store, state, clock, ids
        self._secrets, self._options, self._models, self._place = secrets, options, models, place
        self._cleaning = Cleaning(harness, secrets)
        self._follower = TextFollower(store)
        self._forgetting = Forgetting(store.replies, clock, after_ms=options.remember_replies_ms)
        self._fingerprints = Fingerprints(store.digest_key)
        self._meanings = Meanings(state, models.embedder, models.former, self._enriched)
        self._writer = Writer(
            state,
            self._cleaning,
            self._forgetting,
            clock,
            ids,
            options.rules,
            self._landed,
            self._finish if self._follows(models) else None,
            self._recover,
            refuse_secrets=options.refuse_secrets,
        )
        self._refusals = Refusals(self._writer.leave, clock)
        self._registry = Registry(secrets, self._cleaning, self._writer.submit)
        self._detecting = Detecting(
            state,
            self._meanings,
            self._follower,
            clock,
            ids,
            self._writer.submit,
            lambda: self._writer.quiet,
            SecondReading(models.judge) if models.judge is not None else None,
            enabled=self._detects,
            timeout_ms=options.detection_timeout_ms,
            compares_entries=options.memories.detect_conflicts,
        )
        self._following = Following(
            state,
            self._meanings,
            self._detecting,
            clock,
            self._writer.submit,
            enrichment_timeout_ms=options.enrichment_timeout_ms,
        )
        self._reads = reads_of(state, self._writer, self._follower, self._meanings, models, options)
        self._scouring = Scouring(state)
        distilling = distilling_of(state, models, options)
        writer, reads, cooling = self._writer, self._reads, self._meanings.cooling
        self._compactions = Compactions(
            state, writer, reads, self._follower, distilling, self._scouring, cooling, self._forget, clock, ids
        )
        self._lists = Lists(state, self._reads, self._compactions)
        self._retention = Retention(state, self._writer, self._compactions, clock, options.rules)
        self._scheduling = Scheduling(self._retention, clock)
        self.audit = AuditReads(state)
        self._planes = None if planes is None else Planes(planes, self._cleaning, models, clock, ids)
        self.memories = Memories(
            state, self._writer, self._reads, self._compactions, self._cleaning, models, options, clock, ids
        )
        self._sweeping = Sweeping(
            state, self._cleaning, self._writer, self._follower, self._meanings, self._scouring, self._forget
        )
        self._rebuilding: asyncio.Future[Rebuilt] | None = None
        self._companions: list[Companion] = []
        self._closed = False

    @property
    def _detects(self) -> bool:
        return self._options.detect_conflicts and self._options.rules.extended_scope

    def _follows(self, models: Models) -> bool:
        """Whether there is anything to find out about a unit once it is on disk."""
        return models.embedder is not None or self._detects

    async def send(self, message: Message) -> Reply:
        """One operation: validated, then carried out."""
        if self._closed:
            raise ShuttingDown
        try:
            check_message(message, self._options.rules)
            match message.request:
                case Attune() as request:
                    return await attune(self._reads, message, request)
                case Detect() as request:
                    return await detect(self._reads, self._detecting, message, request)
                case Compact() as request:
                    return await self._compactions.compact(message, request, self._fingerprints.of(message))
                case _:
                    return await self._writer.submit(self._work(message), self._fingerprints.of(message))
        except Forbidden as refused:
            self._refusals.note(message.operation, refused, message.caller)
            raise

    def _work(self, message: Message) -> Work:
        match message.request:
            case Record() as request:
                return Recording(message, request, self._ids)
            case Register() as request:
                return Registering(message, request, self.capabilities)
            case Deregister() as request:
                return Deregistering(message, request)
            case Commit() as request:
                return Committing(message, request, self._ids, self._options.rules)
            case Discard() as request:
                return Discarding(message, request)
            case Retract() as request:
                return Retracting(message, request)
            case Attune() | Detect() | Compact():
                raise TypeError("reads are not work, and a compaction is more than one piece of it")
            case _:
                assert_never(message.request)

    # --- for operators ------------------------------------------------------------------------------------------------

    @property
    def capabilities(self) -> FieldCapabilities:
        rules = self._options.rules
        return FieldCapabilities(
            rules.conformance_level, rules.supported_operations, PROTOCOL_VERSION, self._store.durable, ()
        )

    @property
    def writable(self) -> bool:
        return not self._closed

    async def status(self, caller: Caller = LOCAL) -> FieldStatus:
        self.require(caller, "read the field's status")
        state, rules, sight = self._state, self._options.rules, self._reads.sight(caller)
        units = state.columns.snapshot(state.epoch)
        seen = sight.units(units)
        return FieldStatus(
            tenant=self._store.key.tenant,
            field=self._store.key.field,
            epoch=state.epoch,
            conformance_level=rules.conformance_level,
            supported_operations=rules.supported_operations,
            protocol_version=PROTOCOL_VERSION,
            units=int(np.count_nonzero(seen)),
            units_archived=int(np.count_nonzero(seen & units.archived)),
            agents=sum(agent.active for agent in state.agents.values() if not is_own_voice(agent.id)),
            conflicts_open=len(await self._conflicts(UNRESOLVED_STATUSES, sight)),
            log_entries=state.head.seq,
            text_index_position=await self._store.text_index.position(),
            embeddings=() if sight.hidden else tuple(self._meanings.progress()),  # they count what is hidden, too
            detection_behind=0 if sight.hidden else self._detecting.behind,
            store=self._store.description if caller.is_local else None,
            bytes=await self._store.bytes_used() if caller.is_local else None,
            version=self._options.version,
        )

    async def agents(self, caller: Caller = LOCAL) -> Sequence[AgentProfile]:
        self.require(caller, "list the agents")
        return [
            AgentProfile(agent.id, agent.role, agent.status, agent.interests, authority=agent.authority)
            for agent in self._state.agents.values()
            if not is_own_voice(agent.id)
        ]

    async def conflicts(
        self, statuses: Sequence[ConflictStatus] | None = None, caller: Caller = LOCAL
    ) -> Sequence[Conflict]:
        self.require(caller, "list the conflicts")
        return await self._reads.reading.conflicts(await self._conflicts(statuses, self._reads.sight(caller)))

    async def unit(self, unit_id: str, caller: Caller = LOCAL) -> MemoryUnit:
        self.require(caller, "read a unit")
        row = await self._seen(unit_id, caller)
        return self._lists.with_guards((await self._reads.reading.units([row]))[0], row.seq, caller)

    async def log(self, *, after: int = 0, limit: int = 100, caller: Caller = LOCAL) -> LogPage:
        self.require(caller, "read the log")
        if after < 0 or not 0 <= limit <= LOG_PAGE_ENTRIES:
            raise InvalidPayload(f"after must be at least 0, and limit from 0 to {LOG_PAGE_ENTRIES}.")
        stored = await self._store.log.read(after=after, limit=limit)
        lines = tuple(LogLine(decode_entry(entry.body), entry.hash.hex()) for entry in stored)
        return LogPage(lines, stored[-1].seq if stored and stored[-1].seq < self._state.head.seq else None)

    async def verify(self, progress: Progress = lambda done: None, caller: Caller = LOCAL) -> Verification:
        self.require(caller, "verify the log")
        return await verify(self._store, progress)

    async def rebuild(self, progress: Progress = lambda done: None, caller: Caller = LOCAL) -> Rebuilt:
        """Once begun it is finished, whether or not the caller stays: half an index would be worse than none."""
        self.require(caller, "rebuild the views")
        self._rebuilding = asyncio.ensure_future(self._rebuild(progress))
        return await asyncio.shield(self._rebuilding)

    async def _rebuild(self, progress: Progress) -> Rebuilt:
        async with self._writer.exclusive():
            rebuilt = await rebuild(self._store, self._state.names.digest, progress, follower=self._follower)
            await self._state.reload()
            await self._compactions.refill()
        return rebuilt

    def export(self, caller: Caller = LOCAL) -> AsyncIterator[bytes]:
        self.require(caller, "export")
        return export(self._store)

    async def import_lines(self, lines: Iterable[bytes], caller: Caller = LOCAL) -> Imported:
        self.require(caller, "import")
        async with self._writer.exclusive():
            state, rules, harness = self._state, self._options.rules, await self._cleaning.harness()
            clocks = Clocks(state.epoch, state.columns.newest_epoch)
            taken = await import_lines(self._store, lines, state.head, clocks, rules, state.names.digest, harness)
            if taken.imported.imported:
                await self._state.absorb(taken.changes, taken.head, taken.epoch)
            self._follower.follow(taken.changes, taken.unit_texts)
            await self._follower.replace(taken.late_texts())
            await self._meanings.catch_up()
            self._detecting.defer(taken.unit_texts)
            await self._retention.load()
            self._scheduling.start()
        if taken.imported.imported:  # not in there: a step of a compaction waits for the writer, and this for the step
            await self._compactions.take_in(taken.changes, taken.purged, taken.head.seq)
        return taken.imported

    # --- compaction ---------------------------------------------------------------------------------------------------

    async def begin_compaction(self, message: Message) -> CompactionProgress:
        """COMPACT in the background: where it is, and under which id."""
        if not isinstance(message.request, Compact):
            raise InvalidPayload("Only COMPACT runs in the background.")
        check_message(message, self._options.rules)
        try:
            return await self._compactions.begin(message, message.request, self._fingerprints.of(message))
        except Forbidden as refused:
            self.refuse(message.caller, "COMPACT", refused)

    async def compaction(self, compaction_id: str, caller: Caller = LOCAL) -> CompactionProgress:
        self.require(caller, "follow a compaction")
        return await self._compactions.told(compaction_id, caller)

    async def compactions(self, *, after: int = 0, limit: int = 100, caller: Caller = LOCAL) -> CompactionPage:
        self.require(caller, "follow a compaction")
        return await self._lists.compactions(after, limit, caller)

    def watch_compaction(self, compaction_id: str, caller: Caller = LOCAL) -> AsyncIterator[CompactionProgress]:
        self.require(caller, "follow a compaction")
        return self._compactions.watch(compaction_id, caller)

    async def cancel_compaction(self, compaction_id: str, caller: Caller = LOCAL) -> CompactionProgress:
        """It stops after the step it is in."""
        self.require(caller, "follow a compaction")
        try:
            return self._compactions.cancel(compaction_id, caller)
        except Forbidden as refused:
            self.refuse(caller, "follow a compaction", refused)

    async def restore(self, unit_ids: Sequence[str], caller: Caller = LOCAL) -> int:
        """Bring archived units back. Those that are not archived are passed over."""
        self.require(caller, "restore units")
        units = [(await self._seen(unit_id, caller)).seq for unit_id in unit_ids]
        return await self._compactions.archive.restore(units, caller.credential) if units else 0

    async def restore_compaction(self, compaction_id: str, caller: Caller = LOCAL) -> int:
        """Bring back all that one compaction archived, and that is still there."""
        self.require(caller, "restore units")
        units = await self._reads.archived_by(compaction_id)
        seen = [
            row.seq for row in (await self._store.views.units(units)).values() if self._reads.sight(caller).sees(row)
        ]
        return await self._compactions.archive.restore(seen, caller.credential) if seen else 0

    async def guard(self, unit_id: str, guard: Guard, caller: Caller = LOCAL) -> None:
        """No compaction touches it from now on."""
        self.require(caller, f"{guard} a unit")
        await self._writer.submit(
            Guarding((await self._seen(unit_id, caller)).seq, guard, caller.credential, lifts=False)
        )

    async def unguard(self, unit_id: str, guard: Guard, caller: Caller = LOCAL) -> None:
        self.require(caller, f"{guard} a unit")
        await self._writer.submit(
            Guarding((await self._seen(unit_id, caller)).seq, guard, caller.credential, lifts=True)
        )

    async def guards(
        self, guard: Guard | None = None, *, after: int = 0, limit: int = 100, caller: Caller = LOCAL
    ) -> GuardPage:
        self.require(caller, "list the guards")
        return await self._lists.guards(guard, after, limit, caller)

    async def lineage(self, unit_id: str, caller: Caller = LOCAL) -> Lineage:
        """What a unit was made from, and what was made from it."""
        self.require(caller, "read a unit's lineage")
        row = await self._seen(unit_id, caller)
        return await self._reads.lineage(row, self._reads.sight(caller))

    async def _seen(self, unit_id: str, caller: Caller) -> UnitRow:
        row = await self._store.views.unit(unit_id)
        if row is None or not self._reads.sight(caller).sees(row):
            raise UnitNotFound
        if row.purged_seq is not None:
            raise await self._reads.tombstone(row)
        return row

    # --- retention ----------------------------------------------------------------------------------------------------

    async def retention(self, caller: Caller = LOCAL) -> tuple[Policy, ...]:
        """The policies that hold."""
        self.require(caller, "plan retention")
        return self._retention.policies

    async def set_retention(self, policies: Sequence[Policy], caller: Caller = LOCAL) -> tuple[Policy, ...]:
        """These hold from now on, and no others. Whoever may not purge cannot have it done by a policy."""
        self.require(caller, "set retention")
        if any(policy.strategy == "purge" for policy in policies):
            self.require(caller, "set retention that purges")
        await self._retention.set(policies, caller)
        self._scheduling.start()
        return self._retention.policies

    async def plan_retention(self, caller: Caller = LOCAL) -> tuple[PolicyOutcome, ...]:
        """What each policy would do if it were applied now, by itself; nothing is done."""
        self.require(caller, "plan retention")
        return told_to(caller, await self._retention.plan())

    async def apply_retention(self, caller: Caller = LOCAL) -> tuple[PolicyOutcome, ...]:
        """Carry out every policy that is enabled, in their order."""
        self.require(caller, "apply retention")
        return told_to(caller, await self._retention.apply())

    async def retention_status(self, caller: Caller = LOCAL) -> tuple[PolicyStatus, ...]:
        """When each policy last ran, and when it runs next."""
        self.require(caller, "plan retention")
        return await self._retention.status()

    # --- known secrets ------------------------------------------------------------------------------------------------

    async def put_secret(
        self, secret_id: str, value: str, scope: SecretScope = TENANT_SCOPE, caller: Caller = LOCAL
    ) -> bool:
        """From now on it is found in every text. Whether it is weak: then only in plain form."""
        self.require(caller, "manage secrets")
        return await self._registry.put(secret_id, value, scope, caller.credential)

    async def secrets(self, caller: Caller = LOCAL) -> Sequence[ListedSecret]:
        """Ids and scopes; the values never come out again."""
        self.require(caller, "manage secrets")
        return self._secrets.list()

    async def drop_secret(self, secret_id: str, caller: Caller = LOCAL) -> None:
        self.require(caller, "manage secrets")
        await self._registry.drop(secret_id, caller.credential)

    async def sweep(self, progress: Progress = lambda done: None, caller: Caller = LOCAL) -> Swept:
        """Clear secrets that became known late from every text that is stored."""
        self.require(caller, "sweep")
        swept = await self._sweeping.sweep(progress)
        return swept if self._planes is None else structs.replace(swept, planes=await self._planes.sweep())

    async def scrubbed(self, text: str) -> str:
        """A text that is about to leave in an error, without what this tenant calls a secret."""
        return (await self._cleaning.harness()).clean_one(text).text

    def scrub(self, text: str) -> str:
        """The same for a line of the log, which cannot wait until the rules are loaded."""
        return self._cleaning.scrub(text)

    async def other_tenants(self) -> Sequence[str]:
        """Who else has a field in the same place."""
        there = () if self._place is None else await self._place.tenants()
        return [tenant for tenant in there if tenant != self._store.key.tenant]

    def announce(self, holder: Holder) -> None:
        """Tell others that want this store where it can be reached."""
        if self._place is not None:
            self._place.announce(holder)

    def warm_up(self) -> None:
        """Load in the background what the first RECORD would wait for."""
        self._cleaning.begin()

    @property
    def planes(self) -> Planes:
        """Its streams, its transcripts, and contexts for generations."""
        if self._planes is None:
            raise RuntimeError("The field was opened without its planes.")
        return self._planes

    def accompany(self, companion: Companion) -> None:
        """It goes with the field as long as that is open, and is closed first."""
        self._companions.append(companion)

    async def close(self) -> None:
        """Finish what was accepted, then let go of the store."""
        if self._closed:
            return
        for companion in self._companions:
            await companion.close()
        if self._planes is not None:
            await self._planes.close()
        self._closed = True
        if self._rebuilding is not None:
            await asyncio.wait([self._rebuilding])
        self._refusals.flush()
        await self._scheduling.close()
        await self._compactions.close()
        await self._scouring.close()
        await self._writer.drain()
        await self._detecting.close()
        await self._following.close()
        await self._writer.close()
        await self._meanings.close()
        await self._forgetting.close()
        await self._follower.close()
        if not self._models.shared:
            await self._models.close()
        await self._store.close()
        if self._place is not None:
            await self._place.close()

    def sight(self, caller: Caller) -> Sight:
        """What the caller sees, as whichever of their agents."""
        return self._reads.sight(caller)

    def require(self, caller: Caller, what: str) -> None:
        """The authority for it, by the table of `core/authority`. A refusal goes on record."""
        try:
            caller.check(LEAST_TO[what], f"To {what}")
        except Forbidden as refused:
            self.refuse(caller, what, refused)

    def refuse(self, caller: Caller, what: str, error: Forbidden) -> NoReturn:
        """Raise it, and put it on record."""
        self._refusals.note(what, error, caller)
        raise error

    async def _conflicts(self, statuses: Sequence[ConflictStatus] | None, sight: Sight) -> Sequence[ConflictRow]:
        return await sight.conflicts(await self._store.views.conflicts(statuses), self._store.views)

    async def _forget(self, units: Sequence[int]) -> None:
        """Nothing that the process holds of these units is kept, or written later."""
        self._detecting.forget_texts()
        await self._meanings.forget(units)

    def _landed(self, changes: Sequence[Change], texts: Mapping[int, UnitTexts]) -> None:
        self._follower.follow(changes, texts)
        self._compactions.requoting.notice(changes)

    async def _finish(self, landed: Sequence[Landed], outcomes: list[Outcome], texts: Mapping[int, UnitTexts]) -> None:
        await self._following.finish(landed, outcomes, texts)

    def _enriched(self, units: Sequence[int]) -> None:
        self._following.enriched(units)

    async def _recover(self) -> None:
        """A write broke and nobody knows how far it came: what the store says is what is."""
        try:
            await self._state.reload()
            await self._follower.catch_up()
        except Exception as error:  # why: a store that cannot be read now is asked again after its next error
            logger.error("the field could not be read back", error=type(error).__name__, exc_info=error)

    async def start(self) -> None:
        """Bring the indexes up to the log, and forget answers that are older than the setting says."""
        await self._follower.catch_up()
        await self._compactions.catch_up()
        await self._sweeping.catch_up()
        await self._scouring.catch_up()
        await self._meanings.open()
        await self._detecting.start()
        await self._forgetting.start()
        await self._compactions.resume()
        await self._retention.load()
        if self._planes is not None:
            await self._planes.start()
        self._scheduling.start()  # last: a field that does not open must not leave it running
