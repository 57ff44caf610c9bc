"""Texts as vectors: what is similar in meaning lies close together."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class EmbeddingModel(Struct, frozen=True):
    """Vectors of two models cannot be compared: the name is another one whenever the vectors would be."""

    name: str  # "static/wordllama-256", "onnx/granite-30m", "openai/<model>"
    dimension: int  # 0 where only the first answer of an endpoint tells


class EmbeddingFailed(Exception):
    """Why there are no vectors, in a sentence. Nothing was changed: the same texts may be tried again."""


class Embedder(Protocol):
    """Documents and queries are embedded alike: none of our models tells them apart."""

    @property
    def model(self) -> EmbeddingModel: ...

    @property
    def most_at_once(self) -> int:
        """How many texts one call should bring: fewer waste its overhead, more make others wait. More are accepted."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length for each text, in their order, or `EmbeddingFailed` and no row at all.

        A text that has nothing to embed gets a row of zeros; a very long one is embedded by its beginning. A text's
        row does not depend on the other texts of the call. The event loop goes on meanwhile: no turn of it takes more
        than a millisecond or so. The first call also loads the model, if only with no texts at all.
        """
        ...

    async def close(self) -> None:
        """Later calls fail with `EmbeddingFailed`, and so may those under way."""
        ...
