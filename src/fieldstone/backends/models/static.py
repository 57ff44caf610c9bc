"""The default embedder: a text's vector is the sum of its words' vectors. No network, no model to run.

Weights and tokenizer are wordllama's. What differs from its own `embed`: letter case and punctuation make no
difference, and the mean of all tokens is taken off each, since it says nothing about any. On the four conversations of
LoCoMo on which this was chosen, vectors alone then find .47 of the evidence among ten, and .41 without.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from tokenizers import Tokenizer

from fieldstone.backends.models.local import LocalEmbedder
from fieldstone.backends.models.package_files import read_package_file
from fieldstone.backends.models.vectors import TEXT_CHARS_MAX, beginning, unit_rows
from fieldstone.ports.embedder import EmbeddingModel

PACKAGE: Final = "wordllama"
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
WEIGHTS_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256: Final = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
DIMENSION: Final = 256

MOST_AT_ONCE: Final = 256  # some milliseconds of work
# Python's lock is held for a piece at a time, so a piece is what the event loop may have to wait for: about 0.5 ms.
PIECE_TEXTS: Final = 32
PIECE_CHARS: Final = TEXT_CHARS_MAX
WORDS_LEARNT_AT_ONCE: Final = 64  # the same bound, at 8 µs for each word that is new
KNOWN_WORDS: Final = 65_536  # 64 MB, as they come to be used

# An unbroken run is cut: a sentence of a language without spaces, a hash, an address.
_WORD: Final = re.compile(r"\w{1,64}(?:['’]\w{1,64})?")


class StaticEmbedder(LocalEmbedder):
    def __init__(self) -> None:
        super().__init__(EmbeddingModel("static/wordllama-256", DIMENSION), MOST_AT_ONCE, WordVectors)


class WordVectors:
    """Vectors of the words seen lately: most words of a text are among them, and need no tokenizer."""

    def __init__(self) -> None:
        weights = read_package_file(PACKAGE, WEIGHTS, sha256=WEIGHTS_SHA256)
        tokenizer = read_package_file(PACKAGE, TOKENIZER, sha256=TOKENIZER_SHA256)
        self._tokenizer = Tokenizer.from_str(tokenizer.decode())
        self._tokens: NDArray[np.float16] = load_tensors(weights)["embedding.weight"]
        self._mean = self._tokens.mean(axis=0, dtype=np.float32)
        self._numbers: dict[str, int] = {}
        self._vectors = np.empty((KNOWN_WORDS, DIMENSION), np.float32)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        for start, end in _pieces(texts):
            words = [_WORD.findall(beginning(text).lower()) for text in texts[start:end]]
            vectors[start:end] = unit_rows(self.sums(words))
        return vectors

    def sums(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """For each list of words the sum of their vectors."""
        counts = np.fromiter(map(len, texts), np.intp, len(texts))
        sums = np.zeros((len(texts), DIMENSION), np.float32)
        filled = counts > 0  # reduceat takes an empty stretch for one word
        if filled.any():
            vectors = self._vectors.take(self._numbers_of([word for text in texts for word in text]), axis=0)
            starts = np.cumsum(counts) - counts
            sums[filled] = np.add.reduceat(vectors, starts[filled], axis=0)
        return sums

    def _numbers_of(self, words: list[str]) -> list[int]:
        numbers = list(map(self._numbers.get, words))
        if None in numbers:
            self._learn(dict.fromkeys(words))
        return [self._numbers[word] for word in words]

    def _learn(self, words: dict[str, None]) -> None:
        if len(self._numbers) + len(words) > KNOWN_WORDS:
            self._numbers.clear()  # those in use come back at once
        new = [word for word in words if word not in self._numbers]
        for start in range(0, len(new), WORDS_LEARNT_AT_ONCE):
            self._learn_some(new[start : start + WORDS_LEARNT_AT_ONCE])

    def _learn_some(self, words: list[str]) -> None:
        # Each word is tokenized by itself, which loses nothing: no token of this vocabulary spans two words.
        encoding = self._tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
        tokens = self._tokens.take(encoding.ids, axis=0).astype(np.float32) - self._mean
        starts = np.flatnonzero(np.diff(np.array(encoding.word_ids, np.intp), prepend=-1))
        first = len(self._numbers)
        self._vectors[first : first + len(words)] = np.add.reduceat(tokens, starts, axis=0)
        self._numbers.update(zip(words, range(first, first + len(words)), strict=True))


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of at most PIECE_TEXTS texts and PIECE_CHARS characters, and of one text at least."""
    start = chars = 0
    for number, text in enumerate(texts):
        chars += min(len(text), TEXT_CHARS_MAX)
        if number > start and (chars > PIECE_CHARS or number - start == PIECE_TEXTS):
            yield start, number
            start, chars = number, min(len(text), TEXT_CHARS_MAX)
    if start < len(texts):
        yield start, len(texts)
