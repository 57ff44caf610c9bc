"""Keys over HTTP: for operators, each for their own tenant."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from fieldstone.core.errors import Forbidden, SecretLeakage
from fieldstone.servers.auth.bounds import Maker
from fieldstone.servers.auth.keys import Keys, ListedKey, MadeKey, NewKey, Renewal
from fieldstone.servers.http.answers import Answer, done, reply
from fieldstone.servers.http.body import drain, read_json, read_optional_json
from fieldstone.servers.http.entrance import Visit

_MANAGE: Final = "manage keys"
_OTHERS: Final = "An operator makes keys for their own tenant."
_BY_THE_FILE: Final = (
    "Whoever has the store's file makes them for any: `fieldstone keys create --tenant NAME --db STORE`."
)


class KeyOnce(Struct, frozen=True):
    """The key itself is told this once."""

    id: str
    key: str


class KeyList(Struct, frozen=True):
    keys: Sequence[ListedKey]


class KeyRoutes:
    """`default_rate`: what counts for keys without a rate of their own."""

    def __init__(self, keys: Keys, *, default_rate: float | None = None) -> None:
        self._keys = keys
        self._default_rate = default_rate

    async def create_key(self, visit: Visit) -> Answer:
        wanted = await read_json(visit.scope, visit.receive, NewKey)
        visit.field.require(visit.caller, _MANAGE)
        if not visit.caller.is_local and wanted.tenant != visit.tenant:
            visit.field.refuse(visit.caller, _MANAGE, Forbidden(_OTHERS, suggested_action=_BY_THE_FILE))
        await _refuse_secrets(visit, wanted.agents or ())
        return reply(_made(visit, lambda: self._keys.create(wanted, self._maker(visit))), 201)

    async def keys(self, visit: Visit) -> Answer:
        visit.field.require(visit.caller, _MANAGE)
        return reply(KeyList(self._keys.list(_whose(visit))))

    async def rotate_key(self, visit: Visit) -> Answer:
        wanted = await read_optional_json(visit.scope, visit.receive, Renewal)
        visit.field.require(visit.caller, _MANAGE)
        key_id, maker = visit.scope["path_params"]["id"], self._maker(visit)
        return reply(_made(visit, lambda: self._keys.rotate(key_id, _whose(visit), maker, expires=wanted.expires)))

    async def revoke_key(self, visit: Visit) -> Answer:
        await drain(visit.receive)
        visit.field.require(visit.caller, _MANAGE)
        self._keys.revoke(visit.scope["path_params"]["id"], _whose(visit))
        return done()

    def _maker(self, visit: Visit) -> Maker:
        return Maker(visit.caller, self._default_rate)


def _made(visit: Visit, make: Callable[[], MadeKey]) -> KeyOnce:
    """What is refused because it would grant too much goes on record."""
    try:
        return KeyOnce(*make())
    except Forbidden as refused:
        visit.field.refuse(visit.caller, _MANAGE, refused)


async def _refuse_secrets(visit: Visit, agents: Sequence[str]) -> None:
    """Keys are listed with their agents, and lie beside the store. No agent registers with such an id."""
    for agent in agents:
        if await visit.field.scrubbed(agent) != agent:
            raise SecretLeakage


def _whose(visit: Visit) -> str | None:
    """The local operator's are all; a key's are its tenant's."""
    return None if visit.caller.is_local else visit.tenant
