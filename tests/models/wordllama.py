"""What wordllama's own files say about a word, by the library that they were made for."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from tokenizers import Tokenizer

import hatch_build
from fieldstone.backends.models.package_files import read_package_file

WORD_BEGINS = "▁"


@cache
def weights() -> NDArray[np.float16]:
    file = read_package_file(hatch_build.SOURCE, hatch_build.WEIGHTS, sha256=hatch_build.WEIGHTS_SHA256)
    numbers: NDArray[np.float16] = load(file)["embedding.weight"]
    return numbers


@cache
def tokenizer() -> Tokenizer:
    file = read_package_file(hatch_build.SOURCE, hatch_build.TOKENIZER, sha256=hatch_build.TOKENIZER_SHA256)
    return Tokenizer.from_str(file.decode())


@cache
def vocabulary() -> tuple[str, ...]:
    return tuple(sorted(tokenizer().get_vocab()))


def own_vectors(words: list[str]) -> NDArray[np.float32]:
    """The sum of each word's tokens, each less the mean of all: in that order, down to the last bit."""
    vectors = np.zeros((len(words), hatch_build.DIMENSION), np.float32)
    for word, vector in zip(words, vectors, strict=True):
        tokens = [token.id for token in tokenizer().model.tokenize(WORD_BEGINS + word)]
        np.add.reduce(_less_mean().take(tokens, axis=0), axis=0, out=vector)
    return vectors


@cache
def _less_mean() -> NDArray[np.float32]:
    vectors = weights().astype(np.float32)
    vectors -= vectors.mean(axis=0)
    return vectors
