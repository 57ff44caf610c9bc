"""Known secrets over HTTP. Their values come in, and never out again."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fieldstone.field.secrets import ListedSecret, SecretScope
from fieldstone.servers.http.answers import Answer, Header, done, reply
from fieldstone.servers.http.body import drain, read_json
from fieldstone.servers.http.entrance import Visit

WEAK: Final[Header] = (b"warning", b'199 fieldstone "the value is easy to guess: it is found in plain form only"')


class NewSecret(Struct, frozen=True, forbid_unknown_fields=True):
    value: str
    scope: SecretScope = SecretScope(tenant=True)


class SecretList(Struct, frozen=True):
    secrets: Sequence[ListedSecret]


async def put_secret(visit: Visit) -> Answer:
    given = await read_json(visit.scope, visit.receive, NewSecret)
    is_weak = await visit.field.put_secret(visit.scope["path_params"]["id"], given.value, given.scope, visit.caller)
    return done(WEAK) if is_weak else done()


async def secrets(visit: Visit) -> Answer:
    return reply(SecretList(await visit.field.secrets(visit.caller)))


async def drop_secret(visit: Visit) -> Answer:
    await drain(visit.receive)
    await visit.field.drop_secret(visit.scope["path_params"]["id"], visit.caller)
    return done()


async def sweep(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await visit.field.sweep(caller=visit.caller))
