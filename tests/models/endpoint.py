"""An endpoint on loopback that speaks OpenAI's embeddings, well or badly."""

import base64
import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
from msgspec import json

from tests.models import server
from tests.models.server import Endpoint, Handler

DIMENSION: Final = 64
MOST_AT_ONCE: Final = 16

Items = list[dict[str, Any]]
Answer = Callable[[Handler, Items], None]


def serving(answer: Answer) -> AbstractContextManager[Endpoint]:
    """`answer` sends what the texts of a request get."""

    def embed(handler: Handler) -> None:
        vectors = [bag_of_words(text) for text in handler.body["input"]]
        answer(handler, [{"index": number, "embedding": row} for number, row in enumerate(vectors)])

    return server.serving(embed)


def in_numbers(handler: Handler, items: Items) -> None:
    handler.send(json.encode({"object": "list", "data": items, "usage": {"total_tokens": 1}}))


def in_base64(handler: Handler, items: Items) -> None:
    """In whatever order: `index` says whose it is."""
    for item in items:
        item["embedding"] = base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()
    in_numbers(handler, items[::-1])


def bag_of_words(text: str) -> list[float]:
    """Texts that share words lie close together. Not of unit length: that is the embedder's promise."""
    vector = np.zeros(DIMENSION)
    vector[0] = 0.01
    for word in re.findall(r"\w+", text.lower()):
        vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % DIMENSION] += 1
    return [float(number) for number in vector]
