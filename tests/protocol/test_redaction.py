"""The redaction road through every operation: nothing secret-shaped is kept, and no id is rewritten."""

import string
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.rig import Body, Rig, attunement, plain, relation, unit, warnings
from tests.protocol.ways import DURABLE, on_disk
from tests.redact.fakes import TOKENS, noise, private_key
from tests.requirements import requirement

FOREIGN = ("<REDACTED:{}>", "[BYOK:{}]", "[redacted:{}]", "&lt;REDACTED:{}&gt;")


class Secrets:
    """A secret of its own for every place, so that one that leaks tells where."""

    def __init__(self) -> None:
        self.made: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        self.made[place] = "gh" + "p_" + noise(36)
        return f"Note: {self.made[place]} is the token."

    def found_in(self, raw: bytes) -> list[str]:
        return [place for place, secret in self.made.items() if secret.encode() in raw]


async def say_everywhere(field: Rig, said: Any) -> list[Body]:
    """Every text field of every operation, filled by `said(place)`. The answers of the writes."""
    answers = [
        await field.register("ada", role=said("role"), interests=[said("interest 1"), said("interest 2")]),
        await field.register("ben"),
    ]
    target = await field.record("ben")
    answers.append(
        await field.ask(
            "RECORD",
            "ada",
            {
                "mode": "committed",
                "type": "finding",
                "content": said("content"),
                "intent": {"purpose": said("purpose"), "question": said("question")},
                "confidence": {
                    "score": 0.5,
                    "reasoning": said("reasoning"),
                    "evidence": [said("evidence 1"), said("evidence 2")],
                    "assumptions": [said("assumption 1"), said("assumption 2")],
                },
                "relations": [
                    relation("contradicts", target, description=said("conflict description")),
                    relation("supports", "elsewhere", description=said("relation description")),
                ],
            },
        )
    )
    recorded = answers[-1]["memory_unit_id"]
    draft, discarded = await field.draft("ada", said("draft")), await field.draft("ada")
    confidence = {
        "score": 0.5,
        "reasoning": said("commit reasoning"),
        "evidence": [said("commit evidence")],
        "assumptions": [said("commit assumption")],
    }
    answers += [
        await field.ask("COMMIT", "ada", {"memory_unit_id": draft, "confidence": confidence}),
        await field.ask("DISCARD", "ada", {"memory_unit_id": discarded, "reason": said("discard reason")}),
        await field.ask("RETRACT", "ada", {"memory_unit_id": recorded, "reason": said("retract reason")}),
    ]
    found = await field.attune("ben", said("hint"), role=said("scope role"), interests=[said("scope interest")])
    assert found["record"], "a read that found nothing leaves no hint"
    await field.attune("ben", sessions=[said("scope session")])
    await field.record("ben")  # what the read left goes with it
    return answers


async def test_no_text_field_of_any_operation_keeps_a_secret(field: Rig) -> None:
    secrets = Secrets()
    answers = await say_everywhere(field, secrets)
    assert len(secrets.made) > 20
    everything = b"".join([batch async for batch in field.door.export()])
    assert secrets.found_in(everything) == []
    shown = [await field.attune("ben"), plain(await field.door.agents()), plain(await field.door.conflicts()), answers]
    assert secrets.found_in(repr(shown).encode()) == []
    stored = [place for place in secrets.made if not place.startswith("scope")]
    assert everything.count(b"[REDACTED:") >= len(stored), "every text that is kept has its marker"


@requirement("akashik:record:redacted-warning")
async def test_every_write_that_was_redacted_says_so(field: Rig) -> None:
    answers = await say_everywhere(field, Secrets())
    told = [[code for code, _ in warnings(answer)] for answer in answers]
    assert told == [["REDACTED"], [], ["REDACTED"], ["REDACTED"], ["REDACTED"], ["REDACTED"]]


@pytest.mark.parametrize("transport", DURABLE, indirect=True)
async def test_no_byte_of_any_file_holds_a_secret_while_it_is_open_and_when_it_is_closed(
    field: Rig, tmp_path: Path
) -> None:
    secrets = Secrets()
    await say_everywhere(field, secrets)
    for operation, payload, named in [*id_places(secrets), *echo_places(secrets("echo"))]:
        await field.send(operation, "ben", payload, **named)
    assert b"size it" in on_disk(tmp_path), "the texts are on disk, so a secret would be seen"
    assert secrets.found_in(on_disk(tmp_path)) == []
    await field.restart()
    assert b"size it" in on_disk(tmp_path)
    assert secrets.found_in(on_disk(tmp_path)) == []


@pytest.mark.parametrize("kind", TOKENS)
async def test_every_kind_of_token_is_taken_out_of_the_content(team: Rig, kind: str) -> None:
    unit_id = await team.record("ada", f"We use {TOKENS[kind]} for it.")
    content = (await team.unit(unit_id)).content
    assert TOKENS[kind] not in content
    assert content.startswith("We use [REDACTED:")


async def test_a_private_key_is_taken_out_whole(team: Rig) -> None:
    key = private_key()
    unit_id = await team.record("ada", f"The key:\n{key}\nKeep it.")
    content = (await team.unit(unit_id)).content
    assert not [line for line in key.splitlines() if line in content]
    assert content.endswith("\nKeep it.")


async def test_foreign_markers_are_rewritten_in_every_text_field(field: Rig) -> None:
    places: list[str] = []

    def said(place: str) -> str:
        places.append(place)
        form = FOREIGN[len(places) % len(FOREIGN)]
        return f"before {form.format('id-' + place.replace(' ', '-'))} after"

    answers = await say_everywhere(field, said)
    assert not [answer for answer in answers if "warnings" in answer], "a marker is no secret"
    everything = b"".join([batch async for batch in field.door.export()]).decode()
    for form in ("<REDACTED", "BYOK", "[redacted", "&lt;"):
        assert form not in everything
    kept = [place for place in places if not place.startswith("scope")]
    assert [place for place in kept if f"[REDACTED:id-{place.replace(' ', '-')}]" not in everything] == []


def id_places(secrets: Secrets) -> list[tuple[str, Body, Body]]:
    """Requests whose ids hold a secret: operation, payload, fields of the envelope."""

    def token(place: str) -> str:
        return secrets(place).split()[1]

    agent = token("agent id")
    return [
        ("REGISTER", {"id": agent, "role": "researcher"}, {"agent_id": agent}),
        ("RECORD", unit(), {"session_id": token("session id")}),
        ("RECORD", unit(mode="draft"), {"session_id": f"run {token('session id in words')}"}),
        ("RECORD", unit(intent={"purpose": "p", "task_id": token("task id")}), {}),
        *(
            ("RECORD", unit(relations=[relation(kind, token(f"target of {kind}"))]), {})
            for kind in ("supports", "informs", "contradicts", "supersedes")
        ),
    ]


@requirement("akashik:errors:http-status")
async def test_an_id_that_holds_a_secret_is_refused_and_not_repeated(team: Rig) -> None:
    secrets = Secrets()
    for operation, payload, named in id_places(secrets):
        refusal = await team.refused("SECRET_LEAKAGE", operation, "ada", payload, **named)
        assert refusal["recoverable"] is True
        assert (await team.send(operation, "ada", payload, **named)).status == 422
        assert secrets.found_in(repr(refusal).encode()) == []


async def test_an_id_with_a_foreign_marker_is_refused_or_kept_and_never_rewritten(field: Rig) -> None:
    for form in FOREIGN:
        name = form.format("x")
        status, body = await field.send("REGISTER", name, {"id": name, "role": "researcher"})
        if status != 200:
            assert body["code"] == "SECRET_LEAKAGE"
            continue
        assert body["agent"]["id"] == name
        unit_id = await field.record(name, session=name, relations=[relation("supports", name)])
        shown = await field.unit(unit_id)
        assert (shown.source.agent_id, shown.source.session_id) == (name, name)
        assert shown.relations[0].target_id == name


def echo_places(secret: str) -> list[tuple[str, Body, Body]]:
    """Refused requests in which the secret stands where an error message might repeat it."""
    scope = {"role": "analyst", "max_units": 10}
    return [
        ("RECORD", unit() | {secret: 1}, {}),
        ("RECORD", unit(intent={"purpose": "p", secret: 1}), {}),
        ("RECORD", unit(confidence={"score": 1, "reasoning": "r", secret: 1}), {}),
        ("RECORD", unit(relations=[{"type": "supports", "target_id": "x", secret: 1}]), {}),
        ("RECORD", unit(relations=[{"type": secret, "target_id": "x"}]), {}),
        ("RECORD", unit(mode=secret), {}),
        ("RECORD", unit(type=secret), {}),
        ("RECORD", unit() | {"content": [secret]}, {}),
        ("RECORD", unit(confidence={"score": secret, "reasoning": "r"}), {}),
        ("RECORD", unit(), {secret: 1}),
        ("RECORD", unit(), {"protocol": secret}),
        ("RECORD", unit(), {"version": secret}),
        ("RECORD", unit(), {"operation": secret}),
        ("RECORD", unit(), {"agent_id": secret}),
        ("RECORD", unit(), {"epoch": secret}),
        ("REGISTER", {"id": "zoe", "role": "r", secret: 1}, {"agent_id": "zoe"}),
        ("REGISTER", {"id": "zoe", "role": "r", "authority": secret}, {"agent_id": "zoe"}),
        ("REGISTER", {"id": "zoe", "role": "r", "required_operations": [secret]}, {"agent_id": "zoe"}),
        ("REGISTER", {"id": secret, "role": "r"}, {}),
        ("ATTUNE", {"scope": scope | {secret: 1}}, {}),
        ("ATTUNE", {"scope": scope | {"order": secret}}, {}),
        ("ATTUNE", {"scope": scope | {"temporal_layers": [secret]}}, {}),
        ("ATTUNE", {"scope": scope, "format": secret}, {}),
        ("ATTUNE", {"scope": scope, "since_epoch": secret}, {}),
        ("DETECT", {"mode": secret}, {}),
        ("DETECT", {"mode": "list", "filter": {"status": [secret]}}, {}),
        ("DETECT", {"mode": "list", "filter": {secret: ["x"]}}, {}),
        ("RETRACT", {"memory_unit_id": secret, "reason": "wrong"}, {}),
        ("COMMIT", {"memory_unit_id": secret}, {}),
        ("DISCARD", {"memory_unit_id": secret}, {}),
    ]


@pytest.mark.parametrize(
    "form",
    ["{}", "x - at {}", "`{}`", "a` - at `$.{}", "{}\n", "{} - at", "'{}'", "\n{}"],
    ids=ascii,
)
async def test_no_error_message_repeats_a_secret(team: Rig, form: str) -> None:
    secret = "gh" + "p_" + noise(36)
    assert await echoed(team, form.format(secret), secret) == []


@pytest.mark.parametrize("prefix", ["hf" + "_", "sk" + "_live_"])
async def test_no_error_message_repeats_a_secret_that_looks_like_a_fields_name(team: Rig, prefix: str) -> None:
    secret = prefix + noise(40 - 6 - len(prefix), string.ascii_lowercase)
    assert await echoed(team, secret, secret) == []


async def test_no_error_message_repeats_a_secret_that_looks_like_an_operation(field: Rig) -> None:
    secret = "AKI" + "A" + noise(16, string.ascii_uppercase)
    payload = {"id": "ada", "role": "researcher", "required_operations": ["MERGE", secret]}
    refusal = await field.refused("UNSUPPORTED_OPERATION", "REGISTER", "ada", payload)
    assert "MERGE" in refusal["rejection_reason"]
    assert secret not in repr(refusal)


async def echoed(field: Rig, text: str, secret: str) -> list[tuple[str, Body, Body]]:
    """The requests that were answered with the secret."""
    leaks = []
    for operation, payload, named in echo_places(text):
        status, body = await field.send(operation, "ada", payload, **named)
        assert status in (400, 403, 404, 422, 501), body
        if secret in repr(body):
            leaks.append((operation, payload, named))
    return leaks


async def test_a_hint_with_a_secret_still_finds_what_it_asks_for(team: Rig) -> None:
    unit_id = await team.record("ada", "Rotate the deployment token.")
    hint = f"deployment token {TOKENS['GitHub personal']}"
    answer = await team.ask("ATTUNE", "eve", attunement(hint))
    assert [found["memory_unit"]["id"] for found in answer["record"]] == [unit_id]
    assert TOKENS["GitHub personal"] not in repr(answer)
