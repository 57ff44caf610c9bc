"""The story that `fieldstone demo` tells: five agents, one contradiction, and how the field carries it to its end.

It uses the public API only, so it can be read as an example, too.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from fieldstone.core.conflicts import Conflict
from fieldstone.core.replies import Accepted, Attunement

if TYPE_CHECKING:
    from fieldstone.client.agent import Agent
    from fieldstone.client.field import Field

INTRODUCTION: Final = (
    "Harbour Coffee sells beans online, and too many customers leave at the checkout. Five agents share one field to "
    "find out why, and what to build. None of them talks to another: all they know of each other is in the field."
)
PEOPLE: Final = {
    "rana": ("researcher", ("customers", "interviews")),
    "amir": ("analyst", ("checkout numbers", "drop-off")),
    "elin": ("engineer", ("payment page", "performance")),
    "ravi": ("reviewer", ("evidence", "how things were measured")),
    "sol": ("strategist", ("priorities", "what to build")),
}


class Step(Struct, frozen=True, omit_defaults=True):
    """One scene: what happened, what was said, and the field's own answer."""

    step: int
    operation: str
    headline: str
    agent: str | None = None
    said: str | None = None
    notes: tuple[str, ...] = ()
    remark: str | None = None
    answer: Any = None


class Story:
    """Told on an open field. Each run is a session of its own, so that it can be told on the same field again."""

    def __init__(self, field: "Field", session: str) -> None:
        self._field = field
        self._session = session
        self._agents: dict[str, Agent] = {}
        self._units: dict[str, str] = {}
        self._steps = 0

    @classmethod
    async def on(cls, field: "Field") -> "Story":
        return cls(field, f"demo-{(await field.status()).epoch}")

    async def tell(self) -> AsyncIterator[Step]:
        for chapter in (self._they_find_out, self._they_disagree, self._it_is_settled, self._the_record_stays):
            async for step in chapter():
                yield step

    # --- the chapters -------------------------------------------------------------------------------------------------

    async def _they_find_out(self) -> AsyncIterator[Step]:
        yield await self._join()
        yield await self._record(
            "interviews",
            "rana",
            "31 of 40 customers left the checkout because it asks them to create an account.",
            intent="find out why customers leave the checkout",
            confidence=0.8,
            reasoning="40 exit interviews, sorted by two people independently",
            remark="A memory without a reason is refused: intent says why, confidence how sure, and on what grounds.",
        )
        yield await self._attune(
            "amir",
            "why do customers leave the checkout?",
            remark="Nobody sent this to Amir. He said what he is about to do, and the field found it, and says why.",
        )
        yield await self._record(
            "slow page",
            "amir",
            "The payment page takes 11 seconds on phones (95th percentile): customers leave because it is slow.",
            intent="find the step where customers leave the checkout",
            confidence=0.7,
            reasoning="last month's dashboard",
            assumptions=("the dashboard counts only customers",),
        )

    async def _they_disagree(self) -> AsyncIterator[Step]:
        yield await self._attune("elin", "how fast is the payment page?")
        yield await self._record(
            "fast page",
            "elin",
            "The payment page takes 1.9 seconds on phones (95th percentile).",
            intent="check whether a slow payment page is what drives customers away",
            confidence=0.9,
            reasoning="20,000 customers' sessions, traced end to end",
            evidence=("trace report, week 41",),
            relations=(
                self._to("contradicts", "slow page", "11 s and 1.9 s cannot both be the time of the same page"),
            ),
            remark="Nothing was overwritten. Both stand in the field, contested, until somebody settles it.",
        )
        yield await self._attune(
            "sol",
            "what should we build first for the checkout?",
            remark="Sol recorded neither side, but is about to build on them: the conflict is shown to him, too.",
        )
        yield await self._record(
            "plan",
            "sol",
            "Build guest checkout first. Leave the payment page as it is.",
            type="decision",
            mode="draft",
            intent="choose what to build before the holidays",
            relations=(self._to("depends_on", "interviews", "accounts are what customers complain about"),),
            remark="A draft: he does not decide on contested ground. Only Sol sees it.",
        )

    async def _it_is_settled(self) -> AsyncIterator[Step]:
        yield await self._record(
            "load test",
            "ravi",
            "The dashboard behind the 11 seconds also counts our nightly load test: most of its slowest sessions.",
            type="observation",
            intent="find out which of the two times of the payment page is right",
            confidence=0.95,
            reasoning="the load test's sessions carry its name, and without them the dashboard shows about 2 seconds",
            relations=(self._to("supports", "fast page"),),
        )
        yield await self._attune(
            "amir",
            "is the payment page slow?",
            new_only=True,
            remark="Only what is new since he last acted. The conflict concerns him: he recorded one of its sides.",
        )
        yield await self._record(
            "corrected",
            "amir",
            "On customers' phones the payment page takes 2.1 seconds, and they leave there no more than elsewhere.",
            type="correction",
            intent="replace my 11 seconds, which counted the load test",
            confidence=0.9,
            reasoning="the same dashboard without the load test",
            relations=(self._to("supersedes", "slow page", "it counted a machine as customers"),),
        )
        yield await self._settled()
        yield await self._attune("sol", "what should we build first for the checkout?")
        yield await self._commit(
            "plan", "sol", confidence=0.85, reasoning="accounts are the complaint, and the page is fast enough"
        )

    async def _the_record_stays(self) -> AsyncIterator[Step]:
        yield await self._attune("elin", "what do we build first, and why?", most=2)
        yield self._step("STATUS", "What the field holds now", answer=await self._field.status())
        yield self._step(
            "VERIFY",
            "Is the history as it was written?",
            answer=await self._field.verify(),
            remark="Every entry is chained to the one before. Amir's 11 seconds are still there, and why they fell.",
        )

    # --- what agents do -----------------------------------------------------------------------------------------------

    async def _join(self) -> Step:
        for name, (role, interests) in PEOPLE.items():
            self._agents[name] = await self._field.agent(name, role=role, interests=interests)
        notes = tuple(f"{name}, {role}: {', '.join(interests)}" for name, (role, interests) in PEOPLE.items())
        answer = [agent.profile for agent in self._agents.values()]
        return self._step("REGISTER", "Five agents join, each with a role and interests", notes=notes, answer=answer)

    async def _record(
        self, key: str, name: str, content: str, *, type: str = "finding", remark: str | None = None, **how: Any
    ) -> Step:
        accepted = await self._agents[name].record(content, type=type, session_id=self._session, **how)
        self._units[key] = accepted.memory_unit_id
        is_draft = how.get("mode") == "draft"
        headline = f"{_named(name)} {'drafts' if is_draft else 'records'} {_a(type)}"
        return self._step(
            "RECORD", headline, agent=name, said=content, notes=_grounds(how, accepted), remark=remark, answer=accepted
        )

    async def _attune(
        self, name: str, hint: str, *, most: int = 5, new_only: bool = False, remark: str | None = None
    ) -> Step:
        agent = self._agents[name]
        since = agent.epoch + 1 if new_only else None
        context = await agent.attune(hint, max_units=most, since_epoch=since, sessions=[self._session])
        return self._step(
            "ATTUNE",
            f"{_named(name)} attunes: “{hint}”",
            agent=name,
            notes=tuple(f"CONFLICT, {conflict.type}: {conflict.description}" for conflict in self._ours(context)),
            remark=remark,
            answer=context,
        )

    async def _commit(self, key: str, name: str, *, confidence: float, reasoning: str) -> Step:
        agent = self._agents[name]
        accepted = await agent.commit(self._units[key], confidence=confidence, reasoning=reasoning)
        unit = await self._field.unit(accepted.memory_unit_id)
        notes = (f"sure: {confidence:.2f}, {reasoning}",)
        headline = f"{_named(name)} commits the decision"
        return self._step("COMMIT", headline, agent=name, said=unit.content, notes=notes, answer=accepted)

    async def _settled(self) -> Step:
        """What the field did by itself when one side was superseded."""
        sides = {self._units["slow page"], self._units["fast page"]}
        conflict = next(one for one in await self._field.conflicts() if {one.unit_a, one.unit_b} == sides)
        elins = await self._field.unit(self._units["fast page"])
        return self._step(
            "CONFLICTS",
            f"With that, the field sees the conflict as {conflict.status}",
            notes=(f"Elin's 1.9 seconds are {elins.status} again: what they contradict is superseded.",),
            remark="Amir's 11 seconds come up in nobody's context any more. They are not deleted: the log keeps them.",
            answer=conflict,
        )

    def _ours(self, context: Attunement) -> Sequence[Conflict]:
        """Of this run; the field may hold others."""
        ours = set(self._units.values())
        return [conflict for conflict in context.conflicts if {conflict.unit_a, conflict.unit_b} <= ours]

    def _to(self, kind: str, key: str, description: str | None = None) -> dict[str, str | None]:
        return {"type": kind, "target_id": self._units[key], "description": description}

    def _step(self, operation: str, headline: str, **more: Any) -> Step:
        self._steps += 1
        return Step(self._steps, operation, headline, **more)


def _named(name: str) -> str:
    return f"{name.capitalize()}, the {PEOPLE[name][0]},"


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _grounds(how: dict[str, Any], accepted: Accepted) -> tuple[str, ...]:
    notes = [f"why: {how['intent']}"]
    if "confidence" in how:
        notes.append(f"sure: {how['confidence']:.2f}, {how['reasoning']}")
    for relation in how.get("relations", ()):
        because = f": {relation['description']}" if relation["description"] else ""
        notes.append(f"{relation['type'].replace('_', ' ')} an earlier unit{because}")
    notes.extend(f"CONFLICT detected: {conflict}" for conflict in accepted.conflicts_detected)
    return tuple(notes)
