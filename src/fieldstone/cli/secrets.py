"""`fieldstone secrets`"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import click

from fieldstone import wiring
from fieldstone.cli.door import local_field, opened, require_store, run, settings_for
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Command, Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json, progress

if TYPE_CHECKING:
    from fieldstone.field.secrets import ListedSecret, Secrets, SecretScope
    from fieldstone.field.sweep import Swept


@click.group("secrets")
def command() -> None:
    """Known secrets: values that must never be stored, in whatever disguise.

    They lie sealed beside the store; a running server knows every change at once. What was stored before a secret was
    registered is cleared by a sweep.

    \b
    Examples:
      printf %s "$DB_PASSWORD" | fieldstone secrets add db-password --db team.db
      fieldstone secrets sweep --db team.db
    """


def of_tenant(function: Command) -> Command:
    """--tenant, as part of `where`."""

    def with_tenant(*args: Any, where: Where, tenant: str | None, **rest: Any) -> None:
        function(*args, where=where._replace(tenant=tenant), **rest)

    with_tenant.__name__, with_tenant.__doc__ = function.__name__, function.__doc__
    option = click.option("--tenant", metavar="NAME", help="Whose secrets; with --url the key says it.")
    return option(where_options(with_tenant))


@command.command(context_settings={"allow_extra_args": True})
@click.argument("secret_id", metavar="ID")
@click.option("--user", metavar="ID", help="It belongs to a user, and is dropped with them.")
@click.option("--run", "run_id", metavar="ID", help="It belongs to a run, and is dropped with it.")
@json_option
@of_tenant
def add(secret_id: str, user: str | None, run_id: str | None, where: Where, as_json: bool) -> None:
    """Register a value, which is read from standard input.

    From then on it is found in every text that is written. One line break at its end is not part of it.

    \b
    Examples:
      fieldstone secrets add db-password --db team.db < password.txt
      printf %s "$TOKEN" | fieldstone secrets add ci-token --run 4711 --url http://127.0.0.1:8420
    """
    if click.get_current_context().args:  # click would repeat it, and stderr is kept in many a log
        raise click.UsageError("The value is no argument: it is read from standard input.")
    if user is not None and run_id is not None:
        raise click.UsageError("--user and --run exclude each other.")
    value = _read_value()
    kind: type[SecretScope] = import_module("fieldstone.field.secrets").SecretScope
    scope = kind(tenant=user is None and run_id is None, user=user, run=run_id)

    async def work() -> bool:
        async with _registry(where) as registry:
            return await registry.put_secret(secret_id, value, scope)

    is_weak = run(work())
    if as_json:
        print_json({"id": secret_id, "scope": scope, "weak": is_weak})
        return
    if is_weak:
        click.echo("warning: the value is easy to guess, and is found in plain form only.", err=True)
    click.echo(
        f"{secret_id} is registered. `fieldstone secrets sweep` clears it from what is stored already.", err=True
    )


@command.command("list")
@json_option
@of_tenant
def list_secrets(where: Where, as_json: bool) -> None:
    """List the ids and scopes. The values never come out again.

    \b
    Example:
      fieldstone secrets list --db team.db
    """

    async def work() -> "Sequence[ListedSecret]":
        async with _registry(where) as registry:
            return await registry.secrets()

    listed = run(work())
    if as_json:
        print_json({"secrets": listed})
        return
    for secret in listed:
        click.echo(f"{one_line(secret.id)}  {one_line(_told(secret.scope))}")
    if not listed:
        click.echo("There are no known secrets.", err=True)


@command.command()
@click.argument("secret_id", metavar="ID")
@json_option
@of_tenant
def remove(secret_id: str, where: Where, as_json: bool) -> None:
    """Forget a secret: from then on it may be stored.

    \b
    Example:
      fieldstone secrets remove db-password --db team.db
    """

    async def work() -> None:
        async with _registry(where) as registry:
            await registry.drop_secret(secret_id)

    run(work())
    if as_json:
        print_json({"id": secret_id, "status": "forgotten"})
    else:
        click.echo(f"{one_line(secret_id)} is forgotten.", err=True)


@command.command()
@json_option
@of_tenant
def sweep(where: Where, as_json: bool) -> None:
    """Clear known secrets from everything that is stored.

    Every text takes the road of a new one; what changes is replaced, and the log says so. Ctrl-C or a crash loses
    nothing: the next sweep goes on where this one was.

    \b
    Examples:
      fieldstone secrets sweep --db team.db
      fieldstone secrets sweep --url http://127.0.0.1:8420 --json
    """
    swept = run(_sweep(where))
    if as_json:
        print_json(swept)
        return
    click.echo(
        f"{swept.texts:,} texts looked at, {swept.replaced:,} rewritten; {', '.join(swept.secrets) or 'nothing found'}"
    )
    planes = swept.planes
    if planes.events or planes.snapshots or planes.messages:
        click.echo(f"Of runs: {planes.events:,} events and {planes.messages:,} messages rewritten.")
    if planes.names:  # whoever used them has to know
        click.echo(f"Of streams, threads and readers {planes.names:,} have a new name, such as [REDACTED:ID]#1.")
    if swept.residue != "none":
        click.echo("A reader of an older state is open: what is left in the journal goes when it ends.", err=True)


async def _sweep(where: Where) -> "Swept":
    async with opened(where) as field:
        here = local_field(field)
        if here is None:
            return await field.sweep()
        with progress("sweeping", (await field.status()).log_entries) as advance:
            return await here.sweep(advance)


class _Registry(Protocol):
    async def put_secret(self, secret_id: str, value: str, scope: "SecretScope") -> bool: ...

    async def secrets(self) -> "Sequence[ListedSecret]": ...

    async def drop_secret(self, secret_id: str) -> None: ...


class _Here:
    """The secrets of a store, also while a server has it."""

    def __init__(self, secrets: "Secrets") -> None:
        self._secrets = secrets

    async def put_secret(self, secret_id: str, value: str, scope: "SecretScope") -> bool:
        return self._secrets.put(secret_id, value, scope)

    async def secrets(self) -> "Sequence[ListedSecret]":
        return self._secrets.list()

    async def drop_secret(self, secret_id: str) -> None:
        self._secrets.drop(secret_id)


@asynccontextmanager
async def _registry(where: Where) -> AsyncIterator[_Registry]:
    settings = settings_for(where).values
    if settings.url is not None:
        async with opened(where) as field:
            yield field
        return
    if wiring.store_path(settings.db) is None:
        raise Refused("error: A store in memory has no secrets that a command could reach: use --url, or a file.")
    require_store(settings)
    wiring.require_tenant(settings)
    with wiring.opened_secrets(settings) as secrets:
        yield _Here(secrets)


def _read_value() -> str:
    if sys.stdin.isatty():
        value: str = click.prompt("value", hide_input=True, err=True)
        return value
    value = sys.stdin.read()
    return value.removesuffix("\n").removesuffix("\r")


def _told(scope: "SecretScope") -> str:
    if scope.user is not None:
        return f"user {scope.user}"
    return f"run {scope.run}" if scope.run is not None else "tenant"
