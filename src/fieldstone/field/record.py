"""RECORD: the only way to add knowledge. A unit is cleaned, and stored with what follows from its relations."""

from collections.abc import Sequence
from itertools import islice

from fieldstone.core.access import Caller
from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import RECORD_COMMITTED, RECORD_DIRECTIVE, RECORD_DRAFT, check_authority
from fieldstone.core.errors import Forbidden, RateLimited
from fieldstone.core.events import LoggedRelation, UnitRecorded, UnitTexts
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Message, Record
from fieldstone.core.text import CleanText
from fieldstone.core.units import Confidence, Intent, Relation
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.relate import find_target, relate
from fieldstone.field.trust import trust_of
from fieldstone.ports.views import UnitRow
from fieldstone.ports.world import Ids

_NO_INTENT = Intent()
_NO_CONFIDENCE = Confidence()


class Recording:
    brings_news = True

    def __init__(self, message: Message, request: Record, ids: Ids) -> None:
        self.message = message
        self._request = request
        self._ids = ids
        self._intent = request.intent or _NO_INTENT
        self._confidence = request.confidence or _NO_CONFIDENCE

    def texts(self) -> Sequence[str]:
        request, intent, confidence = self._request, self._intent, self._confidence
        texts = [request.content, intent.purpose or ""]
        if intent.question is not None:
            texts.append(intent.question)
        if confidence.reasoning is not None:
            texts.append(confidence.reasoning)
        texts += confidence.evidence
        texts += confidence.assumptions
        texts += [relation.description for relation in request.relations or () if relation.description is not None]
        return texts

    def names(self) -> Sequence[tuple[str, str]]:
        names: list[tuple[str, str]] = []
        if self.message.session_id is not None:
            names.append(("session", self.message.session_id))
        if self._intent.task_id is not None:
            names.append(("task", self._intent.task_id))
        names += [("unit", relation.target_id) for relation in self._request.relations or ()]
        return names

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Accepted]:
        request, message = self._request, self.message
        author = desk.speaker(message)
        _check_author(author, request)
        check_quota(desk, message.caller)
        draft = desk.draft(message.epoch)
        texts, session, task = self._arrange(clean)
        session_number = None if session is None else await draft.number_of("session", session)
        if desk.is_closed_to(session_number, author):
            raise Forbidden(
                "This session is closed: only its members record in it.",
                suggested_action="Record in another session, or ask a member of this one.",
            )
        targets: Sequence[UnitRow | None] = ()
        logged: tuple[LoggedRelation, ...] = ()
        if request.relations:
            targets = [await find_target(desk, author, relation) for relation in request.relations]
            logged = _logged(request.relations, targets)
        task_number = None if task is None else await draft.number_of("task", task)
        unit_id = self._ids.unit()
        seq = draft.append(
            UnitRecorded(
                id=unit_id,
                mode=request.mode,
                type=request.type,
                agent=author.number,
                registration=author.registration,
                session=session_number,
                task=task_number,
                score=self._confidence.score,
                relations=logged,
                trust=trust_of(request.type, author.authority, targets, request.relations or ()),
            ),
            texts,
        )
        conflicts: Sequence[str] = ()
        if logged and request.mode == "committed":
            conflicts = await relate(draft, desk, self._ids, author, seq, request.type, logged, texts.descriptions)
        return draft, Accepted(unit_id, draft.epoch, tuple(conflicts))

    def _arrange(self, clean: Sequence[CleanText]) -> tuple[UnitTexts, CleanText | None, CleanText | None]:
        """The clean texts back in their places, in the order in which `texts` and `names` gave them."""
        rest = iter(clean)
        intent, confidence, relations = self._intent, self._confidence, self._request.relations or ()
        texts = UnitTexts(
            content=next(rest),
            purpose=next(rest),
            question=None if intent.question is None else next(rest),
            reasoning=None if confidence.reasoning is None else next(rest),
            evidence=tuple(islice(rest, len(confidence.evidence))) if confidence.evidence else (),
            assumptions=tuple(islice(rest, len(confidence.assumptions))) if confidence.assumptions else (),
            descriptions=tuple([None if relation.description is None else next(rest) for relation in relations]),
            targets=tuple(clean[len(clean) - len(relations) :]) if relations else (),
        )
        session = None if self.message.session_id is None else next(rest)
        task = None if intent.task_id is None else next(rest)
        return texts, session, task


def _check_author(author: AgentFacts, request: Record) -> None:
    if request.mode == "committed":
        check_authority(author.authority, RECORD_COMMITTED, "RECORD of a committed unit")
    else:
        check_authority(author.authority, RECORD_DRAFT, "RECORD of a draft unit")
    if request.type == "human_directive":
        check_authority(author.authority, RECORD_DIRECTIVE, "RECORD of a human_directive")


def _logged(relations: Sequence[Relation], targets: Sequence[UnitRow | None]) -> tuple[LoggedRelation, ...]:
    return tuple(
        LoggedRelation(relation.type, target.seq if target else None)
        for relation, target in zip(relations, targets, strict=True)
    )


def check_quota(desk: Desk, caller: Caller, *, more: int = 0) -> None:
    """`more`: units of the same request that are counted already."""
    if caller.quota_units is not None and desk.units_by(caller.credential) + more >= caller.quota_units:
        raise RateLimited(
            f"This key's quota of {caller.quota_units} units is used up.",
            suggested_action="Ask the operator for a larger quota.",
        )
