"""RFC 0012: many entries become one, the event says so, and no secret comes back through it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.openwop.host import COMPACT, DISTILL, SEED, Body, Caller, serving, told
from tests.openwop.shapes import FEED, assert_compacted, assert_entry, assert_error, moment
from tests.requirements import requirement

TYPE: Final = "memory.compacted"
SOURCE_IDS_MOST: Final = 100


def fair(count: int) -> dict[str, str]:
    return {f"fair-{number}": f"Stand {number} of the fair sells pears at {number} coins." for number in range(count)}


# --- the three scenarios ----------------------------------------------------------------------------------------------


@requirement("openwop:compaction:event", "openwop:compaction:host-managed", "openwop:conformance:compact")
def test_the_event_says_which_entries_became_which(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(3))
    answer = acme.compacted(ref)
    assert set(answer) == {"type", "payload", "outputContent"}
    assert answer["type"] == TYPE
    payload = answer["payload"]
    assert_compacted(payload)
    assert payload["memoryRef"] == ref
    assert (payload["sourceCount"], set(payload["sourceIds"])) == (3, set(fair(3)))
    assert payload["byteSize"] == len(answer["outputContent"].encode())


@requirement("openwop:sr-1:markers-kept", "openwop:sr-1:foreign-markers")
def test_no_mark_of_a_secret_is_lost_nor_kept_in_a_foreign_form(acme: Caller, ref: str) -> None:
    acme.seed(
        ref,
        {
            "one": "User confirmed: [BYOK:hk_live_canary_42]",
            "two": "Resolved <REDACTED:db-prod-creds> outage.",
            "three": "Customer asked about pricing tiers.",
        },
    )
    content = acme.compacted(ref)["outputContent"]
    assert "[BYOK:" not in content
    assert "<REDACTED:" not in content
    assert "[REDACTED:hk_live_canary_42]" in content
    assert "[REDACTED:db-prod-creds]" in content


@requirement("openwop:compaction:tag")
def test_the_output_is_listed_with_the_tag_of_its_run(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(2))
    output_id = acme.compacted(ref)["payload"]["outputId"]
    [output] = acme.entries(ref, limit=50)
    assert_entry(output)
    assert output["id"] == output_id
    [tag] = [tag for tag in output["tags"] if tag.startswith("compacted-from:")]
    run_id = tag.removeprefix("compacted-from:")
    assert run_id
    assert run_id == "".join(run_id.split())
    assert not run_id.startswith(":")
    assert acme.entries(ref, tag=tag) == [output]


# --- what becomes of the sources and of the output --------------------------------------------------------------------


@requirement("openwop:compaction:output-readable", "openwop:compaction:sources-gone")
def test_the_output_can_be_read_and_the_sources_no_longer(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(4))
    answer = acme.compacted(ref)
    output = told(acme.entry(ref, answer["payload"]["outputId"]))
    assert output["content"] == answer["outputContent"]
    for source in fair(4):
        assert_error(acme.entry(ref, source), "not_found")
    assert acme.entries(ref) == [output]


@requirement("openwop:compaction:output-readable")
def test_an_output_that_was_compacted_itself_can_still_be_got_and_is_not_listed(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(2))
    first = acme.compacted(ref)["payload"]["outputId"]
    acme.seed(ref, {"later": "The fair is on the green this year."})
    second = acme.compacted(ref)["payload"]
    assert set(second["sourceIds"]) == {first, "later"}
    assert told(acme.entry(ref, first))["id"] == first
    assert [entry["id"] for entry in acme.entries(ref)] == [second["outputId"]]


@requirement("openwop:compaction:event")
def test_a_memory_is_compacted_again_and_again_and_each_time_one_entry_is_left(acme: Caller, ref: str) -> None:
    """As OpenWOP's suite does it that runs every night on the same store: the same words under new ids."""
    for night in range(8):
        acme.seed(ref, {f"{night}-a": "Source content alpha.", f"{night}-b": "Source content beta."})
        payload = acme.compacted(ref)["payload"]
        assert payload["sourceCount"] == (2 if night == 0 else 3)
        [output] = acme.entries(ref)
        assert output["id"] == payload["outputId"]


@requirement("openwop:compaction:accounting")
def test_an_entry_that_is_put_while_others_are_compacted_is_listed_or_named_as_a_source(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(10))
    with ThreadPoolExecutor(4) as pool:
        putting = [pool.submit(acme.put, ref, f"Meanwhile, number {number}.") for number in range(60)]
        distilling = [pool.submit(acme.post, DISTILL, {"memoryRef": ref}) for _ in range(2)]
        compacting = [pool.submit(acme.post, COMPACT, {"memoryRef": ref}) for _ in range(6)]
        put = {each.result()["id"] for each in putting}
        assert {each.result().status_code for each in compacting + distilling} <= {200, 204}
    events = acme.events_of(ref, TYPE)
    sources = [source for event in events for source in event["sourceIds"]]
    assert len(sources) == len(set(sources))  # nothing is compacted twice
    assert put <= {entry["id"] for entry in acme.entries(ref)} | set(sources)
    assert not {entry["id"] for entry in acme.entries(ref)} & set(sources)


@requirement("openwop:compaction:ttl-earliest")
def test_the_output_ends_with_the_first_of_its_sources(acme: Caller, ref: str) -> None:
    ends = [
        (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for hours in (3, 1, 2)
    ]
    for end in ends:
        acme.put(ref, f"Until {end}.", expiresAt=end)
    acme.put(ref, "For ever.")
    output = told(acme.entry(ref, acme.compacted(ref)["payload"]["outputId"]))
    assert moment(output["expiresAt"]) == moment(ends[1])


@requirement("openwop:compaction:ttl-earliest")
def test_entries_that_are_over_are_no_sources(acme: Caller, ref: str) -> None:
    end = datetime.now(UTC) + timedelta(milliseconds=150)
    over = acme.put(ref, "Over soon.", expiresAt=end.isoformat())["id"]
    while acme.entry(ref, over).status_code == 200:
        assert datetime.now(UTC) < end + timedelta(seconds=20)
    acme.seed(ref, fair(2))
    assert set(acme.compacted(ref)["payload"]["sourceIds"]) == set(fair(2))


@requirement("openwop:compaction:source-ids")
def test_up_to_a_hundred_sources_are_named(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(SOURCE_IDS_MOST))
    payload = acme.compacted(ref)["payload"]
    assert set(payload["sourceIds"]) == set(fair(SOURCE_IDS_MOST))


@requirement("openwop:compaction:source-ids")
def test_more_than_a_hundred_sources_are_counted_and_not_named(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(SOURCE_IDS_MOST + 1))
    payload = acme.compacted(ref)["payload"]
    assert payload["sourceCount"] == SOURCE_IDS_MOST + 1
    assert "sourceIds" not in payload


@requirement("openwop:compaction:max-output")
def test_an_output_is_never_larger_than_advertised(acme: Caller, ref: str) -> None:
    most: int = told(acme.get("/.well-known/openwop"))["memory"]["compaction"]["maxOutputBytes"]
    long = {f"long-{number}": f"Report {number}: " + f"stand {number} sold pears. " * 400 for number in range(12)}
    acme.seed(ref, long)
    answer = acme.compacted(ref)
    assert answer["payload"]["byteSize"] == len(answer["outputContent"].encode()) <= most


@requirement("openwop:compaction:sources-gone")
@pytest.mark.parametrize(("evict", "status"), [("archive", 200), ("delete", 410)])
def test_the_originals_are_archived_or_deleted_as_the_settings_say(tmp_path: Path, evict: str, status: int) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[openwop]\nevict = "{evict}"\n')
    with serving(tmp_path, "--config", str(settings)) as host:
        sources = [host.acme.put("mem_x", f"Stand {number} sells pears.")["id"] for number in range(3)]
        payload = host.acme.compacted("mem_x")["payload"]
        assert set(payload["sourceIds"]) == set(sources)
        assert {host.acme.get(f"/v1/units/{source}").status_code for source in sources} == {status}
        assert [entry["id"] for entry in host.acme.entries("mem_x")] == [payload["outputId"]]


@requirement("openwop:compaction:one-ref")
def test_other_refs_are_left_alone(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(2))
    acme.seed(f"{ref}-beside", {"mine": "Not of this compaction.", "too": "Nor this."})
    acme.compacted(ref)
    assert {entry["id"] for entry in acme.entries(f"{ref}-beside")} == {"mine", "too"}


# --- what is no compaction --------------------------------------------------------------------------------------------


@requirement("openwop:compaction:nothing-under-two", "openwop:conformance:compact")
@pytest.mark.parametrize("count", [0, 1])
def test_of_fewer_than_two_there_is_nothing_to_compact_and_nothing_to_tell(acme: Caller, ref: str, count: int) -> None:
    if count:
        acme.seed(ref, fair(count))
    answer = acme.post(COMPACT, {"memoryRef": ref})
    assert (answer.status_code, answer.content) == (204, b"")
    assert len(acme.entries(ref)) == count
    assert acme.events_of(ref, TYPE) == []


@requirement("openwop:conformance:compact")
@pytest.mark.parametrize("body", [{}, {"memoryRef": 1}, {"memoryRef": ""}, [], "x", None], ids=str)
def test_a_compaction_of_nothing_that_has_a_name_is_refused(acme: Caller, body: Body) -> None:
    assert_error(acme.post(COMPACT, body), "validation_error")


@requirement("openwop:conformance:seed")
@pytest.mark.parametrize(
    "entries", [None, {}, [{}], [{"id": "a"}], [{"content": "a"}], [{"id": "", "content": "a"}], [{"id": 1}]], ids=str
)
def test_a_seed_that_is_none_is_refused_whole(acme: Caller, ref: str, entries: object) -> None:
    good = [{"id": "good", "content": "Good."}]
    given = good + entries if isinstance(entries, list) else entries
    assert_error(acme.post(SEED, {"memoryRef": ref, "entries": given}), "validation_error")
    assert acme.entries(ref) == []


@requirement("openwop:events:cli")
def test_one_query_tells_whether_compaction_ran_on_what_and_what_came_out(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(3))
    payload = acme.compacted(ref)["payload"]
    [event] = acme.events_of(ref, TYPE)
    assert_compacted(event, *FEED)
    assert moment(event["ts"]) <= datetime.now(UTC)
    assert {**payload, "id": event["id"], "type": TYPE, "ts": event["ts"]} == event
