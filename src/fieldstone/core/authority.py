"""Who may do what: the least authority of each operation."""

from typing import Final

from fieldstone.core.errors import Forbidden
from fieldstone.core.vocabulary import Operation

RECORD_COMMITTED: Final = 4
RECORD_DRAFT: Final = 2
SUPERSEDE_ANOTHERS: Final = 4
RECORD_DIRECTIVE: Final = 10
DEREGISTER_ANOTHER: Final = 8
RETRACT_ANOTHERS: Final = 8
COMPACT: Final = 6
PURGE: Final = 10

# Requests that name no agent act with their credential's authority.
LEAST_TO: Final[dict[str, int]] = {
    "read the field's status": 2,
    "list the agents": 2,
    "list the conflicts": 2,
    "read a unit": 2,
    "read the log": 0,
    "verify the log": 0,
    "rebuild the views": 10,
    "export": 8,
    "import": 10,
    "manage secrets": 8,
    "sweep": 10,
    "manage keys": 10,
    "restore units": 6,
    "hold a unit": 8,
    "pin a unit": 6,
    "list the guards": 6,
    "read a unit's lineage": 2,
    "follow a compaction": 6,
    "plan retention": 6,
    "set retention": 8,
    "set retention that purges": PURGE,
    "apply retention": 8,
    "read the events": 0,
    "read a memory": 2,
    "write to a memory": RECORD_COMMITTED,
    "delete from a memory": RECORD_COMMITTED,
    "forget in a memory": 8,
    "compact a memory": COMPACT,
    "read a stream": 2,
    "append to a stream": RECORD_COMMITTED,
    "compact a stream": COMPACT,
    "delete a stream": 8,
    "read a thread": 2,
    "write to a thread": RECORD_COMMITTED,
    "delete a thread": 8,
    "reconcile threads": 8,
}

LEAST_AUTHORITY: Final[dict[Operation, int]] = {
    "RECORD": RECORD_DRAFT,
    "COMMIT": RECORD_COMMITTED,
    "DISCARD": RECORD_DRAFT,
    "ATTUNE": 2,
    "DETECT": 4,
    "DEREGISTER": 4,
    "COMPACT": COMPACT,
}


def check_authority(has: int, needs: int, what: str) -> None:
    if has < needs:
        raise Forbidden(f"{what} needs authority {needs}; this agent has {has}.")
