"""`field.threads` and `field.context`: one API, for a field in memory, in a file, and behind a server."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import json

from fieldstone import errors, open_field, wiring
from fieldstone.client.field import Field
from fieldstone.client.remote import RemoteField
from fieldstone.client.streams import StreamClient
from fieldstone.client.threads import Threads
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import Run, TextPart
from fieldstone.field.field import LocalField
from fieldstone.planes.retention import StreamRetention
from tests.redact.fakes import TOKENS
from tests.requirements import requirement

Event = StreamEvent | dict[str, Any]


def said(text: str) -> Event:
    return {"kind": "user-message", "payload": {"content": text}}


def delta(text: str) -> Event:
    return StreamEvent("text-delta", {"delta": text})


async def told(threads: Threads, *events: Event, thread: str = "chat", **where: Any) -> Run:
    run = await threads.begin_run(thread, **where)
    await threads.append(run, events)
    return await threads.commit(run)


async def texts(threads: Threads, thread: str = "chat", **which: Any) -> list[str]:
    found = [message.parts[0] async for message in threads.transcript(thread, **which)]
    return [part.text for part in found if isinstance(part, TextPart)]


@requirement("planes:http:runs")
async def test_a_run_is_begun_streamed_and_committed(field: Field) -> None:
    run = await field.threads.begin_run("chat")
    assert run.status == "created"
    appended = await field.threads.append(run, [said("Hi"), delta("Hel")])
    appended = await field.threads.append(run, [delta("lo")], expected_seq=appended.head)
    assert (appended.head, appended.events[0].event) == (3, delta("lo"))
    assert (await field.threads.run("chat", run.run_id)).status == "streaming"
    committed = await field.threads.commit(run)
    assert (committed.status, committed.message_count) == ("committed", 2)
    assert await field.threads.commit(run) == committed
    assert await texts(field.threads) == ["Hi", "Hello"]
    assert list(await field.threads.runs("chat")) == [committed]


@requirement("planes:branches:switch")
async def test_branches_are_forked_switched_and_read(field: Field) -> None:
    threads = field.threads
    await told(threads, said("Tell me"))
    fork = (await threads.tree("chat")).active_leaf
    await told(threads, delta("First"))
    run = await threads.fork("chat", fork)
    assert run.fork_from_message_id == fork
    await threads.append(run, [delta("Second")])
    await threads.commit(run)
    assert await texts(threads) == ["Tell me", "Second"]
    assert await texts(threads, branch="all") == ["Tell me", "First", "Second"]
    first = (await threads.tree("chat")).nodes[1].id
    assert fork is not None
    assert await texts(threads, selections={fork: first}) == ["Tell me", "First"]
    assert await threads.set_active("chat", first) == first
    assert await texts(threads) == ["Tell me", "First"]
    root = await threads.begin_run("chat", fork_from=None)
    assert root.fork_from_message_id is None
    newest, middle = await threads.runs("chat", limit=2)
    assert (newest.run_id, middle.status) == (root.run_id, "committed")
    assert [each.status for each in await threads.runs("chat", before=middle)] == ["superseded", "committed"]


async def test_a_transcript_goes_on_over_its_pages(field: Field) -> None:
    lines = [f"m{n}" for n in range(1_100)]
    await told(field.threads, *map(said, lines))
    page = await field.threads.messages("chat")
    assert (len(page.messages), page.next is None) == (1_000, False)
    assert len((await field.threads.messages("chat", after=page.next, limit=30)).messages) == 30
    assert await texts(field.threads) == lines


@requirement("planes:http:any-name")
async def test_a_thread_may_have_any_name_and_all_are_listed(field: Field) -> None:
    names = ["..", "100%2F", "a b?c#d", "team/general", "ü"]
    for name in names:
        run = await field.threads.begin_run(name)
        assert await field.threads.run(name, run.run_id) == run
    assert [thread.thread_id async for thread in field.threads.threads()] == names


@requirement("planes:runs:final")
async def test_a_run_ends_otherwise_once(field: Field) -> None:
    threads = field.threads
    failed = await threads.fail(await threads.begin_run("chat"))
    assert failed.status == "failed"
    with pytest.raises(errors.InvalidTransition):
        await threads.cancel(failed)
    cancelled = await threads.cancel(await threads.begin_run("chat"))
    assert cancelled.status == "cancelled"
    with pytest.raises(errors.InvalidTransition):
        await threads.append(cancelled, [delta("late")])
    left = await threads.begin_run("chat")
    await threads.append(left, [delta("left")])
    assert (await threads.recover(left, "commit")).status == "committed"
    assert await texts(threads) == ["left"]


@requirement("planes:streams:idempotency-key")
async def test_the_same_append_with_its_key_is_stored_once(field: Field) -> None:
    run = await field.threads.begin_run("chat")
    once = await field.threads.append(run, [delta("one ")], idempotency_key="k")
    assert await field.threads.append(run, [delta("one ")], idempotency_key="k") == once
    await field.threads.append(run, [delta("one ")])
    assert (await field.threads.append(run, [])).head == 2
    with pytest.raises(errors.SeqConflict) as conflict:
        await field.threads.append(run, [delta("two ")], expected_seq=1)
    assert conflict.value.extra == {"head": 2}


@requirement("planes:http:runs")
async def test_what_is_refused_is_raised_as_the_same_error_everywhere(field: Field) -> None:
    threads = field.threads
    with pytest.raises(errors.ThreadNotFound):
        await texts(threads, "never")
    run = await threads.begin_run("chat")
    await threads.begin_run("other")
    with pytest.raises(errors.RunNotFound):
        await threads.run("other", run.run_id)
    with pytest.raises(errors.InvalidPayload):
        await threads.begin_run("")
    with pytest.raises(errors.InvalidPayload):
        await threads.append(run, [{"kind": 1}])
    for where in ({"thread": TOKENS["OpenAI old"]}, {"thread": "chat", "fork_from": TOKENS["OpenAI old"]}):
        with pytest.raises(errors.SecretLeakage):
            await threads.begin_run(**where)


@requirement("planes:secrets:everywhere")
async def test_what_is_stored_is_clean_and_the_writer_is_told_what_was(field: Field) -> None:
    secret = TOKENS["OpenAI old"]
    run = await field.threads.begin_run("chat")
    appended = await field.threads.append(run, [said(f"It is {secret}.")])
    assert secret not in str(appended)
    await field.threads.commit(run)
    [text] = await texts(field.threads)
    assert text.startswith("It is [REDACTED:")


@requirement("planes:prompt:budget")
async def test_a_context_is_the_end_of_a_thread_within_a_budget(field: Field) -> None:
    await told(field.threads, *(said(f"Message number {n}") for n in range(5)))
    found = await field.threads.context("chat", last=2)
    assert [part.text for message in found.messages for part in message.parts if isinstance(part, TextPart)] == [
        "Message number 3",
        "Message number 4",
    ]
    assert (found.provenance.thread_id, found.provenance.count) == ("chat", 2)
    within = await field.threads.context("chat", max_tokens=12, reasoning=False, tool_results=False)
    assert within.tokens is not None
    assert 0 < within.tokens <= 12


@requirement("planes:branches:delete")
async def test_a_deleted_thread_leaves_a_receipt_and_nothing_else(field: Field) -> None:
    run = await told(field.threads, said("One"))
    receipt = await field.threads.delete("chat")
    assert (receipt.messages, receipt.runs, receipt.streams) == (1, 1, 1)
    with pytest.raises(errors.ThreadNotFound):
        await field.threads.tree("chat")
    with pytest.raises(errors.StreamCompacted):
        await anext(field.threads.follow(run.stream_id))


@requirement("planes:remembering:asked-for")
async def test_what_a_run_decided_becomes_units_of_an_agent_once(field: Field) -> None:
    await field.agent("ada", role="researcher")
    run = await field.threads.begin_run("chat")
    with pytest.raises(errors.InvalidTransition):
        await field.threads.remember(run, agent="ada")
    await field.threads.append(run, [said("Where does it go?"), delta("We decided to move the store to Lisbon.")])
    run = await field.threads.commit(run)
    [new] = await field.threads.remember(run, agent="ada", types=["decision"])
    assert (new.type, new.is_new) == ("decision", True)
    assert (await field.unit(new.memory_unit_id)).content == new.content
    [again] = await field.threads.remember(run, agent="ada")
    assert (again.memory_unit_id, again.is_new) == (new.memory_unit_id, False)


@requirement("planes:reconcile:dry-run")
async def test_reconciling_names_and_recovers_what_was_left(field: Field) -> None:
    run = await field.threads.begin_run("chat")
    await field.threads.append(run, [delta("left")])
    assert (await field.threads.reconcile()).disagreements == ()
    found = await field.threads.reconcile(thread="chat", recover="fail", stale_ms=0)
    assert [each.kind for each in found.disagreements] == ["stale-run"]
    assert (await field.threads.run("chat", run.run_id)).status == "streaming"
    done = await field.threads.reconcile(dry_run=False, recover="fail", stale_ms=0)
    assert (done.dry_run, done.threads, done.runs) == (False, 1, 1)
    assert (await field.threads.run("chat", run.run_id)).status == "failed"


@requirement("planes:compaction:cli")
async def test_logs_are_compacted_and_transcripts_stay(field: Field) -> None:
    run = await told(field.threads, said("One"), delta("Two"), thread="a")
    other = await told(field.threads, said("One"), thread="b")
    planned = await field.threads.compact(run.stream_id, dry_run=True, keep_events=1)
    assert (planned.eligible, [held.reason for held in planned.held]) == (1, ["kept_events"])
    done = await field.threads.compact(run.stream_id)
    assert (done.eligible, done.snapshot is not None) == (2, True)
    now = StreamRetention(finished_days=0)
    assert list(await field.threads.compact_all()) == [], "it ended just now"
    [due] = await field.threads.compact_all(now, dry_run=True)
    assert (due.stream_id, due.compaction.eligible) == (other.stream_id, 1)
    assert list(await field.threads.compact_all(now)) == [due]
    assert list(await field.threads.compact_all(now)) == []
    assert await texts(field.threads, "a") == ["One", "Two"]


@requirement("planes:client:closes")
async def test_a_stream_is_followed_live_and_the_iterator_ends_with_the_field(address: str) -> None:
    async with wiring.open_field(address) as field:
        run = await field.threads.begin_run("chat")
        await field.threads.append(run, [delta("one "), delta("two ")])
        events = field.threads.follow(run.stream_id, after=1)
        assert (await anext(events)).event == delta("two ")
        waiting = asyncio.ensure_future(anext(events, None))
        await field.threads.append(run, [delta("three ")])
        live = await waiting
        assert live is not None
        assert (live.seq, live.stream_id, live.event) == (3, run.stream_id, delta("three "))
        waiting = asyncio.ensure_future(anext(events, None))
        await asyncio.sleep(0)
    assert await asyncio.wait_for(waiting, 10) is None


@requirement("planes:client:resumes")
async def test_who_takes_events_too_slowly_here_misses_none(tmp_path: Path) -> None:
    async with wiring.open_field(tmp_path / "team.db") as field:
        here = field.door
        assert isinstance(here, LocalField)
        here.planes.delivery.queue_events = 2  # type: ignore[misc]
        run = await field.threads.begin_run("chat")
        await field.threads.append(run, [delta("0 ")])
        events = field.threads.follow(run.stream_id)
        seen = [(await anext(events)).seq]
        waiting = asyncio.ensure_future(anext(events))
        await field.threads.append(run, [delta("1 ")])
        seen.append((await waiting).seq)
        for n in range(2, 10):
            await field.threads.append(run, [delta(f"{n} ")])
        seen += [(await anext(events)).seq for _ in range(8)]
    assert seen == list(range(1, 11))


@requirement("planes:context:recall")
async def test_a_context_manager_finds_again_in_the_thread_what_it_let_go(field: Field) -> None:
    await told(field.threads, said("The license server moved to Lisbon."), *(said(f"Day {n}: rain") for n in range(9)))
    messages = [message async for message in field.threads.transcript("chat")]
    async with field.context(2_000, thread="chat", keep_last=2) as context:
        await context.add(*messages)
        await context.compact()
        assert len(context.messages) < len(messages)
        [found] = await context.recall("license server", limit=1)
        assert found.message == messages[0]


@requirement("planes:http:sync")
def test_without_await_it_is_the_same(address_of_file: str) -> None:
    with open_field(address_of_file) as field:
        run = field.threads.begin_run("chat")
        field.threads.append(run, [said("Hi"), delta("Hello")])
        field.threads.commit(run)
        assert [message.role for message in field.threads.transcript("chat")] == ["user", "assistant"]
        assert [thread.thread_id for thread in field.threads.threads()] == ["chat"]
        events = field.threads.follow(run.stream_id)
        assert [next(events).seq, next(events).seq] == [1, 2]
        assert field.threads.tree("chat").active_leaf is not None
        assert field.threads.reconcile().disagreements == ()
        context = field.context(500)
        context.add_openai([{"role": "user", "content": "Hi"}])
        assert context.openai() == [{"role": "user", "content": "Hi"}]
        context.close()


@pytest.fixture(params=["memory:", "team.db"])
def address_of_file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    where: str = request.param
    return where


@requirement("planes:streams:idempotency-key")
async def test_an_append_whose_answer_was_lost_is_sent_again_with_the_same_key() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.decode(request.content))
        if len(bodies) == 1:
            raise httpx.ReadError("the line broke")
        return httpx.Response(201, content=b'{"events": [], "head": 1}')

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://field") as client:
        remote = RemoteField("http://field", client)
        assert (await remote.threads.append("chat", "run-1", [StreamEvent("text-delta", {})])).head == 1
    first, second = bodies
    assert first == second
    assert first["idempotencyKey"].startswith("append-")


async def test_many_ids_are_asked_for_in_groups() -> None:
    asked: list[Sequence[str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.decode(request.url.params["ids"]))
        return httpx.Response(200, content=b'{"messages": [], "next": null}')

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://field") as client:
        remote = RemoteField("http://field", client)
        ids = [f"msg-{n}" for n in range(250)]
        assert await remote.threads.messages_by_id("chat", ids) == []
    assert [len(group) for group in asked] == [100, 100, 50]
    assert [each for group in asked for each in group] == ids


async def test_a_connection_without_tools_says_so_where_a_context_is_wanted() -> None:
    async with httpx.AsyncClient(base_url="http://field") as client:
        with pytest.raises(errors.UnsupportedOperation, match="context"):
            RemoteField("http://field", client, lambda: StreamClient("http://field")).context(100)
