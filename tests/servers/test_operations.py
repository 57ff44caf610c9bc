"""POST /v1/<operation> and /v1/messages."""

from typing import Any

from fieldstone.servers.http.operations import MOST_MESSAGES
from fieldstone.servers.http.routes import UNBUILT_ROUTES
from fieldstone.wire.operations import OPERATION_ROUTES
from tests.requirements import requirement
from tests.servers.live import REJECTED_FIELDS, Live, assert_refused, message, scope, unit

UNBUILT = [(method, route.path.replace("{id}", "x")) for route in UNBUILT_ROUTES for method in route.methods]
UNBUILT += [("POST", route.path) for route in OPERATION_ROUTES if route.reply is None]


@requirement("akashik:http:operation-routes")
async def test_each_operation_takes_its_envelope_and_answers_its_payload(live: Live) -> None:
    registered = (await live.send("REGISTER", {"id": "ada", "role": "researcher", "interests": ["latency"]})).json()
    assert registered["status"] == "registered"
    assert registered["agent"]["interests"] == ["latency"]
    await live.join("ben")
    recorded = (await live.send("RECORD", unit("The cache is cold."))).json()
    assert recorded["status"] == "accepted"
    kept = await live.record("ada", "A first thought.", mode="draft")
    dropped = await live.record("ada", "A second thought.", mode="draft")
    assert (await live.send("COMMIT", {"memory_unit_id": kept})).json()["memory_unit_id"] == kept
    assert (await live.send("DISCARD", {"memory_unit_id": dropped})).json()["status"] == "ok"
    shown = (await live.send("ATTUNE", scope(), agent_id="ben")).json()
    assert {found["memory_unit"]["id"] for found in shown["record"]} == {recorded["memory_unit_id"], kept}
    assert (await live.send("RETRACT", {"memory_unit_id": kept, "reason": "it was wrong"})).json()["status"] == "ok"
    assert (await live.send("DETECT", {"mode": "list"})).json()["conflicts"] == []
    left = (await live.send("DEREGISTER", {"agent_id": "ada"})).json()
    assert left["status"] == "ok"


async def test_ids_only_answers_ids(team: Live) -> None:
    unit_id = await team.record("ada", "The cache is cold.")
    [found] = (await team.send("ATTUNE", {**scope(), "format": "ids_only"}, agent_id="ben")).json()["record"]
    assert found["memory_unit"] == {"id": unit_id, "epoch": 3}


async def test_the_content_type_may_be_anything_and_absent(team: Live) -> None:
    body = message("DETECT", {"mode": "list"})
    for headers in ({}, {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "nonsense"}):
        answer = await team.client.post("/v1/detect", json=body, headers=headers)
        assert answer.status_code == 200


@requirement("akashik:http:unbuilt-routes", "akashik:subscribe:push-unbuilt")
async def test_every_route_that_is_not_built_answers_501(live: Live) -> None:
    for method, path in UNBUILT:
        body = message(path.removeprefix("/v1/").upper(), {})
        answer = await live.client.request(method, path, json=body if method == "POST" else None)
        refused = assert_refused(answer, 501, "UNSUPPORTED_OPERATION")
        assert refused["recoverable"] is False


@requirement("akashik:http:messages-one")
async def test_messages_answers_one_envelope_as_its_own_route_does(team: Live) -> None:
    detect = message("DETECT", {"mode": "list"})
    assert (await team.post("/v1/messages", detect)).json() == (await team.post("/v1/detect", detect)).json()
    record = message("RECORD", unit("No reason at all.", intent=None))
    one, other = await team.post("/v1/messages", record), await team.post("/v1/record", record)
    assert one.status_code == other.status_code == 400
    assert one.json() == other.json()
    assert set(one.json()) == REJECTED_FIELDS
    assert_refused(await team.post("/v1/messages", message("MERGE", {})), 501, "UNSUPPORTED_OPERATION")
    assert_refused(await team.post("/v1/messages", message("SING", {})), 400, "INVALID_ENVELOPE")


@requirement("akashik:http:messages-many")
async def test_an_array_is_executed_in_order_and_a_refused_one_neither_stops_nor_undoes_the_others(live: Live) -> None:
    messages = [
        message("RECORD", unit("Too early: nobody has registered.")),
        message("REGISTER", {"id": "ada", "role": "researcher"}),
        message("REGISTER", {"id": "ben", "role": "analyst"}, agent_id="ben"),
        message("RECORD", unit("The cache is cold.")),
        "not an envelope",
        message("ATTUNE", scope(), agent_id="ben"),
        message("RECORD", unit("The cache is warm now.")),
        message("MERGE", {}),
        message("ATTUNE", scope(), agent_id="ben"),
    ]
    answer = await live.post("/v1/messages", messages)
    assert answer.status_code == 200
    early, ada, ben, first, broken, before, second, merge, after = answer.json()
    assert (early["code"], early["status"]) == ("AGENT_NOT_REGISTERED", "rejected")
    assert ada["status"] == ben["status"] == "registered"
    assert (broken["code"], merge["code"]) == ("INVALID_ENVELOPE", "UNSUPPORTED_OPERATION")
    assert first["epoch"] < second["epoch"]
    assert shown(before) == {first["memory_unit_id"]}
    assert shown(after) == {first["memory_unit_id"], second["memory_unit_id"]}


async def test_writes_of_an_array_keep_their_order(team: Live) -> None:
    answers = (await team.post("/v1/messages", [message("RECORD", unit(f"Number {n}.")) for n in range(600)])).json()
    epochs = [answer["epoch"] for answer in answers]
    assert epochs == sorted(set(epochs))
    shown_by_epoch = (await team.send("ATTUNE", scope(max_units=600, order="epoch"), agent_id="ben")).json()["record"]
    assert [found["memory_unit"]["content"] for found in shown_by_epoch] == [f"Number {n}." for n in range(600)]


async def test_the_same_message_twice_in_an_array_has_one_effect(team: Live) -> None:
    record = message("RECORD", unit("Said twice, meant once."))
    first, again = (await team.post("/v1/messages", [record, record])).json()
    assert first == again
    assert (await team.field.status()).units == 1


@requirement("akashik:http:messages-bound")
async def test_an_array_of_more_than_a_thousand_is_refused_and_changes_nothing(team: Live) -> None:
    before = await team.log_entries()
    many = [message("RECORD", unit("x"))] * (MOST_MESSAGES + 1)
    assert_refused(await team.post("/v1/messages", many), 400, "INVALID_ENVELOPE")
    assert await team.log_entries() == before
    assert (await team.post("/v1/messages", many[:-1])).status_code == 200
    assert (await team.post("/v1/messages", [])).json() == []


async def test_an_envelope_of_another_operation_is_refused_in_the_words_of_the_route(team: Live) -> None:
    answer = await team.post("/v1/record", message("DETECT", {"mode": "list"}))
    body = assert_refused(answer, 400, "INVALID_ENVELOPE")
    assert (body["operation"], body["status"]) == ("RECORD", "rejected")


def shown(attunement: dict[str, Any]) -> set[str]:
    return {found["memory_unit"]["id"] for found in attunement["record"]}
