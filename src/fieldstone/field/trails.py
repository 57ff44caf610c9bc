"""Secrets that are cut in parts and written one after the other: what an agent or a session said just before counts.

The trails lie in memory. After a restart they are read back from the units that the agent or the session recorded last.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from fieldstone.core.events import UnitTexts, decode_texts, strings_of
from fieldstone.core.requests import Message
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.state import FieldState
from fieldstone.redact import CleanGroup, Harness
from fieldstone.redact.seams import ENTRIES_MAX, Trail

MOST_TRAILS: Final = 10_000

Key = tuple[str, str]  # agent or session, and its id


class Trails:
    """Asked only where a secret is known: nothing is kept before."""

    def __init__(self, state: FieldState) -> None:
        self._state = state
        self._trails: dict[Key, Trail] = {}
        self._harness: Harness | None = None

    async def follow(
        self, harness: Harness, message: Message | None, texts: Sequence[str], group: CleanGroup
    ) -> tuple[CleanGroup, dict[Key, Trail]]:
        """The group, clean also of what goes on from before, and the trails that `keep` takes once it is accepted.

        Without a message it is the Field that speaks, for a summariser that may know more than it should.
        """
        if harness is not self._harness:  # what was noted of other secrets says nothing of these
            self._trails.clear()
            self._harness = harness
        keys = _keys(message)
        trails = [await self._trail(harness, key) for key in keys]
        group, after = harness.follow(trails, texts, group)
        return group, dict(zip(keys, after, strict=True))

    def keep(self, trails: dict[Key, Trail]) -> None:
        for key, trail in trails.items():
            self._trails.pop(key, None)
            if len(self._trails) >= MOST_TRAILS:
                self._trails.pop(next(iter(self._trails)))
            self._trails[key] = trail

    async def _trail(self, harness: Harness, key: Key) -> Trail:
        known = self._trails.get(key)
        return await self._read_back(harness, key) if known is None else known

    async def _read_back(self, harness: Harness, key: Key) -> Trail:
        trail = Trail()
        units = await self._last_units(key)
        stored = await self._state.store.texts.get(units)
        for seq in units:
            if seq in stored:
                texts = strings_of(decode_texts(stored[seq].body, UnitTexts))
                _, [trail] = harness.follow([trail], texts, CleanGroup(texts, ()))
        return trail

    async def _last_units(self, key: Key) -> list[int]:
        kind, name = key
        number = await self._state.names.number("agent" if kind == "agent" else "session", name)
        if number is None:
            return []
        units = self._state.columns.snapshot(self._state.epoch)
        theirs = units.agent == units.agent_code(number) if kind == "agent" else units.session == number
        seqs: list[int] = units.seq[np.flatnonzero(theirs)[-ENTRIES_MAX:]].tolist()
        return seqs


def _keys(message: Message | None) -> list[Key]:
    if message is None:
        return [("agent", FIELD_AGENT_ID)]
    session = [] if message.session_id is None else [("session", message.session_id)]
    return [("agent", message.agent_id), *session]
