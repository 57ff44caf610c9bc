"""What a store holds, as commands tell it."""

import json
from typing import Any

from tests.cli.running import answer, done


def units(*more: str, db: str = "team.db") -> list[Any]:
    """Every unit that a new agent is shown, best first."""
    found = answer("attune", "--agent", "reader", "--role", "reader", "--max-units", "1000", "--db", db, *more)
    return [scoped["memory_unit"] for scoped in found["record"]]


def unit(unit_id: str, db: str = "team.db") -> Any:
    return next(found for found in units(db=db) if found["id"] == unit_id)


def log(db: str = "team.db") -> list[Any]:
    return [json.loads(line) for line in done("log", "--json", "--limit", "100000", "--db", db).splitlines()]
