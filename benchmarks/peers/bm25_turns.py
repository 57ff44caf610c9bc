"""BM25 over stemmed words: `python -m benchmarks.peers.bm25_turns TALKS_FILE MOST STOP_WORDS`.

As the documentation of bm25s sets it up, with the k1 and b that suit short texts; STOP_WORDS is one of its lists, `en`
or the longer `en_plus`. Each talk is an index of its own. It prints, for every question, the places of the best texts.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TypedDict

import bm25s  # type: ignore[import-not-found]
import Stemmer  # type: ignore[import-not-found]

K1 = 0.9
B = 0.4


class Talk(TypedDict):
    texts: list[str]
    questions: list[str]


def main(talks_file: Path, most: int, stop_words: str) -> None:
    talks: list[Talk] = json.loads(talks_file.read_text(encoding="utf-8"))
    print(json.dumps([rank(talk, most, stop_words) for talk in talks]))


def rank(talk: Talk, most: int, stop_words: str) -> list[list[int]]:
    words = partial(bm25s.tokenize, stopwords=stop_words, stemmer=Stemmer.Stemmer("english"), show_progress=False)
    index = bm25s.BM25(k1=K1, b=B)
    index.index(words(talk["texts"]), show_progress=False)
    places, _ = index.retrieve(words(talk["questions"]), k=min(most, len(talk["texts"])), show_progress=False)
    ranked: list[list[int]] = places.tolist()
    return ranked


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
