"""What each agent says, word for word: the writer that is killed and the rig that looks afterwards must agree."""

import functools
import random
from collections.abc import Mapping
from typing import Final

from fieldstone.core.requests import Message
from fieldstone.core.units import Relation
from tests.messages import record

AGENTS: Final = 12
REFERS_BACK: Final = 2  # a relation points to the agent's own message this many before, if it was of the same life
WORDS: Final = ("cache", "cold", "disk", "latency", "restart", "Zürich", "trace", "noon", "queue", "writer", "東京")


def agent_name(agent: int) -> str:
    return f"agent-{agent}"


@functools.lru_cache(maxsize=10_000)  # every look at a file reads all of it
def content(seed: int, agent: int, number: int) -> str:
    chance = random.Random(f"{seed}/{agent}/{number}")
    words = chance.choices(WORDS, k=chance.choice((5, 20, 60, 600)))  # some need more than a page
    return f"message {number} of {agent_name(agent)}: {' '.join(words)}"


def message(seed: int, agent: int, number: int, acknowledged: Mapping[tuple[int, int], str]) -> Message:
    """`acknowledged` are the units of this life: (agent, number) → id."""
    target = None if _is_draft(number - REFERS_BACK) else acknowledged.get((agent, number - REFERS_BACK))
    relations: list[Relation] = []
    if target is not None and number % 5 == 3:
        relations = [Relation("contradicts", target, "it was not so")]
    elif target is not None and number % 5 == 0:
        relations = [Relation("supersedes", target)]
    return record(
        agent_name(agent),
        content(seed, agent, number),
        mode="draft" if _is_draft(number) else "committed",
        relations=relations,
        task=f"task-{number % 3}",
        id=f"m-{number}",
    )


def _is_draft(number: int) -> bool:
    return number % 7 == 6
