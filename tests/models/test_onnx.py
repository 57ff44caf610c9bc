"""The graph that is made for onnxruntime computes what the model's architecture says."""

from math import erf

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fieldstone.backends.models.granite_pack import Pack, read_pack
from fieldstone.backends.models.onnx import OnnxEmbedder

Matrix = NDArray[np.float64]


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack()


@pytest.mark.parametrize(
    "text", ["Rivals charge 40 euros a seat.", "a", "Zürich, 東京: the naïve deployment failed twice. " * 4]
)
async def test_a_row_is_what_the_same_weights_give_in_full_precision(pack: Pack, text: str) -> None:
    embedder = OnnxEmbedder()
    [row] = await embedder.embed([text])
    await embedder.close()
    assert row @ in_full_precision(pack, text) > 0.999


async def test_what_lies_behind_the_last_token_makes_no_difference() -> None:
    embedder = OnnxEmbedder()
    first, second = await embedder.embed(["word " * 600 + "alpha", "word " * 600 + "omega"])
    await embedder.close()
    assert np.array_equal(first, second)


def test_the_pack_is_the_model_that_the_embedder_speaks_of(pack: Pack) -> None:
    assert OnnxEmbedder().model.dimension == pack.architecture.hidden
    assert pack.tokens_max == 512


def in_full_precision(pack: Pack, text: str) -> Matrix:
    """A BERT in numpy: the slow way, without a graph."""
    tokens = np.array(Tokenizer.from_str(pack.tokenizer).encode(text).ids)
    first = pack.architecture.position_offset
    places = pack.plain["pos_emb"][first : first + len(tokens)] + pack.plain["type_emb"][0]
    x = normed(pack, "emb_ln", matrix(pack, "word_emb")[tokens] + places)
    for number in range(pack.architecture.layers):
        layer = f"l{number}"
        query, keys, values = np.split(product(pack, f"{layer}.qkv", x), 3, axis=1)
        heads = [np.split(part, pack.architecture.heads, axis=1) for part in (query, keys, values)]
        attended = np.concatenate([attention(*head) for head in zip(*heads, strict=True)], axis=1)
        x = normed(pack, f"{layer}.aln", x + product(pack, f"{layer}.ao", attended))
        wide = product(pack, f"{layer}.f1", x)
        bent = wide / 2 * (1 + np.vectorize(erf)(wide / np.sqrt(2)))
        x = normed(pack, f"{layer}.fln", x + product(pack, f"{layer}.f2", bent))
    vector: Matrix = x[0] / np.linalg.norm(x[0])
    return vector


def matrix(pack: Pack, name: str) -> Matrix:
    grouped = pack.grouped[name]
    return grouped.rows(np.arange(len(grouped.values))).astype(np.float64)


def product(pack: Pack, name: str, x: Matrix) -> Matrix:
    answer: Matrix = x @ matrix(pack, f"{name}.w").T + pack.plain[f"{name}.b"]
    return answer


def normed(pack: Pack, name: str, x: Matrix) -> Matrix:
    spread = np.sqrt(x.var(axis=1, keepdims=True) + pack.architecture.layer_norm_eps)
    answer: Matrix = (x - x.mean(axis=1, keepdims=True)) / spread * pack.plain[f"{name}.w"] + pack.plain[f"{name}.b"]
    return answer


def attention(query: Matrix, keys: Matrix, values: Matrix) -> Matrix:
    weights = np.exp(query @ keys.T / np.sqrt(query.shape[1]))
    answer: Matrix = weights / weights.sum(axis=1, keepdims=True) @ values
    return answer
