"""From runs to the Field: what a committed run decided and found is recorded as units, when somebody asks for it.

A unit is `caused_by` the message that says it, and its task is the run. So the way leads from a unit to its run, from
there to the thread, and in it to the message.
"""

import asyncio
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from fieldstone.core.access import LOCAL, Caller
from fieldstone.core.errors import InvalidPayload, InvalidTransition
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Message, Record
from fieldstone.core.transcripts import Run
from fieldstone.core.units import Confidence, Intent, MemoryUnit, Relation
from fieldstone.core.vocabulary import Mode
from fieldstone.field.field import LocalField
from fieldstone.planes.findings import FINDING_TYPES, LABELLED, Candidate, FindingType, candidates_in
from fieldstone.ports.views import UnitRow

MESSAGE_ID_BYTES: Final = 16


class RememberedUnit(Struct, frozen=True, gc=False, rename="camel"):
    """A unit, and the message that it comes from. `is_new`: it was recorded now, and not before."""

    memory_unit_id: str
    type: str
    message_id: str
    content: str
    is_new: bool


class Remembering:
    def __init__(self, field: LocalField, caller: Caller = LOCAL) -> None:
        self._field: Final = field
        self._caller: Final = caller

    async def remember(
        self,
        thread: str,
        run_id: str,
        agent_id: str,
        *,
        types: Collection[FindingType] = FINDING_TYPES,
        mode: Mode = "committed",
        session_id: str | None = None,
    ) -> tuple[RememberedUnit, ...]:
        """Record as this agent what the run decided and found. All units that it then has of the run.

        It is found by rules for English, which rather miss something than make it up, and at most 100 of a run. Asked
        again, nothing is recorded twice. Where one of these units was purged, no more are recorded: what was erased
        does not come back.
        """
        self._field.require(self._caller, "read a thread")
        if not types or not set(types) <= set(FINDING_TYPES):
            raise InvalidPayload(f"types takes {' and '.join(FINDING_TYPES)}.")
        run = await self._field.planes.runs.run(thread, run_id)
        if run.status != "committed":
            raise InvalidTransition(f"The run is {run.status}: only what a committed one says is remembered.")
        rows = await self._recorded(run, agent_id)
        remembered = [told for row in rows if row.purged_seq is None for told in _told(await self._unit(row))]
        if any(row.purged_seq is not None for row in rows):
            return tuple(remembered)
        known = {(each.message_id, each.type, each.content) for each in remembered}
        for each in await self._candidates(run):
            if each.type in types and (each.message_id, each.type, each.content) not in known:
                unit_id = await self._record(each, run, agent_id, mode, session_id)
                remembered.append(RememberedUnit(unit_id, each.type, each.message_id, each.content, is_new=True))
        return tuple(remembered)

    async def _recorded(self, run: Run, agent_id: str) -> list[UnitRow]:
        """The agent's units of the run, whatever has become of them, as far as the caller sees them.

        They say more than remembered answers: those are forgotten after a day.
        """
        sight = self._field.sight(self._caller)
        rows = [row for row in await self._field.audit.units_of_task(run.run_id) if sight.sees(row)]
        return [row for row in rows if await self._field.audit.name(row.agent) == agent_id]

    async def _unit(self, row: UnitRow) -> MemoryUnit:
        return await self._field.unit(row.id, self._caller)

    async def _candidates(self, run: Run) -> list[Candidate]:
        """Clean as the Field stores them: a secret may have become known since the run was streamed."""
        transcript, fork = self._field.planes.transcript, run.fork_from_message_id
        before = [] if fork is None else await transcript.messages_by_id(run.thread_id, [fork])
        messages = await transcript.messages_of_run(run.thread_id, run.run_id)
        asked_before = before[0] if before else None
        found = await asyncio.to_thread(candidates_in, messages, asked_before=asked_before)
        harness = await self._field.planes.tools.cleaning()
        cleaned = await asyncio.to_thread(harness.clean_groups, [[each.content, each.purpose] for each in found])
        return [
            each._replace(content=group.texts[0], purpose=group.texts[1])
            for each, group in zip(found, cleaned, strict=True)
        ]

    async def _record(self, candidate: Candidate, run: Run, agent_id: str, mode: Mode, session_id: str | None) -> str:
        request = Record(
            mode,
            candidate.type,
            candidate.content,
            Intent(candidate.purpose, task_id=run.run_id),
            Confidence(candidate.score, _reasoning(candidate)),
            (Relation("caused_by", candidate.message_id),),
        )
        # Of two that ask at the same time, both get the first one's answer.
        message = Message("RECORD", agent_id, request, session_id, 0, _message_id(run, candidate), self._caller)
        reply = await self._field.send(message)
        assert isinstance(reply, Accepted)
        return reply.memory_unit_id


def _message_id(run: Run, candidate: Candidate) -> str:
    said = f"{run.run_id}\0{candidate.message_id}\0{candidate.type}\0{candidate.content}"
    return f"remember-{blake2b(said.encode(), digest_size=MESSAGE_ID_BYTES).hexdigest()}"


def _reasoning(candidate: Candidate) -> str:
    how = f"called it a {candidate.type}" if candidate.score == LABELLED else "said it in these words"
    return f"The {candidate.said_by} {how}; found by rule."


def _told(unit: MemoryUnit) -> list[RememberedUnit]:
    """None of a unit that was recorded under the run's id, and not from its messages."""
    causes = [relation.target_id for relation in unit.relations if relation.type == "caused_by"]
    return [RememberedUnit(unit.id, unit.type, cause, unit.content, is_new=False) for cause in causes[:1]]
