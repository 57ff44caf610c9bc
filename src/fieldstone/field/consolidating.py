"""Consolidation of an OpenWOP memory (RFC 0068): what says the same is said once, and what is out of date gives way.

Rules decide, and no model is asked: the same entries give the same answer. Newer entries are looked at first, and each
older one is compared with those that stand: what stands after a consolidation stands after the next one, too.

What gives way is no longer listed; its text stays beside the log until somebody deletes it. It never gives way to one
that expires earlier or is trusted less. So that nobody misses what is merged, the one that stands for it says all that
it said, and gets its tags. What another source had said before in the same words is marked as corroborated: there is no
more to strengthen, since a host's word has full confidence to begin with.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from fieldstone.core.events import (
    ContentReplaced,
    EntryTexts,
    MemoryConsolidated,
    UnitSuperseded,
    decode_texts,
    strings_of,
    with_strings,
)
from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import SHOWN_STATUSES
from fieldstone.detection.judge import Claim, judge
from fieldstone.detection.statements import Prepared, prepare
from fieldstone.detection.stems import stem
from fieldstone.detection.subject import subject_terms
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.entries import Entries, KeptEntry
from fieldstone.field.relate import settle
from fieldstone.field.state import FieldState
from fieldstone.field.synthesis import MOST_NAMED_SOURCES
from fieldstone.field.work import NO_ANSWER, Wordless
from fieldstone.field.writer import Writer
from fieldstone.ports.views import FeedRow, PutGuard, UnitRow
from fieldstone.retrieval.duplicates import restates
from fieldstone.retrieval.words import split

CORROBORATED: Final = "corroborated"  # the tag of what several sources said
LOOKED_AT_ONCE: Final = 4  # entries, in a thread: a few milliseconds, and then the others have their turn
GIVE_WAY_AT_ONCE: Final = 20  # in a transaction: some 10 ms that others may wait for
PAUSE_MS: Final = 5
MOST_CHARS: Final = 2_000  # a longer entry is a document: it is the same as another one, or it is not compared
MOST_SAME: Final = 64  # entries that are looked at for one that says the same
MOST_OTHERWISE: Final = 12  # and for one that contradicts
POSTINGS: Final = 1_000
SHARED_WORDS: Final = 2  # one word in common does not make a common subject
MOST_TAGS: Final = 1_000  # as many as a put may have
KEPT_TEXTS: Final = 500  # as they were read; with more of them the garbage collector keeps everybody waiting

# Words that may be there or not. Stop words would not do: "before" and "after" are among them.
_EMPTY: Final = frozenset(["a", "an", "the", "is", "are", "that", "also"])


class Consolidating:
    def __init__(self, state: FieldState, writer: Writer, entries: Entries) -> None:
        self._state = state
        self._writer = writer
        self._entries = entries
        self._turns = asyncio.Lock()  # one at a time: two would come to the same

    async def consolidate(self, memory: str) -> FeedRow | None:
        """The event that tells what became of how many. None: there is no such memory."""
        session = await self._entries.session(memory)
        if session is None or session not in self._state.memories:
            return None
        async with self._turns:
            inputs, found = await self._compared(memory)
            return await self._carried_out(session, inputs, found.gave_way)

    async def _compared(self, memory: str) -> tuple[int, "Consolidation"]:
        inputs, found = 0, Consolidation()
        async for page in self._entries.pages(memory, None):
            inputs += len(page)
            candidates = iter(await self._candidates([each for each in page if not each.is_output]))
            while some := list(islice(candidates, LOOKED_AT_ONCE)):
                await asyncio.to_thread(found.look_at, some)
                await asyncio.sleep(PAUSE_MS / 1e3)
        return inputs, found

    async def _candidates(self, page: Sequence[KeptEntry]) -> list["Candidate"]:
        """What a compaction made is none: it is promised to be found by its id, and newer than what it says."""
        units = await self._state.store.views.units([each.row.unit for each in page])
        return [
            Candidate(
                unit=each.row.unit,
                text=each.content,
                tags=each.tags,
                source=(units[each.row.unit].agent, each.agent_id, each.node_id),
                trust=_trust(units[each.row.unit]),
                expires_ms=each.row.expires_ms,
                stays=any(PutGuard(each.row.unit, guard) in self._state.guards for guard in ("hold", "pin")),
            )
            for each in page
        ]

    async def _carried_out(self, session: int, inputs: int, gave_way: Sequence["GaveWay"]) -> FeedRow:
        """In one transaction, or in several where that one would keep others waiting. Each leaves a memory that is
        whole, and the last one tells."""
        starts = range(0, max(1, len(gave_way)), GIVE_WAY_AT_ONCE)
        *before, last = [gave_way[start : start + GIVE_WAY_AT_ONCE] for start in starts]
        gone: list[int] = []
        for batch in before:
            gone += (await self._submitted(Yielding(batch))).gone
            await asyncio.sleep(PAUSE_MS / 1e3)
        telling = Telling(session, inputs, gone, last)
        await self._submitted(telling)
        return telling.told

    async def _submitted(self, work: "Yielding") -> "Yielding":
        async with self._state.rewriting:  # no sweep rewrites the texts that the tags are joined to
            work.beside = await self._beside([each.by for each in work.gave_way if each.tags])
            await self._writer.submit(work)
        return work

    async def _beside(self, units: Sequence[int]) -> dict[int, "Beside"]:
        rows = await self._state.store.views.entries_of(units)
        texts = await self._state.store.texts.get([row.written for row in rows.values()])
        return {
            unit: Beside(row.written, decode_texts(texts[row.written].body, EntryTexts))
            for unit, row in rows.items()
            if row.written in texts
        }


class Beside(NamedTuple):
    """What lies beside an entry: the place in the log, and the texts."""

    written: int
    texts: EntryTexts


class Yielding(Wordless):
    """Entries give way, and those that stand for them get their tags. What has changed meanwhile is left."""

    def __init__(self, gave_way: Sequence["GaveWay"]) -> None:
        self.gave_way = gave_way
        self.beside: Mapping[int, Beside] = {}  # of those that get tags, by their unit
        self.gone: list[int] = []

    def texts(self) -> Sequence[str]:
        own = [text for _, texts in self.beside.values() for text in strings_of(texts)]
        return [*own, *(tag for each in self.gave_way for tag in each.tags)]

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft, rest = desk.quiet_draft(desk.epoch), iter(clean)
        beside = {unit: with_strings(texts, rest) for unit, (_, texts) in self.beside.items()}
        joined: dict[int, list[CleanText]] = {}
        self.gone = []
        for each in self.gave_way:
            tags = list(islice(rest, len(each.tags)))
            unit, by = await desk.unit_at(each.unit), await desk.unit_at(each.by)
            if not (_stands(unit) and _stands(by)) or desk.is_guarded(each.unit) or (tags and each.by not in beside):
                continue
            draft.append(UnitSuperseded(unit=each.unit, by_unit=each.by))
            joined.setdefault(each.by, []).extend(tags)
            self.gone.append(each.unit)
        await settle(draft, desk, [unit for unit in self.gone if desk.had_a_dispute(unit)], "superseded")
        for standing, tags in joined.items():
            if tags:
                self._join(draft, self.beside[standing].written, beside[standing], tags)
        return draft, NO_ANSWER

    def _join(self, draft: Draft, written: int, texts: EntryTexts, tags: Sequence[CleanText]) -> None:
        all_of_them = tuple(dict.fromkeys([*texts.tags, *tags]))
        if all_of_them != texts.tags:
            texts = EntryTexts(texts.id, all_of_them, texts.node_id, texts.agent_id)
            text_hash = draft.replace_text(written, texts)
            draft.append(ContentReplaced(entry=written, text=text_hash), projected=texts)


class Telling(Yielding):
    """The last step: it tells of all of them."""

    def __init__(self, session: int, inputs: int, gone: Sequence[int], gave_way: Sequence["GaveWay"]) -> None:
        super().__init__(gave_way)
        self._session = session
        self._inputs = inputs
        self._before = gone
        self.told = FeedRow(0, "agent.memory.consolidated", 0, None)

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft, answer = await super().decide(desk, clean)
        gone = (*self._before, *self.gone)
        seq = draft.append(
            MemoryConsolidated(
                session=self._session,
                inputs=self._inputs,
                outputs=self._inputs - len(gone),
                units=gone if len(gone) <= MOST_NAMED_SOURCES else (),
            )
        )
        self.told = FeedRow(seq, "agent.memory.consolidated", draft.at_ms, None)
        return draft, answer


def _trust(row: UnitRow) -> int:
    return DEFAULT_AUTHORITY if row.trust is None else row.trust


def _stands(row: UnitRow) -> bool:
    return row.purged_seq is None and row.archived_epoch is None and row.status in SHOWN_STATUSES


# --- deciding ---------------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """What is known of an entry, as far as it matters here."""

    unit: int
    text: str
    tags: tuple[str, ...] = ()
    source: tuple[int, str | None, str | None] = (0, None, None)  # the host's agent, and whom it speaks for
    trust: int = 0
    expires_ms: int | None = None
    stays: bool = False  # held or pinned


class GaveWay(NamedTuple):
    unit: int
    by: int  # one that stands
    tags: tuple[str, ...] = ()  # that the other one gets


class Consolidation:
    """Entries of one memory, looked at from the newest to the oldest."""

    def __init__(self) -> None:
        self.gave_way: list[GaveWay] = []
        self._standing = _Heard()
        self._gone = _Heard()
        self._by: dict[int, Candidate] = {}  # for each that gave way the one that stands
        self._tags: dict[int, set[str]] = {}  # those that an entry got
        self._same: dict[bytes, list[_Said]] = {}  # by their whole text
        self._prepared: dict[int, Prepared] = {}
        self._voices: dict[tuple[int, str | None], int] = {}

    def look_at(self, entries: Iterable[Candidate]) -> None:
        """Each of them is older than all before."""
        for entry in entries:
            said = _read(entry)
            found = None if entry.stays else self._one_for(said)
            if found is None:
                self._standing.add(said)
                self._same.setdefault(said.digest, []).append(said)
            else:
                self._gone.add(said)
                self.gave_way.append(found)

    def _one_for(self, older: "_Said") -> GaveWay | None:
        return self._merged(older) or self._out_of_date(older)

    def _merged(self, older: "_Said") -> GaveWay | None:
        for newer in self._saying_the_same(older):
            tags = dict.fromkeys(older.entry.tags)
            if newer.words == older.words and newer.entry.source != older.entry.source:
                tags[CORROBORATED] = None
            new = set(tags) - set(newer.entry.tags)
            got = self._tags.setdefault(newer.entry.unit, set())
            if _is_replaced(older.entry, newer.entry) and len(got | new) + len(newer.entry.tags) <= MOST_TAGS:
                got |= new
                self._by[older.entry.unit] = newer.entry
                return GaveWay(older.entry.unit, newer.entry.unit, tuple(tag for tag in tags if tag in new))
        return None

    def _saying_the_same(self, older: "_Said") -> Iterator["_Said"]:
        yield from self._same.get(older.digest, ())[:MOST_SAME]
        for newer in self._standing.with_all(older.words):
            if newer.words == older.words or (
                _is_part(older.words, newer.words) and restates(newer.entry.text, older.entry.text)
            ):
                yield newer

    def _out_of_date(self, older: "_Said") -> GaveWay | None:
        """An entry that says several things does not go for one of them. One that gave way itself still counts: what it
        had put out of date does not come back."""
        if not older.words or len(self._read(older).statements) != 1:
            return None
        numbers = [word for word in older.words if not word.isalpha()]  # "server 17" is about that one
        subject = [*_words(" ".join(subject_terms(older.entry.text))), *numbers]
        for newer in (*self._standing.about(subject), *self._gone.about(subject)):
            by = self._by.get(newer.entry.unit, newer.entry)
            may_go = _is_replaced(older.entry, by) and newer.entry.trust >= older.entry.trust
            if may_go and judge(self._claim(newer), self._claim(older)) is not None:
                self._by[older.entry.unit] = by
                return GaveWay(older.entry.unit, by.unit)
        return None

    def _claim(self, said: "_Said") -> Claim:
        """In no session: in a memory that lasts, "today" is another day each time."""
        entry, prepared = said.entry, self._read(said)
        voice = self._voices.setdefault(entry.source[:2], len(self._voices))
        return Claim(entry.text, "observation", entry.unit, 1.0, voice, None, prepared)

    def _read(self, said: "_Said") -> Prepared:
        """What was not asked for lately is forgotten first."""
        unit = said.entry.unit
        prepared = self._prepared.pop(unit, None)
        if prepared is None:
            prepared = prepare(said.entry.text)
        self._prepared[unit] = prepared
        if len(self._prepared) > KEPT_TEXTS:
            del self._prepared[next(iter(self._prepared))]
        return prepared


class _Said(NamedTuple):
    """An entry, read. One that is too long to be compared has no words, and its text is not kept."""

    entry: Candidate
    digest: bytes
    words: tuple[str, ...]


class _Heard:
    """Entries, found by their words. What is found depends on these alone: so the next consolidation finds no more."""

    def __init__(self) -> None:
        self._said: list[_Said] = []
        self._places: dict[str, list[int]] = {}

    def add(self, said: _Said) -> None:
        for word in dict.fromkeys(said.words):
            self._places.setdefault(word, []).append(len(self._said))
        self._said.append(said)

    def with_all(self, words: Sequence[str]) -> Iterator[_Said]:
        """Those that may have all of these words: they have the rarest."""
        rarest = min((self._places.get(word, []) for word in words), key=len, default=[])
        yield from (self._said[at] for at in rarest[:MOST_SAME])

    def about(self, words: Sequence[str]) -> Iterator[_Said]:
        """Those that share most of these words; of a frequent one only the newest are looked at."""
        shared: Counter[int] = Counter()
        room = POSTINGS
        for places in sorted((self._places.get(word, []) for word in dict.fromkeys(words)), key=len):
            shared.update(places[:room])
            room -= len(places)
            if room <= 0:
                break
        enough = min(SHARED_WORDS, max(1, len(words) - 1))  # one of them may be what the two differ in
        likely = [at for at, count in shared.most_common(MOST_OTHERWISE) if count >= enough]
        yield from (self._said[at] for at in likely)


def _read(entry: Candidate) -> _Said:
    digest = blake2b(entry.text.strip().encode(), digest_size=16).digest()
    if len(entry.text) > MOST_CHARS:
        return _Said(entry._replace(text=""), digest, ())
    return _Said(entry, digest, tuple(_words(entry.text)))


def _words(text: str) -> list[str]:
    return [stem(word) for word in split(text) if word not in _EMPTY]


def _is_part(words: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether they stand there in this order, others between them: who does what to whom is in the order."""
    rest = iter(whole)
    return all(word in rest for word in words)


def _is_replaced(older: Candidate, newer: Candidate) -> bool:
    """Whether nobody loses by it: the newer one lasts as long, and is trusted as much."""
    lasts = newer.expires_ms is None or (older.expires_ms is not None and older.expires_ms <= newer.expires_ms)
    return lasts and newer.trust >= older.trust
