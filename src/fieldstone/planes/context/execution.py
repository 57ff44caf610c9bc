"""Execution memory: the messages of one generation, kept within a budget of tokens. Nothing of it is stored."""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import SCHEMA_VERSION, CanonicalMessage, ToolCallPart
from fieldstone.planes.context.anthropic import AnthropicPrompt, from_anthropic, to_anthropic
from fieldstone.planes.context.budget import Budget, Meter, Report
from fieldstone.planes.context.cleaning import Cleaner
from fieldstone.planes.context.compacting import Compactor
from fieldstone.planes.context.openai import from_openai, to_openai
from fieldstone.planes.context.outcomes import After, Before, Compacting, Outcome, Refused
from fieldstone.planes.context.plan import Entry, kept_in_need
from fieldstone.planes.context.recall import RECALLED, Dropped, Recalled, Recalls
from fieldstone.planes.context.refusals import LengthRefusal, length_refusal
from fieldstone.planes.context.rollup import Rollup, Strategy
from fieldstone.planes.context.sayings import counted
from fieldstone.planes.context.shapes import Names, Said
from fieldstone.planes.context.summaries import note_of
from fieldstone.planes.context.tools import Tools
from fieldstone.planes.context.triggers import TURNS_REMEMBERED, URGENT, Trigger, Triggers
from fieldstone.retrieval.reading import timestamp

KEEP_LAST: Final = 6  # messages: what was just said is what is being talked about
TARGET: Final = 0.5  # of the budget, after a compaction: room for as much again before the next one is due
# After a try that did not help enough, the next one that is not urgent waits until there is this much more.
GROWTH_BEFORE_NEXT: Final = 0.05
EMERGENCIES_MAX: Final = 2  # in a row; a prompt that is refused a third time will not fit

Answer = TypeVar("Answer")


class ContextManager:
    """What the model sees is `messages`, and nothing else is to be persisted: summaries stand in it as messages."""

    def __init__(
        self,
        max_tokens: int,
        tools: Tools,
        *,
        strategy: Strategy | None = None,
        triggers: Triggers = Triggers(),
        keep_last: int = KEEP_LAST,
        background: bool = False,
        recalls: Recalls | None = None,
        before: Before | None = None,
        after: After | None = None,
    ) -> None:
        triggers.check()
        if keep_last < 1:
            raise ValueError("keep_last is at least 1: the last message is what the model answers.")
        self._meter = Meter(max_tokens)
        self._tools = tools
        self._strategy: Strategy = Rollup() if strategy is None else strategy
        self._triggers = triggers
        self._keep_last = keep_last
        self._in_background = background
        self._before, self._after = before, after
        self._entries: list[Entry] = []
        self._ids: set[str] = set()  # of all that ever came, so that none stands for two
        self._pinned: set[str] = set()
        self._dropped = Dropped(recalls)
        self._names: Names = {}
        self._cleaner = Cleaner(tools.cleaning)
        self._sent_tokens: int | None = None  # as counted when `prepare` last gave the messages
        self._added_tokens: int | None = None  # since then; what was there before the first turn is no growth
        self._growth = deque[int](maxlen=TURNS_REMEMBERED)
        self._tried_at_tokens: int | None = None
        self._adding = asyncio.Lock()
        self._compacting = asyncio.Lock()
        self._running: asyncio.Task[Outcome] | None = None
        self._has_ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """The generation ends: nothing is kept. A compaction that is under way is cut off. Twice does no harm."""
        self._has_ended = True
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        self._entries.clear()
        self._pinned.clear()
        self._dropped.forget()
        if running is not None and not running.cancelled():
            running.result()  # what went wrong in it, and nobody has been told yet, is raised

    @property
    def messages(self) -> tuple[CanonicalMessage, ...]:
        return tuple(entry.message for entry in self._entries)

    @property
    def budget(self) -> Budget:
        return self._meter.read(self._counted())

    @property
    def pinned(self) -> frozenset[str]:
        return frozenset(self._pinned)

    def openai(self) -> list[dict[str, Any]]:
        return to_openai(self.messages)

    def anthropic(self) -> AnthropicPrompt:
        return to_anthropic(self.messages)

    async def add(self, *messages: CanonicalMessage) -> None:
        """At the end, in their order. Secrets are taken out first; a message is never there half."""
        async with self._adding:
            for message in messages:
                await self._add(message)

    async def add_openai(self, messages: Sequence[Mapping[str, Any]], *, ids: Sequence[str] = ()) -> list[str]:
        """As messages of OpenAI's chat. Gives their ids; `ids` are those of a transcript, where there is one."""
        return await self._add_said(from_openai(messages, self._names), ids)

    async def add_anthropic(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        system: str | Sequence[Mapping[str, Any]] = (),
        ids: Sequence[str] = (),
    ) -> list[str]:
        """As messages of Anthropic's. Each result of a tool is a message with an id of its own."""
        return await self._add_said(from_anthropic(messages, self._names, system=system), ids)

    def pin(self, message_id: str) -> None:
        """It stays as it is, in its place among the others, together with the calls and results that belong to it."""
        if all(entry.message.id != message_id for entry in self._entries):
            raise InvalidPayload(f"There is no message {message_id!r} here to pin.")
        self._pinned.add(message_id)

    def unpin(self, message_id: str) -> None:
        self._pinned.discard(message_id)

    def report(self, prompt_tokens: int) -> None:
        """What the model says that the last prompt took. From now on the budget goes by it."""
        sent = self._counted() if self._sent_tokens is None else self._sent_tokens
        self._meter.learn(Report(prompt_tokens, sent))

    async def prepare(self) -> tuple[CanonicalMessage, ...]:
        """The messages for the next call, after the compaction that is due. One turn of the conversation."""
        self._refuse_after_end()
        if self._added_tokens is not None:
            self._growth.append(self._added_tokens)
        self._added_tokens = 0
        if self._running is not None and self._running.done():
            await self.settled()
        trigger = self._due()
        if trigger in URGENT and self._running is not None:
            await self.settled()
            trigger = self._due()
        if trigger is not None and self._in_background and trigger not in URGENT:
            self._begin(trigger)
        elif trigger is not None:
            await self.compact(trigger)
        self._sent_tokens = self._counted()
        return self.messages

    async def generate(self, model: Callable[[tuple[CanonicalMessage, ...]], Awaitable[Answer]]) -> Answer:
        """The model's answer. Where it refuses for length, the context is compacted as far as it takes."""
        messages = await self.prepare()
        for _ in range(EMERGENCIES_MAX):
            try:
                return await model(messages)
            except Exception as error:  # why: models raise what they like; all but one kind goes on to the caller
                refusal = length_refusal(error)
                if refusal is None or isinstance(await self.emergency(refusal), Refused):
                    raise
            messages = self.messages
        return await model(messages)

    async def compact(self, trigger: Trigger = "asked") -> Outcome:
        """Now, whether or not it is due."""
        self._refuse_after_end()
        return await self._compact(trigger, keep_last=self._keep_last, aim_tokens=self._aim(self.budget.max_tokens))

    async def emergency(self, refusal: LengthRefusal = LengthRefusal()) -> Outcome:
        """A model refused for length: the last messages go, too, where nothing less helps, but not the very last."""
        self._refuse_after_end()
        await self.settled()
        if refusal.size_tokens is not None:
            self._meter.learn(Report(refusal.size_tokens, self._counted()))
        if refusal.limit_tokens is not None:
            self._meter.lower(refusal.limit_tokens)
        budget = self.budget
        # Whatever was counted: it was too much.
        aim = self._aim(min(budget.max_tokens, budget.current))
        keep_last = kept_in_need(self._entries, self._pinned, self._keep_last, budget.current - aim)
        outcome = await self._compact("emergency", keep_last=keep_last, aim_tokens=aim)
        self._sent_tokens = self._counted()
        return outcome

    async def settled(self) -> Outcome | None:
        """Waits for the compaction in the background, if there is one. What went wrong in it is raised here."""
        running = self._running
        if running is None:
            return None
        try:
            return await asyncio.shield(running)
        finally:
            if running.done() and self._running is running:
                self._running = None

    async def recall(self, hint: str, *, limit: int = RECALLED) -> list[Recalled]:
        """Messages that summaries stand for and that have to do with the hint, the best first."""
        self._refuse_after_end()
        behind = {id: summary.id for summary, ids in self._behind() for id in ids}
        found = await self._dropped.search(hint, list(behind))
        return [Recalled(message, behind[message.id]) for message in found if message.id in behind][:limit]

    async def originals(self, summary_id: str) -> list[CanonicalMessage]:
        """All that a summary stands for and that can be had, in the order in which it was said."""
        self._refuse_after_end()
        for summary, ids in self._behind():
            if summary.id == summary_id:
                return await self._dropped.messages(ids)
        raise InvalidPayload(f"There is no summary {summary_id!r} here.")

    async def _add(self, message: CanonicalMessage) -> None:
        self._refuse_after_end()
        if message.id in self._ids:
            raise InvalidPayload(f"The message {message.id!r} is there already.")
        cleaned = await self._cleaner.clean(message)
        tokens = await counted(cleaned, self._tools.counter)
        self._refuse_after_end()
        self._ids.add(message.id)
        self._entries.append(Entry(cleaned, tokens))
        if self._added_tokens is not None:
            self._added_tokens += tokens
        self._names.update(
            {part.tool_call_id: part.tool_name for part in cleaned.parts if isinstance(part, ToolCallPart)}
        )

    async def _add_said(self, said: Sequence[Said], ids: Sequence[str]) -> list[str]:
        if ids and len(ids) != len(said):
            raise InvalidPayload(f"These are {len(said)} messages, with {len(ids)} ids.")
        given = list(ids) or [self._new_id() for _ in said]
        now = timestamp(self._tools.clock.now_ms())
        messages = []
        for id, each in zip(given, said, strict=True):
            metadata = {"schemaVersion": SCHEMA_VERSION, **each.metadata}
            messages.append(CanonicalMessage(id, None, each.role, each.parts, now, metadata))
        await self.add(*messages)
        return given

    def _due(self) -> Trigger | None:
        trigger = self._triggers.fired(self.budget, list(self._growth))
        if trigger is None or trigger in URGENT or self._tried_at_tokens is None:
            return trigger
        grown = self._counted() - self._tried_at_tokens
        return trigger if grown >= GROWTH_BEFORE_NEXT * self.budget.max_tokens else None

    def _begin(self, trigger: Trigger) -> None:
        if self._running is None:
            self._running = asyncio.create_task(self.compact(trigger))

    async def _compact(self, trigger: Trigger, *, keep_last: int, aim_tokens: int) -> Outcome:
        async with self._compacting:
            await _told(self._before, Compacting(trigger, self._strategy.name, self._counted(), len(self._entries)))
            compactor = Compactor(self._tools, self._strategy, trigger)
            excess = self.budget.current - aim_tokens
            drafts = await compactor.drafts(self._entries, self._pinned, keep_last, excess)
            # From here on nothing is awaited: what came meanwhile is in the list, and nothing can come between.
            outcome, self._entries, gone = compactor.placed(self._entries, self._pinned, drafts, self._new_id)
            self._dropped.hold(message for message in gone if note_of(message) is None)
            self._tried_at_tokens = self._counted()
            await _told(self._after, outcome)
            return outcome

    def _behind(self) -> list[tuple[CanonicalMessage, tuple[str, ...]]]:
        notes = [(entry.message, note_of(entry.message)) for entry in self._entries]
        return [(message, note.stands_for) for message, note in notes if note is not None]

    def _counted(self) -> int:
        return sum(entry.tokens for entry in self._entries)

    def _aim(self, tokens: int) -> int:
        return int(TARGET * tokens)

    def _new_id(self) -> str:
        return f"msg-{self._tools.ids.unit().removeprefix('mem-')}"

    def _refuse_after_end(self) -> None:
        if self._has_ended:
            raise RuntimeError("The generation has ended: its context is gone.")


Hook = Callable[[Any], Awaitable[None] | None]


async def _told(hook: Hook | None, what: Compacting | Outcome) -> None:
    if hook is not None:
        answer = hook(what)
        if inspect.isawaitable(answer):
            await answer
