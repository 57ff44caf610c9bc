"""API keys: made, listed, revoked, rotated, and checked on every request."""

import hmac
import math
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from fieldstone.core.access import Caller
from fieldstone.core.errors import Forbidden, InvalidPayload, InvalidTransition, NotFound, Unauthenticated
from fieldstone.core.limits import DEFAULT_AUTHORITY, MAX_AUTHORITY, MAX_ID_CHARS
from fieldstone.ports.access import AccessStore, KeyRecord
from fieldstone.ports.world import Clock
from fieldstone.retrieval.reading import timestamp
from fieldstone.servers.auth.bounds import Excess, Maker, excess_of

TOKEN_PREFIX: Final = "fsk_"
ID_BYTES: Final = 8
SECRET_BYTES: Final = 32
SALT_BYTES: Final = 16
DIGEST_BYTES: Final = 32
MAX_KEY_AGENTS: Final = 1_000
LATEST_MS: Final = 253_402_300_799_999  # the last moment that a timestamp can tell
MAX_QUOTA_UNITS: Final = 2**53 - 1  # the largest integer that every JSON client can hold

_OPERATOR: Final = Maker()  # who has the store itself is not bound
_BY_OTHERS: Final = "by an operator whose key has no such limit, or on the server's own store"

KeyStatus = Literal["active", "expired", "revoked"]

_INSTEAD: Final[dict[KeyStatus, str]] = {
    "expired": "Give it a new end as you rotate it (`expires`; `keys rotate ID --expires 30d`), or create a new key.",
    "revoked": "Create a new key: what was revoked never opens again.",
}

_TOKEN: Final = re.compile(r"fsk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


class MadeKey(NamedTuple):
    """The one time that the key itself is to be seen."""

    id: str
    key: str


class Renewal(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What changes of a key when it is rotated."""

    expires: Annotated[datetime, Meta(tz=True)] | None = None  # None: as before


class NewKey(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a key is to grant."""

    tenant: str
    authority: int = DEFAULT_AUTHORITY
    agents: tuple[str, ...] | None = None  # None: any agent that it registers
    expires: Annotated[datetime, Meta(tz=True)] | None = None
    rate_per_second: float | None = None
    quota_units: int | None = None


class ListedKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may be told of a key; nothing of it helps to guess one."""

    id: str
    tenant: str
    authority: int
    status: KeyStatus
    created_at: str
    agents: tuple[str, ...] | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    rate_per_second: float | None = None
    quota_units: int | None = None


class Granted(NamedTuple):
    """Whose memory a request is about, and what its credential grants."""

    tenant: str
    caller: Caller


class Keys:
    """All keys are held in memory. That is exact: the store's version tells when any process has changed one."""

    def __init__(self, store: AccessStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._known_at: int | None = None
        self._exist = False
        # A token with an unknown id is checked against this one, so that it takes the same steps as any other.
        self._nobody = _Known(_nobody(), Granted("", Caller(credential="", authority=0)))

    def create(self, new: NewKey, maker: Maker = _OPERATOR) -> MadeKey:
        """Raises `Forbidden` where it would grant more than its maker has."""
        number = secrets.token_hex(ID_BYTES)
        salt, digest, key = _new_secret(number)
        record = KeyRecord(
            id=f"key-{number}",
            tenant=new.tenant,
            authority=new.authority,
            agents=new.agents,
            salt=salt,
            digest=digest,
            created_ms=self._clock.now_ms(),
            expires_ms=None if new.expires is None else _ms(new.expires),
            rate_per_second=new.rate_per_second,
            quota_units=new.quota_units,
        )
        _check(record, record.created_ms)
        if excess := self._excess(record, maker):
            raise Forbidden(
                f"A key makes no key that may more than itself: {excess.field} must be {excess.must}.",
                suggested_action=f"Give {excess.field}: {excess.must}. Or have it made {_BY_OTHERS}.",
            )
        self._store.put_key(record)
        return MadeKey(record.id, key)

    def list(self, tenant: str | None = None) -> Sequence[ListedKey]:
        """Keys of the tenant, or with None of all of them; revoked and expired ones, too, which say that they are."""
        now_ms = self._clock.now_ms()
        return [
            _listed(known.record, now_ms) for known in self._current().values() if tenant in (None, known.record.tenant)
        ]

    def revoke(self, key_id: str, tenant: str | None = None) -> None:
        """From now on, in every process, it opens nothing. Revoking twice is no error."""
        record = self._find(key_id, tenant)
        if record.revoked_ms is None:
            self._store.put_key(replace(record, revoked_ms=self._clock.now_ms()))

    def rotate(
        self, key_id: str, tenant: str | None = None, maker: Maker = _OPERATOR, *, expires: datetime | None = None
    ) -> MadeKey:
        """The same id with a new secret, so that agents bound to the key stay bound. The old secret stops at once.
        `expires` is its new end; without one the old one stays.

        Whoever rotates a key has it then: so one that grants more than they have is refused (`Forbidden`).
        """
        record, now_ms = self._find(key_id, tenant), self._clock.now_ms()
        if expires is not None:
            record = replace(record, expires_ms=_ms(expires))
            _check(record, now_ms)
        status = _status(record, now_ms)
        if status != "active":
            raise InvalidTransition(f"The key is {status}.", suggested_action=_INSTEAD[status])
        if excess := self._excess(record, maker):
            raise Forbidden(
                f"A key rotates no key that may more than itself: its {excess.field} would have to be {excess.must}.",
                suggested_action=f"Have it rotated {_BY_OTHERS}; revoking it is open to you.",
            )
        salt, digest, key = _new_secret(record.id.removeprefix("key-"))
        self._store.put_key(replace(record, salt=salt, digest=digest))
        return MadeKey(record.id, key)

    def any(self) -> bool:
        """Whether there is a key, or ever was one: revoked ones count, so that it never becomes False again."""
        self._exist = self._exist or bool(self._current())
        return self._exist

    def caller(self, token: str) -> Granted:
        """Every refusal is the same: whether the id exists, or the key is revoked or expired, is nobody's business."""
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            raise Unauthenticated
        record, granted = self._current().get(f"key-{parts[1]}", self._nobody)
        is_right = hmac.compare_digest(_digest(parts[2], record.salt), record.digest)
        is_active = _status(record, self._clock.now_ms()) == "active"
        if not (is_right and is_active):
            raise Unauthenticated
        return granted

    def _current(self) -> "dict[str, _Known]":
        version = self._store.version()
        if version != self._known_at:
            records = self._store.keys()
            self._known = {record.id: _Known(record, Granted(record.tenant, _caller(record))) for record in records}
            # The version that was read first: what has changed between the two reads is noticed at the next request.
            self._known_at = version
        return self._known

    def _excess(self, record: KeyRecord, maker: Maker) -> Excess | None:
        credential = maker.caller.credential
        own = None if credential is None else self._current().get(credential)
        return excess_of(record, maker, None if own is None else own.record)

    def _find(self, key_id: str, tenant: str | None) -> KeyRecord:
        found = self._current().get(key_id)
        if found is None or tenant not in (None, found.record.tenant):
            raise NotFound("There is no such key.", suggested_action="List the keys.")
        return found.record


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)


def is_name(text: str) -> bool:
    """Whether it can name a tenant or an agent."""
    return 0 < len(text) <= MAX_ID_CHARS and text.isprintable() and not text.isspace()


class _Known(NamedTuple):
    record: KeyRecord
    granted: Granted


def _nobody() -> KeyRecord:
    """A key that nobody has: nothing is known whose digest this is."""
    salt, digest = secrets.token_bytes(SALT_BYTES), secrets.token_bytes(DIGEST_BYTES)
    return KeyRecord(id="", tenant="", authority=0, salt=salt, digest=digest, created_ms=0)


def _new_secret(number: str) -> tuple[bytes, bytes, str]:
    """Salt, digest, and the key."""
    salt, secret = secrets.token_bytes(SALT_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    return salt, _digest(secret, salt), f"{TOKEN_PREFIX}{number}_{secret}"


def _digest(secret: str, salt: bytes) -> bytes:
    # Fast on purpose: 256 random bits are not guessed, however fast the guesses are.
    return blake2b(secret.encode(), salt=salt, digest_size=DIGEST_BYTES, person=b"fieldstone key").digest()


def _caller(record: KeyRecord) -> Caller:
    return Caller(
        credential=record.id,
        authority=record.authority,
        agents=None if record.agents is None else frozenset(record.agents),
        rate_per_second=record.rate_per_second,
        quota_units=record.quota_units,
    )


def _status(record: KeyRecord, now_ms: int) -> KeyStatus:
    if record.revoked_ms is not None:
        return "revoked"
    return "expired" if record.expires_ms is not None and record.expires_ms <= now_ms else "active"


def _listed(record: KeyRecord, now_ms: int) -> ListedKey:
    return ListedKey(
        id=record.id,
        tenant=record.tenant,
        authority=record.authority,
        status=_status(record, now_ms),
        created_at=timestamp(record.created_ms),
        agents=record.agents,
        expires_at=None if record.expires_ms is None else timestamp(record.expires_ms),
        revoked_at=None if record.revoked_ms is None else timestamp(record.revoked_ms),
        rate_per_second=record.rate_per_second,
        quota_units=record.quota_units,
    )


def _check(new: KeyRecord, now_ms: int) -> None:
    if not is_name(new.tenant):
        raise InvalidPayload(f"tenant must be a name of 1 to {MAX_ID_CHARS} characters that can be seen.")
    if not 0 <= new.authority <= MAX_AUTHORITY:
        raise InvalidPayload(f"authority must be from 0 to {MAX_AUTHORITY}.")
    if new.agents is not None and not 1 <= len(new.agents) <= MAX_KEY_AGENTS:
        raise InvalidPayload(f"agents must name 1 to {MAX_KEY_AGENTS} agents; leave it out for any.")
    if not all(map(is_name, new.agents or ())):
        raise InvalidPayload(f"agents must be names of 1 to {MAX_ID_CHARS} characters that can be seen.")
    if new.expires_ms is not None and not now_ms < new.expires_ms <= LATEST_MS:
        raise InvalidPayload("expires must be in the future, and before the year 10000.")
    if new.rate_per_second is not None and not 0 < new.rate_per_second < math.inf:
        raise InvalidPayload("rate_per_second must be a number above 0.")
    if new.quota_units is not None and not 0 <= new.quota_units <= MAX_QUOTA_UNITS:
        raise InvalidPayload("quota_units must be from 0 to 2^53-1.")
