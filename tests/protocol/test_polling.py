"""SUBSCRIBE at Level 1: polling with since_epoch and order epoch, lossless while others write."""

import asyncio
from collections import Counter

import pytest

from tests.protocol.rig import Body, Rig, unit
from tests.requirements import requirement

WRITERS = 6
UNITS_EACH = 15


class Poller:
    """An agent that polls page by page, as the contract says."""

    def __init__(self, field: Rig, agent: str, most: int) -> None:
        self._field = field
        self._agent = agent
        self._most = most
        self._since = 0
        self.seen: list[str] = []
        self.epochs: list[int] = []

    async def poll(self) -> int:
        """How many units came."""
        answer = await self._field.attune(
            self._agent, order="epoch", max_units=self._most, since_epoch=self._since, payload={"format": "ids_only"}
        )
        for found in answer["record"]:
            self.seen.append(found["memory_unit"]["id"])
            self.epochs.append(found["memory_unit"]["epoch"])
        self._since = answer["context_budget"].get("next_since_epoch", answer["epoch"] + 1)
        return len(answer["record"])

    async def poll_all(self) -> None:
        while await self.poll():
            pass


@requirement("akashik:subscribe:polling", "akashik:scope:order-epoch")
@pytest.mark.parametrize("most", [1, 3, 1_000])
async def test_polling_sees_every_unit_once_and_in_order(team: Rig, most: int) -> None:
    poller = Poller(team, "eve", most)
    recorded: list[str] = []
    for round_ in range(4):
        recorded += [await team.record("ada") for _ in range(round_ + 3)]
        await poller.poll_all()
        assert poller.seen == recorded
    assert poller.epochs == sorted(poller.epochs)


@requirement("akashik:subscribe:polling")
async def test_units_that_come_between_two_pages_are_neither_missed_nor_seen_twice(team: Rig) -> None:
    poller = Poller(team, "eve", 2)
    recorded = [await team.record("ada") for _ in range(7)]
    while await poller.poll():
        if len(recorded) < 12:
            recorded.append(await team.record("ben"))
    assert poller.seen == recorded


@requirement("akashik:subscribe:polling", "akashik:attune:since-epoch")
async def test_a_poller_misses_nothing_while_many_write_commit_and_leap_ahead(field: Rig) -> None:
    writers = [f"writer-{n}" for n in range(WRITERS)]
    await field.register(*writers, "eve")
    committed: list[str] = []

    async def write(writer: str) -> None:
        for n in range(UNITS_EACH):
            # Every third unit is a draft first; every fifth message brings an epoch from the future.
            leap = await field.epoch() + 50 if n % 5 == 0 else 0
            mode = "draft" if n % 3 == 0 else "committed"
            unit_id = (await field.ask("RECORD", writer, unit(mode=mode), epoch=leap))["memory_unit_id"]
            if mode == "draft":
                payload: Body = {"memory_unit_id": unit_id, "confidence": {"score": 0.5, "reasoning": "checked"}}
                await field.ask("COMMIT", writer, payload)
            committed.append(unit_id)

    writing = asyncio.gather(*map(write, writers))
    pollers = [Poller(field, "eve", most) for most in (1, 7, 1_000)]

    async def follow(poller: Poller) -> None:
        while not writing.done():
            await poller.poll()
            await asyncio.sleep(0)  # a field in memory answers without ever letting the writers on
        await poller.poll_all()

    await asyncio.gather(writing, *map(follow, pollers))
    assert len(committed) == WRITERS * UNITS_EACH
    for poller in pollers:
        assert Counter(poller.seen) == Counter(committed)
        assert poller.epochs == sorted(poller.epochs)


@requirement("akashik:subscribe:push-unbuilt", "akashik:errors:http-status")
async def test_subscribe_itself_is_not_built(team: Rig) -> None:
    payload = {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
    refusal = await team.refused("UNSUPPORTED_OPERATION", "SUBSCRIBE", "eve", payload)
    assert (refusal["operation"], refusal["recoverable"]) == ("SUBSCRIBE", False)
    assert (await team.send("SUBSCRIBE", "eve", payload)).status == 501
