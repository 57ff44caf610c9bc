"""Tells an echo from new evidence: a unit that only restates what its author had just been shown."""

import numpy as np

from fieldstone.core.events import UnitTexts, decode_texts
from fieldstone.field.state import FieldState
from fieldstone.projections.meaning import Meaning, Reach
from fieldstone.retrieval.duplicates import restates, same_meaning


async def find_echo(
    state: FieldState, meaning: Meaning | None, reach: Reach | None, unit: int, content: str
) -> int | None:
    """The unit that this one restates, if its author was shown it lately. What was shown may be archived: `reach` has
    its vector where somebody asked for such units lately, which is how it was shown. Nobody waits for it otherwise."""
    row = state.columns.row_of(unit)
    shown = [seq for seq in state.recent.shown_to(state.columns.agent_at(row)) if seq < unit]
    if meaning is None or reach is None or not shown:
        return None
    rows = np.asarray([state.columns.row_of(seq) for seq in shown], np.int64)
    similarities = reach.index.similarities(meaning.index.vectors(np.asarray([row], np.int64))[0], rows)
    least = same_meaning(state.columns.snapshot(state.epoch), meaning)
    for at in map(int, np.argsort(-similarities, kind="stable")):
        if similarities[at] < least:
            return None
        stored = (await state.store.texts.get([shown[at]])).get(shown[at])
        if stored is not None and restates(content, decode_texts(stored.body, UnitTexts).content):
            return shown[at]
    return None
