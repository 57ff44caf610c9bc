"""Any endpoint that speaks OpenAI's `POST …/embeddings`. What it answers is not believed before it is checked."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Final

import httpx
import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.backends.models.vectors import beginning
from fieldstone.ports.embedder import EmbeddingFailed, EmbeddingModel

# An answer's size is bounded before it is read: room for vectors of 8,192 numbers as text, and some words beside them.
ANSWER_BYTES_A_TEXT: Final = 200_000
ANSWER_BYTES_BESIDE: Final = 100_000
DIMENSION_MAX: Final = 8_192


class OpenAIEmbedder:
    """Retries are the caller's. The key is sent to this URL and stands nowhere else: redirects are not followed."""

    def __init__(
        self, url: str, *, key: str | None, model: str, dimension: int | None, most_at_once: int, timeout_ms: int
    ) -> None:
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_ms / 1000)
        self._url = f"{url.rstrip('/')}/embeddings"
        self._name = model
        self._asked_dimension = dimension
        self._dimension = dimension or 0
        self._most_at_once = most_at_once
        self._timeout_ms = timeout_ms

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
        await self._client.aclose()

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
        if self._client.is_closed:
            raise EmbeddingFailed("The embedder is closed.")
        try:
            # httpx counts the time between two bytes: an endpoint that trickles would never be late.
            async with asyncio.timeout(self._timeout_ms / 1000):
                async with self._client.stream("POST", self._url, content=body) as answer:
                    _check_status(answer)
                    return await _read_body(answer, most_bytes)
        except (TimeoutError, httpx.TimeoutException):
            raise EmbeddingFailed(f"The endpoint did not answer within {self._timeout_ms} ms.") from None
        except httpx.HTTPError as error:
            # Its message may quote a header, and the key with it.
            raise EmbeddingFailed(f"The endpoint cannot be used: {type(error).__name__}.") from None


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


def _check_status(answer: httpx.Response) -> None:
    status = answer.status_code
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise EmbeddingFailed(f"The endpoint refused the key ({status}): see embedder_key.")
    if status == httpx.codes.NOT_FOUND:
        raise EmbeddingFailed("The endpoint knows no such address or model (404): see embedder_url and embedder_model.")
    if status != httpx.codes.OK:
        # Nothing of the body: it may repeat the key, or the texts.
        raise EmbeddingFailed(f"The endpoint answered with the status {status}.")


async def _read_body(answer: httpx.Response, most_bytes: int) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise EmbeddingFailed("The endpoint compressed its answer, which it was asked not to do.")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise EmbeddingFailed(f"The endpoint's answer is longer than {most_bytes} bytes.")
    return bytes(body)


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
