"""What an embedder promises: one row of unit length for each text, in their order, the same every time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from fieldstone.ports.embedder import Embedder, EmbeddingFailed

OpenEmbedder = Callable[[], Embedder]

TEXTS: Final = (
    "Rivals charge 40 euros a seat.",
    "The deployment failed because the disk was full.",
    "Ångström units: 3.14 — naïve “quotes”, 東京 and релиз",
    "a",
)
# Two ways to say a thing, and one to say something else.
TRIPLES: Final = (
    (
        "The cat sleeps on the sofa all day.",
        "All day long the cat is asleep on the sofa.",
        "Quarterly revenue grew by nine percent.",
    ),
    (
        "The server crashed because it ran out of memory.",
        "An out of memory error crashed the server.",
        "My grandmother bakes bread with rye flour.",
    ),
    (
        "We should raise the price of the annual plan.",
        "The annual plan's price should be raised.",
        "The bridge over the river was painted green.",
    ),
)
ROUNDING: Final = 1e-5


class EmbedderTests:
    """Give a fixture `open_embedder`; the tests get an open `embedder`."""

    @pytest.fixture
    async def embedder(self, open_embedder: OpenEmbedder) -> AsyncIterator[Embedder]:
        embedder = open_embedder()
        yield embedder
        await embedder.close()

    async def test_every_text_gets_a_row_of_unit_length(self, embedder: Embedder) -> None:
        rows = await embedder.embed(TEXTS)
        assert rows.dtype == np.float32
        assert rows.shape == (len(TEXTS), embedder.model.dimension)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=ROUNDING)

    async def test_the_model_has_a_name_and_the_dimension_of_its_rows(self, embedder: Embedder) -> None:
        rows = await embedder.embed(["one"])
        assert embedder.model.name
        assert embedder.model.dimension == rows.shape[1] > 0
        assert embedder.most_at_once > 0

    async def test_rows_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        rows = await embedder.embed(TEXTS)
        turned = await embedder.embed(TEXTS[::-1])
        assert np.allclose(turned[::-1], rows, atol=ROUNDING)
        assert len({row.tobytes() for row in rows}) == len(TEXTS)

    async def test_a_row_does_not_depend_on_the_texts_beside_it(self, embedder: Embedder) -> None:
        rows = await embedder.embed([*TEXTS, "long " * 500, ""])
        for text, row in zip(TEXTS, rows, strict=False):
            [alone] = await embedder.embed([text])
            assert np.allclose(alone, row, atol=ROUNDING)

    async def test_the_same_text_gets_the_same_row_after_a_restart(self, open_embedder: OpenEmbedder) -> None:
        first, second = [await _embedded_once(open_embedder) for _ in range(2)]
        assert np.array_equal(first, second)

    async def test_no_texts_get_no_rows(self, embedder: Embedder) -> None:
        assert (await embedder.embed([])).shape == (0, embedder.model.dimension)

    @pytest.mark.parametrize("empty", ["", " ", "\n\t "])
    async def test_a_text_without_anything_to_embed_gets_zeros(self, embedder: Embedder, empty: str) -> None:
        rows = await embedder.embed(["alpha", empty, "beta"])
        assert not rows[1].any()
        assert np.allclose(np.linalg.norm(rows[[0, 2]], axis=1), 1, atol=ROUNDING)

    @pytest.mark.parametrize(
        "text", ["word " * 200_000, "x" * 1_000_000, "東京" * 100_000], ids=["words", "run", "kanji"]
    )
    async def test_a_very_long_text_is_embedded_all_the_same(self, embedder: Embedder, text: str) -> None:
        [row] = await embedder.embed([text])
        assert abs(np.linalg.norm(row) - 1) < ROUNDING

    @pytest.mark.parametrize("text", ["a\ud800b", "nul\0nul", "</s> <s> <unk>", "\u202ereversed", "e\u0301" * 50])
    async def test_a_strange_text_is_embedded_all_the_same(self, embedder: Embedder, text: str) -> None:
        [row] = await embedder.embed([text])
        assert abs(np.linalg.norm(row) - 1) < ROUNDING

    async def test_more_texts_than_are_good_at_once_are_embedded(self, embedder: Embedder) -> None:
        texts = [f"note {number}" for number in range(embedder.most_at_once * 2 + 1)]
        rows = await embedder.embed(texts)
        assert rows.shape == (len(texts), embedder.model.dimension)
        [last] = await embedder.embed(texts[-1:])
        assert np.allclose(last, rows[-1], atol=ROUNDING)

    async def test_callers_at_the_same_time_get_their_own_rows(self, embedder: Embedder) -> None:
        alone = await embedder.embed(TEXTS)
        found = await asyncio.gather(*(embedder.embed([text]) for text in TEXTS * 4))
        for number, rows in enumerate(found):
            assert np.allclose(rows[0], alone[number % len(TEXTS)], atol=ROUNDING)

    async def test_the_event_loop_goes_on_meanwhile(self, embedder: Embedder) -> None:
        work = asyncio.create_task(embedder.embed(TEXTS * embedder.most_at_once))
        turns = 0
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10  # one that held the loop would be done after the first
        await work

    @pytest.mark.parametrize(("text", "same", "other"), TRIPLES)
    async def test_what_says_the_same_lies_closer_than_what_does_not(
        self, embedder: Embedder, text: str, same: str, other: str
    ) -> None:
        said, again, else_ = await embedder.embed([text, same, other])
        assert said @ again > said @ else_ + 0.2

    async def test_a_closed_embedder_says_so(self, open_embedder: OpenEmbedder) -> None:
        embedder = open_embedder()
        await embedder.embed(["alpha"])
        await embedder.close()
        await embedder.close()  # twice does no harm
        with pytest.raises(EmbeddingFailed, match="closed"):
            await embedder.embed(["alpha"])

    async def test_one_that_was_never_used_can_be_closed(self, open_embedder: OpenEmbedder) -> None:
        await open_embedder().close()


async def _embedded_once(open_embedder: OpenEmbedder) -> NDArray[np.float32]:
    embedder = open_embedder()
    rows = await embedder.embed(TEXTS)
    await embedder.close()
    return rows
