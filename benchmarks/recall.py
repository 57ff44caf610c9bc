"""Does ATTUNE still find, with what is archived, what it found before a compaction?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figure, Report
from benchmarks.quality import CUT, TALK_FILE
from fieldstone.cli.door import opened_for_a_while
from fieldstone.cli.eval import ASKER, Asked, rate, record_turns
from fieldstone.cli.locomo import Conversation, read_conversations
from fieldstone.cli.reembed import until_embedded
from fieldstone.core.vocabulary import Strategy
from fieldstone.retrieval.measures import Answer
from fieldstone.settings import load_settings

if TYPE_CHECKING:
    from fieldstone import Agent

KEPT_MIN = 0.98  # of recall@10
STRATEGIES: Mapping[Strategy, Mapping[str, Any]] = {"archive": {}, "summarize": {"verify": False}}


def measure_recall(report: Report, data: Path) -> None:
    file = data / TALK_FILE
    if not file.exists():
        print(f"recall: {file.name} is not here, recall after compaction is skipped", flush=True)
        return
    conversations = read_conversations(file)
    for strategy, how in STRATEGIES.items():
        before, after = asyncio.run(_asked_twice(conversations, strategy, how))
        report.add(Figure(f"LoCoMo recall@{CUT} before {strategy}", before, ""))
        report.add(Figure(f"LoCoMo recall@{CUT} after {strategy}, kept", after / before, "x", bar=KEPT_MIN))


async def _asked_twice(
    conversations: Sequence[Conversation], strategy: Strategy, how: Mapping[str, Any]
) -> tuple[float, float]:
    settings = load_settings(environ={}, given={"embedder": "static"}).values
    before: list[Asked] = []
    after: list[Asked] = []
    for conversation in conversations:
        async with opened_for_a_while(settings) as field:
            turns = await record_turns(field, conversation)
            await until_embedded(field, lambda left: None)
            asker = await field.agent(ASKER, role="reader")
            operator = await field.agent("operator", role="operator", authority=8)
            before += await _answers(asker, conversation, turns)
            await operator.compact(strategy, **how)
            await until_embedded(field, lambda left: None)
            after += await _answers(asker, conversation, turns, include_archived=True)
    return _recall(before), _recall(after)


def _recall(asked: Sequence[Asked]) -> float:
    overall, _, _ = rate(asked, [CUT], CUT)
    return overall.recall[CUT]


async def _answers(asker: Agent, conversation: Conversation, turns: Mapping[str, str], **scope: Any) -> list[Asked]:
    """A synthesis that comes back takes a place, and is no turn."""
    asked = []
    for question in conversation.questions:
        context = await asker.attune_ids(question.text, max_units=CUT, **scope)
        found = [turns.get(each.memory_unit.id, "") for each in context.record]
        asked.append(Asked(question.category, Answer(found, question.evidence)))
    return asked
