"""Entries of an OpenWOP memory come in: units like any other, on the road of RECORD, with what an entry has beside it.

The host speaks for whoever holds the key: the agent `openwop:<key id>`, whom nobody else can be.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from fieldstone.core.access import Caller
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.events import (
    AgentRegistered,
    AgentTexts,
    EntryTexts,
    EntryWritten,
    SessionCreated,
    UnitRecorded,
    UnitSuperseded,
    UnitTexts,
)
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Message, Record
from fieldstone.core.text import CleanText
from fieldstone.core.units import Confidence, Intent
from fieldstone.core.vocabulary import RESERVED_SESSION_PREFIX
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.record import check_quota
from fieldstone.ports.views import EntryRow
from fieldstone.ports.world import Ids

PURPOSE: Final = "OpenWOP put"
REASONING: Final = "asserted by the host"
ROLE: Final = "memory host"
LOCAL_HOST: Final = "local"


class NewEntry(Struct, frozen=True, kw_only=True):
    """What somebody puts into a memory. `id` None: the host makes one."""

    content: str
    tags: tuple[str, ...] = ()
    expires_ms: int | None = None
    id: str | None = None
    node_id: str | None = None
    agent_id: str | None = None
    run: str | None = None  # the Field's own id of the run that writes it

    @property
    def given_names(self) -> list[tuple[str, str]]:
        """Ids that the caller chose: refused where they hold a secret, never rewritten."""
        named = (("entry", self.id), ("node", self.node_id), ("agent", self.agent_id))
        return [(kind, name) for kind, name in named if name is not None]


def host_agent(caller: Caller) -> str:
    return f"{RESERVED_SESSION_PREFIX}{caller.credential or LOCAL_HOST}"


def session_of(memory: str) -> str:
    """The session that a memory is."""
    return f"{RESERVED_SESSION_PREFIX}{memory}"


def putting_message(caller: Caller, memory: str, content: str) -> Message:
    """As if the host had sent a RECORD: trails of secrets in parts go by agent and session."""
    record = Record("committed", "observation", content, Intent(PURPOSE), Confidence(1.0, REASONING))
    return Message("RECORD", host_agent(caller), record, session_of(memory), caller=caller)


class Putting:
    """Entries come in together, or none of them."""

    brings_news = True

    def __init__(self, caller: Caller, memory: str, entries: Sequence[NewEntry], ids: Ids, *, shared: bool) -> None:
        """`shared`: every agent of the tenant sees the memory's units."""
        self.message = putting_message(caller, memory, "")
        self._caller = caller
        self._session = session_of(memory)
        self._entries = entries
        self._shared = shared
        self.unit_ids = [ids.unit() for _ in entries]
        self.units: list[int] = []
        self.session = 0

    @property
    def count(self) -> int:
        return len(self._entries)

    @property
    def expiries(self) -> list[int | None]:
        return [entry.expires_ms for entry in self._entries]

    @property
    def trust(self) -> int:
        return self._caller.authority

    def texts(self) -> Sequence[str]:
        each = [text for entry in self._entries for text in (entry.content, *entry.tags)]
        return [PURPOSE, REASONING, ROLE, *each]

    def names(self) -> Sequence[tuple[str, str]]:
        given = [name for entry in self._entries for name in entry.given_names]
        return [("session", self._session), ("agent", host_agent(self._caller)), *given]

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Accepted]:
        draft = desk.draft(desk.epoch)
        await self.append_to(draft, desk, iter(clean))
        return draft, Accepted("", draft.epoch)

    async def append_to(self, draft: Draft, desk: Desk, clean: Iterator[CleanText]) -> None:
        """The clean texts come in the order of `texts()` and `names()`."""
        purpose, reasoning, role = islice(clean, 3)
        contents = [[next(clean), *islice(clean, len(entry.tags))] for entry in self._entries]
        session, agent = islice(clean, 2)
        self.session = await draft.number_of("session", session)
        number, registration = await self._host(draft, desk, agent, role)
        if await desk.number("session", session) is None and not self._shared:
            draft.append(SessionCreated(session=self.session, by=number))
        self.units = []
        for entry, unit_id, (content, *tags) in zip(self._entries, self.unit_ids, contents, strict=True):
            check_quota(desk, self._caller, more=len(self.units))
            names = {kind: next(clean) for kind, _ in entry.given_names}
            told = EntryTexts(names.get("entry"), tuple(dict.fromkeys(tags)), names.get("node"), names.get("agent"))
            unit = draft.append(
                self._recorded(unit_id, number, registration),
                UnitTexts(content=content, purpose=purpose, reasoning=reasoning),
            )
            written = EntryWritten(unit=unit, session=self.session, expires_ms=entry.expires_ms, run=entry.run)
            draft.append(written, told)
            if (replaced := await self._replaced(desk, told.id)) is not None:
                draft.append(UnitSuperseded(unit=replaced, by_unit=unit))
            self.units.append(unit)

    async def _host(self, draft: Draft, desk: Desk, agent: CleanText, role: CleanText) -> tuple[int, int]:
        known = desk.agent(agent)
        if known is not None:
            return known.number, known.registration
        number = await draft.number_of("agent", agent)
        registered = AgentRegistered(agent=number, authority=self._caller.authority, credential=self._caller.credential)
        return number, draft.append(registered, AgentTexts(role))

    def _recorded(self, unit_id: str, agent: int, registration: int) -> UnitRecorded:
        return UnitRecorded(
            id=unit_id,
            mode="committed",
            type="observation",
            agent=agent,
            registration=registration,
            session=self.session,
            score=1.0,
            trust=self.trust,
        )

    async def _replaced(self, desk: Desk, entry_id: str | None) -> int | None:
        """The entry that had this id."""
        if entry_id is None:
            return None
        row = await desk.entry(self.session, entry_id) or await self._with_unit(desk, entry_id)
        if row is None or row.gone_seq is not None:
            return None
        if (await desk.unit_at(row.unit)).type == "synthesis":
            raise InvalidPayload("This id is that of a compaction's output, which stays as it is.")
        return row.unit

    async def _with_unit(self, desk: Desk, unit_id: str) -> EntryRow | None:
        """The memory's entry whose id the host made."""
        unit = await desk.unit(unit_id)
        row = None if unit is None else (await desk.entries_of([unit.seq])).get(unit.seq)
        return row if row is not None and row.session == self.session and row.digest is None else None
