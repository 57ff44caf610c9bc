"""Bytes → message, message → bytes."""

import json
import math
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core import errors
from fieldstone.core.requests import (
    REQUESTS,
    Attune,
    Commit,
    Compact,
    CompactFilter,
    Deregister,
    Detect,
    DetectFilter,
    Discard,
    Message,
    Record,
    Register,
    Request,
    Retract,
    Scope,
)
from fieldstone.core.units import Confidence, Intent, Relation
from fieldstone.core.vocabulary import Operation, RelationType
from fieldstone.wire.messages import BadMessage, decode_message, encode_message, request_from

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
many = st.lists(texts, max_size=3).map(tuple)
epochs = st.integers(0, 2**53 - 1)
shares = st.floats(0, 1)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


confidences = st.builds(Confidence, maybe(shares), maybe(texts), many, many)
relations = st.builds(Relation, st.sampled_from(get_args(RelationType)), names, maybe(texts))
scopes = st.builds(
    Scope,
    names,
    st.integers(1, 10**6),
    max_tokens=maybe(st.integers(1, 10**6)),
    interests=maybe(many),
    active_task_id=maybe(names),
    temporal_layers=maybe(st.lists(st.sampled_from(["past", "present", "future"]), max_size=3).map(tuple)),
    relevance_threshold=maybe(shares),
    recency_weight=maybe(shares),
    since_epoch=maybe(epochs),
    include_own=st.booleans(),
    include_archived=st.booleans(),
    include_drafts=st.booleans(),
    sessions=maybe(many),
    order=st.sampled_from(["relevance", "epoch"]),
)
requests: dict[Operation, st.SearchStrategy[Request]] = {
    "REGISTER": st.builds(Register, names, names, maybe(many), maybe(many), maybe(st.integers(0, 10))),
    "DEREGISTER": st.builds(Deregister, names),
    "RECORD": st.builds(
        Record,
        st.sampled_from(["draft", "committed"]),
        names,
        texts,
        maybe(st.builds(Intent, maybe(texts), maybe(names), maybe(texts))),
        maybe(confidences),
        maybe(st.lists(relations, max_size=3).map(tuple)),
    ),
    "ATTUNE": st.builds(
        Attune, scopes, maybe(texts), st.sampled_from(["full", "summary", "ids_only"]), maybe(epochs), maybe(epochs)
    ),
    "DETECT": st.builds(
        Detect,
        st.sampled_from(["check", "scan", "list"]),
        maybe(names),
        maybe(st.builds(DetectFilter, maybe(many), maybe(many), maybe(many))),
        maybe(epochs),
    ),
    "COMMIT": st.builds(Commit, names, maybe(confidences)),
    "DISCARD": st.builds(Discard, names, maybe(texts)),
    "RETRACT": st.builds(Retract, names, texts),
    "COMPACT": st.builds(
        Compact,
        st.sampled_from(["archive", "summarize", "purge"]),
        maybe(st.builds(CompactFilter, maybe(epochs), maybe(names), maybe(many), maybe(many), maybe(names))),
        st.booleans(),
        maybe(texts),
        st.booleans(),
    ),
}


def envelope(**fields: Any) -> dict[str, Any]:
    payload = {"mode": "draft", "type": "finding", "content": "x", "intent": {"purpose": "p"}}
    return {
        "protocol": "akashik",
        "version": "0.1.0",
        "id": "m-1",
        "operation": "RECORD",
        "agent_id": "ada",
        "session_id": None,
        "epoch": 0,
        "payload": payload,
    } | fields


def refusal_of(body: bytes) -> errors.FieldError | None:
    """What it is refused with; None where it is a message."""
    try:
        decode_message(body)
    except BadMessage as bad:
        return bad.error
    return None


def test_every_operation_that_can_be_asked_for_is_tried_here() -> None:
    assert set(requests) == set(REQUESTS)


@pytest.mark.parametrize("operation", requests)
@given(data=st.data())
def test_a_message_comes_back_as_it_was_sent(operation: Operation, data: st.DataObject) -> None:
    message = Message(
        operation,
        data.draw(names),
        data.draw(requests[operation]),
        data.draw(maybe(names)),
        data.draw(epochs),
        data.draw(names),
    )
    body = encode_message(message, message.id or "")
    assert decode_message(body) == message
    assert decode_message(body, operation) == message
    assert set(json.loads(body)) == set(envelope())


@pytest.mark.parametrize("operation", requests)
@given(data=st.data())
def test_a_request_from_python_values_is_the_one_from_bytes(operation: Operation, data: st.DataObject) -> None:
    request = data.draw(requests[operation])
    assert request_from(operation, msgspec.to_builtins(request)) == request


@given(body=st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_with_a_code_and_nothing_else(body: bytes) -> None:
    with pytest.raises(BadMessage) as bad:
        decode_message(body)
    assert isinstance(bad.value.error, errors.FieldError)


# Envelopes with holes, into which anything may be put as raw bytes.
holes = st.sampled_from(list(envelope()))
anything = (
    st.binary(max_size=30)
    | st.text(st.characters(codec=None), max_size=10).map(lambda text: json.dumps(text).encode())
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode())
)


@given(hole=holes, raw=anything, operation=st.sampled_from(list(REQUESTS)))
def test_an_envelope_with_anything_in_a_field_is_decoded_or_refused_with_a_code(
    hole: str, raw: bytes, operation: str
) -> None:
    body = json.dumps(envelope(operation=operation) | {hole: "HOLE"}).encode().replace(b'"HOLE"', raw)
    refused = refusal_of(body)
    assert refused is None or refused.message.endswith(".")


payload_holes = ["mode", "type", "content", "intent", "confidence", "relations", "extra"]


@given(hole=st.sampled_from(payload_holes), raw=anything)
def test_a_payload_with_anything_in_a_field_is_decoded_or_refused_with_a_code(hole: str, raw: bytes) -> None:
    payload = envelope()["payload"] | {hole: "HOLE"}
    body = json.dumps(envelope(payload=payload)).encode().replace(b'"HOLE"', raw)
    refused = refusal_of(body)
    codes = ("INVALID_ENVELOPE", "INVALID_PAYLOAD", "INVALID_TYPE", "INVALID_CONFIDENCE")
    assert refused is None or refused.code in codes


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"], ids=repr)
def test_bytes_that_are_no_utf_8_are_refused_in_envelope_and_payload(raw: bytes) -> None:
    for fields in ({"agent_id": "HOLE"}, {"payload": {"mode": "draft", "type": "finding", "content": "HOLE"}}):
        body = json.dumps(envelope(**fields)).encode().replace(b"HOLE", raw)
        with pytest.raises(BadMessage):
            decode_message(body)


def test_the_operation_is_told_with_the_refusal_as_soon_as_it_is_known() -> None:
    for body, operation in (
        (b"{", None),
        (json.dumps(envelope(operation="FORGET")).encode(), None),
        (json.dumps(envelope(version="2")).encode(), "RECORD"),
        (json.dumps(envelope(payload={})).encode(), "RECORD"),
        (json.dumps(envelope(operation="MERGE")).encode(), "MERGE"),
    ):
        with pytest.raises(BadMessage) as bad:
            decode_message(body)
        assert bad.value.operation == operation


def test_a_route_takes_its_own_operation_only() -> None:
    body = json.dumps(envelope()).encode()
    assert decode_message(body, "RECORD").operation == "RECORD"
    with pytest.raises(BadMessage) as bad:
        decode_message(body, "ATTUNE")
    assert isinstance(bad.value.error, errors.InvalidEnvelope)
    assert "ATTUNE" in bad.value.error.message


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"content": 7}, "content"),
        ({"intent": {"purpose": []}}, "intent.purpose"),
        ({"intent": {"purpose": "p", "priority": 1}}, "priority"),
        ({"confidence": {"score": 1, "evidence": [7]}}, "confidence.evidence"),
        ({"confidence": {"score": 1, "weight": 7}}, "weight"),
        ({"relations": [{"type": "supports", "target_id": 7}]}, "relations"),
        ({"relations": [{"type": "supports", "target_id": "x", "weight": 7}]}, "weight"),
        ({"priority": 1}, "priority"),
    ],
    ids=repr,
)
def test_a_refused_payload_names_the_field(payload: dict[str, Any], named: str) -> None:
    body = json.dumps(envelope(payload=envelope()["payload"] | payload)).encode()
    with pytest.raises(BadMessage) as bad:
        decode_message(body)
    assert named in bad.value.error.message


def test_numbers_that_json_cannot_write_do_not_become_nothing_on_the_way() -> None:
    """msgspec writes NaN as null: a bad score would arrive as no score at all."""
    for score in (math.nan, math.inf):
        message = Message("COMMIT", "ada", Commit("mem-1", Confidence(score, "x")))
        try:
            body = encode_message(message, "m-1")
        except errors.InvalidConfidence:
            continue
        assert b'"score":null' not in body
        assert b'"score"' in body


@pytest.mark.parametrize(
    ("operation", "payload", "sentence"),
    [
        (
            "RECORD",
            {"mode": "comitted", "type": "finding", "content": "x", "intent": {"purpose": "y"}},
            "not one of committed, draft - at `$.mode`",
        ),
        ("ATTUNE", {"scope": {"role": "r", "max_units": 1, "order": "newest"}}, "not one of epoch, relevance - at"),
        (
            "ATTUNE",
            {"scope": {"role": "r", "max_units": 1, "temporal_layers": ["past", "tomorrow"]}},
            "not one of future, past, present - at `$.scope.temporal_layers[1]`",
        ),
        ("COMPACT", {"strategy": "shrink"}, "not one of archive, purge, summarize - at `$.strategy`"),
    ],
)
def test_a_wrong_name_is_refused_with_the_names_that_are_right(
    operation: Operation, payload: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(errors.InvalidPayload) as refused:
        request_from(operation, payload)
    assert sentence in refused.value.message


def test_what_the_caller_wrote_is_not_taken_for_a_place() -> None:
    with pytest.raises(errors.InvalidPayload) as refused:
        request_from("COMPACT", {"strategy": "x - at `$.hunter.strategy`"})
    assert "hunter" not in refused.value.message
    assert "archive, purge, summarize - at `$.strategy`" in refused.value.message
