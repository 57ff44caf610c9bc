"""Any endpoint that speaks OpenAI's `POST …/embeddings`. What it answers is not believed before it is checked."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.backends.models.endpoint import Endpoint, EndpointFailed
from fieldstone.backends.models.vectors import beginning
from fieldstone.ports.embedder import EmbeddingFailed, EmbeddingModel

# An answer's size is bounded before it is read: room for vectors of 8,192 numbers as text, and some words beside them.
ANSWER_BYTES_A_TEXT: Final = 200_000
ANSWER_BYTES_BESIDE: Final = 100_000
DIMENSION_MAX: Final = 8_192


class OpenAIEmbedder:
    """Retries are the caller's."""

    def __init__(
        self, url: str, *, key: str | None, model: str, dimension: int | None, most_at_once: int, timeout_ms: int
    ) -> None:
        self._endpoint = Endpoint(url, "embeddings", key=key, timeout_ms=timeout_ms, whose="embedder")
        self._name = model
        self._asked_dimension = dimension
        self._dimension = dimension or 0
        self._most_at_once = most_at_once

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel(f"openai/{self._name}", self._dimension)

    @property
    def most_at_once(self) -> int:
        return self._most_at_once

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        filled = [number for number, text in enumerate(texts) if text and not text.isspace()]  # many refuse empty ones
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(filled), self._most_at_once):
            numbers = filled[start : start + self._most_at_once]
            found.append(await self._ask([beginning(texts[number]) for number in numbers]))
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        if found:
            vectors[filled] = np.concatenate(found)
        return vectors

    async def close(self) -> None:
        await self._endpoint.close()

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        body = msgspec.json.encode(_Request(self._name, texts, dimensions=self._asked_dimension or msgspec.UNSET))
        answer = await self._post(body, most_bytes=ANSWER_BYTES_A_TEXT * len(texts) + ANSWER_BYTES_BESIDE)
        vectors = await asyncio.to_thread(_read_vectors, answer, len(texts))
        dimension = vectors.shape[1]
        if self._dimension and dimension != self._dimension:
            raise EmbeddingFailed(
                f"The endpoint answered with vectors of {dimension} numbers; {self._dimension} were expected."
            )
        self._dimension = dimension
        return vectors

    async def _post(self, body: bytes, *, most_bytes: int) -> bytes:
        try:
            return await self._endpoint.post(body, most_bytes=most_bytes)
        except EndpointFailed as failed:
            raise EmbeddingFailed(str(failed)) from None


class _Request(Struct, frozen=True):
    model: str
    input: list[str]
    encoding_format: str = "base64"  # a quarter of the time to read; an endpoint that does not know it sends numbers
    dimensions: int | msgspec.UnsetType = msgspec.UNSET


class _Item(Struct, frozen=True):
    index: int
    embedding: str | list[float]


class _Answer(Struct, frozen=True):
    data: list[_Item]


_answer_decoder: Final = msgspec.json.Decoder(_Answer)


def _read_vectors(body: bytes, count: int) -> NDArray[np.float32]:
    try:
        items = _answer_decoder.decode(body).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise EmbeddingFailed("The endpoint's answer is not a list of embeddings.") from None
    if sorted(item.index for item in items) != list(range(count)):
        raise EmbeddingFailed(
            f"The endpoint answered with {len(items)} vectors, not with one for each of {count} texts."
        )
    rows = [_numbers(item.embedding) for item in sorted(items, key=lambda item: item.index)]
    if not 0 < len(rows[0]) <= DIMENSION_MAX or any(len(row) != len(rows[0]) for row in rows):
        raise EmbeddingFailed("The endpoint answered with vectors of no length, of different lengths, or far too long.")
    return _unit_rows(np.array(rows))


def _numbers(embedding: str | list[float]) -> NDArray[np.float64]:
    if isinstance(embedding, list):
        return np.array(embedding, np.float64)
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float64)
    except (binascii.Error, ValueError):
        raise EmbeddingFailed("The endpoint's answer is not a list of embeddings.") from None


def _unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows has no length either
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        raise EmbeddingFailed("The endpoint answered with a vector that has no direction: zeros, or no numbers.")
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit
