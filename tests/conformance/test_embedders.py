"""Every embedder keeps what the port promises: the default, the extra, and an endpoint that answers over HTTP."""

from collections.abc import Iterator

import pytest

from fieldstone.backends.models.onnx import OnnxEmbedder
from fieldstone.backends.models.openai import OpenAIEmbedder
from fieldstone.backends.models.static import StaticEmbedder
from fieldstone.testing.embedder import EmbedderTests, OpenEmbedder
from tests.models import endpoint


class TestStatic(EmbedderTests):
    @pytest.fixture
    def open_embedder(self) -> OpenEmbedder:
        return StaticEmbedder


class TestOnnx(EmbedderTests):
    @pytest.fixture
    def open_embedder(self) -> OpenEmbedder:
        return OnnxEmbedder


class TestOpenAI(EmbedderTests):
    @pytest.fixture(params=[endpoint.in_numbers, endpoint.in_base64], ids=["numbers", "base64"])
    def open_embedder(self, request: pytest.FixtureRequest) -> Iterator[OpenEmbedder]:
        with endpoint.serving(request.param) as server:
            yield lambda: OpenAIEmbedder(
                server.url,
                key="k",
                model="bag",
                dimension=None,
                most_at_once=endpoint.MOST_AT_ONCE,
                timeout_ms=10_000,
            )
