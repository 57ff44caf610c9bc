"""One compaction: what may go is drafted, cleaned, and put in place if that makes the context smaller."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.cleaning import clean_text
from fieldstone.planes.context.outcomes import Compacted, Outcome, Reason, Refused
from fieldstone.planes.context.plan import Entry, going_now, planned, put_in_place
from fieldstone.planes.context.rollup import Strategy
from fieldstone.planes.context.sayings import MESSAGE_TOKENS
from fieldstone.planes.context.summaries import OWN_WORDS, Draft, Passage, SummaryNote, stood_for, summary_message
from fieldstone.planes.context.tools import Tools
from fieldstone.planes.context.triggers import Trigger
from fieldstone.retrieval.reading import timestamp

NOTHING_MAY_GO: Reason = "nothing may go: what is there is the system's, pinned, among the last, or waits for a tool"
NOT_SMALLER: Reason = "the summary would not be smaller than what it stands for"
NOTHING_SAID: Reason = "nothing could be said in so few tokens"


class Placed(NamedTuple):
    outcome: Outcome
    entries: list[Entry]
    gone: list[CanonicalMessage]


class Compactor:
    def __init__(self, tools: Tools, strategy: Strategy, trigger: Trigger) -> None:
        self._tools = tools
        self._strategy = strategy
        self._trigger = trigger

    async def drafts(
        self, entries: Sequence[Entry], pinned: Collection[str], keep_last: int, excess_tokens: int
    ) -> list[Draft]:
        """Clean ones; none where nothing may go."""
        plan = planned(entries, pinned, keep_last, excess_tokens)
        if plan is None:
            return []
        drafts = await self._strategy.drafts(plan.going, plan.after, self._tools, plan.most_tokens)
        return [await self._cleaned_up(draft) for draft in drafts]

    def placed(
        self, entries: Sequence[Entry], pinned: Collection[str], drafts: Sequence[Draft], new_id: Callable[[], str]
    ) -> Placed:
        """The list as it is by now, with the summaries in the place of what they stand for; or as it was."""
        before = sum(entry.tokens for entry in entries)
        reason: Reason = NOTHING_MAY_GO
        now, gone, made, summaries = list(entries), list[CanonicalMessage](), list[Draft](), list[str]()
        for draft in drafts:
            going = going_now([entry.message for entry in now], frozenset(draft.replaces), pinned)
            if not going:
                continue
            replaced = [now[place] for place in going]
            summary = self._summary(draft, [entry.message for entry in replaced], new_id)
            refusal = self._refusal(draft, summary, replaced)
            if refusal is not None:
                reason = refusal
                continue
            now = put_in_place(now, going, summary)
            gone += [entry.message for entry in replaced]
            made.append(draft)
            summaries.append(summary.message.id)
        if not made:
            return Placed(Refused(self._trigger, self._strategy.name, before, reason), list(entries), [])
        fell_back = next((draft.fell_back for draft in made if draft.fell_back), None)
        outcome = Compacted(
            self._trigger,
            self._strategy.name,
            tokens_before=before,
            tokens_after=sum(entry.tokens for entry in now),
            replaced=len(gone),
            summaries=tuple(summaries),
            by=tuple(draft.by for draft in made),
            fell_back=fell_back,
        )
        return Placed(outcome, now, gone)

    async def _cleaned_up(self, draft: Draft) -> Draft:
        """A summary is new text, whatever it was made from."""
        text = await clean_text(await self._tools.cleaning(), draft.text.rstrip())
        tokens = await asyncio.to_thread(self._tools.counter.count, text)
        is_as_it_was = draft.text.startswith(text)
        passages = draft.passages if is_as_it_was else (Passage(0, len(text), OWN_WORDS),)
        return draft._replace(text=text, passages=passages, tokens=tokens)

    def _summary(self, draft: Draft, replaced: Sequence[CanonicalMessage], new_id: Callable[[], str]) -> Entry:
        stands_for = stood_for(replaced)
        lead = f"Summary of {len(stands_for)} earlier messages:\n"
        passages = tuple(
            Passage(each.start + len(lead), each.end + len(lead), each.author, each.section) for each in draft.passages
        )
        note = SummaryNote(self._strategy.name, draft.tier, draft.by, stands_for, passages, draft.fell_back)
        now = timestamp(self._tools.clock.now_ms())
        message = summary_message(new_id(), now, lead + draft.text, note)
        return Entry(message, MESSAGE_TOKENS + self._tools.counter.count(lead) + draft.tokens)

    def _refusal(self, draft: Draft, summary: Entry, replaced: Sequence[Entry]) -> Reason | None:
        # A model that refused has to be given less, even if nothing can be said of what went: it can be recalled.
        if not draft.text and self._trigger != "emergency":
            return NOTHING_SAID
        return None if summary.tokens < sum(entry.tokens for entry in replaced) else NOT_SMALLER
