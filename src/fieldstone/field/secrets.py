"""Known secrets: what a tenant says is one is found in every text from then on, in whatever disguise."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.errors import InvalidPayload, NotFound
from fieldstone.core.limits import MAX_ID_CHARS
from fieldstone.ports.vault import KeptSecret, Vault
from fieldstone.redact.known import Known, KnownSecret
from fieldstone.redact.strength import VALUE_CHARACTERS_MIN, check_value

MOST_CHARACTERS: Final = 16_384  # a private key of the larger kind fits
MOST_SECRETS: Final = 10_000

# It stands in markers, addresses and lists: a name, and nothing that a text could be hidden in.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HOLDER: Final = re.compile(rf"[^\x00-\x1f\x7f]{{1,{MAX_ID_CHARS}}}")


class SecretScope(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a value is dropped: with the tenant, the user or the run."""

    tenant: bool = False
    user: str | None = None
    run: str | None = None


class ListedSecret(Struct, frozen=True):
    id: str
    scope: SecretScope


def scope_name(scope: SecretScope) -> str:
    holders = [("user", scope.user), ("run", scope.run)]
    named = [f"{kind}:{holder}" for kind, holder in holders if holder is not None and _HOLDER.fullmatch(holder)]
    if scope.tenant:
        named.append("tenant")
    if len(named) != 1 or sum(holder is not None for _, holder in holders) + scope.tenant != 1:
        raise InvalidPayload('scope must be one of {"tenant": true}, {"user": id} and {"run": id}.')
    return named[0]


def scope_of(name: str) -> SecretScope:
    kind, _, holder = name.partition(":")
    match kind:
        case "user":
            return SecretScope(user=holder)
        case "run":
            return SecretScope(run=holder)
        case _:
            return SecretScope(tenant=True)


class Secrets:
    """`given` come with the process, from its environment and settings, and are listed nowhere."""

    def __init__(self, vault: Vault, given: Sequence[KnownSecret] = ()) -> None:
        self._vault = vault
        self._given = tuple(given)
        self._version: int | None = None
        self._known: tuple[KnownSecret, ...] = ()

    def known(self) -> tuple[KnownSecret, ...]:
        """The same tuple as long as nobody has changed anything."""
        version = self._vault.version()
        if version != self._version:
            kept = (KnownSecret(secret.id, secret.value) for secret in self._vault.secrets())
            known = (*self._given, *kept)
            if known != self._known:  # else it was somebody else's key or secret that changed
                self._known = known
            self._version = version
        return self._known

    def put(self, secret_id: str, value: str, scope: SecretScope) -> bool:
        """Whether the value is weak: then it is found in plain form only."""
        secret = self.checked(secret_id, value, scope)
        refuse_told(secret, self.known())
        return self.keep(secret)

    def checked(self, secret_id: str, value: str, scope: SecretScope) -> KeptSecret:
        """What can be kept. Raises `InvalidPayload`."""
        if not _ID.fullmatch(secret_id):
            raise InvalidPayload("A secret's id is 1 to 128 letters, digits, dots, hyphens and underscores.")
        if not VALUE_CHARACTERS_MIN <= len(value) <= MOST_CHARACTERS:
            raise InvalidPayload(f"A secret's value has {VALUE_CHARACTERS_MIN} to {MOST_CHARACTERS} characters.")
        told = f"{secret_id}\n{scope_name(scope)}".casefold()
        if any(one.casefold() in told for one in (value, *(each.value for each in self.known()))):
            raise told_secret()
        if len(self.known()) >= MOST_SECRETS:
            raise InvalidPayload(f"There are {MOST_SECRETS} secrets already, which is the most.")
        secret = KeptSecret(secret_id, scope_name(scope), value)
        refuse_told(secret, [KnownSecret(secret_id, value)])
        return secret

    def keep(self, secret: KeptSecret) -> bool:
        """Whether the value is weak."""
        self._vault.put(secret)
        return check_value(secret.value) is not None

    def list(self) -> Sequence[ListedSecret]:
        return [ListedSecret(secret.id, scope_of(secret.scope)) for secret in self._vault.secrets()]

    def scope(self, secret_id: str) -> SecretScope:
        for secret in self.list():
            if secret.id == secret_id:
                return secret.scope
        raise _unknown()

    def drop(self, secret_id: str) -> None:
        if not self._vault.drop(secret_id):
            raise _unknown()


def refuse_told(secret: KeptSecret, known: Sequence[KnownSecret]) -> None:
    """Id and scope stand in lists and markers: a secret in disguise would come out with each of them."""
    if known and Known(known).spans(f"{secret.id}\n{secret.scope}".encode()):
        raise told_secret()


def told_secret() -> InvalidPayload:
    return InvalidPayload("The id or the scope holds a secret itself.")


def _unknown() -> NotFound:
    return NotFound("There is no such secret.", suggested_action="List the secrets.")
