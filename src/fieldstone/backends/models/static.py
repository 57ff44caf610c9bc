"""The default embedder: a text's vector is the sum of its words' vectors. No network, no model to run.

Weights and tokens are wordllama's. What differs from its own `embed`: letter case and punctuation make no difference,
and the mean of all tokens is taken off each, since it says nothing about any. On the four conversations of LoCoMo on
which this was chosen, vectors alone then find .47 of the evidence among ten, and .41 without.
"""

import asyncio
import re
import string
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tiktoken import Encoding

from fieldstone.backends.models.local import LocalEmbedder
from fieldstone.backends.models.vectors import TEXT_CHARS_MAX, beginning, unit_rows
from fieldstone.backends.models.wordllama_pack import BEGINNINGS, read_pack
from fieldstone.ports.embedder import EmbeddingModel

DIMENSION: Final = 256

MOST_AT_ONCE: Final = 256  # some milliseconds of work
# What the event loop has to wait for is a piece, about 0.6 ms, and half as much for the words that it learns.
PIECE_TEXTS: Final = 64
PIECE_CHARS: Final = 2 * TEXT_CHARS_MAX
LEARNT_ON_THE_SPOT: Final = 64  # words, at 4 to 7 µs for each
LEARNT_AT_ONCE: Final = 256  # in the thread; noting them, at 1 to 2 µs for each, is for the event loop
KNOWN_WORDS: Final = 65_536  # 64 MB, as they come to be used

# A stretch is what stands between white space and marks: a word, and seldom more. A longer one is cut before anything
# else: a sentence of a language without spaces, a hash, an address.
STRETCH_CHARS_MAX: Final = 64
BREAK: Final = "\0"  # between the texts of a piece; in one of them it would be white space
_WORD: Final = re.compile(r"\w{1,64}(?:['’]\w{1,64})?")
_MARKS: Final = string.punctuation.replace("_", "").replace("'", "").encode()  # no word has one of them
_APART: Final = bytes.maketrans(_MARKS, b" " * len(_MARKS))  # of bytes: six times as fast as one of characters
# Each word is tokenized by itself, from the space on before it. That loses nothing: no token spans two words.
_TOKENIZED: Final = " [^ ]+"


class StaticEmbedder(LocalEmbedder["WordVectors"]):
    """It sums on the event loop, piece by piece: a thread takes longer for a piece, most of it to wait for Python's
    lock, and the event loop would wait for the lock as well. The thread is for loading, and for many new words. What
    was learnt is noted on the event loop alone, so nobody has to lock it."""

    def __init__(self) -> None:
        super().__init__(EmbeddingModel("static/wordllama-256", DIMENSION), MOST_AT_ONCE, WordVectors)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        known = await self._ready()
        sums = np.empty((len(texts), DIMENSION), np.float32)
        for start, end in _pieces(texts):
            if start:
                await asyncio.sleep(0)  # others have their turn
            sums[start:end] = await self._sums(known, texts[start:end])
        return unit_rows(sums)

    async def _sums(self, known: "WordVectors", texts: Sequence[str]) -> NDArray[np.float32]:
        stretches = _stretches(texts)
        # Again where they were many, or where others learnt so many meanwhile that ours are forgotten.
        while (numbers := known.numbers(stretches)) is None:
            new = known.new_among(stretches)
            if any(len(stretch) > STRETCH_CHARS_MAX for stretch in new):
                stretches = _shortened(stretches)
                new = known.new_among(stretches)
            await self._learn(known, new[:LEARNT_AT_ONCE])
        return known.sums(numbers)

    async def _learn(self, known: "WordVectors", new: Sequence[str]) -> None:
        if len(new) <= LEARNT_ON_THE_SPOT:
            vectors = known.spell(new)
        else:
            vectors = await self._worker.run(lambda: known.spell(new))
        known.learn(new, vectors)


class WordVectors:
    """Vectors of the stretches seen lately: most of a text's are among them, and need no tokenizer."""

    def __init__(self) -> None:
        pack = read_pack()
        self._tokens = pack.tokens
        self._token_vectors = pack.vectors
        ranks = {token: rank for rank, token in enumerate(pack.tokens)}
        self._spelling = Encoding("wordllama", pat_str=_TOKENIZED, mergeable_ranks=ranks, special_tokens={})
        self._numbers = {BREAK: 0}
        self._vectors = np.empty((KNOWN_WORDS, DIMENSION), np.float32)
        self._vectors[0] = 0.0

    def numbers(self, stretches: Sequence[str]) -> NDArray[np.intp] | None:
        """The number of each; None where one of them is new."""
        try:
            return np.fromiter(map(self._numbers.__getitem__, stretches), np.intp, len(stretches))
        except KeyError:
            return None

    def new_among(self, stretches: Sequence[str]) -> list[str]:
        return sorted(set(stretches).difference(self._numbers))

    def spell(self, stretches: Sequence[str]) -> NDArray[np.float32]:
        """A vector for each of these, whether it is known or not: the sum of its tokens' vectors."""
        vectors = np.zeros((len(stretches), DIMENSION), np.float32)
        for stretch, vector in zip(stretches, vectors, strict=True):
            if words := _WORD.findall(stretch):
                tokens = self._spelling.encode_ordinary(" " + " ".join(words))
                if not stretch.isascii():
                    tokens = self._without_beginnings(tokens)
                np.add.reduce(self._token_vectors.take(tokens, axis=0), axis=0, out=vector)
        return vectors

    def _without_beginnings(self, tokens: Sequence[int]) -> list[int]:
        """A character that is no token is spelled in its bytes, also where others begin with the same ones."""
        return [part for token in tokens for part in (self._tokens[token] if token in BEGINNINGS else (token,))]

    def learn(self, stretches: Sequence[str], vectors: NDArray[np.float32]) -> None:
        if len(self._numbers) + len(stretches) > KNOWN_WORDS:
            self._numbers = {BREAK: 0}  # those in use come back at once
        new = [at for at, stretch in enumerate(stretches) if stretch not in self._numbers]  # some came meanwhile
        first, end = len(self._numbers), len(self._numbers) + len(new)
        self._vectors[first:end] = vectors[new]
        self._numbers.update(zip([stretches[at] for at in new], range(first, end), strict=True))

    def sums(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        """For each text the sum of the vectors of its stretches. A break ends it, and adds nothing."""
        ends = np.flatnonzero(numbers == self._numbers[BREAK]) + 1
        counts = np.diff(ends, prepend=0)
        sums = np.empty((len(ends), DIMENSION), np.float32)
        most = int(counts.max(initial=0))
        gathered, ones = np.empty((most, DIMENSION), np.float32), np.ones(most, np.float32)
        for total, end, count in zip(sums, ends.tolist(), counts.tolist(), strict=True):
            # One text at a time, and into the same memory, which stays in the cache: all at once, by `reduceat`, takes
            # three times as long. The mode spares a copy; no number is out of bounds. A product with ones is a sum,
            # and takes two thirds of its time.
            vectors = gathered[:count]
            self._vectors.take(numbers[end - count : end], axis=0, out=vectors, mode="clip")
            np.dot(ones[:count], vectors, out=total)
        return sums


def _stretches(texts: Sequence[str]) -> list[str]:
    """Those of all texts, and a break after each: cut, and looked up, once for all of them."""
    joined = "".join([f"{beginning(text)} {BREAK} " for text in texts])
    if joined.count(BREAK) > len(texts):
        joined = "".join([f"{beginning(text).replace(BREAK, ' ')} {BREAK} " for text in texts])
    return joined.lower().encode().translate(_APART).decode().split()


def _shortened(stretches: Sequence[str]) -> list[str]:
    return [part for each in stretches for part in ((each,) if len(each) <= STRETCH_CHARS_MAX else _WORD.findall(each))]


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges of at most PIECE_TEXTS texts and PIECE_CHARS characters, and of one text at least."""
    if 0 < len(texts) <= PIECE_TEXTS and sum(map(len, texts)) <= PIECE_CHARS:
        yield 0, len(texts)  # nearly always
        return
    start = chars = 0
    for number, text in enumerate(texts):
        chars += min(len(text), TEXT_CHARS_MAX)
        if number > start and (chars > PIECE_CHARS or number - start == PIECE_TEXTS):
            yield start, number
            start, chars = number, min(len(text), TEXT_CHARS_MAX)
    if start < len(texts):
        yield start, len(texts)
