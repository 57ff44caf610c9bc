"""Everything that a scope may say, in words of Python: the same in this process, behind a server and without await."""

from typing import Any

import pytest

from fieldstone import Field, open_field
from fieldstone.client.agent import Agent
from fieldstone.core import errors

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}
LONG = "The market in Spain grows. " + "Rain fell over the harbour for hours. " * 40


@pytest.fixture
async def ben(field: Field) -> Agent:
    """An analyst in a field with a long unit, a question and a decision of a task."""
    ada = await field.agent("ada", role="researcher")
    await ada.record(LONG, **WHY)
    await ada.record("Who pays?", type="question", **WHY)
    await ada.record("We start in Spain.", type="decision", **(WHY | {"intent": {"purpose": "plan", "task_id": "t-1"}}))
    return await field.agent("ben", role="analyst")


async def test_max_tokens_bounds_what_comes(ben: Agent) -> None:
    attuned = await ben.attune("Spain", max_tokens=60)
    budget = attuned.context_budget
    assert budget.tokens_used is not None
    assert 0 < budget.tokens_used <= 60 == budget.tokens_budget
    assert LONG not in [found.memory_unit.content for found in attuned.record]


async def test_format_summary_shortens_and_says_so_and_full_is_the_default(ben: Agent) -> None:
    short, full = await ben.attune("Spain", format="summary"), await ben.attune("Spain")
    assert {found.format for found in short.record} == {"summary"}
    assert {found.format for found in full.record} == {"full"}
    assert LONG in [found.memory_unit.content for found in full.record]
    assert LONG not in [found.memory_unit.content for found in short.record]


async def test_task_layers_threshold_and_recency_count(ben: Agent) -> None:
    assert (await ben.attune(active_task_id="t-1")).record[0].memory_unit.intent.task_id == "t-1"
    [question] = (await ben.attune(temporal_layers=["future"])).record
    assert question.memory_unit.type == "question"
    assert not (await ben.attune(relevance_threshold=1.0)).record
    epochs = [found.memory_unit.epoch for found in (await ben.attune("Spain", recency_weight=1.0)).record]
    assert epochs == sorted(epochs, reverse=True)
    assert len((await ben.attune_ids(temporal_layers=["present"], relevance_threshold=0.0)).record) == 2


async def test_what_is_not_said_and_what_is_said_to_be_none_are_the_same(ben: Agent) -> None:
    said = await ben.attune(
        max_tokens=None, active_task_id=None, temporal_layers=None, relevance_threshold=None, recency_weight=None
    )
    assert said.record == (await ben.attune()).record


@pytest.mark.parametrize(
    "wrong", [{"max_tokens": 0}, {"relevance_threshold": 1.5}, {"temporal_layers": ["now"]}, {"format": "ids"}]
)
async def test_a_wrong_value_is_refused_with_its_name(ben: Agent, wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidPayload, match=next(iter(wrong))):
        await ben.attune(**wrong)


def test_the_sync_face_takes_the_same_words() -> None:
    with open_field("memory:") as field:
        field.agent("ada", role="researcher").record(LONG, **WHY)
        ben = field.agent("ben", role="analyst")
        [found] = ben.attune("Spain", format="summary", max_tokens=60, relevance_threshold=0.1).record
        assert found.format == "summary"
