"""A long answer is one as long as the credential counts that asked for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from starlette.types import Scope

from fieldstone.core.access import LOCAL
from fieldstone.servers.http import entrance
from fieldstone.servers.http.entrance import CredentialGone, Visit


class Revocable:
    def __init__(self) -> None:
        self.is_known = True

    async def __call__(self, _scope: Scope) -> bool:
        return self.is_known


class _Tenants:
    @asynccontextmanager
    async def visit(self, _tenant: str) -> AsyncIterator[None]:
        yield


async def pages() -> AsyncIterator[bytes]:
    for number in range(4):
        yield b"%d" % number


async def test_an_export_is_cut_off_when_its_key_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in an error: what was sent must not look like all of it."""
    monkeypatch.setattr(entrance, "LOOK_S", 0.0)
    key, nothing = Revocable(), cast(Any, None)
    visit = Visit({}, nothing, nothing, LOCAL, "acme", cast(Any, _Tenants()), lambda caller, times: None, key)
    assert [piece async for piece in visit.held(pages())] == [b"0", b"1", b"2", b"3"]
    told = visit.held(pages())
    assert [await anext(told), await anext(told)] == [b"0", b"1"]
    key.is_known = False
    with pytest.raises(CredentialGone):
        await anext(told)
