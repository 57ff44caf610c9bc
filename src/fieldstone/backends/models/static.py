"""The default embedder: a text's vector is the sum of its words' vectors. No network, no model to run.

Weights and tokens are wordllama's. What differs from its own `embed`: letter case and punctuation make no difference,
and the mean of all tokens is taken off each, since it says nothing about any. On the four conversations of LoCoMo on
which this was chosen, vectors alone then find .47 of the evidence among ten, and .41 without.
"""

import asyncio
import re
import string
from collections.abc import Iterator, Sequence
from functools import partial
from operator import sub
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tiktoken import Encoding

from fieldstone.backends.models.local import LocalEmbedder
from fieldstone.backends.models.vectors import TEXT_CHARS_MAX, beginning, unit_rows
from fieldstone.backends.models.wordllama_pack import BEGINNINGS, read_pack
from fieldstone.ports.embedder import EmbeddingModel

DIMENSION: Final = 256
NO_ROWS: Final = np.empty((0, DIMENSION), np.float32)

MOST_AT_ONCE: Final = 256  # some milliseconds of work
# What the event loop has to wait for is a piece, about 0.7 ms, and half as much for the words that it learns.
PIECE_TEXTS: Final = 64
PIECE_CHARS: Final = 20_000
LEARNT_ON_THE_SPOT: Final = 64  # words, at 4 to 7 µs for each
LEARNT_AT_ONCE: Final = 256  # in the thread; noting them, at 1 to 2 µs for each, is for the event loop
KNOWN_WORDS: Final = 65_536  # 64 MB, as they come to be used

# A stretch is what stands between white space and marks: a word, and seldom more. A longer one is cut before anything
# else: a sentence of a language without spaces, a hash, an address.
STRETCH_CHARS_MAX: Final = 64
UNKNOWN: Final = -1
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
        sums = []
        for start, end in _pieces(texts):
            if start:
                await asyncio.sleep(0)  # others have their turn
            sums.append(await self._sums(known, texts[start:end]))
        return unit_rows(sums[0] if len(sums) == 1 else np.concatenate([NO_ROWS, *sums]))

    async def _sums(self, known: "WordVectors", texts: Sequence[str]) -> NDArray[np.float32]:
        stretches = _stretches(texts)
        numbers, new = known.numbers(stretches)
        if new and _too_long(new):
            stretches = _shortened(stretches)
            numbers, new = known.numbers(stretches)
        before = len(stretches) + 1
        while new:  # again where they were many, or where others learnt so many meanwhile that ours are forgotten
            # Many callers could make each other forget for ever: who has gained nothing learns all of its own at once.
            some = new[:LEARNT_AT_ONCE] if len(new) < before else sorted(set(stretches))
            before = len(new)
            known.learn(some, await self._worker.run(partial(known.spell, some)))
            numbers, new = known.numbers(stretches)
        return known.sums(numbers)


class _Numbers(dict[str, int]):
    """What is asked for and has no number is noted, as often as it is asked for, and gets UNKNOWN."""

    def __init__(self) -> None:
        super().__init__({BREAK: 0})
        self.unknown: list[str] = []

    def __missing__(self, stretch: str) -> int:
        self.unknown.append(stretch)
        return UNKNOWN


class WordVectors:
    """Vectors of the stretches seen lately: most of a text's are among them, and need no tokenizer."""

    def __init__(self) -> None:
        pack = read_pack()
        self._tokens = pack.tokens
        self._token_vectors = pack.vectors
        ranks = {token: rank for rank, token in enumerate(pack.tokens)}
        self._spelling = Encoding("wordllama", pat_str=_TOKENIZED, mergeable_ranks=ranks, special_tokens={})
        self._numbers = _Numbers()
        self._vectors = np.empty((KNOWN_WORDS, DIMENSION), np.float32)
        self._vectors[0] = 0.0

    def numbers(self, stretches: Sequence[str]) -> tuple[NDArray[np.intp], list[str]]:
        """The number of each, and those that have to be learnt before they have one. A few are learnt on the spot."""
        unknown: list[str] = []
        self._numbers.unknown = unknown
        numbers = np.fromiter(map(self._numbers.__getitem__, stretches), np.intp, len(stretches))
        if not unknown:
            return numbers, []
        new = sorted(set(unknown))
        if len(new) > LEARNT_ON_THE_SPOT or _too_long(new) or len(self._numbers) + len(new) > KNOWN_WORDS:
            return numbers, new
        self.learn(new, self.spell(new))
        numbers[numbers == UNKNOWN] = [self._numbers[stretch] for stretch in unknown]
        return numbers, []

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
            self._numbers = _Numbers()  # those in use come back at once
        new = [at for at, stretch in enumerate(stretches) if stretch not in self._numbers]  # some came meanwhile
        first, end = len(self._numbers), len(self._numbers) + len(new)
        self._vectors[first:end] = vectors[new]
        self._numbers.update(zip([stretches[at] for at in new], range(first, end), strict=True))

    def sums(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        """For each text the sum of the vectors of its stretches. A break ends it, and adds nothing."""
        ends = (np.flatnonzero(numbers == 0) + 1).tolist()
        starts = [0, *ends[:-1]]
        most = max(map(sub, ends, starts), default=0)
        sums = np.empty((len(ends), DIMENSION), np.float32)
        gathered, ones = np.empty((most, DIMENSION), np.float32), np.ones(most, np.float32)
        for total, start, end in zip(sums, starts, ends, strict=True):
            # One text at a time, and into the same memory, which stays in the cache: all at once, by `reduceat`, takes
            # three times as long. The mode spares a copy; no number is out of bounds. A product with ones is a sum,
            # and takes two thirds of its time.
            vectors = gathered[: end - start]
            self._vectors.take(numbers[start:end], axis=0, out=vectors, mode="clip")
            np.dot(ones[: end - start], vectors, out=total)
        return sums


def _stretches(texts: Sequence[str]) -> list[str]:
    """Those of all texts, and a break after each: cut, and looked up, once for all of them."""
    if max(map(len, texts)) > TEXT_CHARS_MAX:
        texts = [beginning(text) for text in texts]
    ended = f" {BREAK} "
    joined = ended.join([*texts, ""])
    if joined.count(BREAK) > len(texts):
        joined = ended.join([*[text.replace(BREAK, " ") for text in texts], ""])
    # Half of a surrogate pair becomes a mark, as it does in `beginning`.
    return joined.lower().encode(errors="replace").translate(_APART).decode().split()


def _too_long(stretches: Sequence[str]) -> bool:
    return max(map(len, stretches)) > STRETCH_CHARS_MAX


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
