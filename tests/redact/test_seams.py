"""A secret cut in parts: over the texts of a unit, and over entries that follow each other."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.redact import CleanGroup, KnownSecret, Trail, shared_harness
from fieldstone.redact.seams import BEGINNINGS_MAX, ENTRIES_MAX, PARTS_MAX, WORDS_MAX
from tests.redact.fakes import TOKENS, noise

VALUE = noise(32)
TOKEN = TOKENS["GitHub personal"]
WORDS = "tuvoka" + " lemira " + "sodani peruko"
HARNESS = shared_harness().knowing(
    [KnownSecret("vault-a", VALUE), KnownSecret("token", TOKEN), KnownSecret("words", WORDS)]
)
HALF = len(VALUE) // 2
PLAIN = ["We looked at the log.", "Nothing else to say."]


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def entries(*texts: list[str]) -> list[CleanGroup]:
    """What comes out of entries of one author, one after the other."""
    trail = Trail()
    groups = []
    for each in texts:
        group, trail = HARNESS.clean_after(trail, each)
        groups.append(group)
    return groups


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (VALUE[:HALF], VALUE[HALF:]),
        (VALUE[HALF:], VALUE[:HALF]),
        (VALUE[:5], VALUE[5:]),
        (VALUE[:-4], VALUE[-4:]),
        (f"It starts with {VALUE[:HALF]}, remember.", f"And {VALUE[HALF:]} is the end of it."),
        (in_base64(VALUE[:HALF]), in_base64(VALUE[HALF:])),
        (in_base64(VALUE)[:21], in_base64(VALUE)[21:]),
        (VALUE.encode().hex()[:31], VALUE.encode().hex()[31:]),
        (" ".join(VALUE[:HALF]), "-".join(VALUE[HALF:])),
        (VALUE[::-1][:HALF], VALUE[::-1][HALF:]),
        (VALUE[:HALF].upper(), in_base64(VALUE[HALF:])),
    ],
)
def test_of_a_secret_cut_in_two_the_part_in_the_later_entry_is_taken_out(first: str, second: str) -> None:
    before, after = entries([PLAIN[0], first], [second, PLAIN[1]])
    assert before.texts == [PLAIN[0], first]
    assert (after.found, after.texts[1]) == (("vault-a",), PLAIN[1])
    assert second not in after.texts[0]
    assert "[REDACTED:vault-a]" in after.texts[0]


@pytest.mark.parametrize("size", [3, 4, 7, 11])
def test_a_secret_cut_in_many_is_never_said_to_the_end(size: int) -> None:
    groups = entries(*([VALUE[at : at + size]] for at in range(0, len(VALUE), size)))
    assert "vault-a" in groups[-1].found or any(group.found for group in groups)
    assert VALUE not in "".join(text for group in groups for text in group.texts)


@pytest.mark.parametrize("third", [[], ["Something else."]])
def test_a_secret_cut_over_the_texts_of_one_unit_is_taken_out_of_them(third: list[str]) -> None:
    for first, second in ((VALUE[:HALF], VALUE[HALF:]), (f"a {VALUE[HALF:]} b", f"c {VALUE[:HALF]} d")):
        group = HARNESS.clean_groups([[first, *third, second]])[0]
        assert group.found == ("vault-a",)
        assert VALUE[:HALF] not in "".join(group.texts) or VALUE[HALF:] not in "".join(group.texts)


def test_a_part_that_is_said_twice_in_one_disguise_is_taken_out_twice() -> None:
    """What the two are decoded to is the same, and is read once. Their first letter is left of another group."""
    part = "w" + in_base64(", ".join(hex(byte) for byte in VALUE[HALF:].encode()) + ", ")
    [group] = HARNESS.clean_groups([[VALUE[:HALF], f"{part}/{part}"]])
    assert group.found == ("vault-a",)
    assert not any(part[at : at + 12] in text for text in group.texts for at in range(8, len(part) - 12))


def test_parts_in_different_units_of_a_batch_have_nothing_to_do_with_each_other() -> None:
    groups = [[VALUE[:HALF]], [VALUE[HALF:]]]
    assert [group.found for group in HARNESS.clean_groups(groups)] == [(), ()]


def test_a_part_by_itself_is_left_alone() -> None:
    assert [group.found for group in entries([VALUE[:HALF]], [VALUE[:HALF]], [VALUE[3:HALF]])] == [(), (), ()]


def test_what_a_rule_took_out_of_the_first_part_does_not_hide_the_second() -> None:
    before, after = entries([f"It begins with {TOKEN[:30]}"], [f"{TOKEN[30:]} is the rest."])
    assert "fieldstone.github-token" in before.found
    assert (after.texts, after.found) == (["[REDACTED:token] is the rest."], ("token",))


def test_a_secret_said_as_a_whole_does_not_make_secrets_of_its_words() -> None:
    _, after = entries([f"It is {WORDS}."], ["We met Peruko in Tuvoka."])
    assert after.found == ()


def test_what_was_said_many_entries_ago_is_forgotten() -> None:
    said = [[VALUE[:HALF]], *([PLAIN] * ENTRIES_MAX), [VALUE[HALF:]]]
    assert entries(*said)[-1].found == ()
    assert entries(*said[1:-1], said[0], *said[2:-1][: ENTRIES_MAX - 1], said[-1])[-1].found == ("vault-a",)


def test_an_entry_follows_the_trails_of_its_agent_and_of_its_session() -> None:
    """Two agents of a session may say a half each, and so may an agent in two sessions."""
    first, second = [VALUE[:HALF]], [VALUE[HALF:]]
    for at in range(2):
        trails = [Trail(), Trail()]
        _, trails[at] = HARNESS.clean_after(trails[at], first)
        group, followed = HARNESS.follow(trails, second, HARNESS.clean_groups([second])[0])
        assert group.found == ("vault-a",)
        assert [len(trail.traces) for trail in followed] == [2 - at, 1 + at]


@given(texts=st.lists(st.text(max_size=40), max_size=4))
def test_after_an_empty_trail_single_texts_are_cleaned_as_without_one(texts: list[str]) -> None:
    for text in texts:
        group, _ = HARNESS.clean_after(Trail(), [text])
        assert (list(group.texts), group.found) == ([HARNESS.clean_one(text).text], HARNESS.clean_one(text).found)


def test_a_trail_stays_small_whatever_was_written() -> None:
    trail = Trail()
    pieces = [VALUE[at : at + length] for at in range(len(VALUE)) for length in range(2, 20)]
    for _ in range(2 * ENTRIES_MAX):
        _, trail = HARNESS.clean_after(trail, [" ".join(pieces), *pieces[:60]])
    assert len(trail.traces) == ENTRIES_MAX
    for trace in trail.traces:
        assert len(trace.parts) <= PARTS_MAX
        assert len(trace.words) <= WORDS_MAX
        assert len(trace.beginnings) <= BEGINNINGS_MAX


def test_a_trail_holds_no_more_of_a_text_than_could_be_of_a_secret() -> None:
    _, trail = HARNESS.clean_after(Trail(), ["The meeting is on Tuesday, said Anna.", "It was moved twice."])
    [trace] = trail.traces
    kept = {*trace.words, *(beginning.letters for beginning in trace.beginnings)}
    assert all(len(each) <= 3 for each in kept)


def test_with_no_secrets_known_a_trail_is_not_followed() -> None:
    trail = Trail()
    texts = [VALUE[:HALF]]
    group, after = shared_harness().clean_after(trail, texts)
    assert group.texts is texts
    assert after is trail


def test_a_trail_outlives_the_secrets_that_were_known_when_it_was_laid() -> None:
    _, trail = HARNESS.clean_after(Trail(), [VALUE[:HALF], WORDS[:13]])
    fewer = shared_harness().knowing([KnownSecret("words", "quite " + noise(20))])
    assert fewer.clean_after(trail, [VALUE[HALF:], WORDS[13:]])[0].found == ()
    more = shared_harness().knowing([KnownSecret("other", noise(20)), KnownSecret("vault-a", VALUE)])
    assert more.clean_after(trail, [VALUE[HALF:]])[0].found == ("vault-a",)
