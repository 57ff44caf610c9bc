"""§9 and §6: who may do what in open mode."""

from typing import Any

import pytest
from click.testing import CliRunner

from fieldstone import wiring
from fieldstone.cli.main import cli
from tests.protocol.rig import Body, Rig, attunement, relation, unit
from tests.requirements import requirement

SURE: Body = {"score": 0.9, "reasoning": "measured"}
RANKS = (0, 1, 2, 3, 4, 6, 8, 10)


@pytest.fixture
async def ranked(field: Rig) -> Rig:
    """A field with an agent of each authority, rank-0 to rank-10, and ada, who claims none."""
    for authority in RANKS:
        await field.register(f"rank-{authority}", authority=authority)
    await field.register("ada")
    return field


async def allowed(field: Rig, operation: str, payload: Any, **fields: Any) -> set[int]:
    """The ranks that may; the others are refused with 403 and change nothing."""
    may = set()
    for authority in RANKS:
        agent = f"rank-{authority}"
        asked = await payload(agent) if callable(payload) else payload
        before = await field.trace()
        status, body = await field.send(operation, agent, asked, **fields)
        if status == 200:
            may.add(authority)
        else:
            assert (status, body["code"]) == (403, "FORBIDDEN"), body
            assert await field.trace() == before
    return may


def at_least(authority: int) -> set[int]:
    return {rank for rank in RANKS if rank >= authority}


@requirement("akashik:authority:open-mode-believes")
async def test_the_authority_claimed_at_register_is_believed(field: Rig) -> None:
    for authority in RANKS:
        answer = await field.register(f"rank-{authority}", authority=authority)
        assert answer["agent"]["authority"] == authority
    await field.record("rank-10", type="human_directive")


@requirement("akashik:authority:open-mode-default")
@pytest.mark.parametrize("claim", [{}, {"authority": None}])
async def test_an_agent_that_claims_none_has_4(field: Rig, claim: Body) -> None:
    assert (await field.register("ada", **claim))["agent"]["authority"] == 4
    await field.record("ada")
    await field.refused("FORBIDDEN", "RECORD", "ada", unit(type="human_directive"))


@requirement("akashik:authority:record", "akashik:authority:refusal")
async def test_record_needs_4_and_record_of_a_draft_2(ranked: Rig) -> None:
    assert await allowed(ranked, "RECORD", unit()) == at_least(4)
    assert await allowed(ranked, "RECORD", unit(mode="draft")) == at_least(2)


@requirement("akashik:authority:commit-as-record", "akashik:authority:refusal")
async def test_commit_needs_what_record_needs_and_discard_what_a_draft_needs(ranked: Rig) -> None:
    drafts: dict[str, str] = {}
    for rank in at_least(2):
        drafts[f"rank-{rank}"] = await ranked.draft(f"rank-{rank}")

    async def commit(agent: str) -> Body:
        return {"memory_unit_id": drafts.get(agent, "mem-unknown"), "confidence": SURE}

    async def discard(agent: str) -> Body:
        draft = await ranked.draft(agent) if agent in drafts else "mem-unknown"
        return {"memory_unit_id": draft}

    assert await allowed(ranked, "COMMIT", commit) == at_least(4)
    assert await allowed(ranked, "DISCARD", discard) == at_least(2)


@requirement("akashik:authority:reads", "akashik:authority:refusal")
async def test_attune_needs_2_and_detect_4(ranked: Rig) -> None:
    assert await allowed(ranked, "ATTUNE", attunement()) == at_least(2)
    assert await allowed(ranked, "DETECT", {"mode": "list"}) == at_least(4)


@requirement("akashik:authority:deregister", "akashik:authority:refusal")
async def test_leaving_needs_4_and_making_another_leave_8(ranked: Rig) -> None:
    async def somebody(agent: str) -> Body:
        await ranked.register(f"victim-of-{agent}")
        return {"agent_id": f"victim-of-{agent}"}

    async def oneself(agent: str) -> Body:
        return {"agent_id": agent}

    assert await allowed(ranked, "DEREGISTER", somebody) == at_least(8)
    assert await allowed(ranked, "DEREGISTER", oneself) == at_least(4)


@requirement("akashik:authority:supersede-other", "akashik:authority:refusal")
async def test_superseding_anothers_unit_needs_4_also_in_a_draft(ranked: Rig) -> None:
    target = await ranked.record("ada")
    payload = unit(mode="draft", relations=[relation("supersedes", target)])
    may_draft = await allowed(ranked, "RECORD", payload)
    assert may_draft <= at_least(2)
    assert (await ranked.unit(target)).status == "active"
    assert await allowed(ranked, "RECORD", payload | {"mode": "committed", "confidence": SURE}) == at_least(4)
    assert (await ranked.unit(target)).status == "superseded"


@requirement("akashik:authority:supersede-other")
async def test_a_draft_that_supersedes_another_is_refused_at_commit_by_one_who_has_become_an_observer(
    ranked: Rig,
) -> None:
    target = await ranked.record("ada")
    draft = await ranked.draft("rank-4", relations=[relation("supersedes", target)], confidence=SURE)
    await ranked.ask("DEREGISTER", "rank-4", {"agent_id": "rank-4"})
    await ranked.register("rank-4", authority=2)
    await ranked.refused("FORBIDDEN", "COMMIT", "rank-4", {"memory_unit_id": draft})
    assert (await ranked.unit(target)).status == "active"


@requirement("akashik:authority:human-directive", "akashik:authority:refusal")
async def test_a_human_directive_needs_10_in_either_mode_and_at_commit(ranked: Rig) -> None:
    assert await allowed(ranked, "RECORD", unit(type="human_directive")) == {10}
    assert await allowed(ranked, "RECORD", unit(mode="draft", type="human_directive")) == {10}
    draft = await ranked.draft("rank-10", type="human_directive")
    await ranked.ask("DEREGISTER", "rank-10", {"agent_id": "rank-10"})
    await ranked.register("rank-10", authority=8)
    payload = {"memory_unit_id": draft, "confidence": SURE}
    await ranked.refused("FORBIDDEN", "COMMIT", "rank-10", payload)


@requirement("akashik:authority:refusal", "akashik:errors:http-status")
async def test_the_refusal_says_what_was_needed_and_what_the_agent_has(ranked: Rig) -> None:
    refusal = await ranked.refused("FORBIDDEN", "RECORD", "rank-2", unit())
    assert "4" in refusal["message"]
    assert "2" in refusal["message"]
    assert (refusal["status"], refusal["recoverable"]) == ("rejected", True)


@requirement("akashik:authority:open-mode-operator")
async def test_a_request_that_names_no_agent_acts_as_the_operator(field: Rig) -> None:
    await field.register("ada", authority=2)
    draft = await field.draft("ada", "Only ada sees it in ATTUNE.")
    door = field.door
    assert (await door.unit(draft)).content == "Only ada sees it in ATTUNE."
    assert [agent.id for agent in await door.agents()] == ["ada"]
    assert not await door.conflicts()
    assert (await door.status()).units == 1
    assert (await door.log()).entries
    assert (await door.verify()).ok
    assert (await door.rebuild()).unchanged
    lines = b"".join([batch async for batch in door.export()]).splitlines()
    assert (await door.import_lines(lines)).skipped == len(lines)


@requirement("akashik:authority:cli-operator")
def test_the_command_line_acts_with_authority_10(tmp_path: Any) -> None:
    db = str(tmp_path / "team.db")
    arguments = ["record", "Ship on Friday.", "--type", "human_directive", "--intent", "decide"]
    arguments += ["--confidence", "1", "--reasoning", "I am the operator", "--db", db, "--agent", "boss"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    with wiring.open_field(db) as field:
        assert [(agent.id, agent.authority) for agent in field.agents()] == [("boss", 10)]
