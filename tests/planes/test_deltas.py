"""A secret that streams in over any number of deltas is caught, without touching seqs or acknowledgement."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from fieldstone.core.streams import StreamEvent
from fieldstone.planes.pages import HELD_MS
from fieldstone.planes.snapshots import take_snapshot
from fieldstone.planes.trails import StreamTrail, follow
from fieldstone.redact.openings import literal_beginnings
from tests.planes.events import call, delta, error, file, finished, reasoning, result, started, user
from tests.planes.scene import Scene
from tests.planes.transport import HARNESS, KNOWN, STREAM, shown_text, stored_texts, streams_of
from tests.redact.fakes import TOKENS, noise, private_key
from tests.requirements import requirement

MARKER = "[REDACTED:db-key]"
SECRETS = {
    "known": KNOWN,
    "said": "hunTer2!" + noise(4),
    **{kind: TOKENS[kind] for kind in ("AWS access key", "OpenAI old", "SendGrid", "GitHub fine-grained", "JWT")},
    "private key": private_key(lines=4),
}


def sentence(secret: str) -> str:
    return f"I looked it up: the password is {secret} and that was all.\nNow let us go on."


@requirement("planes:secrets:any-cut")
@pytest.mark.parametrize("kind", SECRETS)
async def test_a_secret_of_one_character_a_delta_is_caught(scene: Scene, kind: str) -> None:
    streams = streams_of(scene)
    text = sentence(SECRETS[kind])
    for character in text:
        await streams.append(STREAM, [delta(character)])
    stored = await stored_texts(scene)
    assert len(stored) == len(text), "each event keeps its seq"
    assert "".join(stored) == HARNESS.clean_one(text).text
    assert SECRETS[kind] not in "".join(stored)


@requirement("planes:secrets:any-cut")
@given(kind=st.sampled_from(sorted(SECRETS)), data=st.data())
def test_however_a_text_is_cut_its_pieces_are_the_clean_text(kind: str, data: st.DataObject) -> None:
    text = f"One moment. {sentence(SECRETS[kind])} And again {SECRETS[kind]}!"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=40)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    batches = data.draw(st.integers(1, 5))
    assert "".join(_told(pieces, batches)) == HARNESS.clean_one(text).text


@requirement("planes:secrets:any-cut")
@given(
    parts=st.lists(
        st.sampled_from([*SECRETS.values(), "word ", "née ", ".", "[", "]", "\n", " ", MARKER]), max_size=12
    ),
    size=st.integers(1, 30),
    batch=st.integers(1, 9),
)
def test_secrets_in_any_company_leave_nothing_to_be_found(parts: list[str], size: int, batch: int) -> None:
    text = "".join(parts)
    stored = _told([text[at : at + size] for at in range(0, len(text), size)], batch)
    assert HARNESS.clean_one("".join(stored)).found == ()


def _told(pieces: list[str], batch: int) -> list[str]:
    """What is stored when so many deltas come at a time."""
    trail, stored = StreamTrail(), list[str]()
    for at in range(0, len(pieces), batch):
        followed = follow(HARNESS, literal_beginnings(), trail, [delta(piece) for piece in pieces[at : at + batch]])
        for seq, text in followed.rewritten.items():
            stored[seq - 1] = text
        stored += [event.payload["delta"] for event in followed.events]
        trail = followed.trail
    return stored


@requirement("planes:secrets:rewritten")
async def test_the_marker_goes_into_the_first_piece_and_the_others_lose_their_part(scene: Scene) -> None:
    streams = streams_of(scene)
    for piece in ("key: ", KNOWN[:6], KNOWN[6:12], KNOWN[12:] + " is it", " indeed"):
        await streams.append(STREAM, [delta(piece)])
    assert await stored_texts(scene) == ["key: ", MARKER, "", " is it", " indeed"]


@requirement("planes:secrets:any-cut")
async def test_a_batch_is_cleaned_as_one_text(scene: Scene) -> None:
    appended = await streams_of(scene).append(STREAM, [delta(letter) for letter in f"say {KNOWN} now"])
    assert "".join(each.event.payload["delta"] for each in appended.events) == f"say {MARKER} now"


@requirement("planes:secrets:counted-at-once")
async def test_an_append_counts_at_once_and_readers_stop_before_what_may_begin_a_secret(scene: Scene) -> None:
    streams = streams_of(scene)
    assert (await streams.append(STREAM, [delta("use "), delta(KNOWN[:3])])).head == 2
    assert await shown_text(streams) == "use " + KNOWN[:3], "three characters begin too many words"
    assert (await streams.append(STREAM, [delta(KNOWN[3:8])])).head == 3
    page = await streams.read(STREAM)
    assert (page.head, [each.seq for each in page.events]) == (3, [1])


@requirement("planes:secrets:counted-at-once")
@pytest.mark.parametrize("kind", ["known", "AWS access key", "OpenAI old", "GitHub fine-grained", "SendGrid", "JWT"])
async def test_no_reader_sees_more_than_three_characters_of_it(scene: Scene, kind: str) -> None:
    streams = streams_of(scene)
    secret = SECRETS[kind]
    for character in f"use {secret} for it":
        await streams.append(STREAM, [delta(character)])
        shown = (await shown_text(streams)).split("[REDACTED")[0]
        assert secret[:4] not in shown


@requirement("planes:secrets:counted-at-once")
async def test_a_password_that_is_announced_is_held_back_from_its_first_letter(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("The password"), delta(" is "), delta("hunTer")])
    assert await shown_text(streams) == "The password is "


@requirement("planes:secrets:decided")
async def test_the_next_delta_decides(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("take "), delta(KNOWN[:6])])
    await streams.append(STREAM, [delta(", or not")])
    assert await shown_text(streams) == f"take {KNOWN[:6]}, or not"


@requirement("planes:secrets:decided")
@pytest.mark.parametrize("end", [finished(), result("c1"), user("And now?")])
async def test_the_end_of_the_step_decides(scene: Scene, end: StreamEvent) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(KNOWN[:6])])
    assert await shown_text(streams) == ""
    await streams.append(STREAM, [end])
    assert await shown_text(streams) == KNOWN[:6]


@requirement("planes:secrets:decided")
async def test_after_250_ms_readers_wait_no_longer(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(KNOWN[:6])])
    scene.clock.advance(HELD_MS - 1)
    assert await shown_text(streams) == ""
    scene.clock.advance(1)
    assert await shown_text(streams) == KNOWN[:6]
    await streams.append(STREAM, [delta(KNOWN[6:])])
    assert await stored_texts(scene) == [MARKER, ""], "what is stored is clean all the same"


@requirement("planes:secrets:commit-decides")
async def test_a_commit_decides_at_once(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    await streams.append(run.stream_id, [delta(KNOWN[:6])])
    assert await shown_text(streams, run.stream_id) == ""
    await scene.commit(run)
    scene.clock.advance(-1)
    assert await shown_text(streams, run.stream_id) == KNOWN[:6]
    assert await scene.path() == [KNOWN[:6]]


@requirement("planes:secrets:everywhere")
async def test_a_secret_is_in_no_transcript(scene: Scene) -> None:
    streams = streams_of(scene)
    run = await scene.begin()
    for character in f"use {KNOWN} for it":
        await streams.append(run.stream_id, [delta(character)])
    await scene.commit(run)
    assert await scene.path() == [f"use {MARKER} for it"]


@requirement("planes:secrets:rewritten")
async def test_a_snapshot_of_the_first_part_goes_when_the_secret_completes(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [started(), delta(KNOWN[:10])])
    await scene.store.write(lambda tables: take_snapshot(tables, STREAM, now_ms=0))
    assert await streams.snapshot(STREAM) is not None
    await streams.append(STREAM, [delta(KNOWN[10:])])
    assert await streams.snapshot(STREAM) is None


async def test_what_follows_a_secret_in_one_piece_belongs_to_it(scene: Scene) -> None:
    """A token is found with its first 20 characters; the rest alone would look like nothing."""
    streams = streams_of(scene)
    token = TOKENS["OpenAI old"]
    for piece in (token[:26], token[26:34], token[34:], " is it"):
        await streams.append(STREAM, [delta(piece)])
    assert token[26:34] not in "".join(stored := await stored_texts(scene))
    assert stored[-1] == " is it"


async def test_a_secret_that_holds_what_stands_before_it_is_followed_to_its_end(scene: Scene) -> None:
    """What was said between two secrets stands in the second one, too: it does not begin there."""
    streams = streams_of(scene)
    text = f"{KNOWN} . {private_key(lines=3)} . {KNOWN}.{TOKENS['SendGrid']} end"
    for at in range(0, len(text), 5):
        await streams.append(STREAM, [delta(text[at : at + 5])])
    assert "".join(await stored_texts(scene)) == HARNESS.clean_one(text).text


@requirement("planes:secrets:any-cut")
async def test_another_process_goes_on_with_a_text_and_a_secret(scene: Scene) -> None:
    token = TOKENS["OpenAI old"]
    for piece in ("Use ", token[:10], token[10:26], token[26:34], token[34:] + " now", ", please"):
        await streams_of(scene).append(STREAM, [delta(piece)])  # each has only what is stored to go by
    stored = await stored_texts(scene)
    assert "".join(stored) == "Use [REDACTED:fieldstone.sk-key] now, please"


@requirement("planes:secrets:any-cut")
async def test_pieces_of_writers_that_append_at_the_same_time_are_one_text(scene: Scene) -> None:
    one, other = streams_of(scene), streams_of(scene)
    await asyncio.gather(*(each.append(STREAM, [delta(KNOWN[n])]) for n in range(24) for each in (one, other)[n % 2 :]))
    assert KNOWN not in "".join(await stored_texts(scene))


@requirement("planes:secrets:rewritten")
async def test_what_was_told_to_be_a_secret_stays_one_whatever_follows(scene: Scene) -> None:
    """Twenty characters are an access key; with more letters behind them they would be none."""
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(f"take {TOKENS['AWS access key']}")])
    await streams.append(STREAM, [delta("XYZ"), delta(" then")])
    assert TOKENS["AWS access key"] not in "".join(await stored_texts(scene))


async def test_a_secret_behind_one_that_is_none_any_more_is_caught(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta(f"take {TOKENS['AWS access key']}")])
    await streams.append(STREAM, [delta(f"XYZ and {KNOWN} then")])
    stored = "".join(await stored_texts(scene))
    assert KNOWN not in stored
    assert TOKENS["AWS access key"] not in stored


@requirement("planes:secrets:everywhere")
async def test_reasoning_streams_beside_the_answer(scene: Scene) -> None:
    streams = streams_of(scene)
    for character in KNOWN:
        await streams.append(STREAM, [reasoning(character), delta("ab ")])
    stored = "".join(await stored_texts(scene))
    assert stored.replace("ab ", "") == MARKER


@requirement("planes:secrets:everywhere")
async def test_every_string_of_a_payload_is_clean_names_too(scene: Scene) -> None:
    streams = streams_of(scene)
    given: list[StreamEvent] = [
        call("c1", query=[f"use {KNOWN}", {"deep": KNOWN, KNOWN: 1}]),
        result("c1", {"page": [KNOWN, None, 2.5, True]}),
        StreamEvent("text-delta", {"delta": "a", "id": KNOWN}),
        StreamEvent("my-kind", {KNOWN: KNOWN}),
        finished(usage={"note": TOKENS["OpenAI old"]}),
    ]
    await streams.append(STREAM, given)
    page = await streams.read(STREAM)
    stored = json.encode(page.events).decode()
    assert KNOWN not in stored
    assert TOKENS["OpenAI old"] not in stored
    inner: dict[str, Any] = page.events[0].event.payload["input"]
    assert inner == {"query": [f"use {MARKER}", {"deep": MARKER, MARKER: 1}]}
    assert page.events[2].event.payload == {"delta": "a", "id": MARKER}


@requirement("planes:secrets:untouched")
async def test_a_long_text_is_stored_as_it_came(scene: Scene) -> None:
    streams = streams_of(scene)
    words = [f"word{n} " for n in range(3_000)]
    for at in range(0, len(words), 100):
        await streams.append(STREAM, [delta(word) for word in words[at : at + 100]])
    assert await stored_texts(scene) == words


async def test_a_secret_far_into_a_long_text_is_caught(scene: Scene) -> None:
    streams = streams_of(scene)
    await streams.append(STREAM, [delta("a long story, " * 1_000)])
    for character in f"and {KNOWN} at its end":
        await streams.append(STREAM, [delta(character)])
    assert "".join(await stored_texts(scene)).endswith(f"story, and {MARKER} at its end")


@requirement("planes:secrets:untouched")
def test_the_rules_beginnings_are_tokens_and_not_words() -> None:
    literals = {literal for each in literal_beginnings().values() for literal in each}
    assert {"AKIA", "sk-", "ghp_", "AIza", "-----BEGIN"} <= literals
    assert not {"password", "secret", "access", "https://", "token"} & literals


BETWEEN = [
    StreamEvent("heartbeat", {}),
    error("once more"),
    started(),
    call("c1"),
    file("https://example.org/a.png"),
    delta(""),
]


@requirement("planes:secrets:any-cut")
@pytest.mark.parametrize("between", BETWEEN, ids=lambda event: event.kind)
async def test_a_secret_is_caught_whatever_comes_between_its_pieces(scene: Scene, between: StreamEvent) -> None:
    streams = streams_of(scene)
    for at in range(0, len(KNOWN), 6):
        await streams.append(STREAM, [delta(KNOWN[at : at + 6]), between])
    await streams.append(STREAM, [finished()])
    text = await shown_text(streams)
    assert "REDACTED" in text
    assert KNOWN[:12] not in text
