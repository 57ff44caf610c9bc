"""An endpoint that fails, hangs or lies costs a sentence, and never the key."""

import base64
import gzip
import logging
import traceback
from typing import Any

import numpy as np
import pytest
from msgspec import json

from fieldstone.backends.models.openai import ANSWER_BYTES_A_TEXT, ANSWER_BYTES_BESIDE, OpenAIEmbedder
from fieldstone.ports.embedder import EmbeddingFailed
from tests.models.endpoint import DIMENSION, Answer, Items, in_numbers, serving
from tests.models.server import Handler, breaking_off, hanging, trickling

KEY = "a-key-that-nobody-sees"
PATIENT_MS = 10_000
SOON_MS = 200


def opened(
    url: str, *, dimension: int | None = None, timeout_ms: int = PATIENT_MS, most_at_once: int = 16
) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        url, key=KEY, model="bag", dimension=dimension, most_at_once=most_at_once, timeout_ms=timeout_ms
    )


async def failure(answer: Answer, *, timeout_ms: int = PATIENT_MS, dimension: int | None = None) -> str:
    """What is said of an endpoint that answers so, after a look that the key is in no part of it."""
    with serving(answer) as endpoint:
        embedder = opened(endpoint.url, timeout_ms=timeout_ms, dimension=dimension)
        with pytest.raises(EmbeddingFailed) as caught:
            await embedder.embed(["alpha", "beta"])
        assert endpoint.requests[0][0]["authorization"] == f"Bearer {KEY}"
        await embedder.close()
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def with_status(status: int, **headers: str) -> Answer:
    def answer(handler: Handler, items: Items) -> None:
        handler.send(f"Incorrect API key: {KEY}".encode(), status=status, headers=headers)

    return answer


def with_data(make: Any) -> Answer:
    return lambda handler, items: in_numbers(handler, make(items))


def with_body(body: bytes, **headers: str) -> Answer:
    return lambda handler, items: handler.send(body, headers=headers)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "refused the request (400)"),
        (401, "refused the key"),
        (403, "refused the key"),
        (404, "no such address or model"),
        (429, "status 429"),
        (500, "status 500"),
        (204, "status 204"),
    ],
)
async def test_a_refusal_is_told_by_its_status_and_not_by_its_body(status: int, said: str) -> None:
    assert said in await failure(with_status(status))


async def test_a_redirect_is_not_followed_since_the_key_would_go_along() -> None:
    with serving(in_numbers) as other:
        assert "status 307" in await failure(with_status(307, location=f"{other.url}/embeddings"))
        assert other.requests == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"data": [1]}',
        b'{"data": [{"index": 0, "embedding": [1, "two"]}]}',
        b'{"data": [{"index": 0, "embedding": {}}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
        b'{"data": [{"index": 0, "embedding": "!!"}, {"index": 1, "embedding": "AAAA"}]}',
        b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_an_answer_that_is_no_list_of_vectors_is_refused(body: bytes) -> None:
    assert "not a list of embeddings" in await failure(with_body(body))


@pytest.mark.parametrize(
    "make",
    [
        lambda items: [],
        lambda items: items[:1],
        lambda items: [*items, {"index": 2, "embedding": items[0]["embedding"]}],
        lambda items: [items[0], items[0]],
        lambda items: [items[0], {**items[1], "index": -1}],
    ],
    ids=["none", "fewer", "more", "twice", "negative"],
)
async def test_a_wrong_count_of_vectors_is_refused(make: Any) -> None:
    assert "not with one for each of 2 texts" in await failure(with_data(make))


@pytest.mark.parametrize(
    "make",
    [
        lambda items: [{"index": number, "embedding": []} for number in range(2)],
        lambda items: [items[0], {"index": 1, "embedding": items[1]["embedding"][:-1]}],
        lambda items: [{"index": number, "embedding": [1.0] * 8_193} for number in range(2)],
    ],
    ids=["empty", "ragged", "huge"],
)
async def test_vectors_of_a_wrong_length_are_refused(make: Any) -> None:
    assert "vectors of no length" in await failure(with_data(make))


def encoded(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    "embedding",
    [[0.0, 0.0], [1e308, 1e308], encoded(1, np.nan), encoded(np.inf, 1), encoded(0, 0)],
    ids=["zeros", "overflow", "nan", "infinite", "encoded zeros"],
)
async def test_a_vector_without_a_direction_is_refused(embedding: Any) -> None:
    answer = with_data(lambda items: [{"index": number, "embedding": embedding} for number in range(2)])
    assert "no direction" in await failure(answer)


async def test_another_dimension_than_was_asked_for_is_refused() -> None:
    assert f"vectors of {DIMENSION} numbers; 8 were expected" in await failure(in_numbers, dimension=8)


async def test_a_dimension_that_changes_between_answers_is_refused() -> None:
    def answer(handler: Handler, items: Items) -> None:
        if len(handler.server.requests) > 1:
            items = [{**item, "embedding": [1.0]} for item in items]
        in_numbers(handler, items)

    with serving(answer) as endpoint:
        embedder = opened(endpoint.url)
        await embedder.embed(["alpha"])
        with pytest.raises(EmbeddingFailed, match="vectors of 1 numbers; 64 were expected"):
            await embedder.embed(["beta"])
        await embedder.close()


async def test_an_endpoint_that_hangs_is_given_up_in_time() -> None:
    assert "within 200 ms" in await failure(lambda handler, items: hanging(handler), timeout_ms=SOON_MS)


async def test_an_endpoint_that_trickles_is_given_up_in_time() -> None:
    assert "within 200 ms" in await failure(lambda handler, items: trickling(handler), timeout_ms=SOON_MS)


async def test_an_answer_that_never_ends_is_not_read_to_its_end() -> None:
    most = 2 * ANSWER_BYTES_A_TEXT + ANSWER_BYTES_BESIDE
    assert f"longer than {most} bytes" in await failure(with_body(b" " * (most + 1)))


async def test_a_compressed_answer_is_refused_however_small_it_looks() -> None:
    body = gzip.compress(b" " * 10_000_000)
    assert "compressed" in await failure(with_body(body, **{"content-encoding": "gzip"}))


async def test_an_answer_that_breaks_off_is_told() -> None:
    assert "cannot be used: RemoteProtocolError" in await failure(lambda handler, items: breaking_off(handler))


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    with serving(in_numbers) as endpoint:
        url = endpoint.url
    embedder = opened(url)
    with pytest.raises(EmbeddingFailed, match="cannot be used: ConnectError"):
        await embedder.embed(["alpha"])
    await embedder.close()


async def test_after_a_failure_the_same_texts_may_be_tried_again() -> None:
    def answer(handler: Handler, items: Items) -> None:
        if len(handler.server.requests) == 1:
            handler.send(b"", status=503)
        else:
            in_numbers(handler, items)

    with serving(answer) as endpoint:
        embedder = opened(endpoint.url)
        with pytest.raises(EmbeddingFailed, match="status 503"):
            await embedder.embed(["alpha"])
        assert (await embedder.embed(["alpha"])).shape == (1, DIMENSION)
        await embedder.close()


async def test_a_request_holds_the_model_and_the_texts_and_asks_for_a_dimension_only_if_one_is_set() -> None:
    with serving(in_numbers) as endpoint:
        for dimension in (None, DIMENSION):
            embedder = opened(endpoint.url + "/", dimension=dimension)
            await embedder.embed(["alpha", "", "beta"])
            await embedder.close()
    (headers, first), (_, second) = endpoint.requests
    assert headers["path"] == "/v1/embeddings"
    assert first == {"model": "bag", "input": ["alpha", "beta"], "encoding_format": "base64"}
    assert second == {**first, "dimensions": DIMENSION}


async def test_the_dimension_is_unknown_until_the_first_answer_unless_it_is_set() -> None:
    with serving(in_numbers) as endpoint:
        embedder = opened(endpoint.url)
        assert embedder.model.dimension == 0
        assert (await embedder.embed(["", ""])).shape == (2, 0)
        await embedder.embed(["alpha"])
        assert embedder.model.dimension == DIMENSION
        await embedder.close()
        assert opened(endpoint.url, dimension=8).model.dimension == 8


async def test_texts_go_out_in_batches() -> None:
    with serving(in_numbers) as endpoint:
        embedder = opened(endpoint.url, most_at_once=3)
        await embedder.embed([f"text {number}" for number in range(7)])
        await embedder.close()
    assert [len(body["input"]) for _, body in endpoint.requests] == [3, 3, 1]


async def test_an_endpoint_without_a_key_gets_none() -> None:
    with serving(in_numbers) as endpoint:
        embedder = OpenAIEmbedder(
            endpoint.url, key=None, model="bag", dimension=None, most_at_once=1, timeout_ms=PATIENT_MS
        )
        await embedder.embed(["alpha"])
        await embedder.close()
    assert "authorization" not in endpoint.requests[0][0]


async def test_the_key_is_in_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(in_numbers) as endpoint:
        embedder = opened(endpoint.url)
        await embedder.embed(["alpha"])
        await embedder.close()
    assert KEY not in caplog.text
    assert KEY not in repr(embedder) + repr(embedder.model)
    assert json.encode(embedder.model)
