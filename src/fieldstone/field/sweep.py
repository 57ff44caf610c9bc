"""The sweep: secrets that became known late are cleared from every text that is stored.

Each text takes the road of a new one. What comes out of it different replaces what lay there, with a `content.replaced`
event that holds the new hash, in one transaction. A mark says how far it has come, so a sweep that was cut off goes on
from there; it ends with what the old texts left behind: index, vectors, remembered answers, caches, journals.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from fieldstone.core.events import (
    ContentReplaced,
    NameCoined,
    NameKind,
    NameText,
    TextBundle,
    UnitTexts,
    bundle_type,
    decode_entry,
    decode_texts,
    strings_of,
    with_strings,
)
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.field.cleaning import Cleaning
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.meanings import Meanings
from fieldstone.field.purging import Forget
from fieldstone.field.scouring import Scouring
from fieldstone.field.state import FieldState
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.field.writer import Writer
from fieldstone.planes.sweeping import PlanesSwept
from fieldstone.ports.log import StoredText
from fieldstone.ports.text_index import Document
from fieldstone.projections.text_follower import TextFollower, searchable
from fieldstone.redact import Harness

BATCH_TEXTS: Final = 256
BATCH_ENTRIES: Final = 1_000
FOLLOWING: Final = "sweep-follows"  # the mark: replacements after this entry may not be followed yet

Progress = Callable[[int], None]


class Swept(Struct, frozen=True):
    """What a sweep did. `residue` pending: a reader of an older state still keeps replaced pages in a journal."""

    texts: int
    replaced: int
    answers_forgotten: int
    secrets: tuple[str, ...]
    residue: str
    planes: PlanesSwept = PlanesSwept(0, 0, 0)  # of runs and transcripts


class _Found(Struct, frozen=True):
    """A text that holds a secret."""

    seq: int
    texts: TextBundle
    name: NameKind | None


class Sweeping:
    def __init__(
        self,
        state: FieldState,
        cleaning: Cleaning,
        writer: Writer,
        follower: TextFollower,
        meanings: Meanings,
        scouring: Scouring,
        forget: Forget,
    ) -> None:
        self._state = state
        self._cleaning = cleaning
        self._writer = writer
        self._follower = follower
        self._meanings = meanings
        self._scouring = scouring
        self._forget = forget

    async def sweep(self, progress: Progress) -> Swept:
        async with self._state.rewriting:
            harness = await self._cleaning.harness()
            store, mark = self._state.store, self._mark()
            at = await store.marks.get(mark)
            looked_at = replaced = 0
            secrets: dict[str, None] = {}
            await self._set_out()
            while batch := await store.texts.read(after=at, limit=BATCH_TEXTS):
                found = await self._find(harness, batch, secrets)
                if found:
                    await asyncio.gather(*(self._writer.submit(Replacing(each)) for each in found))
                    await self._follow([each.seq for each in found])
                looked_at, replaced, at = looked_at + len(batch), replaced + len(found), batch[-1].seq
                await store.marks.set(mark, at)
                progress(at)
            forgotten = await self._forget_answers(harness)
            residue = "none" if await self._scouring.scour() else "pending"
            await store.marks.set(mark, 0)  # done: the next sweep begins anew
            await store.marks.set(FOLLOWING, 0)
            return Swept(looked_at, replaced, forgotten, tuple(secrets), residue)

    def _mark(self) -> str:
        """A sweep for other secrets begins at the beginning. The mark's name tells nothing of them."""
        known = "\0".join(sorted(f"{secret.id}\0{secret.value}" for secret in self._cleaning.known))
        return f"swept-{blake2b(known.encode(), key=self._state.store.digest_key, digest_size=8).hexdigest()}"

    async def catch_up(self) -> None:
        """A sweep was cut off after a text was replaced, and before what was made of the old one was: do it now."""
        since = await self._state.store.marks.get(FOLLOWING)
        if not since:
            return
        at = since
        while stored := await self._state.store.log.read(after=at, limit=BATCH_ENTRIES):
            events = [decode_entry(each.body).event for each in stored]
            replaced = [event.entry for event in events if isinstance(event, ContentReplaced)]
            if replaced:
                await self._follow(sorted(set(replaced)))
            at = stored[-1].seq

    async def _set_out(self) -> None:
        """From here on the log says what was replaced. Where a sweep was cut off, its mark counts."""
        marks = self._state.store.marks
        if not await marks.get(FOLLOWING):
            await marks.set(FOLLOWING, max(1, self._state.head.seq))

    async def _find(self, harness: Harness, batch: Sequence[StoredText], secrets: dict[str, None]) -> list[_Found]:
        texts = [await self._decoded(stored) for stored in batch]
        groups = [strings_of(each.texts) for each in texts]
        cleaned = await asyncio.to_thread(harness.clean_groups, groups)
        secrets.update(dict.fromkeys(name for group in cleaned for name in group.found))
        return [each for each, group in zip(texts, cleaned, strict=True) if group.found]

    async def _decoded(self, stored: StoredText) -> _Found:
        event = decode_entry((await self._state.store.log.read(after=stored.seq - 1, limit=1))[0].body).event
        name = event.of if isinstance(event, NameCoined) else None
        return _Found(stored.seq, decode_texts(stored.body, bundle_type(event)), name)

    async def _follow(self, entries: Sequence[int]) -> None:
        """Whatever was made of the old texts is made anew of those that are there now."""
        await self._forget(entries)
        await self._state.reload_names()
        rows = await self._state.store.views.units(entries)
        units = sorted(rows)
        stored = await self._state.store.texts.get(units)
        texts = {seq: decode_texts(each.body, UnitTexts) for seq, each in stored.items()}
        archived = [seq for seq in texts if rows[seq].archived_epoch is not None]
        await self._replace_cold([stored[seq] for seq in archived], {seq: texts[seq] for seq in archived})
        await self._follower.replace({seq: each for seq, each in texts.items() if seq not in set(archived)})
        await self._meanings.cooling.erase(units)
        await self._embed(texts)

    async def _replace_cold(self, stored: Sequence[StoredText], texts: Mapping[int, UnitTexts]) -> None:
        """What is archived is replaced where it lies: copy, and words."""
        if stored:
            cold = self._state.store.cold
            await cold.put(stored)
            documents = [Document(seq, searchable(each)) for seq, each in sorted(texts.items())]
            await cold.index.add(documents, position=max(1, await cold.index.position()))

    async def _embed(self, texts: Mapping[int, UnitTexts]) -> None:
        await self._meanings.enrich({seq: each.content for seq, each in texts.items()}, 0)

    async def _forget_answers(self, harness: Harness) -> int:
        def hold_secrets(bodies: Sequence[bytes]) -> list[bool]:
            return [bool(group.found) for group in harness.clean_groups([[body.decode()] for body in bodies])]

        return await self._state.store.replies.forget_where(hold_secrets)


class Replacing(Wordless):
    """One text goes the road of a new one, and takes the place of the old."""

    def __init__(self, found: _Found) -> None:
        self._found = found

    def texts(self) -> Sequence[str]:
        texts = self._found.texts
        # Two names must not become the same one.
        return (f"{texts.name}#{self._found.seq}",) if isinstance(texts, NameText) else strings_of(texts)

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        found, draft = self._found, desk.quiet_draft(desk.epoch)
        texts = with_strings(found.texts, clean)
        if await desk.has_text(found.seq):
            text_hash = draft.replace_text(found.seq, texts)
            draft.append(ContentReplaced(entry=found.seq, text=text_hash, name=found.name), projected=texts)
        return draft, NO_ANSWER
