"""Fields: in this process, or behind a server."""

from __future__ import annotations

import os
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, Final

from fieldstone.settings import BadSettings, Settings
from fieldstone.wiring.access import given_secrets, open_access, open_vault
from fieldstone.wiring.addresses import is_url, store_path
from fieldstone.wiring.logs import log_to_stderr
from fieldstone.wiring.models import client_tools, open_models
from fieldstone.wiring.stores import open_planes, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fieldstone.client.door import Door
    from fieldstone.client.field import Field
    from fieldstone.field.field import LocalField
    from fieldstone.field.options import Models, Options
    from fieldstone.ports.access import AccessStore
    from fieldstone.ports.lease import Holder
    from fieldstone.ports.planes import PlaneFile
    from fieldstone.ports.store import Stores

LISTED_NAMES: Final = 20


class OtherField(Exception):
    """The server that holds the store serves another field of it, or another tenant."""


async def open_local_field(settings: Settings, *, program: str = "", create: bool = True) -> LocalField:
    """A field in this process, on the store that the settings name. Raises `StoreHeld` where another process has it,
    and without `create` `UnknownField` where the store does not hold it."""
    options, models = (
        field_options(settings, settings.tenant),
        open_models(settings),
    )  # first: what is wrong there takes no store
    access = open_access(settings)  # it opens nothing yet
    place = TenantPlace(open_stores(settings, program=program), access, open_planes(settings))
    try:
        if not create:
            await _require_field(place, settings)
        return await open_tenant_field(place, settings, settings.tenant, options, models, own=True)
    except BaseException:  # why: whatever it was, the store is given back
        await place.close()
        raise


class TenantPlace:
    """A store, and what lies beside it: keys and secrets, and the planes."""

    def __init__(self, stores: Stores, access: AccessStore, planes: PlaneFile) -> None:
        self.stores = stores
        self.access = access
        self.planes = planes

    def announce(self, who: Holder) -> None:
        self.stores.announce(who)

    async def tenants(self) -> Sequence[str]:
        return await self.stores.tenants()

    async def close(self) -> None:
        await self.planes.close()
        await self.stores.close()
        self.access.close()


async def _require_field(place: TenantPlace, settings: Settings) -> None:
    """A mistyped name must not look like an empty field. Whoever has the file may know which there are."""
    from fieldstone.ports.store import UnknownField

    there = await place.stores.fields()
    fields = [key.field for key in there if key.tenant == settings.tenant]
    if settings.field in fields:
        return
    if fields:
        raise UnknownField(f"{settings.db} holds no field {settings.field!r}, but: {_listed(fields)}.")
    tenants = sorted({key.tenant for key in there})
    raise UnknownField(f"{settings.db} holds no tenant {settings.tenant!r}, but: {_listed(tenants)}.")


def require_tenant(settings: Settings) -> None:
    """The tenant has a field in the file, or a key to it: a secret of a mistyped one would protect nobody.

    In a file that has no tenant yet, any may be the first.
    """
    from fieldstone.ports.store import UnknownField

    there = _known_tenants(settings)
    if there and settings.tenant not in there:
        raise UnknownField(
            f"{settings.db} holds no tenant {settings.tenant!r}, but: {_listed(sorted(there))}. Name one of them."
        )


def _known_tenants(settings: Settings) -> set[str]:
    from fieldstone.backends.sqlite.store import tenants_in

    access = open_access(settings)
    try:
        keys = access.keys()
    finally:
        access.close()
    path = store_path(settings.db)
    return {key.tenant for key in keys}.union(() if path is None else tenants_in(path))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - LISTED_NAMES
    return ", ".join(names[:LISTED_NAMES]) + (f" and {more:,} more" if more > 0 else "") or "none"


async def open_tenant_field(
    place: TenantPlace, settings: Settings, tenant: str, options: Options, models: Models, *, own: bool
) -> LocalField:
    """A tenant's field. With `own`, the place is the field's alone."""
    from fieldstone.backends.system import SystemClock, SystemIds, give_back_memory
    from fieldstone.field.opening import open_local
    from fieldstone.field.secrets import Secrets
    from fieldstone.ports.log import FieldKey
    from fieldstone.redact import shared_harness

    store = await place.stores.open(FieldKey(tenant, settings.field))
    secrets = Secrets(open_vault(place.access, settings, tenant), given_secrets(settings))
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
            planes=place.planes.open(f"{tenant}\0{settings.field}"),
        )
    except BaseException:  # why: whatever it was, the store is given back
        await store.close()
        raise
    give_back_memory()
    return field


def field_options(settings: Settings, tenant: str) -> Options:
    from fieldstone.core.validate import Rules
    from fieldstone.core.vocabulary import MEMORY_TYPES
    from fieldstone.field.options import MemoryOptions, Options
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
        memories=MemoryOptions(settings.openwop.share, settings.openwop.detect_conflicts),
    )


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

    _log_unless_told_otherwise()
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
    return await connect(url, key=key, ca_file=settings.ca_file, tools=lambda: client_tools(settings))


async def open_door(settings: Settings, *, program: str = "", create: bool = True) -> Door:
    """The store itself, or the server that holds it: whoever writes to a file, there is one writer."""
    from fieldstone.ports.lease import StoreHeld

    try:
        return await open_local_field(settings, program=program, create=create)
    except StoreHeld as held:
        if held.holder is None or held.holder.url is None:
            raise
        url = held.holder.url
    remote = await open_remote(url, settings)
    served = await remote.status()
    wrong = None
    if served.field != settings.field:
        wrong = f"serves the field {served.field!r}, and not {settings.field!r}"
    elif settings.tenant not in (served.tenant, Settings().tenant):  # the default is no wish: there a key says whose
        wrong = f"takes you for tenant {served.tenant!r}, and not {settings.tenant!r}: there the key says whose it is"
    if wrong is not None:
        await remote.close()
        raise OtherField(f"{url} holds {settings.db} and {wrong}.")
    return remote


def _log_unless_told_otherwise() -> None:
    """A program that has set its log up keeps it."""
    import structlog

    if not structlog.is_configured():
        log_to_stderr()
