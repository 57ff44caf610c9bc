"""`fieldstone record`"""

import json

import pytest

from tests.cli.running import SURE, answer, done, invoke, record, refused
from tests.cli.showing import unit


def test_record_says_the_unit_and_its_epoch() -> None:
    said = done("record", "Tea is hot", "--intent", "know tea", *SURE, "--db", "team.db")
    assert said.startswith("mem-")
    assert said.endswith(" at epoch 2\n")


def test_record_keeps_all_that_was_given() -> None:
    first = record("Tea is hot")
    second = record(
        "Tea is very hot",
        *("--type", "observation", "--agent", "ada", "--role", "researcher", "--session", "s1"),
        *("--task", "t1", "--question", "how hot?", "--evidence", "a thermometer", "--evidence", "a finger"),
        *("--assumption", "it is tea", "--relation", f"elaborates:{first}:says: how hot"),
    )
    found = unit(second)
    assert (found["type"], found["mode"], found["content"]) == ("observation", "committed", "Tea is very hot")
    assert found["source"]["agent_id"] == "ada"
    assert found["source"]["agent_role"] == "researcher"
    assert found["source"]["session_id"] == "s1"
    assert found["intent"] == {"purpose": "tell the others", "task_id": "t1", "question": "how hot?"}
    assert found["confidence"] == {
        "score": 0.8,
        "reasoning": "it was seen",
        "evidence": ["a thermometer", "a finger"],
        "assumptions": ["it is tea"],
    }
    assert found["relations"] == [{"type": "elaborates", "target_id": first, "description": "says: how hot"}]


def test_record_reads_a_dash_from_stdin_without_its_last_newline() -> None:
    accepted = answer("record", "-", "--intent", "tell", *SURE, "--db", "team.db", input="two\nlines\n")
    assert unit(accepted["memory_unit_id"])["content"] == "two\nlines"


def test_stdin_that_is_not_text_is_refused() -> None:
    assert "not UTF-8" in refused("record", "-", "--intent", "tell", *SURE, input=b"\xff\xfe")


def test_stdin_without_end_is_refused_and_not_read_to_its_end() -> None:
    assert "more than a content may have" in refused("record", "-", "--intent", "tell", *SURE, input="a" * 5_000_000)


def test_the_same_message_id_records_once() -> None:
    assert record("Tea is hot", "--id", "m1") == record("Tea is hot", "--id", "m1")
    assert answer("status", "--db", "team.db")["units"] == 1


def test_a_draft_needs_no_confidence() -> None:
    accepted = answer("record", "Maybe tea", "--draft", "--intent", "think", "--db", "team.db")
    assert accepted["status"] == "accepted"


def test_the_operator_may_record_a_directive() -> None:
    record("Tea only", "--type", "human_directive")


def test_a_contradiction_is_told() -> None:
    first = record("Tea is hot")
    said = done(
        *("record", "Tea is cold", "--intent", "check", *SURE, "--db", "team.db"),
        *("--agent", "bob", "--relation", f"contradicts:{first}"),
    )
    assert "in conflict: conf-" in said


def test_a_secret_is_rewritten_and_the_warning_goes_to_stderr() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    result = invoke("record", f"The key is {key}", "--intent", "tell", *SURE, "--db", "team.db")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning REDACTED: ")
    assert key not in result.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--intent", " "), "error MISSING_INTENT: "),
        (("--intent", "tell"), "error MISSING_CONFIDENCE: "),
        (("--intent", "tell", "--confidence", "2", "--reasoning", "sure"), "error INVALID_CONFIDENCE: "),
        (("--intent", "tell", "--confidence", "nan", "--reasoning", "sure"), "error INVALID_CONFIDENCE: "),
        (("--intent", "tell", *SURE, "--type", "rumour"), "error INVALID_TYPE: "),
        (("--intent", "tell", *SURE, "--relation", "contradicts:mem-none"), "error UNIT_NOT_FOUND: "),
        (("--intent", "tell", *SURE, "--relation", "hates:mem-none"), "error INVALID_PAYLOAD: "),
    ],
)
def test_a_refusal_has_its_code_and_what_to_do(more: tuple[str, ...], said: str) -> None:
    stderr = refused("record", "Tea is hot", *more, "--db", "team.db")
    assert stderr.startswith(said)
    assert len(stderr.splitlines()) == 2


@pytest.mark.parametrize("more", [(), ("--intent", "tell", "--relation", "contradicts"), ("--confidence", "much")])
def test_wrong_usage_exits_2(more: tuple[str, ...]) -> None:
    assert "Usage: fieldstone record" in refused("record", "Tea is hot", *more, exit_code=2)


def test_json_is_one_line_and_alone_on_stdout() -> None:
    lines = done("record", "Tea", "--intent", "tell", *SURE, "--db", "team.db", "--json").splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["conflicts_detected"] == []
