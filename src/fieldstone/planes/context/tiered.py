"""Summaries of summaries: what is long ago is told in fewer words than what was just now."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.rollup import distilled
from fieldstone.planes.context.sayings import tokens_of
from fieldstone.planes.context.summaries import Draft, tier_of
from fieldstone.planes.context.tools import Tools

FAN_IN: Final = 4  # so many of a tier become one of the next: 4 tiers hold 256 compactions
LEAST_TOKENS: Final = 32  # a summary of less says nothing


class Tiered:
    """A compaction reads new messages only, and now and then a few summaries: it costs no more in a long conversation
    than in a short one."""

    name: Final = "tiered"

    def __init__(self, fan_in: int = FAN_IN) -> None:
        if fan_in < 2:
            raise ValueError("fan_in is at least 2: one summary in place of one other is none.")
        self._fan_in: Final = fan_in

    async def drafts(
        self, going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage], tools: Tools, most_tokens: int
    ) -> list[Draft]:
        fresh = [message for message in going if tier_of(message) == 0]
        summaries = [message for message in going if tier_of(message) > 0]
        left = most_tokens - sum(tokens_of(message, tools.counter) for message in summaries)
        if fresh and left < LEAST_TOKENS:  # no room beside the summaries that are there
            groups = [summaries] if len(summaries) > 1 else []
            left = most_tokens // 2
        else:
            groups = self._merged(summaries, needed=not fresh)
        drafts = [await distilled(fresh, tools.summarizer, max(LEAST_TOKENS, left), tier=1)] if fresh else []
        for group in groups:
            tokens = sum(tokens_of(message, tools.counter) for message in group)
            most = max(LEAST_TOKENS, min(tokens // 2, most_tokens // 2))
            drafts.append(await distilled(group, tools.summarizer, most, tier=1 + max(map(tier_of, group))))
        return drafts

    def _merged(self, summaries: Sequence[CanonicalMessage], *, needed: bool) -> list[list[CanonicalMessage]]:
        """Those of each tier that is full; if there is none and something is needed, all."""
        by_tier = defaultdict[int, list[CanonicalMessage]](list)
        for summary in summaries:
            by_tier[tier_of(summary)].append(summary)
        full = [found for _, found in sorted(by_tier.items()) if len(found) >= self._fan_in]
        return [list(summaries)] if needed and not full and len(summaries) > 1 else full
