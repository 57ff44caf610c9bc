"""A secret that the harness knows for as long as something needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fieldstone.field.field import LocalField
from fieldstone.field.secrets import SecretScope
from fieldstone.ports.world import Ids


@asynccontextmanager
async def known_secret(field: LocalField, ids: Ids, run: str, name: str) -> AsyncIterator[str]:
    """Its value, which nobody has ever seen. The host registers it, whoever the caller is, and drops it at the end."""
    secret_id = f"{name}.{run}"  # two runs at once have two of them: neither drops the other's
    value = ids.salt().hex()
    await field.put_secret(secret_id, value, SecretScope(run=run))
    try:
        yield value
    finally:
        await field.drop_secret(secret_id)
