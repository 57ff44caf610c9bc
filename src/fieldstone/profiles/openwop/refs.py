"""What a memoryRef names: a memory of the tenant's own, a read-only view on the Field, or nothing.

A ref that is malformed reads like one that nobody ever wrote to: an answer that told the two apart would tell who has
what (CTI-1).
"""

import unicodedata
from typing import Final, NamedTuple

from fieldstone.core.limits import MAX_ID_CHARS
from fieldstone.core.vocabulary import RESERVED_SESSION_PREFIX

FIELD_PREFIX: Final = "field:"
MOST_CHARS: Final = MAX_ID_CHARS - len(RESERVED_SESSION_PREFIX)  # a ref is the name of a session


class FieldRef(NamedTuple):
    """The syntheses of a Field, of all sessions or of one."""

    field: str
    session: str | None


def is_well_formed(ref: str) -> bool:
    """No path, nothing that cannot be seen, and no longer than a name may be."""
    if not 0 < len(ref) <= MOST_CHARS or ref.isspace():
        return False
    if "\\" in ref or ".." in ref or ref.startswith("/"):
        return False
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for character in ref)


def field_ref(ref: str) -> FieldRef | None:
    """What `field:<name>` or `field:<name>:<session>` names; None for a memory's ref."""
    if not ref.startswith(FIELD_PREFIX):
        return None
    name, _, session = ref.removeprefix(FIELD_PREFIX).partition(":")
    return FieldRef(name, session or None)
