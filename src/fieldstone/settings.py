"""Settings: one typed value, read once, from a file and from the environment. The later source wins."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import Struct

ENV_PREFIX: Final = "FIELDSTONE_"
DEFAULT_DB: Final = "fieldstone.db"


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every setting, its default, and what it decides (SETTING_HELP)."""

    db: str = DEFAULT_DB
    url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8420
    tenant: str = "local"
    field: str = "main"
    max_bytes: int | None = None
    max_body_bytes: int = 8_000_000
    conformance_level: int = 1
    memory_types: tuple[str, ...] = ()
    epoch_leap: int = 10_000
    log_reads: bool = True
    remember_replies_hours: float = 24.0
    log_level: str = "info"
    log_format: str = "auto"


SETTING_HELP: Final[Mapping[str, str]] = {
    "db": "The store: a path of an SQLite file, sqlite:PATH, or memory:",
    "url": "A running server to use instead of a store, such as http://127.0.0.1:8420",
    "host": "The address to serve on. Only loopback addresses, until keys exist.",
    "port": "The port to serve on.",
    "tenant": "Whose memory it is.",
    "field": "Which field of the store.",
    "max_bytes": "How large the store's file may get, index and journals not counted; past it writes get STORAGE_FULL.",
    "max_body_bytes": "The largest request body that the server takes.",
    "conformance_level": "Lower it to 0 to leave out what is above the protocol's Level 0.",
    "memory_types": "Memory types beside the protocol's own.",
    "epoch_leap": "How far ahead of the field's clock a caller's epoch may be.",
    "log_reads": "Whether ATTUNE and DETECT leave their compact event in the log.",
    "remember_replies_hours": "How long an answer is remembered for a message that is sent again.",
    "log_level": "debug, info, warning or error.",
    "log_format": "json, console, or auto: console in a terminal, json elsewhere.",
}


class BadSettings(Exception):
    """A setting is wrong. The message names it, where it stands, and what it takes."""


class LoadedSettings(Struct, frozen=True):
    values: Settings
    sources: dict[str, str]  # setting → where its value comes from


def load_settings(
    *, config: Path | None = None, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> LoadedSettings:
    """Defaults, then the file, then FIELDSTONE_*, then what the command line gave (None: not given)."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(SETTING_HELP, "default")
    if config is not None:
        for name, value in _read_file(config).items():
            values[name] = _checked(name, value, f"file {config}")
            sources[name] = f"file {config}"
    for name, text in _from_environment(os.environ if environ is None else environ).items():
        variable = ENV_PREFIX + name.upper()
        values[name] = _checked(name, _parsed(name, text), f"variable {variable}", strict=False)
        sources[name] = f"variable {variable}"
    for name, value in (given or {}).items():
        if value is not None:
            values[name] = _checked(name, value, f"option --{name.replace('_', '-')}")
            sources[name] = "command line"
    return LoadedSettings(_whole(values, sources), sources)


def _read_file(config: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(config.read_text())
    except OSError as error:
        raise BadSettings(f"The settings file {config} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"The settings file {config} is not valid TOML: {error}.") from error
    unknown = sorted(set(table) - set(SETTING_HELP))
    if unknown:
        raise BadSettings(f"Unknown settings in {config}: {', '.join(unknown)}. See `fieldstone config show`.")
    return table


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    names = {name: environ[ENV_PREFIX + name.upper()] for name in SETTING_HELP if ENV_PREFIX + name.upper() in environ}
    return {name: text for name, text in names.items() if text != ""}


def _parsed(name: str, text: str) -> Any:
    return [part.strip() for part in text.split(",") if part.strip()] if name == "memory_types" else text


def _checked(name: str, value: Any, source: str, *, strict: bool = True) -> Any:
    expected = get_type_hints(Settings)[name]
    try:
        return msgspec.convert(value, expected, strict=strict)
    except msgspec.ValidationError as error:
        kinds = [getattr(kind, "__name__", str(kind)) for kind in get_args(expected) or (expected,)]
        raise BadSettings(f"{name} ({source}) is wrong: it takes {' or '.join(kinds)}. {SETTING_HELP[name]}") from error


def _whole(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    settings = Settings(**values)
    bounds = {
        "port": 0 <= settings.port <= 65_535,
        "conformance_level": 0 <= settings.conformance_level <= 1,
        "epoch_leap": settings.epoch_leap >= 0,
        "max_body_bytes": 1_000 <= settings.max_body_bytes <= 10_000_000,
        "max_bytes": settings.max_bytes is None or settings.max_bytes >= 1_000_000,
        "remember_replies_hours": settings.remember_replies_hours >= 0,
        "log_level": settings.log_level in ("debug", "info", "warning", "error"),
        "log_format": settings.log_format in ("json", "console", "auto"),
        "memory_types": len(settings.memory_types) <= 200,
        "tenant": bool(settings.tenant),
        "field": bool(settings.field),
    }
    for name, fine in bounds.items():
        if not fine:
            raise BadSettings(f"{name} ({sources[name]}) is out of its range. {SETTING_HELP[name]}")
    return settings
