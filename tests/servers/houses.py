"""A server's insides around a field that a test opened, and keys to it."""

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.backends.system import SystemClock
from fieldstone.field.field import LocalField
from fieldstone.ports.access import AccessStore
from fieldstone.servers.auth.credentials import Credentials
from fieldstone.servers.auth.keys import Keys
from fieldstone.servers.http.entrance import Entrance
from fieldstone.servers.tenants import Tenants


def entrance_to(field: LocalField, access: AccessStore | None = None) -> tuple[Entrance, Keys]:
    """Open until there is a key. It leads every tenant to this one field."""
    clock = SystemClock()
    keys = Keys(access or MemoryAccess(), clock)

    async def the_field(_tenant: str) -> LocalField:
        return field

    return Entrance(Tenants(the_field), Credentials(keys, local_tenant="local"), clock), keys
