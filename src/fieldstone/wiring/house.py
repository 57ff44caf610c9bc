"""A house of fields, for a server."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fieldstone.settings import BadSettings, Settings
from fieldstone.wiring.access import open_access
from fieldstone.wiring.addresses import is_url, store_path
from fieldstone.wiring.fields import TenantPlace, field_options, open_tenant_field
from fieldstone.wiring.models import open_models
from fieldstone.wiring.stores import holder, open_planes, open_stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fieldstone.field.field import LocalField
    from fieldstone.ports.store import Stores
    from fieldstone.ports.world import Clock
    from fieldstone.profiles.openwop.discovery import HostFeatures
    from fieldstone.profiles.openwop.schedules import HostSchedules
    from fieldstone.servers.auth.jwt import JwtTokens
    from fieldstone.servers.http.serve import House
    from fieldstone.servers.tenants import Tenants


SERVER_PROGRAM: Final = "fieldstone serve"


def serve(settings: Settings, *, conformance: bool = False, as_json: bool = False) -> None:
    """Serve the store over HTTP until SIGTERM or SIGINT. `as_json`: what it says on stdout is JSON.

    Raises `NonLoopbackHost`, `CannotListen`, `StoreHeld` and `UnknownStore`: each a sentence for whoever started it.
    """
    from fieldstone.servers.http.serve import serve as serve_http

    serve_http(settings, lambda: open_house(settings, conformance=conformance), as_json=as_json)


@asynccontextmanager
async def open_house(settings: Settings, *, conformance: bool = False) -> AsyncIterator[House]:
    """The fields of every tenant on one store, for a server. `conformance`: with the seams of OpenWOP's own suite."""
    from fieldstone.backends.system import SystemClock, SystemIds
    from fieldstone.servers.auth.credentials import Credentials
    from fieldstone.servers.auth.keys import Keys
    from fieldstone.servers.http.conformance import ConformanceRoutes
    from fieldstone.servers.http.entrance import Entrance
    from fieldstone.servers.http.serve import House, check_address
    from fieldstone.servers.tenants import Tenants
    from fieldstone.servers.webhooks import Webhooks, hooks_from

    hooks = hooks_from(settings, os.environ)
    host_schedules(settings)  # what is wrong there is told before the store is taken
    clock, access, host = SystemClock(), open_access(settings), host_features(settings, conformance=conformance)
    keys = Keys(access, clock)
    credentials = Credentials(keys, local_tenant=settings.tenant, tokens=_open_tokens(settings, clock))
    check_address(settings.host, is_open=credentials.is_open())  # before the store is taken
    models = replace(open_models(settings), shared=True)
    # To load the counter keeps every thread waiting for 60 ms: now, and not when it is first asked.
    await asyncio.to_thread(models.counter.count, "")
    place = TenantPlace(open_stores(settings, program=SERVER_PROGRAM), access, open_planes(settings))

    async def open_tenant(tenant: str) -> LocalField:
        field = await open_tenant_field(place, settings, tenant, field_options(settings, tenant), models, own=False)
        field.warm_up()  # the redaction rules load beside the first requests, not before them
        if host is not None:
            _accompany(field, settings, tenant)
        return field

    tenants = Tenants(open_tenant)
    webhooks = Webhooks(hooks, tenants, clock)
    looking = asyncio.ensure_future(_look_after(tenants, place.stores, settings))
    entrance = Entrance(tenants, credentials, clock, default_rate=settings.rate_per_second)
    try:
        if credentials.is_open():
            async with tenants.visit(settings.tenant):  # what is wrong with the store is told now, not to a caller
                pass
        webhooks.start()
        yield House(
            entrance,
            keys,
            _described(settings),
            lambda url: place.announce(holder(clock, SERVER_PROGRAM, url)),
            host,
            ConformanceRoutes(host, SystemIds()) if conformance and host is not None else None,
        )
    finally:
        looking.cancel()
        await asyncio.wait([looking])
        await webhooks.close()
        await tenants.close()
        await models.close()
        await place.close()


def _accompany(field: LocalField, settings: Settings, tenant: str) -> None:
    """What goes with a tenant's field while it is open: its memories' schedules, and who is told of its events."""
    from fieldstone.backends.system import SystemClock
    from fieldstone.profiles.openwop.schedules import MemorySchedules
    from fieldstone.servers.telemetry import Telemetry, otel_tell

    clock, host = SystemClock(), host_features(settings)
    if host is not None:
        schedules = MemorySchedules(field, clock, host_schedules(settings), host.limits)
        schedules.start()
        field.accompany(schedules)
    if (tell := otel_tell()) is not None:
        telemetry = Telemetry(field, tenant, tell)
        telemetry.start()
        field.accompany(telemetry)


def host_schedules(settings: Settings) -> HostSchedules:
    """When the memory host compacts, distils and consolidates by itself. Raises `BadSettings`."""
    from fieldstone.compaction.schedule import BadSchedule, parse_schedule
    from fieldstone.profiles.openwop.schedules import HostSchedules

    its = settings.openwop
    chores = {
        "compaction": its.compaction_schedule if its.compaction else None,
        "distillation": its.distillation_schedule if its.distillation else None,
        "consolidation": its.consolidation_schedule if its.consolidation else None,
    }
    for name, schedule in chores.items():
        try:
            if schedule is not None:
                parse_schedule(schedule)
        except BadSchedule as bad:
            raise BadSettings(f"openwop.{name}_schedule: {bad}") from bad
    return HostSchedules(**chores, min_entries=its.compaction_min_entries, keep_newest=its.compaction_keep_newest)


def host_features(settings: Settings, *, conformance: bool = False) -> HostFeatures | None:
    """The OpenWOP memory host, as far as it is on."""
    from fieldstone.profiles.openwop.conformance.fixtures import FIXTURES
    from fieldstone.profiles.openwop.discovery import HostFeatures
    from fieldstone.profiles.openwop.limits import HostLimits

    its = settings.openwop
    if not its.enabled:
        return None
    return HostFeatures(
        limits=HostLimits(
            max_entry_bytes=its.max_entry_bytes,
            max_input_entries=its.max_input_entries,
            max_output_bytes=min(its.max_output_bytes, its.max_entry_bytes),
            max_token_budget=its.max_token_budget,
            deletes=its.evict == "delete",
        ),
        semantic=settings.embedder != "none",
        compaction=its.compaction,
        distillation=its.distillation,
        distillation_scheduled=its.distillation_schedule is not None,
        consolidation=its.consolidation,
        max_body_bytes=settings.max_body_bytes,
        fixtures=FIXTURES if conformance else (),
    )


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
    if not is_url(settings.jwt_jwks) and not Path(settings.jwt_jwks).is_file():  # a mistyped one would let nobody in
        raise BadSettings(f"jwt_jwks: there is no file {settings.jwt_jwks}.")
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
