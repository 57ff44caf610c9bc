"""Which units restate others: near in meaning, in the same words, with the same numbers and the same denials."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.ports.vectors import StoredModel
from fieldstone.projections.meaning import Meaning
from fieldstone.projections.vector_index import Rows, quantize
from fieldstone.retrieval.duplicates import find_duplicates, restates
from tests.retrieval.units import row, snapshot

SAID = "The rate limit of the public interface is 50 requests for every client"

some_texts = st.lists(st.sampled_from([*"abcdefgh", "not", "12", "three"]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    "again",
    [
        SAID,
        SAID.upper(),
        f"{SAID}!",
        "For every client, the rate limit of our public interface is 50 requests",
        SAID.replace("for every", "for each and every"),
    ],
)
def test_the_same_in_other_order_case_or_function_words_restates_it(again: str) -> None:
    assert restates(again, SAID)
    assert restates(SAID, again)


@pytest.mark.parametrize(
    "other",
    [
        SAID.replace("50", "500"),
        SAID.replace("50", "5.0"),
        SAID.replace("50", "fifty"),
        SAID.replace("is 50", "is not 50"),
        SAID.replace("is 50", "isn't 50"),
        SAID.replace("is 50", "isn’t 50"),
        f"Never mind that {SAID}",
        f"{SAID}, and the limit of the private one is not documented anywhere at all",
        "The weather was fine",
        "",
    ],
)
def test_another_number_a_denial_or_other_words_do_not_restate_it(other: str) -> None:
    assert not restates(other, SAID)
    assert not restates(SAID, other)


def test_numbers_count_as_words_too() -> None:
    three, four = (SAID.replace("50", number) for number in ("three", "four"))
    assert not restates(three, four)
    assert restates(three, three.replace("three", "Three"))


def test_very_short_texts_restate_only_the_same_words() -> None:
    assert restates("Thank you, Ada!", "thank you ada")
    assert not restates("Thank you, Ada!", "Thanks, Ada")


@given(text=some_texts, other=some_texts)
def test_restating_goes_both_ways_and_every_text_restates_itself(text: str, other: str) -> None:
    assert restates(text, text)
    assert restates(text, other) == restates(other, text)


class Shelf:
    """Units with these texts; texts that begin with the same word point the same way."""

    def __init__(self, *texts: str, echoes: Mapping[int, int] | None = None) -> None:
        found = echoes or {}
        self._texts = dict(enumerate(texts, start=1))
        self.units = snapshot([row(seq, echo_of=found.get(seq)) for seq in self._texts])
        self.meaning = Meaning(StoredModel(1, "test", 16, "serving"))
        subjects = {word: at for at, word in enumerate(dict.fromkeys(text.split()[0] for text in texts))}
        places = [subjects[text.split()[0]] for text in texts]
        self.meaning.put(np.arange(len(texts)), *quantize(np.eye(16, dtype=np.float32)[places]))
        self.read: list[int] = []

    async def texts(self, seqs: Sequence[int]) -> Mapping[int, str]:
        self.read += seqs
        return {seq: self._texts[seq] for seq in seqs}

    async def duplicates(self, pool: Sequence[int] | None = None, *, meaning: bool = True) -> dict[int, int]:
        rows: Rows = np.asarray(range(self.units.size) if pool is None else pool, np.int64)
        return await find_duplicates(self.units, self.meaning if meaning else None, rows, self.texts)


HOT = "Tea is served hot in the garden at noon"
COLD = "Coffee is served cold in the kitchen at noon"
WEATHER = "Rain fell over the harbour all night"


async def test_of_units_that_say_the_same_the_oldest_is_the_original_whatever_their_order_in_the_pool() -> None:
    shelf = Shelf(HOT, COLD, WEATHER, f"{HOT}.", f"{HOT}!")
    for pool in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [3, 0, 4, 2, 1]):
        assert await shelf.duplicates(pool) == {3: 0, 4: 0}


async def test_what_is_not_in_the_pool_is_nobodys_original() -> None:
    assert await Shelf(HOT, WEATHER, f"{HOT}.", f"{HOT}!").duplicates([1, 2, 3]) == {3: 2}


async def test_only_texts_of_units_that_are_near_are_read() -> None:
    shelf = Shelf(HOT, COLD, WEATHER, f"{HOT}.")
    await shelf.duplicates()
    assert shelf.read == [1, 4]


async def test_units_that_are_near_and_say_something_else_are_no_duplicates() -> None:
    assert await Shelf(HOT, WEATHER, COLD, HOT.replace("is", "is not"), f"{HOT} and at 5").duplicates() == {}


async def test_a_text_that_was_erased_restates_nothing() -> None:
    shelf = Shelf(HOT, WEATHER, COLD, HOT)

    async def nothing(seqs: Sequence[int]) -> Mapping[int, str]:
        return {}

    assert await find_duplicates(shelf.units, shelf.meaning, np.arange(4), nothing) == {}


async def test_an_echo_is_a_duplicate_without_any_model_as_long_as_its_original_is_in_the_pool() -> None:
    shelf = Shelf(HOT, COLD, "They serve it hot", echoes={3: 1})
    assert await shelf.duplicates(meaning=False) == {2: 0}
    assert await shelf.duplicates([2, 1], meaning=False) == {}


async def test_the_echo_of_an_echo_has_the_first_one_as_its_original() -> None:
    shelf = Shelf(HOT, COLD, "They serve it hot", "They serve it hot, they say", echoes={3: 1, 4: 3})
    assert await shelf.duplicates(meaning=False) == {2: 0, 3: 0}
    assert await shelf.duplicates([1, 2, 3], meaning=False) == {3: 2}, "or the first of those that are there"
