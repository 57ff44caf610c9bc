"""RFC 0113: what a list may take of a model's context. The list is cut where the budget ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from fieldstone.field.entries import KeptEntry

Count = Callable[[str], int]


async def within(
    pages: AsyncIterator[Sequence[KeptEntry]], count: Count, limit: int | None, token_budget: int | None
) -> list[KeptEntry]:
    """As many as the limit, and as fit into the budget. One that is larger than all of it is passed over."""
    found: list[KeptEntry] = []
    room = token_budget
    async for page in pages:
        sizes = None if room is None else await asyncio.to_thread(_counted, page, count)
        for at, entry in enumerate(page):
            if sizes is not None and token_budget is not None and room is not None:
                if sizes[at] > token_budget:
                    continue
                room -= sizes[at]
                if room < 0:
                    return found
            found.append(entry)
            if limit is not None and len(found) >= limit:
                return found
    return found


def _counted(page: Sequence[KeptEntry], count: Count) -> list[int]:
    return [count(entry.content) for entry in page]
