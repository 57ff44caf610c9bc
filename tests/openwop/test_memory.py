"""The MemoryAdapter over HTTP: what is put is there, in order, for as long as it may be, and for nobody else."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.openwop.host import DISCOVERY, Body, Caller, Host, memory, serving, told
from tests.openwop.shapes import assert_entry, assert_error, moment
from tests.requirements import requirement
from tests.servers.live import message, scope, unit

MALFORMED: Final = {
    "path traversal": "../../etc/passwd",
    "NUL": "mem\x00ref",
    "oversize": "m" * 4_000,
    "line break": "mem\r\nref",
}


def in_(**span: float) -> str:
    return (datetime.now(UTC) + timedelta(**span)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- put, get, list, delete -------------------------------------------------------------------------------------------


@requirement("openwop:memory:round-trip")
def test_what_is_put_is_got_and_listed_as_it_was_answered(acme: Caller, ref: str) -> None:
    entry = acme.put(ref, "The customer prefers e-mail.", tags=["source:session", "contact"])
    assert_entry(entry)
    assert (entry["content"], entry["tags"]) == ("The customer prefers e-mail.", ["source:session", "contact"])
    assert told(acme.entry(ref, entry["id"])) == entry
    assert acme.entries(ref) == [entry]


@requirement("openwop:memory:round-trip")
def test_the_fixture_of_the_round_trip_reads_back_an_entry(acme: Caller) -> None:
    assert_entry(acme.variables("conformance-agent-memory-roundtrip")["memoryReadback"])


@requirement("openwop:memory:entry-closed")
def test_an_entry_has_no_tags_and_no_end_unless_it_was_given_them(acme: Caller, ref: str) -> None:
    entry = acme.put(ref, "Plain.")
    assert entry["tags"] == []
    assert "expiresAt" not in entry


@requirement("openwop:memory:host-names")
def test_the_host_names_and_dates_an_entry(acme: Caller, ref: str) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    entries = [acme.put(ref, "The same text.") for _ in range(3)]
    assert len({entry["id"] for entry in entries}) == 3
    assert all(before <= moment(entry["createdAt"]) <= datetime.now(UTC) for entry in entries)


@requirement(
    "openwop:memory:host-names", "openwop:memory:entry-closed", "openwop:memory:bounds", "openwop:ttl:past-refused"
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "mine"},
        {"createdAt": "2026-01-01T00:00:00Z"},
        {"unknown": 1},
        {"content": None},
        {"content": 7},
        {"tags": "one"},
        {"tags": [1]},
        {"tags": ["t" * 257]},
        {"expiresAt": "tomorrow"},
        {"expiresAt": "2020-01-01T00:00:00Z"},
        {"expiresAt": 5},
        {"nodeId": 5},
    ],
    ids=str,
)
def test_a_put_that_is_not_one_is_refused_and_leaves_nothing(acme: Caller, ref: str, wrong: Body) -> None:
    assert_error(acme.post(memory(ref), {"content": "Something.", **wrong}), "validation_error")
    assert acme.entries(ref) == []


@requirement("openwop:memory:entry-closed")
def test_a_put_without_content_is_refused(acme: Caller, ref: str) -> None:
    assert_error(acme.post(memory(ref), {"tags": ["a"]}), "validation_error")


@requirement("openwop:memory:bounds")
def test_a_tag_may_have_256_characters(acme: Caller, ref: str) -> None:
    assert acme.put(ref, "Tagged.", tags=["t" * 256])["tags"] == ["t" * 256]


@requirement("openwop:memory:bounds")
def test_an_entry_may_be_as_large_as_advertised_and_not_a_byte_larger(acme: Caller, ref: str) -> None:
    most: int = told(acme.get(DISCOVERY))["memory"]["maxEntrySizeBytes"]
    words = "ä word or two, " * (most // 16 + 1)
    content = words.encode()[:most].decode("utf-8", "ignore")
    content += "." * (most - len(content.encode()))
    assert acme.put(ref, content)["content"] == content
    assert_error(acme.post(memory(ref), {"content": content + "."}), "validation_error")


@requirement("openwop:memory:newest-first")
def test_the_newest_entry_comes_first(acme: Caller, ref: str) -> None:
    ids = [acme.put(ref, f"Number {number}.")["id"] for number in range(7)]
    assert [entry["id"] for entry in acme.entries(ref)] == ids[::-1]


@requirement("openwop:memory:limit")
def test_a_limit_cuts_the_list_and_zero_is_none(acme: Caller, ref: str) -> None:
    ids = [acme.put(ref, f"Number {number}.")["id"] for number in range(5)]
    assert [entry["id"] for entry in acme.entries(ref, limit=2)] == ids[:2:-1]
    assert len(acme.entries(ref, limit=0)) == 5
    assert len(acme.entries(ref, limit=500)) == 5


@requirement("openwop:memory:limit")
def test_a_list_without_limit_shows_more_than_a_page(acme: Caller, ref: str) -> None:
    acme.seed(ref, {f"many-{number}": f"Number {number} of many." for number in range(150)})
    assert len(acme.entries(ref, limit=0)) == 150


@requirement("openwop:memory:limit")
@pytest.mark.parametrize(
    "params",
    [{"limit": -1}, {"limit": "many"}, {"limit": 1.5}, {"tag": ""}, {"tag": "t" * 257}],
    ids=str,
)
def test_options_that_are_none_are_refused(acme: Caller, ref: str, params: dict[str, Any]) -> None:
    assert_error(acme.get(memory(ref), **params), "validation_error")


@requirement("openwop:memory:tag")
def test_a_tag_picks_the_entries_that_carry_it_whole(acme: Caller, ref: str) -> None:
    wanted = acme.put(ref, "Wanted.", tags=["red", "round"])["id"]
    acme.put(ref, "Not wanted.", tags=["reddish"])
    acme.put(ref, "Not wanted either.")
    assert [entry["id"] for entry in acme.entries(ref, tag="red")] == [wanted]
    assert acme.entries(ref, tag="re") == []


@requirement("openwop:memory:limit")
def test_a_limit_counts_entries_that_carry_the_tag(acme: Caller, ref: str) -> None:
    for number in range(6):
        acme.put(ref, f"Number {number}.", tags=["even"] if number % 2 == 0 else [])
    assert acme.contents(ref, tag="even", limit=2) == ["Number 4.", "Number 2."]


@requirement("openwop:memory:delete")
def test_a_deleted_entry_is_gone_and_cannot_be_deleted_twice(acme: Caller, ref: str) -> None:
    kept, gone = acme.put(ref, "Kept."), acme.put(ref, "Gone.")
    deleted = acme.delete(memory(ref, gone["id"]))
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert_error(acme.entry(ref, gone["id"]), "not_found")
    assert_error(acme.delete(memory(ref, gone["id"])), "not_found")
    assert acme.entries(ref) == [kept]


@requirement("openwop:memory:refs-apart")
def test_refs_are_apart_and_one_entry_is_not_found_under_another(acme: Caller, new_ref: Callable[[], str]) -> None:
    here, there = new_ref(), new_ref()
    entry = acme.put(here, "Here.")
    assert acme.entries(there) == []
    assert_error(acme.entry(there, entry["id"]), "not_found")
    assert_error(acme.delete(memory(there, entry["id"])), "not_found")
    assert acme.entries(here) == [entry]


@requirement("openwop:memory:any-name")
@pytest.mark.parametrize(
    "odd", ["mem://a/b/c", "mem?x=1&y=2#z", "mém 记忆", "a%2Fb", "mem_t:a_longTerm", "forget", "x/y"]
)
def test_a_ref_may_hold_what_a_path_may_not(acme: Caller, odd: str) -> None:
    entry = acme.put(odd, f"Of an odd ref: {odd}.")
    assert acme.entries(odd) == [entry]
    assert told(acme.entry(odd, entry["id"])) == entry
    assert acme.delete(memory(odd, entry["id"])).status_code == 204


@requirement("openwop:memory:any-name")
def test_an_id_may_hold_what_a_path_may_not(acme: Caller, ref: str) -> None:
    odd = "folder/entry?1#2 é"
    acme.seed(ref, {odd: "Under an odd id."})
    assert told(acme.entry(ref, odd))["content"] == "Under an odd id."
    assert acme.delete(memory(ref, odd)).status_code == 204


@requirement("openwop:unit:seed-replaces", "openwop:conformance:seed")
def test_seeding_an_id_again_replaces_the_entry(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"same": "First."}, tags=["old"])
    acme.seed(ref, {"same": "Second."})
    assert [(entry["content"], entry["tags"]) for entry in acme.entries(ref)] == [("Second.", [])]


# --- a ref that reads as nothing --------------------------------------------------------------------------------------


@requirement("openwop:cti-1:malformed", "openwop:cti-1:indistinguishable")
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_ref_reads_as_one_that_nobody_knows(host: Host, ref: str, name: str) -> None:
    host.zeta.put(ref, "Of another tenant.")
    pages = [host.acme.page(each) for each in (MALFORMED[name], ref, f"{ref}-unknown")]
    for page in pages:
        del page["snapshot"]
    assert pages == [{"entries": []}] * 3
    gets = [host.acme.entry(each, "some-id") for each in (MALFORMED[name], ref, f"{ref}-unknown")]
    assert {(got.status_code, got.content) for got in gets} == {(404, gets[0].content)}


@requirement("openwop:cti-1:malformed")
@pytest.mark.parametrize("name", MALFORMED)
def test_nothing_can_be_put_under_a_malformed_ref_that_is_then_read(acme: Caller, name: str) -> None:
    answer = acme.post(memory(MALFORMED[name]), {"content": "Through the wall."})
    assert_error(answer, "validation_error")
    assert acme.entries(MALFORMED[name]) == []


# --- time to live -----------------------------------------------------------------------------------------------------


@requirement("openwop:ttl:not-returned")
def test_the_fixture_lists_what_is_fresh_and_not_what_is_over(acme: Caller) -> None:
    seen = acme.variables("conformance-agent-memory-ttl")
    listed = {entry["id"]: entry for entry in seen["memoryList"]}
    assert seen["freshId"] in listed
    assert seen["expiredId"] not in listed
    assert seen["freshId"] != seen["expiredId"]
    for entry in listed.values():
        assert_entry(entry)
        assert moment(entry.get("expiresAt", in_(days=1))) > datetime.now(UTC)


@requirement("openwop:ttl:not-returned")
def test_an_entry_ends_to_the_millisecond_in_list_and_in_get(acme: Caller, ref: str) -> None:
    end = in_(milliseconds=400)
    entry = acme.put(ref, "Not for long.", expiresAt=end)
    assert moment(entry["expiresAt"]) == moment(end)
    while acme.entry(ref, entry["id"]).status_code == 200:
        assert datetime.now(UTC) < moment(end) + timedelta(seconds=20)
    assert datetime.now(UTC) >= moment(end)
    assert acme.entries(ref) == []
    assert_error(acme.delete(memory(ref, entry["id"])), "not_found")


@requirement("openwop:ttl:until-then")
def test_an_entry_is_there_until_its_end(acme: Caller, ref: str) -> None:
    entry = acme.put(ref, "For an hour.", expiresAt=in_(hours=1))
    assert acme.entries(ref) == [entry]


# --- forget by subject ------------------------------------------------------------------------------------------------


@requirement("openwop:forget:by-tag")
def test_forgetting_a_tag_takes_what_carries_it_and_leaves_the_rest(acme: Caller, ref: str) -> None:
    acme.put(ref, "About Ada.", tags=["subject:ada"])
    acme.put(ref, "About Ada and Ben.", tags=["subject:ada", "subject:ben"])
    kept = acme.put(ref, "About Ben.", tags=["subject:ben"])
    assert told(acme.post(f"{memory(ref)}/forget", {"tag": "subject:ada"})) == {"deleted": 2}
    assert acme.entries(ref) == [kept]
    assert told(acme.post(f"{memory(ref)}/forget", {"tag": "subject:ada"})) == {"deleted": 0}


@requirement("openwop:forget:by-source")
def test_forgetting_a_source_takes_what_it_wrote(acme: Caller, ref: str) -> None:
    acme.put(ref, "Of the summarizer.", agentId="summarizer")
    kept = acme.put(ref, "Of the planner.", agentId="planner")
    assert told(acme.post(f"{memory(ref)}/forget", {"source": "summarizer"})) == {"deleted": 1}
    assert acme.entries(ref) == [kept]


@requirement("openwop:unit:delete-is-purge", "openwop:forget:reaches-compacted")
def test_forgetting_reaches_what_was_compacted_and_what_was_made_of_it(host: Host, ref: str) -> None:
    word = "xanthippe"
    host.acme.put(ref, f"The garden of {word} is open on Sundays.", tags=["subject:x"])
    host.acme.put(ref, "The library is open on Mondays.")
    output = host.acme.compacted(ref)["payload"]["outputId"]
    assert told(host.acme.post(f"{memory(ref)}/forget", {"tag": "subject:x"}))["deleted"] >= 1
    assert word not in host.acme.get(memory(ref)).text
    assert word not in host.acme.entry(ref, output).text
    for kept in host.folder.iterdir():
        if kept.is_file():
            assert word.encode() not in kept.read_bytes().lower(), kept.name


@requirement("openwop:forget:said")
@pytest.mark.parametrize("body", [{}, {"tag": "a", "source": "b"}, {"tag": ""}, {"tag": 1}, {"all": True}], ids=str)
def test_what_is_to_be_forgotten_has_to_be_said(acme: Caller, ref: str, body: Body) -> None:
    kept = acme.put(ref, "Kept.", tags=["a"])
    assert_error(acme.post(f"{memory(ref)}/forget", body), "validation_error")
    assert acme.entries(ref) == [kept]


# --- the snapshot of a run --------------------------------------------------------------------------------------------


@requirement("openwop:snapshot:run-start", "openwop:snapshot:put-belongs")
def test_a_run_sees_what_was_there_at_its_start_and_what_it_wrote_itself(acme: Caller, ref: str) -> None:
    before = acme.put(ref, "Before the run.")
    snapshot = acme.page(ref)["snapshot"]
    other = acme.put(ref, "Of somebody else, meanwhile.")
    own = acme.put(ref, "Of the run itself.", snapshot=snapshot)
    assert acme.entries(ref, snapshot=snapshot) == [own, before]
    assert acme.page(ref, snapshot=snapshot)["snapshot"] == snapshot
    assert told(acme.entry(ref, own["id"], snapshot=snapshot)) == own
    assert_error(acme.entry(ref, other["id"], snapshot=snapshot), "not_found")
    assert acme.entries(ref) == [own, other, before]


@requirement("openwop:snapshot:replay")
def test_a_run_that_is_replayed_sees_the_same_again(acme: Caller, ref: str) -> None:
    acme.put(ref, "Before the run.")
    snapshot = acme.page(ref)["snapshot"]
    seen = acme.entries(ref, snapshot=snapshot)
    for number in range(3):
        acme.put(ref, f"Later {number}.")
    assert acme.entries(ref, snapshot=snapshot) == seen


@requirement("openwop:snapshot:run-start", "openwop:snapshot:put-belongs")
def test_two_runs_do_not_see_each_other(acme: Caller, ref: str) -> None:
    first, second = acme.page(ref)["snapshot"], acme.page(ref)["snapshot"]
    acme.put(ref, "Of the first.", snapshot=first)
    acme.put(ref, "Of the second.", snapshot=second)
    assert acme.contents(ref, snapshot=first) == ["Of the first."]
    assert acme.contents(ref, snapshot=second) == ["Of the second."]


@requirement("openwop:snapshot:replay")
def test_a_run_keeps_seeing_what_a_compaction_took_away_meanwhile(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"one": "The fair opens at 9.", "two": "The fair closes at noon."})
    snapshot = acme.page(ref)["snapshot"]
    seen = acme.entries(ref, snapshot=snapshot)
    acme.compacted(ref)
    assert acme.entries(ref, snapshot=snapshot) == seen


@requirement("openwop:snapshot:token")
@pytest.mark.parametrize("token", ["", "nonsense", "9" * 400])
def test_a_token_that_is_none_is_refused(acme: Caller, ref: str, token: str) -> None:
    assert_error(acme.get(memory(ref), snapshot=token), "validation_error")
    assert_error(acme.get(memory(ref, "some-id"), snapshot=token), "validation_error")
    assert_error(acme.http.post(memory(ref), params={"snapshot": token}, json={"content": "x"}), "validation_error")


@requirement("openwop:snapshot:token")
def test_a_token_that_was_changed_is_refused(acme: Caller, ref: str) -> None:
    token: str = acme.page(ref)["snapshot"]
    for at in range(0, len(token), 3):
        changed = token[:at] + ("a" if token[at] != "a" else "b") + token[at + 1 :]
        assert acme.get(memory(ref), snapshot=changed).status_code == 400


@requirement("openwop:snapshot:ttl-holds")
def test_what_ends_during_a_run_ends_for_the_run_too(acme: Caller, ref: str) -> None:
    end = in_(milliseconds=300)
    entry = acme.put(ref, "Not for long.", expiresAt=end)
    snapshot = acme.page(ref)["snapshot"]
    while acme.entry(ref, entry["id"], snapshot=snapshot).status_code == 200:
        assert datetime.now(UTC) < moment(end) + timedelta(seconds=20)
    assert datetime.now(UTC) >= moment(end)
    assert acme.entries(ref, snapshot=snapshot) == []


# --- the Field's own syntheses ----------------------------------------------------------------------------------------


@requirement("openwop:views:read-only")
@pytest.mark.parametrize("own", ["field:main", "field:main:some-session"])
def test_a_view_on_the_field_is_read_and_never_written(acme: Caller, own: str) -> None:
    assert acme.entries(own) == []
    assert_error(acme.post(memory(own), {"content": "Something."}), "forbidden")
    assert_error(acme.delete(memory(own, "some-id")), "forbidden")
    assert_error(acme.post(f"{memory(own)}/forget", {"tag": "a"}), "forbidden")


@requirement("openwop:views:syntheses")
def test_a_view_on_the_field_shows_its_syntheses_by_session(acme: Caller, field_synthesis: Body) -> None:
    own = f"field:main:{field_synthesis['session']}"
    [entry] = acme.entries(own)
    assert_entry(entry)
    assert entry["id"] == field_synthesis["id"]
    assert told(acme.entry(own, entry["id"])) == entry
    assert entry in acme.entries("field:main")
    [event] = [event for event in acme.events("memory.compacted") if event["outputId"] == entry["id"]]
    assert event["memoryRef"] == own
    assert_error(acme.delete(memory(own, entry["id"])), "forbidden")


@pytest.fixture(scope="module")
def field_synthesis(acme: Caller) -> Body:
    """What a COMPACT of the Field's own made."""
    session = "kitchen"
    join(acme, "ada", 10)
    for text in ("The oven needs ten minutes.", "The soup needs an hour.", "The bread needs forty minutes."):
        told(acme.post("/v1/record", message("RECORD", unit(text), session_id=session)))
    wanted = {"strategy": "summarize", "filter": {"session_id": session}}
    compacted = told(acme.post("/v1/compact", message("COMPACT", wanted)))
    [synthesis] = compacted["synthesis_units"]
    return {"id": synthesis, "session": session}


# --- what lies beneath ------------------------------------------------------------------------------------------------


@requirement("openwop:unit:apart")
def test_agents_of_the_field_do_not_see_the_memory_of_an_engine(host: Host, ref: str) -> None:
    entry = host.acme.put(ref, "The periwinkle is on the sill.")
    with host.caller("acme", authority=6) as senior:
        join(senior, "ben", 6)
        seen = told(senior.post("/v1/attune", message("ATTUNE", scope(), agent_id="ben")))
        assert entry["id"] not in str(seen)
        for path in ("", "/lineage"):
            assert senior.get(f"/v1/units/{entry['id']}{path}").status_code == 404
        into = message("RECORD", unit("Through the back door."), agent_id="ben", session_id=f"openwop:{ref}")
        assert senior.post("/v1/record", into).status_code == 403
    assert host.acme.entries(ref) == [entry]


@requirement("openwop:views:operator", "openwop:compaction:host-managed")
def test_an_operator_compacts_a_memory_by_its_session_and_nobody_else_does(acme: Caller, ref: str) -> None:
    acme.seed(ref, {"a": "Pears cost two coins.", "b": "The fair opens at nine."})
    join(acme, "operator", 10)
    join(acme, "senior", 6)
    wanted = {"strategy": "summarize", "filter": {"session_id": f"openwop:{ref}"}}
    refused = acme.post("/v1/compact", message("COMPACT", wanted, agent_id="senior"))
    assert refused.status_code == 403 or refused.json()["units_affected"] == 0
    assert len(acme.entries(ref)) == 2
    told(acme.post("/v1/compact", message("COMPACT", wanted, agent_id="operator")))
    [event] = acme.events_of(ref, "memory.compacted")
    assert event["trigger"] == "host-managed"
    assert [entry["id"] for entry in acme.entries(ref)] == [event["outputId"]]


def join(caller: Caller, agent: str, authority: int) -> None:
    joining = {"id": agent, "role": "cook", "authority": authority}
    told(caller.post("/v1/register", message("REGISTER", joining, agent_id=agent)))


@requirement("openwop:unit:delete-is-purge")
def test_what_is_deleted_or_forgotten_is_in_no_file_of_the_store(host: Host, ref: str) -> None:
    words = ("xylograph", "quincunx", "zugzwang")
    deleted = host.acme.put(ref, f"A {words[0]} on the wall.")["id"]
    host.acme.put(ref, f"A {words[1]} of trees.", tags=[words[2]])
    assert host.acme.delete(memory(ref, deleted)).status_code == 204
    assert told(host.acme.post(f"{memory(ref)}/forget", {"tag": words[2]})) == {"deleted": 1}
    for kept in host.folder.iterdir():
        if kept.is_file():
            found = kept.read_bytes().lower()
            assert [word for word in words if word.encode() in found] == [], kept.name


@requirement("openwop:memory:newest-first")
def test_many_puts_at_once_are_all_kept_in_one_order(acme: Caller, ref: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        put = list(pool.map(lambda number: acme.put(ref, f"Number {number}."), range(80)))
    listed = acme.entries(ref)
    assert sorted(map(str, listed)) == sorted(map(str, put))
    assert all(moment(newer["createdAt"]) >= moment(older["createdAt"]) for newer, older in itertools.pairwise(listed))


@requirement("openwop:memory:durable", "openwop:events:durable")
def test_memory_feed_and_snapshots_outlive_the_server(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        before = first.acme.put("mem_kept", "Before.", tags=["a"])
        snapshot = first.acme.page("mem_kept")["snapshot"]
        first.acme.put("mem_kept", "After the snapshot.")
        first.acme.seed("mem_compacted", {"one": "Pears cost two coins.", "two": "The fair opens at nine."})
        output = first.acme.compacted("mem_compacted")["payload"]["outputId"]
        entries, events = first.acme.entries("mem_kept"), first.acme.events()
        key = first.acme.http.headers["authorization"]
    with serving(tmp_path) as second:
        second.acme.http.headers["authorization"] = key
        assert second.acme.entries("mem_kept") == entries
        assert second.acme.entries("mem_kept", snapshot=snapshot) == [before]
        assert second.acme.events() == events
        assert second.acme.feed(since=events[0]["id"])["events"] == events[1:]
        assert [entry["id"] for entry in second.acme.entries("mem_compacted")] == [output]
