"""One feed of what happened to memories: paged, streamed, sent on, and without a word of what was remembered."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.cli.running import done
from tests.models.server import Endpoint, Handler
from tests.models.server import serving as receiver
from tests.openwop.host import Body, Caller, Host, listening, serving
from tests.openwop.shapes import FEED, assert_compacted, assert_error
from tests.requirements import requirement

TYPE: Final = "memory.compacted"


def fair(count: int) -> dict[str, str]:
    return {f"fair-{number}": f"Stand {number} of the fair sells pears at {number} coins." for number in range(count)}


@requirement("openwop:events:content-free")
def test_events_hold_no_word_of_what_was_remembered(acme: Caller, ref: str) -> None:
    word = "quokka"
    acme.seed(ref, {"a": f"The {word} sleeps.", "b": f"The {word} wakes."})
    acme.put(ref, f"The {word} eats.")
    acme.compacted(ref)
    assert word not in acme.get("/v1/events", limit=1_000).text


@requirement("openwop:events:since")
def test_the_feed_goes_on_after_a_cursor_and_after_a_moment(acme: Caller, ref: str) -> None:
    acme.seed(ref, fair(2))
    acme.compacted(ref)
    last = acme.events(TYPE)[-1]
    assert acme.feed(type=TYPE, since=last["id"])["events"] == []
    between = datetime.now(UTC).isoformat()
    acme.seed(ref, fair(3))
    acme.compacted(ref)
    for since in (last["id"], between):
        [event] = acme.feed(type=TYPE, since=since)["events"]
        assert event["sourceCount"] >= 3
    assert acme.feed(type=TYPE, since=datetime(2999, 1, 1, tzinfo=UTC).isoformat())["events"] == []


@requirement("openwop:events:paged")
def test_pages_of_the_feed_make_the_whole_in_order(acme: Caller, ref: str) -> None:
    for number in range(4):
        acme.put(ref, f"Number {number}.")
    whole = acme.feed(limit=1_000)["events"]
    paged: list[Body] = []
    page = acme.feed(limit=3)
    while page["events"]:
        assert len(page["events"]) <= 3
        paged += page["events"]
        page = acme.feed(limit=3, since=page["next"])
    assert paged == whole
    assert len({event["id"] for event in whole}) == len(whole)


@requirement("openwop:events:since")
@pytest.mark.parametrize("params", [{"since": "yesterday"}, {"limit": -1}, {"limit": "x"}, {"type": "run.started"}])
def test_a_feed_that_there_is_not_is_refused(acme: Caller, params: dict[str, str]) -> None:
    assert_error(acme.get("/v1/events", **params), "validation_error")


@requirement("openwop:events:each-once")
def test_who_pages_on_while_others_write_gets_each_event_once_and_in_order(acme: Caller, ref: str) -> None:
    since = acme.feed(limit=1_000)["next"]
    seen: list[Body] = []
    with ThreadPoolExecutor(6) as pool:
        putting = [pool.submit(acme.put, ref, f"Number {number}.") for number in range(60)]
        while len(seen) < 60:
            page = acme.feed(type="memory.written", limit=7, since=since)
            seen += page["events"]
            since = page["next"]
        put = {each.result()["id"] for each in putting}
    assert len(seen) == 60
    assert {event["memoryId"] for event in seen} == put
    assert acme.events_of(ref, "memory.written") == seen


@requirement("openwop:events:sse-resume")
def test_the_stream_resumes_after_the_last_event_that_was_seen(acme: Caller, ref: str) -> None:
    for number in range(3):
        acme.put(ref, f"Number {number}.")
    wanted = acme.events_of(ref, "memory.written")
    with listening(acme, after=wanted[0]["id"], type="memory.written") as heard:
        assert [next(heard) for _ in range(2)] == [(event["id"], event) for event in wanted[1:]]


@requirement("openwop:events:sse")
def test_the_stream_tells_what_happens_while_one_listens(acme: Caller, ref: str) -> None:
    acme.put(ref, "Before.")
    last = acme.events("memory.written")[-1]["id"]
    with listening(acme, after=last, type="memory.written") as heard:
        entry = acme.put(ref, "Told at once.")
        _, event = next(heard)
        assert event["memoryId"] == entry["id"]


@requirement("openwop:events:cli")
def test_the_command_line_tells_whether_compaction_ran_last_night(host: Host, ref: str) -> None:
    host.acme.seed(ref, fair(3))
    payload = host.acme.compacted(ref)["payload"]
    key = host.acme.http.headers["authorization"].removeprefix("Bearer ")
    told = done("events", "--type", TYPE, "--since", "24h", "--url", host.url, "--json", env={"FIELDSTONE_KEY": key})
    events = [json.loads(line) for line in told.splitlines()]
    [event] = [event for event in events if event["memoryRef"] == ref]
    assert_compacted(event, *FEED)
    assert event["outputId"] == payload["outputId"]


# --- webhooks ---------------------------------------------------------------------------------------------------------


class Receiver:
    """It fails `failing` times, and keeps what came with its headers."""

    def __init__(self, failing: int) -> None:
        self.failing = failing
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.enough = threading.Event()

    def __call__(self, handler: Handler) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.came.append((headers, msgspec.json.encode(handler.body)))  # the bytes that came: fields keep their order
        if len(self.came) <= self.failing:
            handler.send(b"", status=503)
            return
        handler.send(b"", status=204, headers={"content-length": "0"})
        self.enough.set()


SIGNING_KEY: Final = "a key " + "for signatures"


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[tuple[Host, Receiver]]:
    """A host that sends compactions of acme on, to somebody who is out of order at first."""
    receiving = Receiver(failing=1)
    with receiver(receiving) as endpoint:
        settings = tmp_path / "settings.toml"
        settings.write_text(_webhook(endpoint))
        with serving(tmp_path, "--config", str(settings), environ={"HOOK_KEY": SIGNING_KEY}) as served:
            yield served, receiving


def _webhook(endpoint: Endpoint) -> str:
    return f'[[webhooks]]\nurl = "{endpoint.url}"\ntypes = ["{TYPE}"]\nsecret_env = "HOOK_KEY"\ntenant = "acme"\n'


@requirement("openwop:webhooks:signed", "openwop:webhooks:retried")
def test_a_webhook_is_signed_and_sent_again_until_it_is_taken(hooked: tuple[Host, Receiver]) -> None:
    host, receiving = hooked
    host.acme.seed("mem_hooked", fair(3))
    host.zeta.seed("mem_hooked", fair(3))
    host.zeta.compacted("mem_hooked")
    payload = host.acme.compacted("mem_hooked")["payload"]
    assert receiving.enough.wait(60)
    assert len(receiving.came) == 2  # once refused, once taken; nothing of zeta, and no other type
    bodies = [json.loads(body) for _, body in receiving.came]
    assert bodies[0] == bodies[1]
    assert bodies[1]["outputId"] == payload["outputId"]
    assert_compacted(bodies[1], *FEED)


@requirement("openwop:webhooks:signed")
def test_the_signature_covers_the_time_and_the_body(hooked: tuple[Host, Receiver]) -> None:
    host, receiving = hooked
    host.acme.seed("mem_hooked", fair(2))
    host.acme.compacted("mem_hooked")
    assert receiving.enough.wait(60)
    headers, body = receiving.came[-1]
    signed = dict(part.split("=", 1) for part in headers["fieldstone-signature"].split(","))
    assert abs(int(signed["t"]) - datetime.now(UTC).timestamp()) < 120
    expected = hmac.new(SIGNING_KEY.encode(), f"{signed['t']}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(signed["v1"], expected)
