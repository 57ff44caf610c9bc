"""`fieldstone keys`"""

import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click
from msgspec import DecodeError, Struct, json

from fieldstone import wiring
from fieldstone.cli.door import require_store, settings_for
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json
from fieldstone.core.limits import DEFAULT_AUTHORITY, MAX_AUTHORITY
from fieldstone.settings import Settings

if TYPE_CHECKING:
    import httpx

    from fieldstone.servers.auth.keys import Keys, ListedKey, MadeKey, NewKey

TIMEOUT_S: Final = 30.0
_SPANS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def moment(text: str) -> datetime:
    """A span from now, or a date. What says no zone is UTC."""
    try:
        if span := re.fullmatch(r"(\d{1,6})([mhdw])", text):
            return datetime.now(UTC) + int(span[1]) * _SPANS[span[2]]
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{text!r} is neither a span such as 30d or 12h nor a date such as 2027-01-31."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@click.group("keys")
def command() -> None:
    """Keys: who may use a server, and for what.

    They lie beside the store, and a running server notices every change at once. Without any key a server is open for
    one local operator; the first key closes it for good, and every request needs one.

    \b
    Examples:
      fieldstone keys create --tenant acme --db team.db
      fieldstone keys list --db team.db
    """


@command.command()
@click.option("--tenant", required=True, metavar="NAME", help="Whose memory the key opens.")
@click.option(
    "--authority",
    type=click.IntRange(0, MAX_AUTHORITY),
    default=DEFAULT_AUTHORITY,
    show_default=True,
    help="The most that it grants: 10 operator, 8 session creator, 6 senior, 4 standard, 2 observer, 0 audit.",
)
@click.option("--agent", "agents", multiple=True, metavar="ID", help="Only for this agent; may be given several times.")
@click.option("--expires", type=moment, metavar="WHEN", help="30d, 12h, or a date such as 2027-01-31 (UTC).")
@click.option("--rate", type=float, metavar="N", help="The most requests a second.")
@click.option("--quota-units", type=click.IntRange(min=0), metavar="N", help="The most units it may record.")
@json_option
@where_options
def create(
    where: Where,
    as_json: bool,
    tenant: str,
    authority: int,
    agents: tuple[str, ...],
    expires: datetime | None,
    rate: float | None,
    quota_units: int | None,
) -> None:
    """Make a key, and show it this once.

    The key alone goes to stdout, so that it can be piped to where it is kept.

    \b
    Examples:
      fieldstone keys create --tenant acme --authority 10 --db team.db
      fieldstone keys create --tenant acme --agent ada --agent ben --expires 30d --rate 50 --json
      FIELDSTONE_KEY=... fieldstone keys create --tenant acme --url https://memory.example.org
    """
    with _opened(where, make=True) as keys:
        made = keys.create(
            import_module("fieldstone.servers.auth.keys").NewKey(
                tenant=tenant,
                authority=authority,
                agents=agents or None,
                expires=expires,
                rate_per_second=rate,
                quota_units=quota_units,
            )
        )
    _print_made(made, as_json)


@command.command("list")
@click.option("--tenant", metavar="NAME", help="Only keys of this tenant.")
@json_option
@where_options
def list_keys(where: Where, as_json: bool, tenant: str | None) -> None:
    """List the keys, without what would open anything.

    Revoked and expired ones, too: keys are never deleted.

    \b
    Examples:
      fieldstone keys list --db team.db
      fieldstone keys list --tenant acme --json
    """
    with _opened(where) as keys:
        found = keys.list(tenant)
    if as_json:
        print_json({"keys": found})
    elif found:
        _print_table(found)
    else:
        click.echo("There are no keys." if tenant is None else f"Tenant {tenant!r} has no keys.", err=True)


@command.command()
@click.argument("key_id", metavar="ID")
@json_option
@where_options
def revoke(where: Where, as_json: bool, key_id: str) -> None:
    """Revoke a key: from now on it opens nothing.

    \b
    Example:
      fieldstone keys revoke key-0123456789abcdef --db team.db
    """
    with _opened(where) as keys:
        keys.revoke(key_id)
    if as_json:
        print_json({"id": key_id, "status": "revoked"})
    else:
        click.echo(f"{one_line(key_id)} is revoked.")


@command.command()
@click.argument("key_id", metavar="ID")
@click.option("--expires", type=moment, metavar="WHEN", help="Its new end: 30d, 12h, or a date. Else it stays.")
@json_option
@where_options
def rotate(where: Where, as_json: bool, key_id: str, expires: datetime | None) -> None:
    """Give a key a new secret, and show it this once.

    Its id stays, and its agents stay bound to it. The old secret stops at once. With --expires one that has expired
    opens again; one that was revoked never does.

    \b
    Examples:
      fieldstone keys rotate key-0123456789abcdef --db team.db
      fieldstone keys rotate key-0123456789abcdef --expires 30d --db team.db
    """
    with _opened(where) as keys:
        made = keys.rotate(key_id, expires=expires)
    _print_made(made, as_json)


def _print_made(made: "MadeKey", as_json: bool) -> None:
    if as_json:
        print_json(made._asdict())
        return
    click.echo(made.key)
    click.echo(f"This is {made.id}. It is shown this once: keep it where secrets are kept.", err=True)


def _print_table(keys: "Sequence[ListedKey]") -> None:
    rows = [("id", "tenant", "authority", "status", "expires", "agents"), *map(_row, keys)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(key: "ListedKey") -> tuple[str, ...]:
    agents = "any" if key.agents is None else ", ".join(key.agents)
    cells = (key.id, key.tenant, str(key.authority), key.status, key.expires_at or "never", agents)
    return tuple(map(one_line, cells))


@contextmanager
def _opened(where: Where, *, make: bool = False) -> "Iterator[Keys | RemoteKeys]":
    """The store's own keys, also while a server has the store; or those behind the server that is named."""
    settings = settings_for(where).values
    if settings.url is not None:
        with _client(settings.url, settings) as client:
            yield RemoteKeys(client)
        return
    if wiring.store_path(settings.db) is None:
        raise Refused("error: A store in memory has no keys that a command could reach: use --url, or a file.")
    with wiring.opened_keys(settings) as keys:
        if not make and not keys.any():
            require_store(settings)  # keys may be there before the store is; of neither there is a mistyped path
        yield keys


# --- over HTTP -------------------------------------------------------------------------------------------------------


class RemoteKeys:
    """The same as `Keys`, behind a server, which wants a key of authority 10 for it."""

    def __init__(self, client: "httpx.Client") -> None:
        self._client = client

    def create(self, new: "NewKey") -> "MadeKey":
        return self._made("POST", "/v1/keys", content=json.encode(new))

    def list(self, tenant: str | None = None) -> "Sequence[ListedKey]":
        listed: type[ListedKey] = import_module("fieldstone.servers.auth.keys").ListedKey
        found = self._ask("GET", "/v1/keys", dict[str, list[listed]])  # type: ignore[valid-type]
        keys: Sequence[ListedKey] = found["keys"]
        return [key for key in keys if tenant in (None, key.tenant)]

    def revoke(self, key_id: str) -> None:
        self._ask("DELETE", f"/v1/keys/{quote(key_id, safe='')}", None)

    def rotate(self, key_id: str, *, expires: datetime | None = None) -> "MadeKey":
        renewal = {} if expires is None else {"expires": expires}
        return self._made("POST", f"/v1/keys/{quote(key_id, safe='')}/rotate", content=json.encode(renewal))

    def _made(self, method: str, path: str, **how: Any) -> "MadeKey":
        found: _Made = self._ask(method, path, _Made, **how)
        made: MadeKey = import_module("fieldstone.servers.auth.keys").MadeKey(found.id, found.key)
        return made

    def _ask(self, method: str, path: str, reply: Any, **how: Any) -> Any:
        answer = self._client.request(method, path, **how)
        try:
            if not answer.is_success:  # a redirect, too: what was asked for was not done
                errors = import_module("fieldstone.wire.errors")
                raise errors.error_from(json.decode(answer.content, type=errors.ErrorBody), answer.status_code)
            return None if reply is None else json.decode(answer.content, type=reply)
        except DecodeError as error:
            raise Refused(f"error: {self._client.base_url} answered with something that is not a Field's.") from error


class _Made(Struct, frozen=True):
    id: str
    key: str


def _client(url: str, settings: Settings) -> "httpx.Client":
    """Redirects are not followed: the key goes to this address and to no other."""
    headers = {"content-type": "application/json"}
    if settings.key is not None:
        headers["authorization"] = f"Bearer {settings.key.reveal()}"
    client: httpx.Client = import_module("httpx").Client(
        base_url=url.rstrip("/"),
        headers=headers,
        timeout=TIMEOUT_S,
        verify=True if settings.ca_file is None else ssl.create_default_context(cafile=settings.ca_file),
    )
    return client
