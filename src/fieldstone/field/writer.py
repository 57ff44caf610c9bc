"""Group commit: one writer gathers concurrent requests into a transaction.

A request is answered only after its transaction is on disk. While one group is being written the next one gathers, so
the disk's latency is shared by all that wait for it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import structlog
from msgspec import Struct, json, structs

from fieldstone.core.errors import FieldError, SecretLeakage, ShuttingDown
from fieldstone.core.events import UnitTexts
from fieldstone.core.replies import Accepted, Deregistered, Done, Registered, Reply, Warning
from fieldstone.core.validate import Rules
from fieldstone.core.vocabulary import Operation
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.desk import Desk
from fieldstone.field.forgetting import Forgetting
from fieldstone.field.idempotency import Fingerprint, used_before
from fieldstone.field.state import FieldState
from fieldstone.field.trails import Key, Trails
from fieldstone.field.work import Work
from fieldstone.ports.replies import RememberedReply
from fieldstone.ports.views import Change
from fieldstone.ports.world import Clock, Ids
from fieldstone.redact import CleanGroup, Harness
from fieldstone.redact.seams import Trail

MOST_REQUESTS_A_GROUP: Final = 256  # bounds what one caller waits for
SCANNED_ON_THE_SPOT_CHARS: Final = 65_536  # 64 requests of usual size, or 0.3 ms
# Units whose answers are completed together. Of a large group those that are done first are back with their next
# request while the others are still being looked at.
FINISHED_TOGETHER: Final = 64
QUIET_MS: Final = 50
TURNS_TO_THE_DOOR: Final = 3  # from a socket, or a timer, to a request that waits
QUIET_FLUSH_MS: Final = 200  # what reads leave behind waits this long for a write to join

logger = structlog.get_logger("fieldstone.writer")
_encoder = json.Encoder()

REPLY_TYPES: Final[dict[Operation, type[Registered | Deregistered | Accepted | Done]]] = {
    "REGISTER": Registered,
    "DEREGISTER": Deregistered,
    "RECORD": Accepted,
    "COMMIT": Accepted,
    "RETRACT": Done,
    "DISCARD": Done,
}


Outcome = Reply | Exception


class Cleaned(NamedTuple):
    """A work's texts as they came, what became of them, and with which rules and secrets."""

    texts: Sequence[str]
    clean: CleanGroup
    by: Harness


class Waiting(Struct, frozen=True):
    work: Work
    fingerprint: Fingerprint | None
    answer: asyncio.Future[Reply] | None  # None: nobody waits (what a read leaves behind)
    cleaned: Cleaned | None = None  # before its turn


class Landed(Struct, frozen=True, gc=False):
    """A unit that took effect, and whose answer may still have to tell what was found out about it."""

    at: int  # its request's place in the group
    unit: int
    is_new: bool
    fingerprint: Fingerprint | None


class Repeat(NamedTuple):
    """A message that was sent again: it gets the first answer, once that is complete."""

    at: int
    key: bytes


class Incomplete(NamedTuple):
    """An answer that its task may still complete: one of a group's outcomes."""

    task: asyncio.Task[None]
    outcomes: Sequence[Outcome]
    at: int

    def resolve_too(self, answer: asyncio.Future[Reply] | None) -> None:
        """Somebody else waits for the same answer."""
        self.task.add_done_callback(lambda _: _resolve(answer, self.outcomes[self.at]))


class Written(NamedTuple):
    """What became of a group."""

    outcomes: list[Outcome]
    landed: list[Landed]
    texts: Mapping[int, UnitTexts]
    repeats: list[Repeat]


Finish = Callable[[Sequence[Landed], list[Outcome], Mapping[int, UnitTexts]], Awaitable[None]]


class Writer:
    """`finish` looks at units that are on disk before their answers go out, and may complete the answers. None: they
    are complete."""

    def __init__(
        self,
        state: FieldState,
        cleaning: Cleaning,
        forgetting: Forgetting,
        clock: Clock,
        ids: Ids,
        rules: Rules,
        after_commit: Callable[[Sequence[Change], Mapping[int, UnitTexts]], None],
        finish: Finish | None,
        recover: Callable[[], Awaitable[None]],
        *,
        refuse_secrets: bool = False,
    ) -> None:
        self._state = state
        self._cleaning = cleaning
        self._trails = Trails(state)
        self._forgetting = forgetting
        self._clock = clock
        self._ids = ids
        self._rules = rules
        self._after_commit = after_commit
        self._finish = finish
        self._finishing: dict[asyncio.Task[None], Written] = {}  # each with its part of what landed
        self._recover = recover
        self._refuse_secrets = refuse_secrets
        self._queue: list[Waiting] = []
        self._patient: list[Waiting] = []
        self._gave_way = False  # those who are patient, to the group before
        self.others = 0  # requests so far of those who are not patient
        self._running: asyncio.Task[None] | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._writing = asyncio.Lock()
        self._last_group_ms = 0.0
        self._closed = False

    def submit(self, work: Work, fingerprint: Fingerprint | None = None) -> asyncio.Future[Reply]:
        """The answer, once it is on disk. A caller that goes away takes its answer with it, not the request."""
        if self._closed:
            raise ShuttingDown
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(work, fingerprint, answer))
        self._start()
        return answer

    async def submit_patiently(self, work: Work) -> Reply:
        """The same for who lets others go first, once: a step of a compaction takes as long as several RECORDs, and in
        a group with it they would wait for that, too. Nor do they wait until its words are clean."""
        cleaned = await self._clean_early(work)
        if self._closed:
            raise ShuttingDown
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._patient.append(Waiting(work, None, answer, cleaned))
        self._start()
        return await answer

    async def _clean_early(self, work: Work) -> Cleaned | None:
        texts = _texts_of(work)
        if not texts:
            return None
        harness = await self._cleaning.harness()
        [clean] = await _cleaned(harness, [texts])
        return Cleaned(texts, clean, harness)

    def leave(self, work: Work) -> None:
        """Write it with the next group, or soon. Nobody waits for it."""
        if self._closed:
            return
        self._queue.append(Waiting(work, None, None))
        if self._running is None and self._quiet is None:
            self._quiet = asyncio.get_running_loop().call_later(QUIET_FLUSH_MS / 1e3, self._start)

    def is_busy(self) -> bool:
        """Somebody waits for an answer."""
        return self._running is not None

    @property
    def quiet(self) -> bool:
        """Nobody writes, and nobody has for a moment: work that can wait may have its turn."""
        since_ms = self._clock.monotonic_ms() - self._last_group_ms
        return self._running is None and since_ms >= QUIET_MS

    async def drain(self) -> None:
        """Return when all that was accepted so far is on disk and answered."""
        while self._somebody_waits or self._running is not None or self._finishing:
            self._start()
            running = () if self._running is None else (self._running,)
            await asyncio.wait([*running, *self._finishing], return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        await self.drain()  # what is being finished may still have something to write
        self._closed = True
        await self.drain()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """No group is written while an operator's work on the whole field goes on; requests wait."""
        async with self._writing:
            yield

    def _start(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if self._running is None and self._somebody_waits:
            self._running = asyncio.get_running_loop().create_task(self._run())

    @property
    def _somebody_waits(self) -> bool:
        return bool(self._queue or self._patient)

    async def _run(self) -> None:
        try:
            while self._somebody_waits:
                await self._gather()
                group = self._next_group()
                async with self._writing:
                    written = await self._write(group)
                self._last_group_ms = self._clock.monotonic_ms()
                self._complete_soon(group, written)
                if len(group) == 1 or self._somebody_waits:
                    # Answers go out before the next group is written. Whoever is alone comes back with the next request
                    # in this turn. Of many, the first one back would be written by itself, and the others with the
                    # next group.
                    await asyncio.sleep(0)
        finally:
            self._running = None
            self._start()  # where it broke: the others have their turn

    def _complete_soon(self, group: Sequence[Waiting], written: Written) -> None:
        """The next group need not wait until this one's answers are complete."""
        if self._finish is None:
            for waits, outcome in zip(group, written.outcomes, strict=True):
                _resolve(waits.answer, outcome)
            return
        complete = set(range(len(group))).difference([each.at for each in written.landed])
        for start in range(0, len(written.landed), FINISHED_TOGETHER):
            part = written._replace(landed=written.landed[start : start + FINISHED_TOGETHER])
            task = asyncio.get_running_loop().create_task(_complete(self._finish, group, part))
            self._finishing[task] = part
            task.add_done_callback(self._finishing.pop)
        incomplete = self._incomplete() if written.repeats else {}
        for repeat in written.repeats:
            if first := incomplete.get(repeat.key):
                first.resolve_too(group[repeat.at].answer)
                complete.remove(repeat.at)
        for at in complete:
            _resolve(group[at].answer, written.outcomes[at])

    def _incomplete(self) -> dict[bytes, Incomplete]:
        """Answers that may still change, by message."""
        return {
            each.fingerprint.key: Incomplete(task, part.outcomes, each.at)
            for task, part in self._finishing.items()
            for each in part.landed
            if each.fingerprint is not None
        }

    async def _gather(self) -> None:
        """Let those who are already at the door come in: as long as each turn of the event loop brings more. The turn
        since the first one came has brought nobody where that one is still alone. Who is patient waits a few turns for
        others who are only on their way: one whose bytes lie in the socket needs that many."""
        for _ in range(TURNS_TO_THE_DOOR):
            if self._queue:
                break
            await asyncio.sleep(0)
        size = 1
        while size < len(self._queue) < MOST_REQUESTS_A_GROUP:
            size = len(self._queue)
            await asyncio.sleep(0)

    def _next_group(self) -> list[Waiting]:
        group, self._queue = self._queue[:MOST_REQUESTS_A_GROUP], self._queue[MOST_REQUESTS_A_GROUP:]
        self.others += len(group)
        if not group or self._gave_way:
            group, self._patient = group + self._patient, []
        self._gave_way = bool(self._patient)
        return group

    async def _write(self, group: Sequence[Waiting]) -> Written:
        """Decide every request of the group, write what they decided, and only then tell them."""
        try:
            desk, written = await self._decide_all(group)
            commit = desk.commit()
            if commit.entries or commit.replies:
                await self._state.store.commit(commit)
                desk.publish()
                self._after_commit(commit.changes, desk.unit_texts)
            return written
        except FieldError as refused:  # the store had no room for all of it
            return Written([refused], [], {}, []) if len(group) == 1 else await self._write_one_by_one(group)
        except Exception as broken:  # why: one broken group must not stop the writer; each caller gets the error
            logger.error("group failed", requests=len(group), error=type(broken).__name__, exc_info=broken)
            await self._recover()  # nobody knows how far it came: what the store says is what is
            return Written([broken] * len(group), [], {}, [])

    async def _write_one_by_one(self, group: Sequence[Waiting]) -> Written:
        """What fits is written, and what would have changed nothing gets its own answer."""
        each = [await self._write([waiting]) for waiting in group]
        return Written(
            [outcome for written in each for outcome in written.outcomes],
            [structs.replace(landed, at=at) for at, written in enumerate(each) for landed in written.landed],
            {unit: texts for written in each for unit, texts in written.texts.items()},
            [repeat._replace(at=at) for at, written in enumerate(each) for repeat in written.repeats],
        )

    async def _decide_all(self, group: Sequence[Waiting]) -> tuple[Desk, Written]:
        known = await self._known_replies(group)
        desk = Desk(self._state, self._ids, known, at_ms=self._clock.now_ms(), epoch_leap=self._rules.epoch_leap)
        harness = await self._cleaning.harness()
        dirty, cleaned = await _cleaned_for(harness, group)
        written = Written([], [], desk.unit_texts, [])
        for waiting, texts, clean in zip(group, dirty, cleaned, strict=True):
            written.outcomes.append(await self._decide(desk, written, harness, waiting, texts, clean))
        return desk, written

    async def _known_replies(self, group: Sequence[Waiting]) -> dict[bytes, RememberedReply]:
        keys = [waiting.fingerprint.key for waiting in group if waiting.fingerprint]
        if not keys:
            return {}
        horizon_ms = self._forgetting.horizon_ms
        found = await self._state.store.replies.find(keys)
        return {key: reply for key, reply in found.items() if reply.at_ms >= horizon_ms}

    async def _decide(
        self, desk: Desk, written: Written, harness: Harness, waiting: Waiting, texts: Sequence[str], clean: CleanGroup
    ) -> Outcome:
        """`texts` are the request's texts as they came, and `clean` what became of them."""
        work, fingerprint = waiting.work, waiting.fingerprint
        trails: dict[Key, Trail] = {}
        try:
            if fingerprint and (remembered := desk.reply(fingerprint.key)):
                answer = _first_answer(fingerprint, remembered)
                written.repeats.append(Repeat(len(written.outcomes), fingerprint.key))
                return answer
            if harness.knows_secrets and (work.message is not None or texts):
                clean, trails = await self._trails.follow(harness, work.message, texts, clean)
            if clean.texts is not texts:
                _refuse_altered_names(work, clean)
            if clean.found and self._refuse_secrets and waiting.answer is not None and work.brings_news:
                raise SecretLeakage(f"The texts hold secrets: {', '.join(sorted(set(clean.found)))}.")
            draft, reply = await work.decide(desk, clean.texts)
        except FieldError as refused:
            return refused
        desk.accept(draft)
        self._trails.keep(trails)
        if self._finish is not None:
            for unit, is_new in draft.units:
                written.landed.append(Landed(len(written.outcomes), unit, is_new, fingerprint))
        if clean.found:
            reply = _with_redaction_warning(reply, clean.found)
        if fingerprint and draft.events:  # what changed nothing may be asked again
            desk.remember(RememberedReply(fingerprint.key, fingerprint.request, draft.at_ms, _encoder.encode(reply)))
        return reply


async def _complete(finish: Finish, group: Sequence[Waiting], part: Written) -> None:
    """The answers to what landed go out, with what was found out about it."""
    try:
        await finish(part.landed, part.outcomes, part.texts)
    except Exception as broken:  # why: the units are on disk, and that is what the answers say
        logger.error("units could not be looked at", units=len(part.landed), exc_info=broken)
    for each in part.landed:
        _resolve(group[each.at].answer, part.outcomes[each.at])


def _texts_of(work: Work) -> Sequence[str]:
    return [*work.texts(), *[name for _, name in work.names()]]


async def _cleaned_for(
    harness: Harness, group: Sequence[Waiting]
) -> tuple[Sequence[Sequence[str]], Sequence[CleanGroup]]:
    """The texts as they came, and clean. Who cleaned early did so without the secrets that were told since."""
    early = [each.cleaned if each.cleaned is not None and each.cleaned.by is harness else None for each in group]
    dirty = [_texts_of(waiting.work) for waiting, done in zip(group, early, strict=True) if done is None]
    cleaned = await _cleaned(harness, dirty)
    if len(dirty) == len(group):
        return dirty, cleaned
    late = zip(dirty, cleaned, strict=True)
    pairs = [next(late) if done is None else (done.texts, done.clean) for done in early]
    return [texts for texts, _ in pairs], [clean for _, clean in pairs]


async def _cleaned(harness: Harness, dirty: Sequence[Sequence[str]]) -> Sequence[CleanGroup]:
    """All of them in one scan. Much text, and text that may be full of secrets, takes seconds: that is for a thread."""
    if sum([sum(map(len, texts)) for texts in dirty]) <= SCANNED_ON_THE_SPOT_CHARS:
        clean = harness.clean_if_nothing_is_found(dirty)
        if clean is not None:
            return clean
    return await asyncio.to_thread(harness.clean_groups, dirty)


def _refuse_altered_names(work: Work, clean: CleanGroup) -> None:
    """An id that would have to be rewritten is refused: nobody could use it afterwards."""
    names = work.names()
    for (kind, name), cleaned in zip(names, clean.texts[len(clean.texts) - len(names) :], strict=True):
        if name != cleaned:
            raise SecretLeakage(f"The {kind} id holds what looks like a secret, or a marker of one.")


def _first_answer(fingerprint: Fingerprint, remembered: RememberedReply) -> Reply:
    if remembered.request != fingerprint.request:
        raise used_before()
    return json.decode(remembered.body, type=REPLY_TYPES[fingerprint.operation])


def _with_redaction_warning(reply: Reply, found: Sequence[str]) -> Reply:
    if isinstance(reply, Deregistered):
        return reply
    warning = Warning("REDACTED", f"Secret-shaped text was rewritten: {', '.join(sorted(set(found)))}.")
    return structs.replace(reply, warnings=(*(reply.warnings or ()), warning))


def _resolve(answer: asyncio.Future[Reply] | None, outcome: Outcome) -> None:
    if answer is None or answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
