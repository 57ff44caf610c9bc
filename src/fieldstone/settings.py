"""Settings: one typed value, read once, from a file and from the environment. The later source wins."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

ENV_PREFIX: Final = "FIELDSTONE_"
DEFAULT_DB: Final = "fieldstone.db"

SECRET_PREFIX: Final = "FIELDSTONE_SECRET_"

EmbedderKind = Literal["static", "onnx", "openai", "none"]
RedactionPolicy = Literal["rewrite", "refuse"]
EvictionKind = Literal["archive", "delete"]


class Secret:
    """A setting that nothing prints: only who asks for it by name sees it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __str__(self) -> str:
        return "***"

    __repr__ = __str__


class TenantSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a tenant has otherwise than the others: a table [tenants.NAME] in the file. None: as the others."""

    redaction: RedactionPolicy | None = None
    vouch_authority: int | None = None
    cross_session: bool | None = None


class OpenWopSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The OpenWOP memory host: a table [openwop] in the file."""

    enabled: bool = True
    share: bool = False  # every agent of the tenant sees what is in memories
    detect_conflicts: bool = False  # among entries
    max_entry_bytes: int = 65_536
    compaction: bool = True
    compaction_schedule: str | None = None  # cron, UTC; None: by call only
    compaction_min_entries: int = 50  # a memory with fewer is left as it is
    compaction_keep_newest: int = 20
    max_input_entries: int = 1_000
    max_output_bytes: int = 65_536
    evict: EvictionKind = "archive"
    distillation: bool = True
    distillation_schedule: str | None = None
    max_token_budget: int = 100_000
    consolidation: bool = True
    consolidation_schedule: str | None = None


class WebhookSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where events are sent as they happen: a table [[webhooks]] in the file."""

    url: str
    types: tuple[str, ...] = ()  # none: all of them
    secret_env: str  # the variable that holds the key of the signature
    tenant: str | None = None  # None: the one of the settings


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every setting, its default, and what it decides (SETTING_HELP)."""

    db: str = DEFAULT_DB
    url: str | None = None
    key: Secret | None = None
    ca_file: str | None = None
    host: str = "127.0.0.1"
    port: int = 8420
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    tenant: str = "local"
    field: str = "main"
    max_bytes: int | None = None
    max_body_bytes: int = 8_000_000
    conformance_level: int = 1
    memory_types: tuple[str, ...] = ()
    epoch_leap: int = 10_000
    log_reads: bool = True
    remember_replies_hours: float = 24.0
    embedder: EmbedderKind = "static"
    embedder_url: str | None = None
    embedder_key: Secret | None = None
    embedder_model: str | None = None
    embedder_dimension: int | None = None
    embedder_batch: int = 64
    embedder_timeout_ms: int = 10_000
    enrichment_timeout_ms: int = 50
    detect_conflicts: bool = True
    detection_timeout_ms: int = 50
    judge_url: str | None = None
    judge_key: Secret | None = None
    judge_model: str | None = None
    judge_timeout_ms: int = 10_000
    summarizer_url: str | None = None
    summarizer_key: Secret | None = None
    summarizer_model: str | None = None
    summarizer_timeout_ms: int = 30_000
    weights: dict[str, float] = {}
    rate_per_second: float | None = None
    jwt_jwks: str | None = None
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    jwt_tenant_claim: str = "tenant"
    secrets_key: Secret | None = None
    redaction: RedactionPolicy = "rewrite"
    vouch_authority: int = 0
    cross_session: bool = False
    tenants: dict[str, TenantSettings] = {}
    openwop: OpenWopSettings = OpenWopSettings()
    webhooks: tuple[WebhookSettings, ...] = ()
    log_level: str = "info"
    log_format: str = "auto"


SETTING_HELP: Final[Mapping[str, str]] = {
    "db": "The store: a path of an SQLite file, sqlite:PATH, or memory:",
    "url": "A running server to use instead of a store, such as http://127.0.0.1:8420",
    "key": "The key to show to a server.",
    "ca_file": "The certificates to trust, for a server with TLS whose own the system does not know.",
    "host": "The address to serve on. Without keys or tokens only a loopback address.",
    "port": "The port to serve on.",
    "hosts": "Names by which callers reach the server, beside its address; with keys and on all addresses: any.",
    "origins": "Origins of web pages that may use the server, such as https://app.example.org",
    "tls_cert": "A file with the server's certificate chain: it is served over TLS.",
    "tls_key": "A file with the certificate's private key.",
    "tenant": "Whose memory it is, in a store that is opened without a server; there the key says it.",
    "field": "Which field of the store.",
    "max_bytes": "How large the store's file may get, index and journals not counted; past it writes get STORAGE_FULL.",
    "max_body_bytes": "The largest request body that the server takes.",
    "conformance_level": "Lower it to 0 to leave out what is above the protocol's Level 0.",
    "memory_types": "Memory types beside the protocol's own.",
    "epoch_leap": "How far ahead of the field's clock a caller's epoch may be.",
    "log_reads": "Whether ATTUNE and DETECT leave their compact event in the log.",
    "remember_replies_hours": "How long an answer is remembered for a message that is sent again.",
    "embedder": "What makes vectors of texts: static (in the package), onnx (better and slower, an extra), openai "
    "(an endpoint), or none.",
    "embedder_url": "The endpoint of openai, such as http://127.0.0.1:11434/v1",
    "embedder_key": "The endpoint's key, if it wants one.",
    "embedder_model": "The endpoint's model.",
    "embedder_dimension": "How many numbers a vector is to have, where the endpoint lets one choose; else it decides.",
    "embedder_batch": "How many texts the endpoint gets at once.",
    "embedder_timeout_ms": "How long the endpoint may take for an answer.",
    "enrichment_timeout_ms": "How long RECORD's answer waits for the unit's vector; a later one is made up for.",
    "detect_conflicts": "Whether the field itself looks for units that contradict each other.",
    "weights": "Weights of ATTUNE's factors that differ from the table's, as in lexical=0.5,recency=0.2",
    "detection_timeout_ms": "How long RECORD's answer waits for the search for conflicts; later ones are still found.",
    "rate_per_second": "How many requests a second a credential may send that has no rate of its own; else no limit.",
    "jwt_jwks": "The keys of an OpenID provider, whose tokens then open the server: a file, or a URL.",
    "jwt_issuer": "Who must have issued a token.",
    "jwt_audience": "Whom a token must be for.",
    "jwt_tenant_claim": "The claim that says whose memory it is.",
    "secrets_key": "Seals the registered secrets: base64 of 32 bytes. Else a file beside the store, STORE-access.key.",
    "redaction": "What becomes of a text that holds a secret: rewrite, or refuse.",
    "vouch_authority": "Units of agents below this authority are shown once one of it or above supports them; 0: all.",
    "cross_session": "Whether agents see what is in closed sessions that they are no member of.",
    "tenants": "What single tenants have otherwise: [tenants.NAME] with redaction, vouch_authority, cross_session.",
    "openwop": "The OpenWOP memory host: [openwop] with enabled, share, max_entry_bytes, compaction_schedule, evict "
    "and more; the guide for operators lists them.",
    "webhooks": "Where events are sent as they happen: [[webhooks]] with url, types, secret_env, tenant.",
    "judge_url": "An endpoint of OpenAI's chat that has a word in whether units contradict each other.",
    "judge_key": "The judge's key, if it wants one.",
    "judge_model": "The judge's model.",
    "judge_timeout_ms": "How long the judge may take for an answer. Without one the rules decide alone.",
    "summarizer_url": "An endpoint of OpenAI's chat that writes the syntheses of COMPACT.",
    "summarizer_key": "The summarizer's key, if it wants one.",
    "summarizer_model": "The summarizer's model.",
    "summarizer_timeout_ms": "How long the summarizer may take for a group. Without its answer the group is quoted.",
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
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if name == "weights":
        return {factor.strip(): weight for factor, _, weight in (part.partition("=") for part in parts)}
    return parts if name in ("memory_types", "hosts", "origins") else text


def _checked(name: str, value: Any, source: str, *, strict: bool = True) -> Any:
    expected = get_type_hints(Settings)[name]
    try:
        return msgspec.convert(value, expected, strict=strict, dec_hook=_secret)
    except msgspec.ValidationError as error:
        raise BadSettings(f"{name} ({source}) is wrong: {_wrong(expected, error)}. {SETTING_HELP[name]}") from error


def _wrong(expected: Any, error: msgspec.ValidationError) -> str:
    """What a plain setting takes; of a table what is wrong in it, where, and what it takes there."""
    kinds = get_args(expected) or (expected,)
    tables = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)]
    if not tables:
        return _takes(kinds)
    field = str(error).rstrip("`").rpartition(".")[2]
    hints = [hint for table in tables for name, hint in get_type_hints(table).items() if name == field]
    choices = [kind for hint in hints for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
    return f"{error}: {_takes(get_args(choices[0]))}" if choices else str(error)


def _takes(kinds: Sequence[Any]) -> str:
    return f"it takes {' or '.join(getattr(kind, '__name__', str(kind)) for kind in kinds)}"


def _whole(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    settings = Settings(**values)
    bounds = {
        "port": 0 <= settings.port <= 65_535,
        "conformance_level": 0 <= settings.conformance_level <= 1,
        "epoch_leap": settings.epoch_leap >= 0,
        "max_body_bytes": 1_000 <= settings.max_body_bytes <= 10_000_000,
        "max_bytes": settings.max_bytes is None or settings.max_bytes >= 1_000_000,
        "remember_replies_hours": settings.remember_replies_hours >= 0,
        "embedder_dimension": settings.embedder_dimension is None or 1 <= settings.embedder_dimension <= 8_192,
        "embedder_batch": 1 <= settings.embedder_batch <= 2_048,
        "embedder_timeout_ms": 1 <= settings.embedder_timeout_ms <= 600_000,
        "enrichment_timeout_ms": 0 <= settings.enrichment_timeout_ms <= 60_000,
        "detection_timeout_ms": 0 <= settings.detection_timeout_ms <= 60_000,
        "judge_timeout_ms": 1 <= settings.judge_timeout_ms <= 600_000,
        "summarizer_timeout_ms": 1 <= settings.summarizer_timeout_ms <= 600_000,
        "log_level": settings.log_level in ("debug", "info", "warning", "error"),
        "log_format": settings.log_format in ("json", "console", "auto"),
        "memory_types": len(settings.memory_types) <= 200,
        "rate_per_second": settings.rate_per_second is None or 0 < settings.rate_per_second < inf,
        "vouch_authority": 0 <= settings.vouch_authority <= 10,
        "tenants": all(0 <= (each.vouch_authority or 0) <= 10 for each in settings.tenants.values()),
        "tenant": bool(settings.tenant),
        "field": bool(settings.field),
    }
    for name, fine in bounds.items():
        if not fine:
            raise BadSettings(f"{name} ({sources[name]}) is out of its range. {SETTING_HELP[name]}")
    _check_embedder(settings, sources)
    _check_chat(settings, sources, "judge")
    _check_chat(settings, sources, "summarizer")
    _check_together(settings, sources, ("tls_cert", "tls_key"))
    _check_together(settings, sources, ("jwt_jwks", "jwt_issuer", "jwt_audience"))
    return settings


def _check_together(settings: Settings, sources: Mapping[str, str], names: Sequence[str]) -> None:
    """One without the others is a mistake that nobody would notice."""
    given = [name for name in names if getattr(settings, name)]
    missing = [name for name in names if not getattr(settings, name)]
    if given and missing:
        raise BadSettings(f"{given[0]} ({sources[given[0]]}) needs {missing[0]}. {SETTING_HELP[missing[0]]}")


def secrets_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Secrets that come with the process: FIELDSTONE_SECRET_NAME=value registers the value under the id `name`."""
    return {
        name.removeprefix(SECRET_PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(SECRET_PREFIX) and len(name) > len(SECRET_PREFIX) and value
    }


_OF_ENDPOINT: Final = ("embedder_url", "embedder_key", "embedder_model", "embedder_dimension")


def _check_embedder(settings: Settings, sources: Mapping[str, str]) -> None:
    """An endpoint that is half described, or described and not used, is a mistake that nobody would notice."""
    given = [name for name in _OF_ENDPOINT if getattr(settings, name) is not None]
    if settings.embedder in ("static", "onnx") and given:
        raise BadSettings(
            f"{given[0]} ({sources[given[0]]}) is for embedder = openai, and embedder is {settings.embedder}."
        )
    if settings.embedder == "openai":
        for name in ("embedder_url", "embedder_model"):
            if not getattr(settings, name):
                raise BadSettings(f"embedder = openai ({sources['embedder']}) needs {name}. {SETTING_HELP[name]}")
        _check_endpoint(settings, sources, "embedder")


def _check_chat(settings: Settings, sources: Mapping[str, str], whose: str) -> None:
    """A model that one may do without: its endpoint is described whole, or not at all."""
    given = [name for name in (f"{whose}_url", f"{whose}_key", f"{whose}_model") if getattr(settings, name) is not None]
    if not given:
        return
    for name in (f"{whose}_url", f"{whose}_model"):
        if not getattr(settings, name):
            raise BadSettings(f"{given[0]} ({sources[given[0]]}) needs {name}. {SETTING_HELP[name]}")
    _check_endpoint(settings, sources, whose)


def _check_endpoint(settings: Settings, sources: Mapping[str, str], whose: str) -> None:
    url, key = f"{whose}_url", f"{whose}_key"
    address = split_url(getattr(settings, url) or "")
    if address is None or address.scheme not in ("http", "https") or not address.hostname:
        raise BadSettings(f"{url} ({sources[url]}) is not a URL of http or https.")
    if "@" in address.netloc or address.query or address.fragment:
        raise BadSettings(f"{url} ({sources[url]}) holds more than an address: use {key}.")
    secret: Secret | None = getattr(settings, key)
    text = secret.reveal() if secret else "none"
    if not text or not all("!" <= character <= "~" for character in text):
        raise BadSettings(f"{key} ({sources[key]}) is empty, or has characters that no key has.")


def split_url(url: str) -> SplitResult | None:
    """None: it is none."""
    try:
        address = urlsplit(url)
        _ = address.port  # it is read, and refused, only when it is asked for
    except ValueError:
        return None
    return address


def _secret(kind: type, value: Any) -> Secret:
    if kind is not Secret or not isinstance(value, str):
        raise TypeError("a secret is a text")
    return Secret(value)
