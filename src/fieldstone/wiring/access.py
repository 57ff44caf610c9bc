"""Keys and secrets beside a store."""

from __future__ import annotations

import os
from contextlib import contextmanager
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from fieldstone.settings import SECRET_PREFIX, Settings, secrets_in
from fieldstone.wiring.addresses import store_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fieldstone.backends.sealing import Sealer
    from fieldstone.field.secrets import Secrets
    from fieldstone.ports.access import AccessStore
    from fieldstone.ports.vault import Vault
    from fieldstone.redact.known import KnownSecret
    from fieldstone.servers.auth.keys import Keys


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
        yield Secrets(open_vault(access, settings, settings.tenant))
    finally:
        access.close()


def open_vault(access: AccessStore, settings: Settings, tenant: str) -> Vault:
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


def given_secrets(settings: Settings) -> list[KnownSecret]:
    """Those of the environment, and the keys that the settings themselves hold."""
    from fieldstone.redact.known import KnownSecret
    from fieldstone.redact.strength import Weakness, check_value

    own = {name: getattr(settings, name) for name in _OWN_KEYS}
    given = {f"fieldstone.{name}": secret.reveal() for name, secret in own.items() if secret is not None}
    hooks = {f"fieldstone.webhooks.{at}": os.environ.get(hook.secret_env) for at, hook in enumerate(settings.webhooks)}
    given |= {name: value for name, value in hooks.items() if value}
    given |= secrets_in(os.environ)
    short = [name for name, value in given.items() if check_value(value) is Weakness.TOO_SHORT]
    for name in secrets_in(os.environ).keys() & short:
        _warn_of_short(name)
    return [KnownSecret(*each) for each in given.items() if check_value(each[1]) is not Weakness.TOO_SHORT]


def _warn_of_short(name: str) -> None:
    """Whoever gave it counts on it, and it would be found nowhere."""
    import structlog

    why = "its value is shorter than a secret may be: it is not looked for"
    structlog.get_logger("fieldstone.secrets").warning(why, variable=SECRET_PREFIX + name.upper())
