"""What the matrix is played on: two tenants, an open hall, a closed vault, and key holders of every rank.

`acme` has a member of the vault and one who has left it for each authority. All of them wrote while they still could;
then their keys were lowered. `zeta` is the other tenant.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, Literal, NamedTuple

import httpx

from tests.access.sessions import close_session, leave_session
from tests.access.table import AUTHORITIES, NAMELESS, SEES_ALL, TELLS_ALL, TELLS_IDS, Route
from tests.access.tower import Body, Holder, Tower, tower
from tests.servers.live import message, unit

HALL: Final = "the-hall"
VAULT: Final = "kestrel-vault"
BEHIND_THE_DOOR: Final = "kestrel"  # stands in every text, task and name of the vault
ABROAD: Final = "quokka"  # stands in every text and name of the other tenant
UNKNOWN_ID: Final = "mem-" + "0" * 32

Standing = Literal["open", "member", "outsider", "foreign"]
STANDINGS: Final[tuple[Standing, ...]] = ("open", "member", "outsider", "foreign")
OWN_USES: Final = ("supersedes", "COMMIT", "DISCARD", "RETRACT")  # each spoils the unit it is tried on


class Own(NamedTuple):
    agent: str
    session: str
    use: str


class Scene:
    def __init__(self, server: Tower) -> None:
        self.tower = server
        self.members: dict[int, Holder] = {}
        self.outsiders: dict[int, Holder] = {}
        self.own: dict[Own, str] = {}
        self.vault_ids: list[str] = []
        self.foreign_ids: list[str] = []
        self.foreign_unit = self.foreign_key = self.foreign_draft = ""
        self.foreign_secret = f"{ABROAD}.secret"
        self._numbers = iter(range(1, 1_000_000))

    async def build(self) -> None:
        self.ada = await self.tower.holder("acme", "ada", authority=10)
        self.zoe = await self.tower.holder("zeta", f"zoe-{ABROAD}", authority=10)
        for authority in AUTHORITIES:
            self.members[authority] = await self.tower.holder("acme", f"in-{authority}", authority=10)
            self.outsiders[authority] = await self.tower.holder("acme", f"out-{authority}", authority=10)
        everyone = [*self.members.values(), *self.outsiders.values()]
        async with self.tower.house.entrance.tenants.visit("acme") as field:
            await close_session(field, VAULT, "ada", *(holder.agent for holder in everyone))
            for holder in everyone:
                await self._write_own(holder)
            for holder in self.outsiders.values():
                await leave_session(field, VAULT, holder.agent)
        await self._furnish()
        await self._furnish_abroad()
        for authority in AUTHORITIES:
            for holder in (self.members[authority], self.outsiders[authority]):
                self.tower.change_key(holder.key_id, authority=authority)

    def holder(self, authority: int, standing: Standing) -> Holder:
        return self.members[authority] if standing == "member" else self.outsiders[authority]

    async def unit(self, standing: Standing, *, mode: str = "committed") -> str:
        """A new unit of another's: of ada's in the hall or in the vault, or of the other tenant."""
        if standing == "foreign":
            return self.foreign_unit if mode == "committed" else self.foreign_draft
        session = HALL if standing == "open" else VAULT
        return await self.tower.record(self.ada, self.text(session), session=session, mode=mode)

    async def compaction(self, holder: Holder) -> str:
        """The id of the field's last one, which this holder had made of a type of units that nothing else uses."""
        await self.tower.record(holder, "It rains.", type="observation")
        payload = {"strategy": "archive", "filter": {"types": ["observation"]}}
        compaction_id: str = (await self.tower.ask(holder, "COMPACT", payload))["compaction_id"]
        return compaction_id

    def text(self, session: str) -> str:
        """No two of them are about the same, so that none contradicts another."""
        number = next(self._numbers)
        return f"Topic {number * 7919} of {BEHIND_THE_DOOR if session == VAULT else 'the hall'} was looked at."

    def leaks(self, answer: httpx.Response, holder: Holder, route: Route, authority: int) -> list[str]:
        """What stands in an answer that this holder must not see."""
        told = f"{answer.headers} {answer.text}"
        hidden = [ABROAD, *self.foreign_ids]
        names_no_agent = route in NAMELESS
        sees_all = route in TELLS_ALL or (names_no_agent and authority >= SEES_ALL)
        if holder in self.outsiders.values() and not sees_all:
            hidden += [BEHIND_THE_DOOR, *(() if route in TELLS_IDS else self.vault_ids)]
        return [each for each in hidden if each in told]

    async def _write_own(self, holder: Holder) -> None:
        """In both sessions, a unit or a draft for each use."""
        uses = [Own(holder.agent, session, use) for session in (HALL, VAULT) for use in OWN_USES]
        answers = await self._send_all(holder, uses)
        for own, answer in zip(uses, answers, strict=True):
            self.own[own] = answer["memory_unit_id"]

    async def _send_all(self, holder: Holder, uses: Iterable[Own]) -> list[Body]:
        messages = []
        for own in uses:
            mode = "draft" if own.use in ("COMMIT", "DISCARD") else "committed"
            payload = unit(self.text(own.session), mode=mode)
            messages.append(message("RECORD", payload, agent_id=own.agent, session_id=own.session))
        answers: list[Body] = (await self.tower.request(holder, "POST", "/v1/messages", messages)).json()
        return answers

    async def _furnish(self) -> None:
        """What there is to be found: units, a task, a draft, a conflict, in the hall and in the vault."""
        for session, word in ((HALL, "hall"), (VAULT, BEHIND_THE_DOOR)):
            made = await self._pair(self.ada, session, f"{word} door")
            if session == VAULT:
                self.vault_ids += made
        await self.tower.record(self.ada, "A draft of ada alone.", mode="draft", session=HALL)

    async def _furnish_abroad(self) -> None:
        self.foreign_ids = await self._pair(self.zoe, f"{ABROAD}-room", f"{ABROAD} gate")
        # Who names it tells it: these two stand in what is sent, and their texts alone must not come back.
        self.foreign_unit = await self.tower.record(self.zoe, f"A unit about {ABROAD}.")
        self.foreign_draft = await self.tower.record(self.zoe, f"A draft about {ABROAD}.", mode="draft")
        self.foreign_key = self.tower.make_key("zeta", authority=2).id
        self.foreign_ids += [self.foreign_key, self.zoe.key_id]
        secret = {"value": f"{ABROAD} and marmalade", "scope": {"tenant": True}}
        answer = await self.tower.request(self.zoe, "PUT", f"/v1/secrets/{self.foreign_secret}", secret)
        assert answer.status_code == 204, answer.text

    async def _pair(self, holder: Holder, session: str, thing: str) -> list[str]:
        """Two units that contradict each other, and the conflict of the two. Their ids."""
        intent = {"purpose": f"to know the {thing}", "task_id": f"{thing.replace(' ', '-')}-task"}
        first = await self.tower.record(holder, f"The {thing} is green.", session=session, intent=intent)
        against = unit(f"The {thing} is red.", relations=[{"type": "contradicts", "target_id": first}], intent=intent)
        answer = await self.tower.ask(holder, "RECORD", against, session_id=session)
        return [first, answer["memory_unit_id"], *answer["conflicts_detected"]]


@asynccontextmanager
async def played_scene(*, conformance: bool = False) -> AsyncIterator[Scene]:
    async with tower(embedder="none", conformance=conformance) as server:
        scene = Scene(server)
        await scene.build()
        yield scene
