"""It works with no model at all, and with any endpoint that speaks OpenAI's chat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import json

from fieldstone.backends.models.openai_writer import OpenAIWriter
from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.compaction.checked import Checked
from fieldstone.compaction.extractive import Extractive
from fieldstone.core.transcripts import CanonicalMessage
from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.outcomes import Compacted
from fieldstone.planes.context.summaries import note_of
from fieldstone.planes.context.tools import Tools
from tests.models.server import saying, serving
from tests.planes.context.talks import context_of, long_talk, said, tools
from tests.requirements import requirement

WRITTEN = "The runs in Oslo took between 0 and 91 seconds."
COUNTER = Cl100kCounter()


@asynccontextmanager
async def with_model(url: str) -> AsyncIterator[Tools]:
    summarizer = Checked(OpenAIWriter(url, key=None, model="wise", timeout_ms=10_000), COUNTER)
    yield tools(summarizer)._replace(counter=COUNTER)
    await summarizer.close()


async def compacted(context: ContextManager) -> Compacted:
    outcome = await context.compact()
    assert isinstance(outcome, Compacted)
    return outcome


def summary_of(context: ContextManager) -> CanonicalMessage:
    [summary] = [message for message in context.messages if note_of(message)]
    return summary


@requirement("planes:context:no-model")
async def test_without_a_model_the_conversations_own_words_are_the_summary() -> None:
    context = await context_of([said("a", "Carol moved to Lisbon in 2019."), *long_talk(20)])
    assert (await compacted(context)).by == (Extractive.name,)
    assert 'user: "Carol moved to Lisbon in 2019."' in str(summary_of(context))


@requirement("planes:context:any-endpoint")
async def test_a_model_behind_an_endpoint_writes_the_summary() -> None:
    with serving(saying(json.encode({"summary": WRITTEN}).decode())) as endpoint:
        async with with_model(endpoint.url) as wise:
            context = await context_of(long_talk(20), 1_500, tools=wise)
            outcome = await compacted(context)
            assert (outcome.by, outcome.fell_back) == (("openai/wise",), None)
            assert WRITTEN in str(summary_of(context))
            await context.add(*long_talk(12, first=50))
            await compacted(context)
        assert WRITTEN in str(endpoint.requests[-1][1]), "what it wrote is told to it again, as a whole"


@requirement("planes:context:any-endpoint")
async def test_where_the_model_lies_the_conversation_is_quoted_and_the_outcome_says_why() -> None:
    with serving(saying(json.encode({"summary": "All 4711 runs in Oslo took Mallory seconds."}).decode())) as endpoint:
        async with with_model(endpoint.url) as wise:
            context = await context_of(long_talk(20), 1_500, tools=wise)
            outcome = await compacted(context)
    assert outcome.by == ("extractive",)
    assert outcome.fell_back is not None
    note = note_of(summary_of(context))
    assert note is not None
    assert note.fell_back == outcome.fell_back


@requirement("planes:context:any-endpoint")
async def test_where_the_endpoint_is_gone_the_conversation_is_quoted() -> None:
    with serving(saying("")) as endpoint:
        url = endpoint.url
    async with with_model(url) as gone:
        context = await context_of(long_talk(20), 1_500, tools=gone)
        outcome = await compacted(context)
    assert outcome.by == ("extractive",)
    assert outcome.fell_back is not None
