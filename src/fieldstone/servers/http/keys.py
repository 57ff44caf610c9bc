"""Keys over HTTP: for operators, each for their own tenant."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.errors import Forbidden
from fieldstone.servers.auth.keys import Keys, ListedKey, NewKey
from fieldstone.servers.http.answers import Answer, done, reply
from fieldstone.servers.http.body import drain, read_json
from fieldstone.servers.http.entrance import Visit

_MANAGE: Final = "manage keys"


class KeyOnce(Struct, frozen=True):
    """The key itself is told this once."""

    id: str
    key: str


class KeyList(Struct, frozen=True):
    keys: Sequence[ListedKey]


class KeyRoutes:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def create_key(self, visit: Visit) -> Answer:
        wanted = await read_json(visit.scope, visit.receive, NewKey)
        visit.field.require(visit.caller, _MANAGE)
        if not visit.caller.is_local and wanted.tenant != visit.tenant:
            visit.field.refuse(visit.caller, _MANAGE, Forbidden("An operator makes keys for their own tenant."))
        return reply(KeyOnce(*self._keys.create(wanted)), 201)

    async def keys(self, visit: Visit) -> Answer:
        visit.field.require(visit.caller, _MANAGE)
        return reply(KeyList(self._keys.list(_whose(visit))))

    async def rotate_key(self, visit: Visit) -> Answer:
        await drain(visit.receive)
        visit.field.require(visit.caller, _MANAGE)
        return reply(KeyOnce(*self._keys.rotate(visit.scope["path_params"]["id"], _whose(visit))))

    async def revoke_key(self, visit: Visit) -> Answer:
        await drain(visit.receive)
        visit.field.require(visit.caller, _MANAGE)
        self._keys.revoke(visit.scope["path_params"]["id"], _whose(visit))
        return done()


def _whose(visit: Visit) -> str | None:
    """The local operator's are all; a key's are its tenant's."""
    return None if visit.caller.is_local else visit.tenant
