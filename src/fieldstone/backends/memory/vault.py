"""A tenant's secrets in a dictionary."""

from collections.abc import Sequence

from fieldstone.ports.vault import KeptSecret


class MemoryVault:
    def __init__(self) -> None:
        self._version = 0
        self._secrets: dict[str, KeptSecret] = {}

    def version(self) -> int:
        return self._version

    def secrets(self) -> Sequence[KeptSecret]:
        return sorted(self._secrets.values())

    def put(self, secret: KeptSecret) -> None:
        self._secrets[secret.id] = secret
        self._version += 1

    def drop(self, secret_id: str) -> bool:
        self._version += 1
        return self._secrets.pop(secret_id, None) is not None
