"""The default embedder: sums of word vectors."""

import asyncio
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldstone.backends.models import static, wordllama_pack
from fieldstone.backends.models.static import StaticEmbedder, WordVectors
from fieldstone.backends.models.vectors import TEXT_CHARS_MAX
from fieldstone.ports.embedder import EmbeddingFailed
from tests.models.wordllama import own_vectors, tokenizer, vocabulary, weights
from tests.scripted import WAIT_S


@cache
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


@cache
def word_vectors() -> WordVectors:
    return WordVectors()


def rows(texts: list[str]) -> NDArray[np.float32]:
    return asyncio.run(embedder().embed(texts))


def test_a_row_is_the_direction_of_its_tokens_less_the_mean_of_all() -> None:
    text = "deployment of the naïve paywall costs 40 euros antidisestablishmentarianism 東京"
    tokens = weights().astype(np.float64)
    cut = tokenizer().encode(text, add_special_tokens=False)
    expected = (tokens - tokens.mean(axis=0))[cut.ids].sum(axis=0)
    assert np.allclose(rows([text])[0], expected / np.linalg.norm(expected), atol=1e-4)


def words_of(text: str) -> list[str]:
    return static._WORD.findall(text.lower())


def test_every_token_of_the_vocabulary_has_the_vector_that_wordllama_gives_it() -> None:
    words = sorted({word for token in vocabulary() for word in words_of(token)})
    assert len(words) > 20_000
    assert np.array_equal(word_vectors().spell(words), own_vectors(words))


def test_words_put_together_of_tokens_have_the_vectors_that_wordllama_gives_them() -> None:
    chance = random.Random(2)
    text = " ".join("".join(chance.choices(vocabulary(), k=chance.randint(1, 6))) for _ in range(20_000))
    words = words_of(text)
    assert np.array_equal(word_vectors().spell(words), own_vectors(words))


@settings(max_examples=50)
@given(st.lists(st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("'’_a0éжω東한"))), max_size=10))
@example(["blendenden affffff0 wwww iiiii engengen archarchar ____x_____"])
@example(["東" * 64, "’", "\U00020000" * 64])
def test_any_word_of_any_script_has_the_vector_that_wordllama_gives_it(parts: list[str]) -> None:
    words = [*words_of("".join(parts)), *words_of(" ".join(parts))]
    assert np.array_equal(word_vectors().spell(words), own_vectors(words))


@given(st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab'’_-. ")), max_size=300))
@example("rock'n'roll 'quoted' it’s x_y " + "z" * 70 + " " + "q" * 64 + "'" + "r" * 70)
@example(" ".join(f"{number:x}" for number in range(2 * static.LEARNT_AT_ONCE)))
def test_a_row_is_the_direction_of_the_words_that_the_pattern_finds(text: str) -> None:
    words = static._WORD.findall(text.lower())
    expected = word_vectors().spell(words).sum(axis=0, dtype=np.float64)
    length = np.linalg.norm(expected)
    assert np.allclose(rows([text])[0], expected / (length if words else 1), atol=1e-4)


@pytest.mark.parametrize("same", ["RIVALS charge 40 euros", "rivals\ncharge\t40   euros", "«Rivals» charge: 40 euros!"])
def test_letter_case_white_space_and_punctuation_make_no_difference(same: str) -> None:
    found = rows(["Rivals charge 40 euros", same])
    assert np.array_equal(found[0], found[1])


@given(st.lists(st.text(max_size=200), max_size=80))
@example(["one\0two", "three", ""])
def test_a_row_is_the_same_alone_and_among_others(texts: list[str]) -> None:
    together = rows(texts)
    for text, row in zip(texts, together, strict=True):
        assert np.array_equal(rows([text])[0], row)


@given(st.lists(st.integers(0, 3 * static.PIECE_CHARS), max_size=100))
def test_pieces_cover_all_texts_once_and_keep_their_bounds(lengths: list[int]) -> None:
    texts = ["x" * length for length in lengths]
    pieces = list(static._pieces(texts))
    assert [number for start, end in pieces for number in range(start, end)] == list(range(len(texts)))
    for start, end in pieces:
        chars = sum(min(length, TEXT_CHARS_MAX) for length in lengths[start:end])
        assert end - start == 1 or (end - start <= static.PIECE_TEXTS and chars <= static.PIECE_CHARS)


def test_more_words_than_are_kept_change_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"alpha {number} beta {number * 7919:x}" for number in range(200)]
    expected = rows(texts)
    monkeypatch.setattr(static, "KNOWN_WORDS", 150)
    forgetful = StaticEmbedder()
    found = [asyncio.run(forgetful.embed([text]))[0] for text in [*texts, *texts]]
    assert np.array_equal(found, np.concatenate([expected, expected]))


async def test_few_new_words_are_learnt_on_the_spot_and_many_are_not() -> None:
    fresh = StaticEmbedder()
    await fresh.embed([])
    few, many = ([f"word{number}" for number in range(static.LEARNT_ON_THE_SPOT + more)] for more in (0, 1))
    with pytest.raises(StopIteration):  # it comes to its end without waiting for anything
        fresh.embed([" ".join(few)]).send(None)
    fresh = StaticEmbedder()
    await fresh.embed([])
    learning = asyncio.create_task(fresh.embed([" ".join(many)]))
    await asyncio.sleep(0)
    assert not learning.done()
    await learning
    await fresh.close()


async def test_callers_that_learn_and_forget_at_the_same_time_get_their_own_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [" ".join(f"{number * step:x}" for number in range(100)) for step in (3, 5, 7, 3)]
    expected = np.concatenate([await StaticEmbedder().embed([text]) for text in texts])
    monkeypatch.setattr(static, "KNOWN_WORDS", 150)
    forgetful = StaticEmbedder()
    found = await asyncio.gather(*(forgetful.embed([text]) for text in texts))
    assert np.array_equal(np.concatenate(found), expected)
    await forgetful.close()


async def test_callers_who_make_each_other_forget_all_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 4 * static.LEARNT_AT_ONCE
    texts = [" ".join(f"{caller}x{number}" for number in range(most)) for caller in range(6)]
    expected = np.concatenate([await embedder().embed([text]) for text in texts])
    monkeypatch.setattr(static, "KNOWN_WORDS", 2 * most)
    forgetful = StaticEmbedder()
    async with asyncio.timeout(WAIT_S):
        found = await asyncio.gather(*(forgetful.embed([text]) for text in texts))
    assert np.array_equal(np.concatenate(found), expected)
    await forgetful.close()


def test_a_piece_never_holds_more_words_than_are_kept() -> None:
    assert static.KNOWN_WORDS > static.PIECE_CHARS


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the name, elsewhere."""
    (tmp_path / "pebble").mkdir()
    (tmp_path / "pebble" / "__init__.py").write_text("raise RuntimeError('the code of the package is not run')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(wordllama_pack, "PACKAGE", "pebble")
    return tmp_path / "pebble"


async def failure() -> str:
    embedder = StaticEmbedder()
    with pytest.raises(EmbeddingFailed) as caught:
        await embedder.embed(["alpha"])
    await embedder.close()
    return str(caught.value)


async def test_weights_that_are_not_there_are_told(package: Path) -> None:
    told = await failure()
    assert f"{wordllama_pack.PACK} of pebble cannot be read: No such file or directory." in told
    assert "Install the package again; in a clone of fieldstone, `make setup` does it." in told


async def test_weights_that_are_not_the_known_ones_are_refused(package: Path) -> None:
    known = Path(static.__file__).with_name(wordllama_pack.PACK).read_bytes()
    (package / wordllama_pack.PACK).write_bytes(known[:-1] + b"\0")
    assert f"{wordllama_pack.PACK} of pebble is not the one that is known. Install" in await failure()


async def test_a_package_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama_pack, "PACKAGE", "no_such_package")
    assert "no_such_package, which holds the model, is not installed" in await failure()


async def test_what_failed_to_load_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = StaticEmbedder()
    with monkeypatch.context() as patch:
        patch.setattr(wordllama_pack, "PACKAGE", "no_such_package")
        with pytest.raises(EmbeddingFailed):
            await embedder.embed(["alpha"])
    assert (await embedder.embed(["alpha"])).any()
    await embedder.close()
