"""Every error has a code, a sentence and something to do."""

import re
from pathlib import Path

import pytest

import fieldstone
from fieldstone.core import errors
from fieldstone.core.errors import FieldError
from tests.requirements import requirement

PACKAGE = Path(fieldstone.__file__).parent
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FieldError)][1:]
NOT_RECOVERABLE = {
    "UNIT_PURGED",
    "CONFLICT_NOT_FOUND",
    "UNIT_NOT_FOUND",
    "UNSUPPORTED_OPERATION",
    "STORAGE_FULL",
    "EPOCH_OVERFLOW",
    "INTERNAL_ERROR",
}


@requirement("akashik:errors:recoverable")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_is_recoverable_unless_the_contract_says_it_is_not(kind: type[FieldError]) -> None:
    assert kind.recoverable is (kind.code not in NOT_RECOVERABLE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_docstring_is_the_default_message_and_another_one_may_be_given(kind: type[FieldError]) -> None:
    assert kind().message == (kind.__doc__ or "").splitlines()[0]
    assert kind("Because.").message == "Because."
    assert kind().message.endswith(".")
    assert kind.suggested_action.endswith(".")


def test_codes_are_shared_only_by_an_error_and_its_special_case() -> None:
    by_code: dict[str, list[type[FieldError]]] = {}
    for kind in KINDS:
        by_code.setdefault(kind.code, []).append(kind)
    shared = {code: kinds for code, kinds in by_code.items() if len(kinds) > 1}
    assert shared == {"INVALID_PAYLOAD": [errors.InvalidPayload, errors.PayloadTooLarge]}


def test_a_traceback_shows_what_is_wrong_and_what_to_do() -> None:
    assert str(FieldError("It is late.", suggested_action="Go home.")) == "It is late. Go home."


def test_whoever_is_refused_for_no_lack_of_authority_is_not_sent_to_somebody_with_more() -> None:
    """The sentence of the kind is right for what needs authority, and for nothing else."""
    everywhere = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    alone = re.findall(r'Forbidden\((f?"[^"]*")\)', everywhere)
    assert [sentence for sentence in alone if "authority" not in sentence and "operator" not in sentence] == []
