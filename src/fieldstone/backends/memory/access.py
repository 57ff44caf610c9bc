"""Keys and sealed secrets in dictionaries."""

from collections.abc import Sequence

from msgspec.structs import replace

from fieldstone.ports.access import KeyRecord, SealedSecret


class MemoryAccess:
    def __init__(self) -> None:
        self._version = 0
        self._keys: dict[str, KeyRecord] = {}
        self._secrets: dict[tuple[str, str], SealedSecret] = {}

    def version(self) -> int:
        return self._version

    def keys(self) -> Sequence[KeyRecord]:
        return sorted(self._keys.values(), key=lambda record: (record.created_ms, record.id))

    def put_key(self, record: KeyRecord) -> None:
        before = self._keys.get(record.id)
        if before is not None and before.revoked_ms is not None:
            record = replace(record, revoked_ms=before.revoked_ms)
        self._keys[record.id] = record
        self._version += 1

    def secrets(self) -> Sequence[SealedSecret]:
        return [secret for _, secret in sorted(self._secrets.items())]

    def put_secret(self, secret: SealedSecret) -> None:
        self._secrets[secret.tenant, secret.id] = secret
        self._version += 1

    def drop_secret(self, tenant: str, secret_id: str) -> bool:
        dropped = self._secrets.pop((tenant, secret_id), None)
        if dropped is not None:
            self._version += 1
        return dropped is not None

    def close(self) -> None:
        """Nothing to do: what was in memory goes with it."""
