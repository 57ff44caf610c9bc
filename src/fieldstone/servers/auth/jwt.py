"""JSON web tokens of an OpenID provider, as an alternative to keys. It needs the extra `jwt`."""

import asyncio
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final, NamedTuple

import httpx
import jwt
import msgspec
import structlog
from msgspec import Struct

from fieldstone.core.access import Caller
from fieldstone.core.errors import Unauthenticated
from fieldstone.core.limits import DEFAULT_AUTHORITY, MAX_AUTHORITY
from fieldstone.ports.world import Clock
from fieldstone.servers.auth.keys import Granted, is_name

# Asymmetric ones only. With a shared secret, whoever can check a token could make one.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
REQUIRED_CLAIMS: Final = ("exp", "iss", "aud", "sub")
LEEWAY_S: Final = 30  # clocks of two machines differ
MOST_SECONDS: Final = 2**40  # 30,000 years: a larger number is no time, nor is NaN

FRESH_MS: Final = 10 * 60_000  # how long keys and checked tokens are believed without looking again
AGAIN_MS: Final = 60_000  # an unknown key id must not make us a tool to bother the provider with
OLDEST_MS: Final = 60 * 60_000  # a provider that is down does not lock everybody out at once, nor keep keys for ever
FETCH_TIMEOUT_S: Final = 5.0
MAX_DOCUMENT_BYTES: Final = 1_000_000
REMEMBERED_TOKENS: Final = 10_000

logger = structlog.get_logger("fieldstone.jwt")


class JwtRules(Struct, frozen=True, kw_only=True):
    """Whose tokens are believed, and which of their claims says what. `jwks` is a file's path or a URL."""

    jwks: str
    issuer: str
    audience: str
    tenant_claim: str = "tenant"
    authority_claim: str = "authority"
    agents_claim: str = "agents"


class JwtTokens:
    def __init__(self, rules: JwtRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._signing_keys = _SigningKeys(rules.jwks, clock)
        self._digest_key = token_bytes(32)
        self._accepted: dict[bytes, _Accepted] = {}

    async def caller(self, token: str) -> Granted:
        """Every refusal is the same to the caller; whoever debugs finds why in the log, without the token."""
        if not token.isascii():
            raise Unauthenticated
        now_ms = self._clock.now_ms()
        mark = blake2b(token.encode(), key=self._digest_key, digest_size=32).digest()
        accepted = self._accepted.get(mark)
        if accepted is None or accepted.until_ms <= now_ms:
            self._accepted.pop(mark, None)
            accepted = await self._check(token, now_ms)
            self._remember(mark, accepted)
        return accepted.granted

    async def _check(self, token: str, now_ms: int) -> "_Accepted":
        try:
            key = await self._signing_keys.find(_key_id(token))
            claims = _decoded(token, key, self._rules)
            expires_ms = _checked_times(claims, now_ms)
            return _Accepted(_granted(claims, self._rules), min(expires_ms, now_ms + FRESH_MS))
        except _Refused as refused:
            logger.debug("a token was refused", why=str(refused))
            raise Unauthenticated from None

    def _remember(self, mark: bytes, accepted: "_Accepted") -> None:
        if len(self._accepted) >= REMEMBERED_TOKENS:
            self._accepted.pop(next(iter(self._accepted)))
        self._accepted[mark] = accepted


class _Refused(Exception):
    """Why a token is not accepted. Nothing of the token stands in it."""


class _Accepted(NamedTuple):
    granted: Granted
    until_ms: int


# --- the provider's keys ---------------------------------------------------------------------------------------------


class _SigningKeys:
    """The provider's public keys by their ids: read when first needed, and again when old or when an id is unknown.

    Keys come from this one address, never from a token.
    """

    def __init__(self, address: str, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_ms: float | None = None
        self._tried_ms: float | None = None
        self._reading = asyncio.Lock()

    async def find(self, key_id: str) -> jwt.PyJWK:
        if self._is_due(key_id):
            async with self._reading:
                if self._is_due(key_id):  # else another request has just read them
                    await self._read()
        key = self._keys.get(key_id)
        if key is None:
            raise _Refused("no signing key has this id")
        if self._age_ms() > OLDEST_MS:
            raise _Refused("the signing keys are too old")
        return key

    def _is_due(self, key_id: str) -> bool:
        if self._tried_ms is not None and self._clock.monotonic_ms() - self._tried_ms < AGAIN_MS:
            return False
        return key_id not in self._keys or self._age_ms() > FRESH_MS

    def _age_ms(self) -> float:
        return float("inf") if self._read_ms is None else self._clock.monotonic_ms() - self._read_ms

    async def _read(self) -> None:
        """A provider that does not answer leaves the keys as they are, and says so in the log."""
        try:
            self._keys = await asyncio.to_thread(_load_keys, self._address)
            self._read_ms = self._clock.monotonic_ms()
        except _Unreadable as error:
            logger.warning("the signing keys cannot be read", why=str(error))
        self._tried_ms = self._clock.monotonic_ms()


class _Unreadable(Exception):
    """The keys cannot be read."""


class _Document(Struct, frozen=True):
    keys: list[dict[str, Any]]


def _load_keys(address: str) -> dict[str, jwt.PyJWK]:
    is_url = address.startswith(("http://", "https://"))
    body = _fetched(address) if is_url else _read_file(Path(address))
    try:
        found = msgspec.json.decode(body, type=_Document).keys
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _Unreadable("it is not a set of keys") from None
    keys = {key_id: key for entry in found for key_id, key in _usable(entry)}
    if not keys:
        raise _Unreadable("it holds no key that could be used")
    return keys


def _usable(entry: dict[str, Any]) -> Iterator[tuple[str, jwt.PyJWK]]:
    """The key, or nothing: a set may hold keys for other purposes, and of kinds that are not known here."""
    if not _may_sign(entry):
        return
    try:
        key = jwt.PyJWK(entry)
    except (jwt.PyJWTError, AttributeError, TypeError, ValueError):
        return
    if key.algorithm_name in ALGORITHMS:
        yield entry["kid"], key


def _may_sign(entry: dict[str, Any]) -> bool:
    """A public key with an id, for signatures. One that holds its private part, or a shared secret, is not used."""
    is_public = entry.get("kty") in ("RSA", "EC", "OKP") and "d" not in entry
    return is_public and isinstance(entry.get("kid"), str) and entry.get("use", "sig") == "sig"


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            body = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise _Unreadable(f"the file cannot be read: {error.strerror}") from None
    _check_size(body)
    return body


def _fetched(url: str) -> bytes:
    """In a thread of its own. httpx counts the time between two bytes; a server that trickles is stopped here."""
    deadline = time.monotonic() + FETCH_TIMEOUT_S
    body = bytearray()
    try:
        with httpx.Client(timeout=FETCH_TIMEOUT_S) as client, client.stream("GET", url) as answer:
            if answer.status_code != httpx.codes.OK:
                raise _Unreadable(f"the address answered with the status {answer.status_code}")
            for chunk in answer.iter_bytes(65_536):
                body += chunk
                _check_size(body)
                if time.monotonic() > deadline:
                    raise _Unreadable(f"the address took longer than {FETCH_TIMEOUT_S:g} s")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _Unreadable(f"the address cannot be used ({type(error).__name__})") from None
    return bytes(body)


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MAX_DOCUMENT_BYTES:
        raise _Unreadable(f"it is longer than {MAX_DOCUMENT_BYTES} bytes")


# --- one token -------------------------------------------------------------------------------------------------------


def _key_id(token: str) -> str:
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise _Refused(type(error).__name__) from None
    key_id = header.get("kid")
    if not isinstance(key_id, str):
        raise _Refused("its header names no key")
    return key_id


def _decoded(token: str, key: jwt.PyJWK, rules: JwtRules) -> dict[str, Any]:
    """Its claims, once signature, issuer and audience are right. Times are ours to check: the clock is an argument."""
    try:
        return jwt.decode(
            token,
            key,
            algorithms=ALGORITHMS,
            issuer=rules.issuer,
            audience=rules.audience,
            options={
                "require": list(REQUIRED_CLAIMS),
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "enforce_minimum_key_length": True,
            },
        )
    except jwt.PyJWTError as error:
        raise _Refused(type(error).__name__) from None


def _checked_times(claims: dict[str, Any], now_ms: int) -> int:
    """When it ends, in ms, the leeway counted in."""
    now_s = now_ms / 1_000
    expires_s = _seconds(claims["exp"])
    if expires_s + LEEWAY_S <= now_s:
        raise _Refused("it has expired")
    if any(_seconds(claims[name]) > now_s + LEEWAY_S for name in ("nbf", "iat") if name in claims):
        raise _Refused("it is not valid yet")
    return int((expires_s + LEEWAY_S) * 1_000)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_SECONDS:
        raise _Refused("a time in it is not a number of seconds")
    return value


def _granted(claims: dict[str, Any], rules: JwtRules) -> Granted:
    tenant = claims.get(rules.tenant_claim)
    if not isinstance(tenant, str) or not is_name(tenant):
        raise _Refused(f"its claim {rules.tenant_claim} names no tenant")
    if not is_name(claims["sub"]):
        raise _Refused("its claim sub names nobody")
    authority = claims.get(rules.authority_claim, DEFAULT_AUTHORITY)
    if isinstance(authority, bool) or not isinstance(authority, int) or not 0 <= authority <= MAX_AUTHORITY:
        raise _Refused(f"its claim {rules.authority_claim} is not a number from 0 to {MAX_AUTHORITY}")
    return Granted(tenant, Caller(_credential(claims), authority, _agents(claims, rules.agents_claim)))


def _agents(claims: dict[str, Any], claim: str) -> frozenset[str] | None:
    if claim not in claims:
        return None
    agents = claims[claim]
    if not isinstance(agents, list) or not all(isinstance(agent, str) and is_name(agent) for agent in agents):
        raise _Refused(f"its claim {claim} is not a list of agents")
    return frozenset(agents)


def _credential(claims: dict[str, Any]) -> str:
    """The same for every token that this issuer gives to this subject, so that agents stay bound to it."""
    who = msgspec.json.encode([claims["iss"], claims["sub"]])
    return f"jwt-{blake2b(who, digest_size=16, person=b'fieldstone jwt').hexdigest()}"
