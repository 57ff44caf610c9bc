"""Keys and secrets of a store that may have none: their file is made when there is the first one to keep."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fieldstone.backends.sqlite.access import SqliteAccess, access_path
from fieldstone.ports.access import KeyRecord, SealedSecret

NOT_THERE: Final = -1  # no version that a file has


class LateAccess:
    """Another process may make the file at any time, so each question looks whether it is there."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = str(access_path(store))
        self._opened: SqliteAccess | None = None

    def version(self) -> int:
        there = self._there()
        return NOT_THERE if there is None else there.version()

    def keys(self) -> Sequence[KeyRecord]:
        there = self._there()
        return () if there is None else there.keys()

    def put_key(self, record: KeyRecord) -> None:
        self._made().put_key(record)

    def secrets(self) -> Sequence[SealedSecret]:
        there = self._there()
        return () if there is None else there.secrets()

    def put_secret(self, secret: SealedSecret) -> None:
        self._made().put_secret(secret)

    def drop_secret(self, tenant: str, secret_id: str) -> bool:
        there = self._there()
        return there is not None and there.drop_secret(tenant, secret_id)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _there(self) -> SqliteAccess | None:
        return self._made() if self._opened is not None or os.access(self._path, os.F_OK) else None

    def _made(self) -> SqliteAccess:
        if self._opened is None:
            self._opened = SqliteAccess(self._store)
        return self._opened
