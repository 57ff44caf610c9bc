"""`fieldstone threads`"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import click.testing
import pytest

from fieldstone import wiring
from fieldstone.cli.threads import _drawn
from fieldstone.client.threads import Threads
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import Node, Run, Tree
from tests.cli.running import answer, done, invoke, refused, served
from tests.requirements import requirement

HERE = ("--db", "team.db")


def said(text: str) -> StreamEvent:
    return StreamEvent("user-message", {"content": text})


def delta(text: str) -> StreamEvent:
    return StreamEvent("text-delta", {"delta": text})


def on_threads(work: Callable[[Threads], Awaitable[Any]]) -> Any:
    """Do this with the threads of team.db."""

    async def opened() -> Any:
        async with wiring.open_field("team.db") as field:
            return await work(field.threads)

    return asyncio.run(opened())


async def told(threads: Threads, *events: StreamEvent, thread: str = "chat", **where: Any) -> Run:
    run = await threads.begin_run(thread, **where)
    await threads.append(run, events)
    return await threads.commit(run)


@pytest.fixture
def forked() -> list[str]:
    """A question with two answers, the second one active. The ids of the three messages."""

    async def work(threads: Threads) -> list[str]:
        await told(threads, said("What is it?"))
        [question] = (await threads.tree("chat")).nodes
        await told(threads, delta("A stone."))
        await told(threads, delta("A field."), fork_from=question.id)
        return [node.id for node in (await threads.tree("chat")).nodes]

    ids: list[str] = on_threads(work)
    return ids


@pytest.fixture
def left() -> Run:
    """A run whose writer is gone."""

    async def work(threads: Threads) -> Run:
        run = await threads.begin_run("chat")
        await threads.append(run, [delta("Half a sent")])
        return run

    run: Run = on_threads(work)
    return run


def lines(*args: str) -> list[Any]:
    return [json.loads(line) for line in done(*args, "--json").splitlines()]


def test_threads_are_listed(forked: list[str]) -> None:
    [line] = done("threads", "list", *HERE).splitlines()
    assert line.endswith("Z  chat")
    [thread] = lines("threads", "list", *HERE)
    assert (thread["threadId"], thread["activeLeaf"]) == ("chat", forked[2])


def test_a_store_without_threads_says_how_one_begins() -> None:
    on_threads(lambda threads: threads.reconcile())
    result = invoke("threads", "list", *HERE)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "the first run of a thread makes it" in result.stderr


def test_the_active_path_is_shown_or_all_or_one_through_a_message(forked: list[str]) -> None:
    shown = done("threads", "show", "chat", *HERE)
    assert "What is it?" in shown
    assert "A field." in shown
    assert "A stone." not in shown
    assert shown.startswith("user  ")
    every = lines("threads", "show", "chat", "--branch", "all", *HERE)
    assert [message["id"] for message in every] == forked
    other = lines("threads", "show", "chat", "--through", forked[1], *HERE)
    assert [message["id"] for message in other] == forked[:2]
    assert "no message of this thread" in refused("threads", "show", "chat", "--through", "x", *HERE, exit_code=2)
    both = ("--through", forked[1], "--branch", "all")
    assert "has no path" in refused("threads", "show", "chat", *both, *HERE, exit_code=2)


def test_every_kind_of_part_is_shown_and_no_control_character_is_sent() -> None:
    events = [
        StreamEvent("reasoning", {"text": "Let me look."}),
        StreamEvent("text-delta", {"delta": "Here\x1b[2J it is."}),
        StreamEvent("file", {"mimeType": "image/png", "url": "https://example.com/a.png"}),
        StreamEvent("tool-call", {"toolCallId": "c", "toolName": "look", "input": {"at": 1}}),
        StreamEvent("tool-result", {"toolCallId": "c", "output": {"found": 2}, "isError": True}),
    ]
    on_threads(lambda threads: told(threads, *events))
    shown = done("threads", "show", "chat", *HERE)
    for part in ("(thinks) Let me look.", "file image/png", '→ look {"at":1}', '← look failed: {"found":2}'):
        assert part in shown
    assert "\x1b" not in shown
    assert "Here\\u001b[2J it is." in shown


def test_the_tree_goes_straight_down_the_active_path(forked: list[str]) -> None:
    question, stone, field = done("threads", "tree", "chat", *HERE).splitlines()
    assert question.startswith(f"* {forked[0]}  user  ")
    assert stone.startswith(f"  │ {forked[1]}  assistant  ")
    assert field.startswith(f"* {forked[2]}  assistant  ")
    assert len(answer("threads", "tree", "chat", *HERE)["nodes"]) == 3


def test_a_chain_whose_beginning_is_not_there_says_so() -> None:
    on_threads(lambda threads: told(threads, said("Later"), fork_from="msg-not-yet"))
    on_threads(lambda threads: told(threads, said("First"), fork_from=None))
    assert "(behind msg-not-yet, which is not here)" in done("threads", "tree", "chat", *HERE)
    [lost, first] = lines("threads", "show", "chat", "--branch", "all", *HERE)
    assert "--branch all shows it" in refused("threads", "show", "chat", "--through", lost["id"], *HERE)
    assert lines("threads", "show", "chat", "--through", first["id"], *HERE) == [first]


@requirement("planes:branches:cycles")
def test_parents_that_lead_in_a_circle_are_drawn_once() -> None:
    one, other = (Node(id, parent, "user", "run-1", "2026-01-31T08:00:00.000Z") for id, parent in ("ab", "ba"))
    assert [line.split()[:2] for line in _drawn(Tree((one, other), "b"))] == [["*", "a"], ["*", "b"]]


def test_an_unknown_thread_is_told_in_a_sentence(forked: list[str]) -> None:
    for name in ("show", "tree", "delete"):
        assert "THREAD_NOT_FOUND" in refused("threads", name, "never", *HERE)


@requirement("planes:compaction:cli")
def test_a_log_is_compacted_and_the_transcript_stays(forked: list[str]) -> None:
    shown = done("threads", "show", "chat", *HERE)
    [*_, first] = answered_runs()
    stream = first.stream_id
    dry = answer("threads", "compact", stream, "--dry-run", *HERE)
    assert dry == {"snapshot": {"lastSeq": 1}, "eligible": 1, "held": []}
    assert done("threads", "compact", stream, "--dry-run", *HERE) == f"{stream}: 1 event would go\n"
    kept = done("threads", "compact", stream, "--keep-events", "1", *HERE)
    assert kept == f"{stream}: 0 events went; behind 0 they stay: the newest are to stay\n"
    assert done("threads", "compact", stream, *HERE) == f"{stream}: 1 event went\n"
    assert done("threads", "compact", stream, *HERE) == f"{stream}: 0 events went\n"
    assert done("threads", "show", "chat", *HERE) == shown
    assert answer("threads", "reconcile", *HERE)["disagreements"] == []


@requirement("planes:compaction:cli")
def test_the_logs_of_all_ended_runs_are_compacted_and_of_no_other(forked: list[str]) -> None:
    on_threads(lambda threads: threads.begin_run("other"))
    assert done("threads", "compact", "--all", *HERE) == "0 events of 0 streams went\n", "they ended just now"
    now = ("threads", "compact", "--all", "--finished-days", "0", *HERE)
    assert len(answer(*now, "--dry-run")["streams"]) == 3
    assert done(*now, "--dry-run").endswith("3 events of 3 streams would go\n")
    assert done(*now).endswith("3 events of 3 streams went\n")
    assert answer(*now) == {"streams": []}


@requirement("planes:compaction:cli")
def test_compact_is_told_what_to_compact(forked: list[str]) -> None:
    assert "Name a stream" in refused("threads", "compact", *HERE, exit_code=2)
    assert "Name a stream" in refused("threads", "compact", "run:x", "--all", *HERE, exit_code=2)


@requirement("planes:rules:uncommitted-run")
def test_a_run_that_has_not_ended_keeps_its_log(left: Run) -> None:
    said_of_it = done("threads", "compact", left.stream_id, *HERE)
    assert said_of_it == f"{left.stream_id}: 0 events went; behind 0 they stay: its run has not ended\n"


@requirement("planes:reconcile:dry-run")
def test_reconciling_is_a_dry_run_until_it_is_applied(left: Run) -> None:
    assert done("threads", "reconcile", *HERE) == "1 thread, 1 run: 0 disagreements\n"
    stale = ("threads", "reconcile", "--recover", "commit", "--stale-minutes", "0", *HERE)
    result = invoke(*stale)
    assert f"chat  stale-run  {left.run_id}" in result.stdout
    assert "Would be done: " in result.stdout
    assert "--apply does it" in result.stderr
    assert status(left) == "streaming"
    applied = done(*stale, "--apply")
    assert "Done: " in applied
    assert status(left) == "committed"
    assert "Half a sent" in done("threads", "show", "chat", *HERE)
    assert answer("threads", "reconcile", "chat", *HERE) == {
        "dryRun": True,
        "threads": 1,
        "runs": 1,
        "disagreements": [],
    }


@requirement("planes:branches:delete")
def test_a_deletion_asks_first_on_a_terminal_and_leaves_a_receipt(
    forked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
        assert invoke("threads", "delete", "chat", *HERE, input="n\n").exit_code == 1
        assert "gone for good" in invoke("threads", "delete", "chat", *HERE, input="n\n").stderr
    assert len(lines("threads", "list", *HERE)) == 1
    receipt = done("threads", "delete", "chat", *HERE)
    assert [line.split() for line in receipt.splitlines()[:4]] == [
        ["thread", "chat"],
        ["messages", "3"],
        ["runs", "3"],
        ["streams", "3"],
    ]
    assert lines("threads", "list", *HERE) == []


def test_through_a_server_it_is_the_same(forked: list[str]) -> None:
    shown, drawn = done("threads", "show", "chat", *HERE), done("threads", "tree", "chat", *HERE)
    with served("team.db") as url:
        there = ("--url", url)
        assert done("threads", "show", "chat", *there) == shown
        assert done("threads", "tree", "chat", *there) == drawn
        assert done("threads", "show", "chat", *HERE) == shown, "the file is used through its server"
        kept = ("threads", "compact", "--all", "--finished-days", "0", "--keep-events", "1", *there)
        assert done(*kept) == "0 events of 0 streams went\n"
        assert len(answer("threads", "compact", "--all", "--finished-days", "0", *there)["streams"]) == 3
        assert answer("threads", "reconcile", "--apply", *there)["runs"] == 3
        assert answer("threads", "delete", "chat", *there)["messages"] == 3
        assert lines("threads", "list", *there) == []


def answered_runs() -> list[Run]:
    runs: list[Run] = on_threads(lambda threads: threads.runs("chat"))
    return runs


def status(run: Run) -> str:
    found: Run = on_threads(lambda threads: threads.run(run.thread_id, run.run_id))
    return found.status
