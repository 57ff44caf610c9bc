"""SUMMARIZE: units that belong together become one synthesis, in the Field's own voice, and go to cold storage.

What a summariser says is new text, and takes the road of new text.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.events import (
    AgentRegistered,
    AgentTexts,
    EntryTexts,
    EntryWritten,
    LoggedRelation,
    MemoryCompacted,
    UnitRecorded,
    UnitsArchived,
    UnitTexts,
)
from fieldstone.core.limits import MAX_AUTHORITY
from fieldstone.core.replies import Reply
from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import FIELD_AGENT_ID, UnitStatus
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.trust import noted_trust
from fieldstone.field.work import NO_ANSWER
from fieldstone.ports.views import UnitRow
from fieldstone.ports.world import Ids

MOST_NAMED_SOURCES: Final = 100  # as OpenWOP has it: above, they are counted
PROVENANCE_TAG: Final = "compacted-from:"
MOST_TAGS: Final = 100  # of its sources', on a synthesis: the ones that come first
CHANGED_MEANWHILE: Final = "it changed meanwhile"
HOLDS_A_SECRET: Final = "its synthesis holds a secret"


class Group(Struct, frozen=True):
    """Units that belong together. `said` are those whose words are in the synthesis: not what was taken back."""

    units: Sequence[int]
    ids: Sequence[str]
    statuses: Sequence[UnitStatus]
    said: Sequence[int]
    quoted: int
    text: str
    agents: Sequence[str]
    tags: Sequence[str] = ()  # of entries of a memory: what is listed by them is found by them afterwards


class Whole(Struct, frozen=True):
    """Of a group that is too large for one step: the first units go with the synthesis, `rest` soon after.

    `stands`: whether the rest is as it was read. To ask for each of thousands would keep others waiting.
    """

    rest: Sequence[int]
    stands: Callable[[], bool]
    sources: int
    score: float
    trust: int
    expires_ms: int | None


class Synthesizing:
    """One group becomes one synthesis and goes, or nothing happens."""

    message = None  # nobody speaks as the Field
    brings_news = True  # a summariser's words

    def __init__(
        self,
        compaction: int | None,
        group: Group,
        ids: Ids,
        *,
        run: str,
        archives: bool = True,
        whole: Whole | None = None,
    ) -> None:
        """`run`: the id of the compaction, which a synthesis of entries bears in a tag. `whole`: the group is the first
        part of a larger one."""
        self._compaction = compaction
        self._run = run
        self._whole = whole
        self._group = group
        self._ids = ids
        self._archives = archives  # False: the originals are archived already, and get another synthesis
        self.unit = 0
        self.unit_id = ""
        self.stays = CHANGED_MEANWHILE  # why its units are still there, where they are
        self.entry = 0

    @property
    def units(self) -> Sequence[int]:
        return self._group.units

    def texts(self) -> Sequence[str]:
        group = self._group
        agents = ", ".join(group.agents)
        sources = "one unit says" if self._sources == 1 else f"{self._sources} units say"
        return (
            group.text,
            f"to keep what {sources} in fewer words",
            _made_from(self._sources, agents, group.quoted),
            FIELD_AGENT_ID,  # its id
            FIELD_AGENT_ID,  # and its role
            f"{PROVENANCE_TAG}{self._run}",
            *group.tags,
            *group.ids,
        )

    @property
    def _sources(self) -> int:
        return len(self._group.said) if self._whole is None else self._whole.sources

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Reply]:
        rows = await self.rows(desk)
        draft = desk.draft(desk.epoch)
        if self._archives and not self._is_as_read(rows, desk):
            return draft, NO_ANSWER  # one of them changed meanwhile: the group is planned again
        await self.append_to(draft, desk, rows, clean)
        return draft, NO_ANSWER

    def _is_as_read(self, rows: Sequence[UnitRow], desk: Desk) -> bool:
        if [said_status(row.status) for row in rows] != [said_status(status) for status in self._group.statuses]:
            return False
        return all(desk.is_to_go(row) for row in rows) and (self._whole is None or self._whole.stands())

    async def rows(self, desk: Desk) -> list[UnitRow]:
        return await desk.units_at(self._group.units)

    async def append_to(self, draft: Draft, desk: Desk, rows: Sequence[UnitRow], clean: Sequence[CleanText]) -> None:
        content, purpose, reasoning, name, role, *rest = clean
        tags, targets = rest[: 1 + len(self._group.tags)], rest[1 + len(self._group.tags) :]
        agent, registration = await field_agent(draft, desk, name, role)
        score, trust = self._standing(rows)
        originals = [*(row.seq for row in rows), *(self._whole.rest if self._whole is not None else ())]
        relations = tuple(LoggedRelation("elaborates", original) for original in originals)
        self.unit_id = self._ids.unit()
        self.unit = draft.append(
            UnitRecorded(
                id=self.unit_id,
                mode="committed",
                type="synthesis",
                agent=agent,
                registration=registration,
                session=rows[0].session,
                task=rows[0].task if len({row.task for row in rows}) == 1 else None,
                score=score,
                relations=relations,
                trust=trust,
            ),
            UnitTexts(
                content=content,
                purpose=purpose,
                reasoning=reasoning,
                targets=tuple(targets),
                descriptions=(None,) * len(relations),
            ),
        )
        await self._append_entry(draft, desk, rows, tags)
        if self._archives and self._compaction is not None:
            seqs = tuple(row.seq for row in rows)
            self.entry = draft.append(UnitsArchived(compaction=self._compaction, units=seqs, into=self.unit))
            draft.erased += seqs
        sources = len(rows) if self._whole is None else self._whole.sources
        draft.append(
            MemoryCompacted(
                compaction=self._compaction,
                output=self.unit,
                sources=sources,
                units=tuple(row.seq for row in rows) if sources <= MOST_NAMED_SOURCES else (),
                bytes=len(content.encode()),
            )
        )

    def _standing(self, rows: Sequence[UnitRow]) -> tuple[float, int]:
        """No surer than the least sure, and no more trusted than the least trusted unit that it says."""
        if self._whole is not None:
            return self._whole.score, self._whole.trust
        quoted = set(self._group.said)
        said = [row for row in rows if row.seq in quoted]
        return standing_of(said)

    async def _append_entry(self, draft: Draft, desk: Desk, rows: Sequence[UnitRow], tags: Sequence[CleanText]) -> None:
        """What is made from entries of a memory is one, and lives as long as the first of them."""
        entries = (await desk.entries_of([row.seq for row in rows])).values()
        if not entries:
            return
        expires = [entry.expires_ms for entry in entries if entry.expires_ms is not None]
        if self._whole is not None and self._whole.expires_ms is not None:
            expires.append(self._whole.expires_ms)
        session = next(iter(entries)).session
        draft.append(
            EntryWritten(unit=self.unit, session=session, expires_ms=min(expires, default=None)),
            EntryTexts(tags=tuple(dict.fromkeys(tags))),
        )


def standing_of(said: Sequence[UnitRow]) -> tuple[float, int]:
    scores = [row.score for row in said if row.score is not None]
    return min(scores, default=0.0), min(noted_trust(row) for row in said)


def said_status(status: UnitStatus) -> UnitStatus:
    """Whether a unit has its vector already changes nothing of what it says."""
    return "active" if status == "pending_enrichment" else status


async def field_agent(draft: Draft, desk: Desk, name: CleanText, role: CleanText) -> tuple[int, int]:
    """The number of the Field's own agent, and its registration; made when it first acts."""
    known = desk.agent(FIELD_AGENT_ID)
    if known is not None:
        return known.number, known.registration
    number = await draft.number_of("agent", name)
    return number, draft.append(AgentRegistered(agent=number, authority=MAX_AUTHORITY), AgentTexts(role))


def _made_from(sources: int, agents: str, quoted: int) -> str:
    if sources == 1:
        return f"Made from one unit of {agents}{', which is quoted' if quoted else ''}."
    return f"Made from {sources} units of {agents}, of which {quoted} {'is' if quoted == 1 else 'are'} quoted."
