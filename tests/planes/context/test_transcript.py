"""From a transcript into a context, and from a summary back into the transcript."""

import pytest

from fieldstone.core.errors import ThreadNotFound
from fieldstone.core.streams import StreamEvent
from fieldstone.planes.context.outcomes import Compacted
from fieldstone.planes.context.sayings import said_in
from fieldstone.planes.context.summaries import note_of
from tests.planes.context.talks import context_of, ids_of, long_talk
from tests.planes.events import delta
from tests.planes.scene import THREAD, Scene
from tests.requirements import requirement

FACT = "The license server of the warehouse moved to Lisbon."


@requirement("planes:context:recall")
async def test_what_a_summary_stands_for_is_brought_back_from_the_transcript(scene: Scene) -> None:
    texts = [said_in(message) for message in long_talk(20)]
    ids = await scene.said(FACT, *texts)
    stored = (await scene.transcript.messages(THREAD)).messages
    recalls = scene.transcript.recalls(THREAD)
    async with await context_of(stored) as first:
        assert isinstance(await first.compact(), Compacted)
        persisted = first.messages
    async with await context_of(persisted, recalls=recalls) as later:
        [found] = await later.recall("Where is the license server?")
        assert found.message == stored[0]
        assert ids_of(await later.originals(found.summary_id)) == ids[:-6]


async def test_a_thread_that_was_deleted_brings_nothing_back(scene: Scene) -> None:
    await scene.said(FACT, *[said_in(message) for message in long_talk(20)])
    stored = (await scene.transcript.messages(THREAD)).messages
    async with await context_of(stored) as first:
        await first.compact()
        persisted = first.messages
    await scene.transcript.delete(THREAD)
    async with await context_of(persisted, recalls=scene.transcript.recalls(THREAD)) as later:
        with pytest.raises(ThreadNotFound):
            await later.recall("license server")


async def test_a_tool_pair_of_a_run_goes_into_the_summary_as_a_pair(scene: Scene) -> None:
    call = StreamEvent("tool-call", {"toolCallId": "c", "toolName": "stock", "input": {"of": "bolts"}})
    result = StreamEvent("tool-result", {"toolCallId": "c", "output": "7000 bolts in Lisbon"})
    await scene.committed(call, result, delta("There are 7000."))
    await scene.said(*[said_in(message) for message in long_talk(20)])
    stored = (await scene.transcript.messages(THREAD)).messages
    context = await context_of(stored)
    await context.compact()
    note = note_of(context.messages[0])
    assert note is not None
    assert set(ids_of(stored[:3])) <= set(note.stands_for)
    assert "7000 bolts in Lisbon" in str(context.messages[0])
