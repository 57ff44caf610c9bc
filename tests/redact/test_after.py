"""Texts that come one after the other: what one of them holds as a whole is found all the same."""

import pytest

from fieldstone.redact import shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.redact.seams import Trail
from tests.redact.fakes import TOKENS, noise

KNOWN = KnownSecret("vault", noise(32))


@pytest.mark.parametrize("secret", [KNOWN.value, TOKENS["GitHub personal"]], ids=["known", "by its shape"])
def test_a_text_that_comes_after_others_is_cleaned_as_it_is_alone(secret: str) -> None:
    harness = shared_harness().knowing([KNOWN])
    _, trail = harness.clean_after(Trail(), ["All is well.", "Nothing to tell."])
    texts = ["Look here.", f"It opens with {secret}, as agreed."]
    group, _ = harness.clean_after(trail, texts)
    assert secret not in group.texts[1]
    assert [group] == harness.clean_groups([texts])
