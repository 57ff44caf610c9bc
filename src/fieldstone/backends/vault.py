"""A tenant's secrets, sealed, in the store for access."""

from collections.abc import Callable, Sequence

from fieldstone.backends.sealing import Sealer
from fieldstone.ports.access import AccessStore, SealedSecret
from fieldstone.ports.vault import KeptSecret


class SealedVault:
    """`open_sealer` is asked at the first secret: a store without any needs no key."""

    def __init__(self, access: AccessStore, tenant: str, open_sealer: Callable[[], Sealer]) -> None:
        self._access = access
        self._tenant = tenant
        self._open_sealer = open_sealer
        self._sealer: Sealer | None = None

    def version(self) -> int:
        return self._access.version()

    def secrets(self) -> Sequence[KeptSecret]:
        sealed = [secret for secret in self._access.secrets() if secret.tenant == self._tenant]
        return [KeptSecret(secret.id, secret.scope, self._opened(secret)) for secret in sealed]

    def put(self, secret: KeptSecret) -> None:
        sealed = self._key().seal(secret.value.encode(), self._context(secret.id))
        self._access.put_secret(SealedSecret(id=secret.id, tenant=self._tenant, scope=secret.scope, sealed=sealed))

    def drop(self, secret_id: str) -> bool:
        return self._access.drop_secret(self._tenant, secret_id)

    def _opened(self, secret: SealedSecret) -> str:
        return self._key().open(secret.sealed, self._context(secret.id)).decode()

    def _context(self, secret_id: str) -> bytes:
        """Bound to the seal: a value that is moved to another tenant or id cannot be opened there."""
        return f"{self._tenant}\0{secret_id}".encode()

    def _key(self) -> Sealer:
        if self._sealer is None:
            self._sealer = self._open_sealer()
        return self._sealer
