"""Where a store is: a path, memory, or another server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

URL_SCHEMES: Final = ("http://", "https://")


MEMORY: Final = ("memory:", ":memory:")


class UnknownStore(Exception):
    """The store's address is of a kind that this version does not know."""


def is_url(address: str) -> bool:
    return address.startswith(URL_SCHEMES)


def store_path(address: str) -> Path | None:
    """The file behind a store's address; None for memory."""
    if address in MEMORY:
        return None
    scheme, separator, rest = address.partition(":")
    if separator and scheme == "sqlite":
        return _named(rest.removeprefix("//"))
    if separator and "/" not in scheme and len(scheme) > 1:
        raise UnknownStore(
            f"{scheme}: is not a store that this version knows. Give a path, sqlite:PATH, memory: or a server's URL."
        )
    return _named(address)


def _named(path: str) -> Path:
    """The other files of a store lie beside it, and are named after it: behind a symbolic link there is one store."""
    if not Path(path).name:
        raise UnknownStore(f"{path or 'An empty path'} names no file. A store's path looks like team.db.")
    return Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)
