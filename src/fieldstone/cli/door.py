"""Opening the field that a command is about: the store itself, the server that holds it, or the one that is named."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import click
from msgspec.structs import replace

import fieldstone
from fieldstone import wiring
from fieldstone.cli.failures import Refused, advice, is_damage, unreadable
from fieldstone.cli.options import Where
from fieldstone.core.errors import Forbidden
from fieldstone.ports.lease import StoreHeld
from fieldstone.settings import BadSettings, LoadedSettings, Settings, load_settings

if TYPE_CHECKING:
    from fieldstone.client.agent import Agent
    from fieldstone.client.door import Door
    from fieldstone.client.field import Field
    from fieldstone.field.field import LocalField
    from fieldstone.ports.lease import Lease
    from fieldstone.ports.store import Store

OPERATOR_ROLE: Final = "operator"
OPERATOR_AUTHORITIES: Final = (10, 8, 6)  # the highest that the key grants: to purge, to forget, to compact
# Another command is done in a moment, and a server that is starting soon says where it is: those are waited for.
HELD_TRIES: Final = 100
HELD_PAUSE_S: Final = 0.1

_CLOSENESS: Final = ("default", "file", "variable", "command")  # first words of a setting's source, weakest first
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine. Ctrl-C ends it at once.

    asyncio's own handler would cancel it at its next pause; a long walk over a log has none, nor has a read of stdin.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        return asyncio.run(work)
    finally:
        signal.signal(signal.SIGINT, before)


@asynccontextmanager
async def opened(where: Where, *, make: bool = False) -> "AsyncIterator[Field]":
    """The field, open. Only with `make` is a store made where there is none, or the field that was named in it: what
    is mistyped must not look empty."""
    loaded = settings_for(where)
    settings = loaded.values
    if settings.url is None and not make:
        require_store(settings)
    wiring.log_to_stderr()
    program = program_name()
    create = make or not _names_a_field(loaded) or wiring.store_path(settings.db) is None

    async def door() -> "Door":
        if settings.url is not None:
            return await wiring.open_remote(settings.url, settings)
        try:
            return await unless_held(lambda: wiring.open_door(settings, program=program, create=create))
        except Exception as error:  # why: a damaged file makes its readers raise anything; what is not damage goes on
            if not is_damage(error):
                raise
            raise Refused("\n".join((f"error: {unreadable(error)}", *advice(error)))) from error

    async with fieldstone.Field(door) as field:
        if loaded.sources["field"] != "default" and local_field(field) is None:
            await _require_field(field, settings.field)
        if where.tenant is not None and local_field(field) is None:
            await _require_tenant(field, where.tenant)
        if loaded.sources["tenant"] == "default":
            await _tell_of_other_tenants(field)
        yield field


@asynccontextmanager
async def opened_for_a_while(settings: Settings) -> "AsyncIterator[Field]":
    """A field in memory, with these settings and nothing in it; it is gone afterwards."""
    wiring.log_to_stderr()
    async with fieldstone.Field(lambda: wiring.open_local_field(replace(settings, db=wiring.MEMORY[0]))) as field:
        yield field


async def on_store(
    where: Where, here: "Callable[[Store], Awaitable[T]]", there: "Callable[[Field], Awaitable[T]]"
) -> T:
    """Work on the bare store, or `there`, through the server that has it.

    A damaged store can be opened like this where a field could not read its state back from it.
    """
    settings = settings_for(where).values
    if settings.url is None:
        require_store(settings)
        try:
            async with _opened_store(settings) as store:
                return await here(store)
        except StoreHeld as held:
            if held.holder is None or held.holder.url is None:
                raise
            where = where._replace(db=None, url=held.holder.url)
    async with opened(where) as field:
        return await there(field)


@asynccontextmanager
async def _opened_store(settings: Settings) -> "AsyncIterator[Store]":
    wiring.log_to_stderr()
    program = program_name()

    async def open_store() -> "tuple[Store, Lease | None]":
        return wiring.open_store(settings, program=program, create=False)

    store, lease = await unless_held(open_store)
    try:
        yield store
    finally:
        try:
            await store.close()
        finally:
            if lease is not None:
                lease.release()


def settings_for(where: Where) -> LoadedSettings:
    """The settings of a command: `url` is set where it is about a server, and None where it is about a store."""
    given = {"db": where.db, "url": where.url, "field": where.field, "tenant": where.tenant}
    loaded = load_settings(config=where.config, given=given)
    return LoadedSettings(replace(loaded.values, url=_server(loaded)), loaded.sources)


def _names_a_field(loaded: LoadedSettings) -> bool:
    return any(loaded.sources[name] != "default" for name in ("field", "tenant"))


def require_store(settings: Settings) -> None:
    path = wiring.store_path(settings.db)
    if path is not None and not path.exists():
        raise Refused(
            f"error: There is no store at {path}. `fieldstone record`, `import` and `serve` make one; "
            "--db, FIELDSTONE_DB or --url name another."
        )


def local_field(field: "Field") -> "LocalField | None":
    """The field itself where it is open in this process, and not behind a server."""
    kind: type[LocalField] = import_module("fieldstone.field.field").LocalField
    return field.door if isinstance(field.door, kind) else None


async def _tell_of_other_tenants(field: "Field") -> None:
    """Whoever used a server with keys, and then the file by itself, would take it for empty."""
    here = local_field(field)
    others = [] if here is None else await here.other_tenants()
    if here is not None and others and (await here.status()).units == 0:
        names = ", ".join(others[:5])
        click.echo(
            f"note: this is tenant local, which holds no unit. FIELDSTONE_TENANT names another: {names}.", err=True
        )


async def join(field: "Field", agent_id: str, role: str | None) -> "Agent":
    for authority in OPERATOR_AUTHORITIES:
        try:
            return await field.agent(agent_id, role=role or OPERATOR_ROLE, authority=authority)
        except Forbidden:  # a server with keys: then it is what the key grants
            continue
    return await field.agent(agent_id, role=role or OPERATOR_ROLE)


async def unless_held(attempt: Callable[[], Awaitable[T]]) -> T:
    for _ in range(HELD_TRIES):
        try:
            return await attempt()
        except StoreHeld as held:
            if not _is_brief(held):
                raise
        await asyncio.sleep(HELD_PAUSE_S)
    return await attempt()


def program_name() -> str:
    """What the next one reads who finds the store held."""
    return f"fieldstone {click.get_current_context().info_name}"


async def _require_field(field: "Field", name: str) -> None:
    """A server serves one field. Whoever asked for another must not write to this one unawares."""
    served = (await field.status()).field
    if served != name:
        raise Refused(f"error: The server serves the field {served!r}, and not {name!r}.")


async def _require_tenant(field: "Field", name: str) -> None:
    """The key says whose it is. Whoever named another with --tenant must not act on this one unawares."""
    served = (await field.status()).tenant
    if served != name:
        raise Refused(f"error: The server takes you for tenant {served!r}, and not {name!r}: the key says whose it is.")


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _is_brief(held: StoreHeld) -> bool:
    """A command, or one that is just writing down who it is. A script of somebody's may hold the store for hours."""
    return held.holder is None or (held.holder.url is None and held.holder.program.startswith("fieldstone"))


def _server(loaded: LoadedSettings) -> str | None:
    """Of a store and a server, the one that was said closer to the command; of two said alike, the server."""
    values = loaded.values
    store_at, server_at = (_CLOSENESS.index(loaded.sources[name].split()[0]) for name in ("db", "url"))
    if values.url is not None and server_at >= store_at:
        return _checked(values.url)
    return _checked(values.db) if wiring.is_url(values.db) else None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_right = wiring.is_url(url) and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an impossible port, or brackets that do not close
        is_right = False
    if not is_right:
        raise BadSettings(f"{url} is not a server's address. It looks like http://127.0.0.1:8420.")
    return url
