"""A distillation as one step: its sources come in, if they are new, and what they became; or nothing happens."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.access import Caller
from fieldstone.core.events import (
    CompactionBegun,
    CompactionEnded,
    EntryTexts,
    EntryWritten,
    LoggedRelation,
    MemoryCompacted,
    ReasonText,
    UnitRecorded,
    UnitsArchived,
    UnitTexts,
)
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import FIELD_AGENT_ID
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.entries import KeptEntry
from fieldstone.field.putting import NewEntry, Putting, putting_message
from fieldstone.field.synthesis import MOST_NAMED_SOURCES, MOST_TAGS, PROVENANCE_TAG, field_agent
from fieldstone.field.trust import noted_trust
from fieldstone.field.work import NO_ANSWER
from fieldstone.ports.summarizer import Distillate
from fieldstone.ports.world import Ids
from fieldstone.projections.columns import LAST_SHOWN_STATUS, STATUS_CODES

WHY: Final = "distillation of a memory"


class Spent(Struct, frozen=True):
    """The tokens that were allowed, and those that input and output took together."""

    budget: int
    used: int
    index: bool  # MEMORY-INDEX.json tells of it


class Distillation:
    """`kept` are the entries that it is made from; with `sources` those come in with it."""

    brings_news = True

    def __init__(
        self,
        caller: Caller,
        memory: str,
        sources: Sequence[NewEntry] | None,
        kept: Sequence[KeptEntry],
        distillate: Distillate,
        spent: Spent,
        ids: Ids,
        *,
        shared: bool,
    ) -> None:
        self.message = putting_message(caller, memory, "")
        self._putting = Putting(caller, memory, sources or (), ids, shared=shared)
        self._kept = kept
        self._distillate = distillate
        self._spent = spent
        self._id = ids.compaction()
        self._trust = self._putting.trust
        self.output_id = ids.unit()
        self.output = 0
        self.units: list[int] = []
        self.entry = 0

    def texts(self) -> Sequence[str]:
        said = len(self._kept) or self._putting.count
        own = (
            self._distillate.text,
            f"to keep what {said} entries say in fewer words",
            f"Made from {said} entries within {self._spent.budget} tokens.",
            f"{PROVENANCE_TAG}{self._id}",
            *self._tags(),
            f"{WHY}, asked for by {self.message.agent_id}",
            FIELD_AGENT_ID,
            *self._ids(),
        )
        return [*own, *self._putting.texts()]

    def names(self) -> Sequence[tuple[str, str]]:
        return self._putting.names()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        draft, rest = desk.draft(desk.epoch), iter(clean)
        rows = await desk.units_at([each.row.unit for each in self._kept])
        if not all(desk.is_to_go(row) and STATUS_CODES[row.status] <= LAST_SHOWN_STATUS for row in rows):
            return draft, NO_ANSWER  # one of them went or was replaced meanwhile: what it said is not said again
        self._trust = min((noted_trust(row) for row in rows), default=self._putting.trust)
        content, purpose, reasoning = (next(rest) for _ in range(3))
        tags = [next(rest) for _ in (PROVENANCE_TAG, *self._tags())]
        why, field = next(rest), next(rest)
        targets = tuple(next(rest) for _ in self._ids())
        await self._putting.append_to(draft, desk, rest)
        self.units = [each.row.unit for each in self._kept] or self._putting.units
        agent, registration = await field_agent(draft, desk, field, field)
        begun = draft.append(self._begun(desk, agent), ReasonText(why))
        self.output = draft.append(
            self._recorded(agent, registration),
            UnitTexts(
                content=content,
                purpose=purpose,
                reasoning=reasoning,
                targets=targets,
                descriptions=(None,) * len(self.units),
            ),
        )
        session, expires = self._putting.session, [row for row in self._expiries() if row is not None]
        entry = EntryWritten(unit=self.output, session=session, expires_ms=min(expires, default=None))
        draft.append(entry, EntryTexts(tags=tuple(dict.fromkeys(tags))))
        self.entry = draft.append(UnitsArchived(compaction=begun, units=tuple(self.units), into=self.output))
        draft.append(self._compacted(begun, content))
        draft.append(CompactionEnded(compaction=begun, state="done", units=len(self.units), syntheses=1))
        return draft, NO_ANSWER

    def _ids(self) -> Iterator[str]:
        return iter([each.unit_id for each in self._kept] or self._putting.unit_ids)

    def _tags(self) -> list[str]:
        """Of the entries that it is made from."""
        found = dict.fromkeys(tag for each in self._kept for tag in each.tags if not tag.startswith(PROVENANCE_TAG))
        return list(found)[:MOST_TAGS]

    def _expiries(self) -> Iterator[int | None]:
        yield from (each.row.expires_ms for each in self._kept)
        yield from self._putting.expiries

    def _begun(self, desk: Desk, agent: int) -> CompactionBegun:
        session = self._putting.session
        return CompactionBegun(id=self._id, strategy="summarize", by=agent, epoch=desk.epoch, session=session)

    def _recorded(self, agent: int, registration: int) -> UnitRecorded:
        return UnitRecorded(
            id=self.output_id,
            mode="committed",
            type="synthesis",
            agent=agent,
            registration=registration,
            session=self._putting.session,
            score=1.0,
            relations=tuple(LoggedRelation("elaborates", unit) for unit in self.units),
            trust=self._trust,
        )

    def _compacted(self, begun: int, content: CleanText) -> MemoryCompacted:
        return MemoryCompacted(
            compaction=begun,
            output=self.output,
            sources=len(self.units),
            units=tuple(self.units) if len(self.units) <= MOST_NAMED_SOURCES else (),
            bytes=len(content.encode()),
            token_budget=self._spent.budget,
            tokens_used=self._spent.used,
            index_updated=self._spent.index,
        )
