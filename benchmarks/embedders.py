"""Embedders by themselves: texts a second, beside the library whose vectors the default one has."""

from __future__ import annotations

import asyncio
import random
import re
import string
import time
from collections.abc import Callable
from itertools import product
from pydoc_data.topics import topics

from wordllama.inference import WordLlamaInference  # type: ignore[import-untyped]

from benchmarks.figures import Figure, Report, median_rate
from fieldstone.backends.models.onnx import OnnxEmbedder
from fieldstone.backends.models.static import StaticEmbedder
from fieldstone.ports.embedder import Embedder
from tests.models.wordllama import tokenizer, weights

WORDS = 20  # a text
TEXTS = 20_000
FEW = 400  # for the one that runs a transformer
ROUNDS = 5

Embed = Callable[[list[str]], object]


def measure_embedders(report: Report) -> None:
    english = _texts(TEXTS, re.findall(r"[a-z]+", " ".join(topics.values()).lower()))
    strange = [" ".join(_strings(WORDS, seed)) for seed in range(FEW)]
    with asyncio.Runner() as runner:
        static, onnx = StaticEmbedder(), OnnxEmbedder()
        theirs = WordLlamaInference(weights(), tokenizer())
        ways: dict[str, tuple[Embed, list[str]]] = {
            "static": (_in_batches(runner, static), english),
            "wordllama": (lambda texts: theirs.embed(texts, norm=True), english),
            "onnx": (_in_batches(runner, onnx), english[:FEW]),
        }
        for embed, texts in ways.values():
            embed(texts[:1])  # loads it
        runs: dict[str, list[tuple[int, float]]] = {name: [] for name in ways}
        for _, (name, (embed, texts)) in product(range(ROUNDS), ways.items()):
            runs[name].append((len(texts), _seconds(embed, texts)))
        rates = {name: median_rate(each) for name, each in runs.items()}
        report.add(Figure("static embedder", rates["static"], "texts/s", "wordllama's own", rates["wordllama"]))
        # Once: afterwards they are known.
        report.add(Figure("static embedder, random strings", FEW / _seconds(ways["static"][0], strange), "texts/s"))
        report.add(Figure("onnx embedder", rates["onnx"], "texts/s"))
        runner.run(static.close())
        runner.run(onnx.close())


def _in_batches(runner: asyncio.Runner, embedder: Embedder) -> Embed:
    async def embed(texts: list[str]) -> None:
        for first in range(0, len(texts), embedder.most_at_once):
            await embedder.embed(texts[first : first + embedder.most_at_once])

    return lambda texts: runner.run(embed(texts))


def _seconds(embed: Embed, texts: list[str]) -> float:
    started = time.perf_counter()
    embed(texts)
    return time.perf_counter() - started


def _texts(count: int, words: list[str]) -> list[str]:
    rng = random.Random(17)
    return [" ".join(rng.choices(words, k=WORDS)) for _ in range(count)]


def _strings(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(string.ascii_lowercase + string.digits, k=12)) for _ in range(count)]
