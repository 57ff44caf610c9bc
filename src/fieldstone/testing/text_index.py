"""What a text index promises: whatever stands in it is found, and it says how far it is."""

from collections.abc import Sequence
from typing import Final

import pytest

from fieldstone.ports.store import Commit, Store
from fieldstone.ports.text_index import Document, Postings, TextIndex
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import entries

PLENTY: Final = 1_000_000
LOG_ENTRIES: Final = 200  # the index follows the log, so there has to be one


class TextIndexTests(StoreCase):
    @pytest.mark.parametrize(
        ("said", "asked"),
        [
            ("Deployments", "deployment"),
            ("QUICK", "quick"),
            ("café", "cafe"),
            ("Zürich", "zurich"),
            ("running", "run"),
            ("naïve", "NAIVE"),
            ("релиз", "РЕЛИЗ"),
        ],
    )
    async def test_letter_case_accents_and_endings_make_no_difference(
        self, store: Store, said: str, asked: str
    ) -> None:
        assert store.text_index.analyze(said) == store.text_index.analyze(asked)

    async def test_a_text_is_cut_at_everything_that_is_no_word(self, store: Store) -> None:
        analyze = store.text_index.analyze
        assert analyze("alpha, beta;gamma\n(delta)-42") == ["alpha", "beta", "gamma", "delta", "42"]
        assert analyze("") == []
        assert analyze(" \n -- ,") == []

    async def test_terms_come_in_their_order_with_repetitions(self, store: Store) -> None:
        assert store.text_index.analyze("red blue red") == ["red", "blue", "red"]

    async def test_an_empty_index_is_at_the_beginning_and_knows_no_term(self, store: Store) -> None:
        assert await store.text_index.position() == 0
        [found] = await store.text_index.search([["alpha"]], most_postings=PLENTY)
        assert found == Postings(0, 0, {"alpha": 0}, {})

    async def test_every_document_that_holds_a_term_is_found(self, store: Store) -> None:
        index = await _filled(store, {2: "alpha beta", 5: "beta gamma", 9: "alpha alpha delta"})
        [found] = await index.search([["alpha", "beta", "omega"]], most_postings=PLENTY)
        assert found.documents == 3
        assert found.frequencies == {"alpha": 2, "beta": 2, "omega": 0}
        assert _sorted(found) == {"alpha": [2, 9], "beta": [2, 5]}

    async def test_the_terms_of_a_text_find_it(self, store: Store) -> None:
        said = "Ångström units: 3.14 — naïve “quotes” 東京 e-mail@example.org x_y’z"
        index = await _filled(store, {3: said})
        terms = sorted(set(index.analyze(said)))
        [found] = await index.search([terms], most_postings=PLENTY)
        assert _sorted(found) == {term: [3] for term in terms}

    async def test_the_index_moves_on_to_the_position_that_it_is_given(self, store: Store) -> None:
        index = await _filled(store, {2: "alpha"}, position=7)
        assert await index.position() == 7
        await index.add([], position=12)
        assert await index.position() == 12
        [found] = await index.search([["alpha"]], most_postings=PLENTY)
        assert found.position == 12

    async def test_what_is_added_later_is_found_although_it_was_asked_for_before(self, store: Store) -> None:
        index = await _filled(store, {seq: f"filler{seq}" for seq in range(1, 101)})
        [before] = await index.search([["late", "filler1"]], most_postings=PLENTY)
        assert _sorted(before) == {"filler1": [1]}
        await index.add([Document(101, "late"), Document(102, "filler1 late")], position=102)
        [after] = await index.search([["late", "filler1"]], most_postings=PLENTY)
        assert after.documents == 102
        assert _sorted(after) == {"late": [101, 102], "filler1": [1, 102]}

    async def test_a_document_that_comes_again_takes_its_own_place(self, store: Store) -> None:
        index = await _filled(store, {1: "alpha beta", 2: "beta"})
        await index.add([Document(1, "alpha gamma"), Document(3, "gamma")], position=3)
        [found] = await index.search([["alpha", "beta", "gamma"]], most_postings=PLENTY)
        assert found.documents == 3
        assert _sorted(found) == {"alpha": [1], "beta": [2], "gamma": [1, 3]}

    async def test_several_queries_are_answered_in_their_order(self, store: Store) -> None:
        index = await _filled(store, {1: "alpha", 2: "beta"})
        first, second, third = await index.search([["beta"], ["alpha"], []], most_postings=PLENTY)
        assert _sorted(first) == {"beta": [2]}
        assert _sorted(second) == {"alpha": [1]}
        assert _sorted(third) == {}

    async def test_frequent_terms_are_pruned_and_the_rarest_are_whole(self, store: Store) -> None:
        texts = {seq: "common" + (" often" if seq % 2 else "") for seq in range(1, 21)}
        index = await _filled(store, texts | {21: "rare often"})
        query = [["common", "often", "rare", "omega"]]
        [found] = await index.search(query, most_postings=12)
        assert found.frequencies == {"common": 20, "often": 11, "rare": 1, "omega": 0}
        assert _sorted(found) == {"rare": [21], "often": [*range(1, 21, 2), 21]}
        [narrow] = await index.search(query, most_postings=5)
        assert _sorted(narrow) == {"rare": [21]}

    async def test_at_least_one_term_is_visited_however_frequent_it_is(self, store: Store) -> None:
        index = await _filled(store, dict.fromkeys(range(1, 21), "common"))
        [found] = await index.search([["common"]], most_postings=1)
        assert _sorted(found) == {"common": list(range(1, 21))}

    async def test_removed_documents_are_in_no_search_and_no_frequency_and_the_position_stays(
        self, store: Store
    ) -> None:
        index = await _filled(store, {1: "alpha beta", 2: "beta gamma", 3: "beta", 4: "delta"}, position=9)
        query = [["alpha", "beta", "gamma", "delta"]]
        await index.search(query, most_postings=PLENTY)  # what was counted once is counted anew
        await index.remove([1, 3])
        [found] = await index.search(query, most_postings=PLENTY)
        assert (found.position, found.documents) == (9, 2)
        assert found.frequencies == {"alpha": 0, "beta": 1, "gamma": 1, "delta": 1}
        assert _sorted(found) == {"beta": [2], "gamma": [2], "delta": [4]}
        assert await index.scour()
        assert await index.search(query, most_postings=PLENTY) == [found]

    async def test_removing_what_is_not_there_changes_nothing(self, store: Store) -> None:
        await store.text_index.remove([1, 2])
        index = await _filled(store, {1: "alpha", 2: "beta"})
        await index.remove([2])
        for seqs in ([], [2], [7, 2, 99]):
            await index.remove(seqs)
            [found] = await index.search([["alpha", "beta"]], most_postings=PLENTY)
            assert (found.position, found.documents, _sorted(found)) == (2, 1, {"alpha": [1]})

    async def test_a_removed_document_can_come_again(self, store: Store) -> None:
        index = await _filled(store, {1: "alpha", 2: "beta"})
        await index.remove([1])
        await index.add([Document(1, "alpha gamma")], position=2)
        [found] = await index.search([["alpha", "beta", "gamma"]], most_postings=PLENTY)
        assert (found.documents, _sorted(found)) == (2, {"alpha": [1], "beta": [2], "gamma": [1]})

    async def test_all_can_be_removed_and_the_index_goes_on(self, store: Store) -> None:
        index = await _filled(store, dict.fromkeys(range(1, 101), "alpha beta"))
        await index.remove(range(1, 101))
        assert await index.scour()
        assert await index.position() == 100
        await index.add([Document(101, "alpha")], position=101)
        [found] = await index.search([["alpha", "beta"]], most_postings=PLENTY)
        assert (found.documents, found.frequencies, _sorted(found)) == (1, {"alpha": 1, "beta": 0}, {"alpha": [101]})

    async def test_what_was_removed_is_not_there_again_when_the_store_is(self, open_store: OpenStore) -> None:
        store = open_store()
        index = await _filled(store, {1: "alpha", 2: "alpha beta"})
        await index.remove([1])
        await store.close()
        again = open_store()
        [found] = await again.text_index.search([["alpha"]], most_postings=PLENTY)
        assert (found.documents, _sorted(found)) == ((1, {"alpha": [2]}) if again.durable else (0, {}))
        await again.close()

    async def test_a_cleared_index_is_empty_and_can_be_filled_again(self, store: Store) -> None:
        index = await _filled(store, dict.fromkeys(range(1, 31), "alpha beta"))
        [before] = await index.search([["alpha", "gamma"]], most_postings=PLENTY)
        assert before.frequencies == {"alpha": 30, "gamma": 0}
        await index.clear()
        assert await index.position() == 0
        [found] = await index.search([["alpha"]], most_postings=PLENTY)
        assert found.documents == 0
        assert _sorted(found) == {}
        await index.add([Document(4, "gamma"), Document(6, "alpha")], position=6)
        [again] = await index.search([["alpha", "beta", "gamma"]], most_postings=PLENTY)
        assert again.documents == 2
        assert _sorted(again) == {"alpha": [6], "gamma": [4]}

    async def test_the_index_of_a_durable_store_is_there_again(self, open_store: OpenStore) -> None:
        store = open_store()
        await _filled(store, {2: "alpha", 3: "beta"})
        await store.close()
        again = open_store()
        index = again.text_index
        assert await index.position() == (3 if again.durable else 0)
        [found] = await index.search([["alpha"]], most_postings=PLENTY)
        assert _sorted(found) == ({"alpha": [2]} if again.durable else {})
        await again.close()

    async def test_another_field_of_the_same_store_has_an_index_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        index = await _filled(store, {1: "alpha", 2: "beta"})
        theirs = await _filled(other, {1: "alpha", 2: "alpha"})
        [found] = await index.search([["alpha"]], most_postings=PLENTY)
        assert (found.documents, _sorted(found)) == (2, {"alpha": [1]})
        await index.remove([1])
        await index.clear()
        [found] = await theirs.search([["alpha"]], most_postings=PLENTY)
        assert (found.documents, _sorted(found)) == (2, {"alpha": [1, 2]})
        await other.close()


async def _filled(store: Store, texts: dict[int, str], *, position: int | None = None) -> TextIndex:
    await store.commit(Commit(entries=entries(LOG_ENTRIES)))
    documents = [Document(seq, said) for seq, said in texts.items()]
    await store.text_index.add(documents, position=max(texts) if position is None else position)
    return store.text_index


def _sorted(found: Postings) -> dict[str, Sequence[int]]:
    return {term: sorted(seqs) for term, seqs in found.seqs.items() if seqs}
