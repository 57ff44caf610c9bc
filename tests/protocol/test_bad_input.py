"""Item 7 of the issue: every bad input gets its code, names the field, and changes nothing."""

import json
from typing import Any

import pytest

from fieldstone.core import limits
from tests.protocol.rig import Body, Rig, attunement, relation, unit
from tests.requirements import requirement

# Where a text can stand: operation, payload with the text in it, what the refusal names.
SURE = {"score": 1, "reasoning": "measured"}


def texts(text: str) -> list[tuple[str, Body, str]]:
    return [
        ("RECORD", unit(text), "content"),
        ("RECORD", unit(intent={"purpose": text}), "intent.purpose"),
        ("RECORD", unit(intent={"purpose": "p", "question": text}), "intent.question"),
        ("RECORD", unit(intent={"purpose": "p", "task_id": text}), "intent.task_id"),
        ("RECORD", unit(confidence={"score": 1, "reasoning": text}), "confidence.reasoning"),
        ("RECORD", unit(confidence=SURE | {"evidence": ["fine", text]}), "confidence.evidence[1]"),
        ("RECORD", unit(confidence=SURE | {"assumptions": [text]}), "confidence.assumptions[0]"),
        ("RECORD", unit(relations=[relation("supports", text)]), "relations[0].target_id"),
        ("RECORD", unit(relations=[relation("supports", "x", description=text)]), "relations[0].description"),
        ("ATTUNE", attunement(text), "context_hint"),
        ("ATTUNE", attunement(role=text), "scope.role"),
        ("ATTUNE", attunement(interests=[text]), "scope.interests[0]"),
        ("ATTUNE", attunement(sessions=[text]), "scope.sessions[0]"),
        ("ATTUNE", attunement(active_task_id=text), "scope.active_task_id"),
        ("RETRACT", {"memory_unit_id": "mem-1", "reason": text}, "reason"),
        ("RETRACT", {"memory_unit_id": text, "reason": "wrong"}, "memory_unit_id"),
        ("DISCARD", {"memory_unit_id": "mem-1", "reason": text}, "reason"),
        ("COMMIT", {"memory_unit_id": "mem-1", "confidence": SURE | {"reasoning": text}}, "confidence.reasoning"),
        ("DETECT", {"mode": "list", "filter": {"involving_agents": [text]}}, "filter.involving_agents[0]"),
        ("DETECT", {"mode": "list", "target_id": text}, "target_id"),
        ("DEREGISTER", {"agent_id": text}, "agent_id"),
        ("REGISTER", {"id": "ada", "role": text}, "role"),
        ("REGISTER", {"id": "ada", "role": "r", "interests": [text]}, "interests[0]"),
        ("REGISTER", {"id": "ada", "role": "r", "required_operations": [text]}, "required_operations[0]"),
    ]


NUL = texts("a\x00b")


@requirement("akashik:errors:payload-names-field")
@pytest.mark.parametrize(("operation", "payload", "named"), NUL, ids=[f"{case[0]} {case[2]}" for case in NUL])
async def test_a_nul_is_refused_in_every_text_and_the_field_named(
    team: Rig, operation: str, payload: Body, named: str
) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", operation, "ada", payload)
    assert named in refusal["message"]


@pytest.mark.parametrize("name", ["id", "agent_id", "session_id"])
@pytest.mark.parametrize("bad", ["a\x00b", "a\nb", "a\u200bb", "\u202eevil", "x" * 257, " "], ids=ascii)
async def test_ids_of_the_envelope_are_printable_and_short(team: Rig, name: str, bad: str) -> None:
    refusal = await team.refused("INVALID_ENVELOPE", "RECORD", "ada", unit(), **{name: bad})
    assert name in refusal["message"]


# An escaped half of a pair is JSON by its grammar and no text by Unicode; either part may be the one that refuses it.
SURROGATES = texts("half \ud83d pair")


@pytest.mark.parametrize(("operation", "payload", "named"), SURROGATES, ids=[f"{c[0]} {c[2]}" for c in SURROGATES])
async def test_half_of_a_surrogate_pair_is_refused_in_every_text(
    team: Rig, operation: str, payload: Body, named: str
) -> None:
    body = json.dumps(team.envelope(operation, "ada", payload)).encode()
    before = await team.trace()
    status, refusal = await team.post(body)
    assert (status, refusal["code"]) in [(400, "INVALID_PAYLOAD"), (400, "INVALID_ENVELOPE")]
    assert await team.trace() == before


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\xc3", b"\xed\xa0\xbd", b"\xf8\x88\x80\x80\x80"], ids=repr)
@pytest.mark.parametrize("where", ["payload", "envelope"])
async def test_bytes_that_are_no_utf_8_are_refused_wherever_they_stand(team: Rig, raw: bytes, where: str) -> None:
    placed = {"content": "PLACE"} if where == "payload" else {}
    named = {"session_id": "PLACE"} if where == "envelope" else {}
    body = json.dumps(team.envelope("RECORD", "ada", unit(**placed), **named)).encode().replace(b"PLACE", raw)
    before = await team.trace()
    status, refusal = await team.post(body)
    assert (status, refusal["code"]) in [(400, "INVALID_PAYLOAD"), (400, "INVALID_ENVELOPE")]
    assert await team.trace() == before


TOO_LONG: list[tuple[str, Body, str]] = [
    ("RECORD", unit("x" * (limits.MAX_CONTENT_CHARS + 1)), "content"),
    ("RECORD", unit(intent={"purpose": "x" * (limits.MAX_INTENT_CHARS + 1)}), "intent.purpose"),
    ("RECORD", unit(intent={"purpose": "p", "task_id": "x" * (limits.MAX_ID_CHARS + 1)}), "intent.task_id"),
    ("RECORD", unit(confidence=SURE | {"evidence": ["e"] * (limits.MAX_LIST_ITEMS + 1)}), "confidence.evidence"),
    ("RECORD", unit(relations=[relation("supports", "mem-1")] * 100_000), "relations"),
    ("RECORD", unit(relations=[relation("supports", "x" * 257)]), "relations[0].target_id"),
    ("ATTUNE", attunement("x" * (limits.MAX_HINT_CHARS + 1)), "context_hint"),
    ("ATTUNE", attunement(interests=["x"] * (limits.MAX_INTERESTS + 1)), "scope.interests"),
    ("ATTUNE", attunement(sessions=["x"] * (limits.MAX_SESSIONS + 1)), "scope.sessions"),
    ("RETRACT", {"memory_unit_id": "mem-1", "reason": "x" * (limits.MAX_REASON_CHARS + 1)}, "reason"),
    ("REGISTER", {"id": "ada", "role": "x" * (limits.MAX_ROLE_CHARS + 1)}, "role"),
]


@requirement("akashik:errors:payload-names-field")
@pytest.mark.parametrize(("operation", "payload", "named"), TOO_LONG, ids=[f"{c[0]} {c[2]}" for c in TOO_LONG])
async def test_what_is_too_long_is_refused_and_the_bound_told(
    team: Rig, operation: str, payload: Body, named: str
) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", operation, "ada", payload)
    assert named in refusal["message"]
    assert any(part.strip(".").isdigit() for part in refusal["message"].split())


HUGE = 10**30


@requirement("akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    ("operation", "payload", "named"),
    [
        ("ATTUNE", attunement(max_units=HUGE), "max_units"),
        ("ATTUNE", attunement(since_epoch=HUGE), "since_epoch"),
        ("ATTUNE", attunement() | {"since_epoch": HUGE}, "since_epoch"),
        ("ATTUNE", attunement() | {"min_epoch": HUGE}, "min_epoch"),
        ("ATTUNE", attunement() | {"min_epoch": -1}, "min_epoch"),
        ("ATTUNE", attunement(relevance_threshold=HUGE), "relevance_threshold"),
        ("DETECT", {"mode": "list", "after_epoch": HUGE}, "after_epoch"),
        ("REGISTER", {"id": "zoe", "role": "r", "authority": HUGE}, "authority"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_huge_number_is_refused_and_the_field_named(
    team: Rig, operation: str, payload: Body, named: str
) -> None:
    agent = payload.get("id", "ada")
    body = json.dumps(team.envelope(operation, agent, payload)).encode()
    refusal = await team.refused_post("INVALID_PAYLOAD", body)
    assert named in refusal["message"]


@requirement("akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    ("operation", "payload", "named"),
    [
        ("RECORD", unit(intent="why"), "intent"),
        ("RECORD", unit(intent={"purpose": 7}), "purpose"),
        ("RECORD", unit(intent={"purpose": "p", "question": []}), "question"),
        ("RECORD", unit(confidence=0.8), "confidence"),
        ("RECORD", unit(confidence={"score": 1, "reasoning": 7}), "reasoning"),
        ("RECORD", unit(confidence=SURE | {"evidence": "a link"}), "evidence"),
        ("RECORD", unit(confidence=SURE | {"assumptions": [None]}), "assumptions"),
        ("RECORD", unit(relations={}), "relations"),
        ("ATTUNE", attunement() | {"context_hint": 7}, "context_hint"),
        ("ATTUNE", attunement() | {"since_epoch": "3"}, "since_epoch"),
        ("ATTUNE", attunement() | {"min_epoch": 1.5}, "min_epoch"),
        ("DEREGISTER", {"agent_id": 7}, "agent_id"),
        ("DEREGISTER", {}, "agent_id"),
        ("RETRACT", {"reason": "wrong"}, "memory_unit_id"),
        ("DETECT", {"mode": "list", "filter": []}, "filter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_wrong_type_is_refused_and_the_field_named(
    team: Rig, operation: str, payload: Body, named: str
) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", operation, "ada", payload)
    assert named in refusal["message"]
    assert refusal["suggested_action"]


@requirement("akashik:errors:payload-unknown-field", "akashik:errors:payload-names-field")
@pytest.mark.parametrize(
    ("operation", "payload"),
    [
        ("RECORD", unit(priority=1)),
        ("RECORD", unit(intent={"purpose": "p", "priority": 1})),
        ("RECORD", unit(confidence=SURE | {"priority": 1})),
        ("RECORD", unit(relations=[relation("supports", "x") | {"priority": 1}])),
        ("REGISTER", {"id": "ada", "role": "r", "priority": 1}),
        ("DEREGISTER", {"agent_id": "ada", "priority": 1}),
        ("ATTUNE", attunement() | {"priority": 1}),
        ("ATTUNE", attunement(priority=1)),
        ("DETECT", {"mode": "list", "priority": 1}),
        ("DETECT", {"mode": "list", "filter": {"priority": 1}}),
        ("COMMIT", {"memory_unit_id": "mem-1", "priority": 1}),
        ("DISCARD", {"memory_unit_id": "mem-1", "priority": 1}),
        ("RETRACT", {"memory_unit_id": "mem-1", "reason": "wrong", "priority": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_field_that_nobody_knows_is_refused_and_named_in_every_operation(
    team: Rig, operation: str, payload: Body
) -> None:
    refusal = await team.refused("INVALID_PAYLOAD", operation, "ada", payload)
    assert "priority" in refusal["message"]


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize("where", ["content", "relations", "unheard_of"])
async def test_deep_nesting_is_refused(team: Rig, depth: int, where: str) -> None:
    payload = unit() | {where: "DEEP"}
    body = json.dumps(team.envelope("RECORD", "ada", payload)).replace('"DEEP"', "[" * depth + "]" * depth)
    before = await team.trace()
    status, refusal = await team.post(body.encode())
    assert (status, refusal["code"]) in [(400, "INVALID_PAYLOAD"), (400, "INVALID_ENVELOPE")]
    assert await team.trace() == before


@pytest.mark.parametrize(
    "content",
    [
        "x",
        " x ",
        "\ufeff",
        "\u0301",
        "👩‍🚀",
        "日本語",
        "\x01",
        "\x7f",
        "\u2028",
        "\U0010ffff",
        "a" * 10_000,
        "\\ud800",
        "[REDACTED]",
    ],
    ids=lambda text: ascii(text[:12]),
)
async def test_odd_but_right_text_is_kept_as_it_is(team: Rig, content: Any) -> None:
    content = f"Odd: {content}"
    unit_id = await team.record("ada", content)
    assert (await team.unit(unit_id)).content == content
