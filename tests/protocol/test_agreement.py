"""The native API and HTTP give the same answers and the same errors, byte by byte but for what differs by nature."""

from pathlib import Path
from typing import Any

from fieldstone.testing.world import ManualClock, SeededIds
from tests.protocol.rig import Body, Rig, attunement, options, relation, unit
from tests.protocol.test_errors import REFUSED
from tests.protocol.ways import Http, Native, Place, Socket, Way
from tests.requirements import requirement

SURE: Body = {"score": 0.9, "reasoning": "measured"}


async def story(field: Rig) -> list[Any]:
    """A field's life in many answers: what every operation says, and every refusal."""
    told: list[Any] = []

    async def tell(operation: str, agent: str, payload: Body, **fields: Any) -> Body:
        told.append(await field.send(operation, agent, payload, **fields))
        body: Body = told[-1].body
        return body

    for agent, role in (("ada", "researcher"), ("ben", "researcher"), ("eve", "analyst")):
        await tell("REGISTER", agent, {"id": agent, "role": role, "interests": ["pricing"]})
    first = (await tell("RECORD", "ada", unit("Pricing in Europe."), session_id="s-1"))["memory_unit_id"]
    secret = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    await tell("RECORD", "ada", unit(f"The token is {secret}.", type="decision"), id="m-1")
    await tell("RECORD", "ada", unit(f"The token is {secret}.", type="decision"), id="m-1")
    await tell("RECORD", "ben", unit("It is not so.", relations=[relation("contradicts", first, description="No.")]))
    draft = (await tell("RECORD", "ben", unit(mode="draft")))["memory_unit_id"]
    gone = (await tell("RECORD", "ben", unit(mode="draft")))["memory_unit_id"]
    for hint, scope in ((None, {}), ("pricing", {"max_units": 1}), ("token", {"order": "epoch", "max_units": 2})):
        await tell("ATTUNE", "eve", attunement(hint, **scope))
        await tell("ATTUNE", "eve", attunement(hint, **scope) | {"format": "ids_only"})
    await tell("ATTUNE", "ben", attunement(include_drafts=True, include_own=True, max_tokens=5), epoch=500)
    await tell("DETECT", "eve", {"mode": "list"})
    await tell("COMMIT", "ben", {"memory_unit_id": draft, "confidence": SURE})
    await tell("DISCARD", "ben", {"memory_unit_id": gone, "reason": "superfluous"})
    await tell("RETRACT", "ada", {"memory_unit_id": first, "reason": "wrong"})
    for operation, agent, payload, fields in REFUSED.values():
        await tell(operation, agent, payload, **fields)
    for broken in (b"", b"{", b"null", b'{"protocol": 1}', b"\xff"):
        told.append(await field.post(broken))
    await tell("DEREGISTER", "eve", {"agent_id": "eve"})
    await tell("DEREGISTER", "ada", {"agent_id": "nobody"})
    told += [await field.door.agents(), await field.door.conflicts(), await field.unit(first), await field.log()]
    return [_without_nature(each) for each in told]


def _without_nature(told: Any) -> Any:
    """Whether a field lasts, and tuple or list, differ by nature."""
    if isinstance(told, tuple) and isinstance(told[-1], dict):
        told[-1].get("field_capabilities", {}).pop("persistence", None)
    return list(told) if isinstance(told, tuple | list) else told


@requirement("akashik:http:transports-agree")
async def test_every_transport_tells_the_same_story(tmp_path: Path) -> None:
    stories = {}
    ways: list[tuple[type[Way], bool]] = [(Native, False), (Native, True), (Http, True), (Socket, True)]
    for number, (kind, durable) in enumerate(ways):
        path = tmp_path / f"{number}.db" if durable else None
        field = await Rig(kind, Place(path, options(), ManualClock(), SeededIds())).open()
        try:
            stories[f"{kind.__name__} {'sqlite' if durable else 'memory'}"] = await story(field)
        finally:
            await field.close()
    expected = stories.pop("Native memory")
    assert len(expected) > 40
    for name, told in stories.items():
        for number, (theirs, ours) in enumerate(zip(told, expected, strict=True)):
            assert theirs == ours, f"{name}, answer {number}"
