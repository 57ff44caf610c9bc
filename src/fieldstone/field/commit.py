"""COMMIT: a draft takes effect, validated as a committed unit, and so do its relations."""

from collections.abc import Sequence
from itertools import islice

from fieldstone.core.agents import AgentFacts
from fieldstone.core.authority import LEAST_AUTHORITY, RECORD_DIRECTIVE, check_authority
from fieldstone.core.errors import UnitNotFound
from fieldstone.core.events import ConfidenceTexts, LoggedRelation, UnitCommitted
from fieldstone.core.replies import Accepted
from fieldstone.core.requests import Commit, Message
from fieldstone.core.text import CleanText
from fieldstone.core.units import Confidence
from fieldstone.core.validate import Rules, require_confidence
from fieldstone.field.desk import Desk, Draft
from fieldstone.field.drafts import find_own_draft
from fieldstone.field.relate import MUST_EXIST, relate
from fieldstone.ports.views import UnitRow
from fieldstone.ports.world import Ids

_NO_CONFIDENCE = Confidence()


class Committing:
    brings_news = True

    def __init__(self, message: Message, request: Commit, ids: Ids, rules: Rules) -> None:
        self.message = message
        self._request = request
        self._ids = ids
        self._rules = rules
        self._confidence = request.confidence or _NO_CONFIDENCE

    def texts(self) -> Sequence[str]:
        confidence = self._confidence
        reasoning = () if confidence.reasoning is None else (confidence.reasoning,)
        return (*reasoning, *confidence.evidence, *confidence.assumptions)

    def names(self) -> Sequence[tuple[str, str]]:
        return ()

    async def decide(self, desk: Desk, clean: Sequence[CleanText]) -> tuple[Draft, Accepted]:
        author = desk.speaker(self.message)
        check_authority(author.authority, LEAST_AUTHORITY["COMMIT"], "COMMIT")
        unit = await find_own_draft(desk, author, self._request.memory_unit_id)
        if unit.type == "human_directive":
            check_authority(author.authority, RECORD_DIRECTIVE, "COMMIT of a human_directive")
        await self._check_confidence(desk, unit)
        draft = desk.draft(self.message.epoch)
        draft.append(UnitCommitted(unit=unit.seq, by=author.number, score=self._confidence.score), self._arrange(clean))
        recorded = await desk.recorded(unit.seq)
        texts = await desk.texts_of(unit.seq)
        await self._look_again(desk, author, recorded.relations)
        descriptions = texts.descriptions if texts else (None,) * len(recorded.relations)
        found = await relate(draft, desk, self._ids, author, unit.seq, unit.type, recorded.relations, descriptions)
        return draft, Accepted(unit.id, draft.epoch, tuple(found))

    async def _look_again(self, desk: Desk, author: AgentFacts, relations: Sequence[LoggedRelation]) -> None:
        """What the author saw when the draft was recorded may be hidden from it by now."""
        for relation in relations:
            target = None if relation.target is None else await desk.unit_at(relation.target)
            if target is not None and relation.type in MUST_EXIST and desk.hides(target, author):
                raise UnitNotFound(f"There is no memory unit for the {relation.type} relation to point to.")

    async def _check_confidence(self, desk: Desk, unit: UnitRow) -> None:
        """What COMMIT brings goes before what the draft had."""
        texts = await desk.texts_of(unit.seq)
        reasoning = self._confidence.reasoning or (texts.reasoning if texts else None)
        score = unit.score if self._confidence.score is None else self._confidence.score
        require_confidence(Confidence(score, reasoning), self._rules)

    def _arrange(self, clean: Sequence[CleanText]) -> ConfidenceTexts | None:
        if not clean:
            return None
        rest = iter(clean)
        return ConfidenceTexts(
            reasoning=None if self._confidence.reasoning is None else next(rest),
            evidence=tuple(islice(rest, len(self._confidence.evidence))),
            assumptions=tuple(rest),
        )
