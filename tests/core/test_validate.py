"""Validation by level, as functions."""

import math
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fieldstone.core import errors, limits
from fieldstone.core.requests import Attune, Deregister, Detect, Message, Record, Register, Scope
from fieldstone.core.units import Confidence, Intent, Relation
from fieldstone.core.validate import (
    Rules,
    check_attune,
    check_confidence,
    check_detect,
    check_message,
    check_record,
    check_register,
    is_blank,
    require_confidence,
)
from fieldstone.core.vocabulary import BUILT_OPERATIONS, HIGHEST_COMPLETE_LEVEL, OPERATION_LEVELS
from tests.requirements import requirement

RULES = Rules()
RECORD = Record("committed", "finding", "The market grows.", Intent("size it"), Confidence(0.8, "two reports"))


@requirement("akashik:record:intent-not-blank")
@pytest.mark.parametrize("char", ["\u115f", "\u1160", "\u3164", "\uffa0", "\u2800", "\u034f", "\ufe0f"])
def test_a_filler_is_nothing_to_see_alone_first_and_last(char: str) -> None:
    for text in (char, char * 3, f" {char}", f"{char} ", f"{char}\u200b{char}"):
        assert is_blank(text)
    for text in (f"{char}a", f"a{char}", f"{char}?"):
        assert not is_blank(text)


# Characters that fonts and Unicode's Default_Ignorable_Code_Point show as nothing, and that are marks by category.
IGNORABLE_MARKS = ["\u034f", "\u17b4", "\u17b5", "\u180b", "\u180c", "\u180d", "\ufe00", "\ufe0e", "\U000e0100"]


@requirement("akashik:record:intent-not-blank")
@pytest.mark.parametrize("char", IGNORABLE_MARKS, ids=ascii)
def test_a_mark_that_unicode_ignores_is_nothing_to_see(char: str) -> None:
    assert unicodedata.category(char) == "Mn"
    assert is_blank(char)
    assert is_blank(f" {char}\n")


@given(text=st.text(st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp"]), max_size=20))
def test_white_space_and_controls_are_blank_however_many(text: str) -> None:
    assert is_blank(text)


@given(text=st.text(max_size=20), letter=st.sampled_from("aZ9é日ß٣"))
def test_a_text_with_a_letter_or_digit_in_it_is_not_blank(text: str, letter: str) -> None:
    assert not is_blank(text + letter)
    assert not is_blank(letter + text)


@given(score=st.floats())
def test_a_score_is_right_exactly_when_it_is_from_0_to_1(score: float) -> None:
    if 0.0 <= score <= 1.0:
        check_confidence(Confidence(score))
    else:
        with pytest.raises(errors.InvalidConfidence):
            check_confidence(Confidence(score))


@requirement("akashik:record:confidence-range")
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, -5e-324, 1.0000000000000002])
def test_a_score_next_to_the_bounds_or_no_number_is_refused(score: float) -> None:
    with pytest.raises(errors.InvalidConfidence):
        check_confidence(Confidence(score))


def test_no_confidence_is_right_where_none_is_needed() -> None:
    check_confidence(None)
    require_confidence(None, Rules(conformance_level=0))
    for level in (1, 2, 3):
        with pytest.raises(errors.MissingConfidence):
            require_confidence(None, Rules(conformance_level=level))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"type": "rumour"}, errors.InvalidType),
        ({"content": ""}, errors.InvalidPayload),
        ({"content": "x" * (limits.MAX_CONTENT_CHARS + 1)}, errors.InvalidPayload),
        ({"intent": None}, errors.MissingIntent),
        ({"intent": Intent()}, errors.MissingIntent),
        ({"intent": Intent("p", "")}, errors.InvalidPayload),
        ({"intent": Intent("p", "t\n1")}, errors.InvalidPayload),
        ({"confidence": None}, errors.MissingConfidence),
        ({"confidence": Confidence(0.5, " ")}, errors.MissingConfidence),
        ({"confidence": Confidence(2.0, "x")}, errors.InvalidConfidence),
        ({"confidence": Confidence(0.5, "x", ("a\x00",))}, errors.InvalidPayload),
        ({"relations": (Relation("supports", ""),)}, errors.InvalidPayload),
        ({"relations": (Relation("supports", "x", "\ud800"),)}, errors.InvalidPayload),
        ({"relations": (Relation("supports", "x"),) * (limits.MAX_RELATIONS + 1)}, errors.InvalidPayload),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_each_thing_wrong_with_a_record_has_its_error(change: dict[str, Any], kind: type[errors.FieldError]) -> None:
    check_record(RECORD, RULES, None)
    with pytest.raises(kind) as refused:
        check_record(replace(RECORD, **change), RULES, None)
    assert type(refused.value) is kind


def test_bounds_are_inside() -> None:
    check_record(replace(RECORD, content="x" * limits.MAX_CONTENT_CHARS), RULES, "s" * limits.MAX_ID_CHARS)
    check_record(replace(RECORD, relations=(Relation("supports", "x"),) * limits.MAX_RELATIONS), RULES, None)
    check_attune(Attune(Scope("r", limits.MAX_UNITS, since_epoch=limits.MAX_EPOCH), "h" * limits.MAX_HINT_CHARS))
    check_register(Register("a" * 256, "r" * 256, ("i",) * 100, None, 10), "a" * 256)


@requirement("akashik:record:openwop-sessions-reserved")
def test_reserved_sessions_are_forbidden_after_everything_else_was_right() -> None:
    with pytest.raises(errors.Forbidden):
        check_record(RECORD, RULES, "openwop:x")
    with pytest.raises(errors.MissingIntent):
        check_record(replace(RECORD, intent=None), RULES, "openwop:x")


@given(level=st.integers(0, 1))
def test_a_level_supports_what_is_built_up_to_it(level: int) -> None:
    rules = Rules(conformance_level=level)
    # The default level takes away nothing that is built, only a lowered one does.
    whole = level == HIGHEST_COMPLETE_LEVEL
    expected = {name for name in BUILT_OPERATIONS if whole or OPERATION_LEVELS[name] <= level}
    assert set(rules.supported_operations) == expected
    for operation in OPERATION_LEVELS:
        if operation in expected:
            rules.check_operation(operation)
        else:
            with pytest.raises(errors.UnsupportedOperation):
                rules.check_operation(operation)


def test_a_message_is_checked_for_its_ids_and_then_for_what_it_asks() -> None:
    check_message(Message("RECORD", "ada", RECORD, "s-1", 0, "m-1"), RULES)
    for message in (
        Message("RECORD", "", RECORD),
        Message("RECORD", "a" * 257, RECORD),
        Message("RECORD", "ada", RECORD, " "),
        Message("RECORD", "ada", RECORD, None, 0, "m\t1"),
    ):
        with pytest.raises(errors.InvalidEnvelope):
            check_message(message, RULES)
    with pytest.raises(errors.InvalidPayload, match="agent_id"):
        check_message(Message("DEREGISTER", "ada", Deregister("")), RULES)
    with pytest.raises(errors.UnsupportedOperation):
        check_message(Message("DETECT", "ada", Detect("list")), Rules(conformance_level=0))


@pytest.mark.parametrize("mode", ["check", "scan"])
def test_a_lowered_level_knows_only_the_list_of_conflicts(mode: Any) -> None:
    check_detect(Detect(mode, "mem-1"), RULES)
    check_detect(Detect("list"), Rules(conformance_level=0))
    with pytest.raises(errors.UnsupportedOperation, match=mode):
        check_detect(Detect(mode, "mem-1"), Rules(conformance_level=0))


def test_a_check_needs_its_target() -> None:
    with pytest.raises(errors.InvalidPayload, match="target_id"):
        check_detect(Detect("check"), RULES)


@given(text=st.text(st.characters(codec=None), min_size=1, max_size=30))
def test_a_text_is_refused_exactly_when_it_cannot_be_written_or_holds_a_nul(text: str) -> None:
    writable = "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
    request = Attune(Scope("analyst", 1), text)
    if writable:
        check_attune(request)
    else:
        with pytest.raises(errors.InvalidPayload, match="context_hint"):
            check_attune(request)
