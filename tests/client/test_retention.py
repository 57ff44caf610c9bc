"""Retention through the API: the same calls wherever the field is."""

from typing import Any

import pytest

from fieldstone import Field, open_field
from fieldstone.compaction.retention import Match, Policy
from fieldstone.core import errors

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}
CAPPED = Policy("capped", "archive", Match(types=("finding",)), max_units=1, schedule="0 3 * * *")


async def test_policies_are_set_shown_planned_applied_and_told_of(field: Field) -> None:
    ada = await field.agent("ada", role="researcher")
    for n in range(3):
        await ada.record(f"Region {n} grows.", **WHY)
    assert await field.retention() == ()
    assert await field.set_retention([CAPPED]) == (CAPPED,)
    assert await field.retention() == (CAPPED,)
    [planned] = await field.plan_retention()
    assert planned.result is not None
    assert planned.result.units_affected == 2
    assert (await field.retention_status())[0].last_run is None
    [applied] = await field.apply_retention()
    assert applied.result is not None
    assert (applied.name, applied.strategy, applied.result.units_affected) == ("capped", "archive", 2)
    [status] = await field.retention_status()
    assert status.last_run is not None
    assert (status.last_run.state, status.last_run.units) == ("done", 2)
    assert status.last_run.compaction_id == applied.result.compaction_id
    assert status.next_run is not None
    assert status.next_run.endswith("T03:00:00.000Z")
    assert await field.restore_compaction(status.last_run.compaction_id) == 2


async def test_policies_come_as_mappings_too_and_an_empty_list_ends_them(field: Field) -> None:
    [held] = await field.set_retention([{"name": "aged", "strategy": "summarize", "max_age": "30d"}])
    assert held == Policy("aged", "summarize", max_age="30d")
    assert await field.set_retention([]) == ()
    assert await field.apply_retention() == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "aged", "strategy": "forget", "max_age": "30d"},
        {"name": "aged", "strategy": "archive"},
        {"name": "aged", "strategy": "archive", "max_age": "30d", "ttl": 3},
        {"name": "aged", "strategy": "archive", "max_age": "30d", "schedule": "daily"},
    ],
)
async def test_what_is_no_policy_is_refused_and_the_old_ones_hold(field: Field, wrong: dict[str, Any]) -> None:
    await field.set_retention([CAPPED])
    with pytest.raises(errors.InvalidPayload):
        await field.set_retention([wrong])
    assert await field.retention() == (CAPPED,)


def test_the_sync_face_has_all_of_it() -> None:
    with open_field("memory:") as field:
        assert field.set_retention([CAPPED]) == (CAPPED,)
        assert field.retention() == (CAPPED,)
        assert [each.name for each in field.plan_retention()] == ["capped"]
        assert [each.name for each in field.apply_retention()] == ["capped"]
        assert [each.last_run for each in field.retention_status()] == [None]
