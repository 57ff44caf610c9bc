"""One message for each operation, as the docs page shows it. A test sends them all."""

from typing import Any, Final

from fieldstone.core.vocabulary import Operation
from fieldstone.wire.messages import PROTOCOL, VERSION

UNIT_ID: Final = "the-memory_unit_id-of-a-draft"

PAYLOADS: Final[dict[Operation, dict[str, Any]]] = {
    "REGISTER": {"id": "ada", "role": "researcher", "interests": ["latency"]},
    "DEREGISTER": {"agent_id": "ada"},
    "RECORD": {
        "mode": "committed",
        "type": "finding",
        "content": "The p99 of the search endpoint doubled on Tuesday.",
        "intent": {"purpose": "find out why checkout is slow"},
        "confidence": {"score": 0.9, "reasoning": "read from two dashboards"},
    },
    "ATTUNE": {"scope": {"role": "engineer", "max_units": 10}, "context_hint": "slow checkout"},
    "DETECT": {"mode": "list"},
    "COMMIT": {"memory_unit_id": UNIT_ID},
    "DISCARD": {"memory_unit_id": UNIT_ID},
    "RETRACT": {"memory_unit_id": UNIT_ID, "reason": "the dashboard was wrong"},
    "MERGE": {
        "conflict_id": "a-conflict-id",
        "strategy": "last_write_wins",
        "resolution": {"rationale": "the newer one was measured again"},
    },
    "REPLAY": {"target_type": "memory_unit", "target_id": UNIT_ID, "depth": "summary"},
    "COMPACT": {"strategy": "archive", "filter": {"max_age_epochs": 1000}},
    "SUBSCRIBE": {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}},
    "COORDINATE": {"action": "list"},
    "HANDOFF": {"action": "list"},
    "SESSION": {"action": "list"},
}


def example_message(operation: Operation) -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "version": VERSION,
        "id": f"{operation.lower()}-1",
        "operation": operation,
        "agent_id": "ada",
        "session_id": None,
        "epoch": 0,
        "payload": PAYLOADS[operation],
    }
