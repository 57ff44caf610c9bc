"""Fieldstone: the memory that several AI agents share.

    from fieldstone import open_field

    with open_field("team.db") as field:
        ada = field.agent("ada", role="researcher")
        ada.record("The market grows by 23% a year.", intent="size the market", confidence=0.8, reasoning="two reports")

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fieldstone.client.agent import Agent
    from fieldstone.client.field import Field
    from fieldstone.core import errors
    from fieldstone.core.conflicts import Conflict
    from fieldstone.core.errors import FieldError
    from fieldstone.core.replies import Accepted, Attunement
    from fieldstone.core.units import Confidence, Intent, MemoryUnit, Relation, ScopedMemoryUnit
    from fieldstone.ports.lease import StoreHeld
    from fieldstone.wiring import open_field

_HOMES = {
    "Accepted": "fieldstone.core.replies",
    "Agent": "fieldstone.client.agent",
    "Attunement": "fieldstone.core.replies",
    "Confidence": "fieldstone.core.units",
    "Conflict": "fieldstone.core.conflicts",
    "Field": "fieldstone.client.field",
    "FieldError": "fieldstone.core.errors",
    "Intent": "fieldstone.core.units",
    "MemoryUnit": "fieldstone.core.units",
    "Relation": "fieldstone.core.units",
    "ScopedMemoryUnit": "fieldstone.core.units",
    "StoreHeld": "fieldstone.ports.lease",
    "open_field": "fieldstone.wiring",
}

__all__ = [
    "Accepted",
    "Agent",
    "Attunement",
    "Confidence",
    "Conflict",
    "Field",
    "FieldError",
    "Intent",
    "MemoryUnit",
    "Relation",
    "ScopedMemoryUnit",
    "StoreHeld",
    "errors",
    "open_field",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("fieldstone.core.errors")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'fieldstone' has no attribute {name!r}")
