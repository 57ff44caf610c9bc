"""One summary for all that goes."""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.summaries import Draft, as_group, passages_of, passed_on
from fieldstone.planes.context.tools import Tools
from fieldstone.ports.summarizer import Summarizer


class Strategy(Protocol):
    """Turns messages that may go into summaries, which stand in their place."""

    @property
    def name(self) -> str: ...

    async def drafts(
        self, going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage], tools: Tools, most_tokens: int
    ) -> list[Draft]:
        """`going` holds whole pairs of calls and results; `after` is what follows the last of them.

        Each draft replaces messages of `going`, none is replaced twice, and what no draft replaces stays as it is. The
        drafts together have about `most_tokens`.
        """
        ...


class Rollup:
    """An earlier summary is taken up into the new one: there is always one."""

    name: Final = "rollup"

    async def drafts(
        self, going: Sequence[CanonicalMessage], after: Sequence[CanonicalMessage], tools: Tools, most_tokens: int
    ) -> list[Draft]:
        return [await distilled(going, tools.summarizer, most_tokens, tier=1)]


async def distilled(going: Sequence[CanonicalMessage], summarizer: Summarizer, most_tokens: int, *, tier: int) -> Draft:
    said = [each for each in passed_on(going) if each.text.strip()]
    made = await summarizer.distil(as_group(said), most_tokens)
    passages = await asyncio.to_thread(passages_of, made, said)
    return Draft(tuple(message.id for message in going), made.text, passages, tier, made.by, made.fell_back)
