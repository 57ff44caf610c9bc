"""What a summary stands for is found again in the transcript, by ids; without one until the generation ends."""

from collections.abc import Sequence

import pytest

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.transcripts import CanonicalMessage, decode_message, encode_message
from fieldstone.planes.context.recall import ranked
from fieldstone.planes.context.summaries import note_of
from fieldstone.planes.context.tiered import Tiered
from tests.planes.context.talks import answered, called, context_of, ids_of, long_talk, said, tools
from tests.requirements import requirement

FACT = said("fact", "The license server of the warehouse moved to Lisbon.")


class ScriptedTranscript:
    """Has what it was given; `likes` is what it finds for every hint, though no word is the same."""

    def __init__(self, messages: Sequence[CanonicalMessage], likes: str = "") -> None:
        self._known = {message.id: message for message in messages}
        self._likes = likes
        self.asked: list[list[str]] = []

    async def messages(self, ids: Sequence[str]) -> list[CanonicalMessage]:
        self.asked.append(list(ids))
        return [self._known[id] for id in ids if id in self._known]

    async def search(self, hint: str, ids: Sequence[str]) -> list[CanonicalMessage]:
        known = await self.messages(ids)
        return [*ranked(hint, known), *(each for each in known if each.id == self._likes)]


@requirement("planes:context:recall")
async def test_without_a_transcript_it_is_found_for_as_long_as_the_generation_lasts() -> None:
    context = await context_of([*long_talk(6), FACT, *long_talk(20, first=6)])
    await context.compact()
    assert "fact" not in ids_of(context.messages)
    found = await context.recall("Where is the license server?")
    assert found[0].message == FACT
    assert found[0].summary_id == context.messages[0].id
    await context.close()
    assert context.messages == ()
    with pytest.raises(RuntimeError, match="has ended"):
        await context.recall("Where is the license server?")


@requirement("planes:context:recall")
async def test_in_a_later_generation_it_is_found_in_the_transcript_by_the_ids_of_the_summary() -> None:
    talk = [*long_talk(6), FACT, *long_talk(20, first=6)]
    async with await context_of(talk) as first:
        await first.compact()
        persisted = [encode_message(message) for message in first.messages]
    transcript = ScriptedTranscript(talk)
    later = await context_of([decode_message(body) for body in persisted], recalls=transcript)
    [found] = (await later.recall("license server"))[:1]
    assert found.message == FACT
    assert set(transcript.asked[0]) == set(ids_of(talk)) - set(ids_of(later.messages))
    forgetful = await context_of([decode_message(body) for body in persisted])
    assert await forgetful.recall("license server") == [], "this plane stores nothing"


async def test_what_is_in_no_transcript_yet_is_found_beside_what_is() -> None:
    stored = said("old", "The license server was slow.", run="committed")
    context = await context_of([said("old", "The license server was slow.")], recalls=ScriptedTranscript([stored]))
    await context.add(*long_talk(6), FACT, *long_talk(20, first=6))
    await context.compact()
    found = {each.message.id: each.message for each in await context.recall("license server")}
    assert found == {"old": stored, "fact": FACT}, "of two, the transcript's is the truth"
    assert (await context.originals(context.messages[0].id))[0] == stored


async def test_what_only_the_transcript_finds_comes_after_what_the_words_tell() -> None:
    talk = [said("likes", "All was well in the harbour."), *long_talk(6), FACT, *long_talk(20, first=6)]
    context = await context_of(talk, recalls=ScriptedTranscript(talk, likes="likes"))
    await context.compact()
    assert ids_of([each.message for each in await context.recall("license server")]) == ["fact", "likes"]


@requirement("planes:context:recall")
async def test_only_what_a_summary_stands_for_is_recalled() -> None:
    context = await context_of([*long_talk(12), FACT], recalls=ScriptedTranscript([FACT, said("x", "license server")]))
    await context.compact()
    assert await context.recall("license server") == []


@requirement("planes:context:recall")
async def test_summaries_of_summaries_lead_to_the_messages_themselves() -> None:
    context = await context_of([FACT], 10_000, strategy=Tiered(fan_in=2), keep_last=2)
    for round in range(6):
        await context.add(*long_talk(8, first=8 * round))
        await context.compact()
    note = note_of(context.messages[0])
    assert note is not None
    assert note.tier > 1
    [found] = await context.recall("license server")
    assert found.message == FACT
    assert note.stands_for[0] == "fact"


@requirement("planes:context:recall")
async def test_all_that_a_summary_stands_for_comes_back_in_its_order() -> None:
    talk = [called("call", "x"), answered("result", "x"), *long_talk(12)]
    context = await context_of(talk)
    for round in range(2):
        await context.compact()
        await context.add(*long_talk(6, first=100 * (round + 1)))
    note = note_of(context.messages[0])
    assert note is not None
    originals = await context.originals(context.messages[0].id)
    assert ids_of(originals) == list(note.stands_for)
    assert originals[: len(talk)] == talk[: len(originals)]


async def test_originals_of_nothing_are_refused() -> None:
    context = await context_of(long_talk(3))
    with pytest.raises(InvalidPayload, match="no summary 'm1'"):
        await context.originals("m1")


async def test_as_many_are_recalled_as_are_asked_for_and_rare_words_count_more() -> None:
    context = await context_of([*long_talk(30), FACT, *long_talk(20, first=50)])
    await context.compact()
    found = await context.recall("the run that took seconds, or the warehouse", limit=3)
    assert len(found) == 3
    assert found[0].message == FACT


@pytest.mark.parametrize("hint", ["", "the of and", "xylophone"])
def test_a_hint_that_says_nothing_finds_nothing(hint: str) -> None:
    assert ranked(hint, long_talk(5)) == []


def test_what_tools_were_asked_and_answered_is_found_too() -> None:
    talk = [called("a", "x", tool="stock"), answered("b", "x", {"warehouse": "Lisbon"}), *long_talk(4)]
    assert ids_of(ranked("stock", talk)) == ["a"]
    assert ids_of(ranked("warehouses", talk)) == ["b"]


async def test_tools_may_be_shared_by_many_contexts() -> None:
    shared = tools()
    contexts = [await context_of(long_talk(12), tools=shared) for _ in range(2)]
    for context in contexts:
        await context.compact()
    first, second = (context.messages[0].id for context in contexts)
    assert first != second
