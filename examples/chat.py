"""A chat that survives: it streams, can be killed and resumed, and every answer can be given again on a branch.

    python examples/chat.py                                       # a scripted model: nothing else is needed
    python examples/chat.py --url http://127.0.0.1:11434/v1 --model llama3.1
    OPENAI_API_KEY=… python examples/chat.py --url https://api.openai.com/v1 --model gpt-4o-mini

Say something, or: /again (another answer), /branches, /switch N, /history, /recall HINT. End with /quit or Ctrl-D.
Kill it in the middle of an answer and start it again: what had been said is there.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx

from fieldstone import open_field
from fieldstone.core.errors import ThreadNotFound
from fieldstone.core.streams import StreamEvent
from fieldstone.core.transcripts import CanonicalMessage, TextPart
from fieldstone.planes.context.structured import Structured

INSTRUCTION = {"role": "system", "content": "You are a helpful assistant. Answer in a few sentences."}
Prompt = list[dict[str, Any]]


class ScriptedModel:
    """Repeats what it was told, a word at a time, and says how often it was asked."""

    def __init__(self, pause_ms: int) -> None:
        self._pause_s = pause_ms / 1000
        self._asked = 0

    async def answer(self, prompt: Prompt) -> AsyncIterator[str]:
        self._asked += 1
        text = f"Answer {self._asked} to {prompt[-1]['content']!r}: I have read {len(prompt)} messages."
        for word in text.split(" "):
            yield f"{word} "
            await asyncio.sleep(self._pause_s)


class EndpointModel:
    """Any endpoint that speaks OpenAI's chat."""

    def __init__(self, url: str, model: str) -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        key = os.environ.get("OPENAI_API_KEY")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    async def answer(self, prompt: Prompt) -> AsyncIterator[str]:
        body = {"model": self._model, "messages": prompt, "stream": True}
        async with (
            httpx.AsyncClient(timeout=120) as client,
            client.stream("POST", self._url, json=body, headers=self._headers) as response,
        ):
            if response.is_error:
                raise RuntimeError((await response.aread()).decode())
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line.removeprefix("data: "))["choices"]:
                        yield choice["delta"].get("content") or ""


class Chat:
    """One thread. A turn is a run: the user's message and the answer, or another answer to the same message."""

    def __init__(self, planes: Any, model: Any, thread: str, max_tokens: int) -> None:
        self._planes = planes
        self._model = model
        self._thread = thread
        self._max_tokens = max_tokens

    async def resume(self) -> None:
        """What was being said when the last process ended is kept as far as it came."""
        for run in await self._planes.runs.open_runs():
            if run.thread_id == self._thread:
                action = "commit" if run.status == "streaming" else "cancel"
                ended = await self._planes.runs.recover(self._thread, run.run_id, action)
                print(f"(resumed: the run that was cut off is {ended.status})")

    async def say(self, text: str) -> None:
        run = await self._planes.runs.begin_run(self._thread)
        await self._planes.streams.append(run.stream_id, [StreamEvent("user-message", {"content": text})])
        await self._answer(run, [*await self._history(), _user(text)])

    async def again(self) -> None:
        """Forks at the last message of the user: the first answer stays, on a branch of its own."""
        history = await self._history()
        asked = next((at for at in reversed(range(len(history))) if history[at].role == "user"), None)
        if asked is None:
            print("(nothing was said yet)")
            return
        run = await self._planes.runs.begin_run(self._thread, history[asked].id)
        await self._answer(run, history[: asked + 1])

    async def branches(self) -> list[str]:
        """The answers to the last message that has any."""
        history = await self._history()
        nodes = (await self._planes.transcript.tree(self._thread)).nodes
        here = {message.id: message.parent_message_id for message in history}
        parent = here.get(history[-1].id) if history else None
        found = [node.id for node in nodes if node.parent_message_id == parent] if history else []
        for number, message in enumerate(await self._planes.transcript.messages_by_id(self._thread, found), start=1):
            print(f"{'*' if message.id in here else ' '} {number}  {_text(message)}")
        return found

    async def switch(self, number: int) -> None:
        found = await self.branches()
        if 1 <= number <= len(found):
            await self._planes.transcript.set_active(self._thread, found[number - 1])
            print(f"(on branch {number})")

    async def show(self) -> None:
        for message in await self._history():
            print(f"{message.role}: {_text(message)}")

    async def recall(self, hint: str) -> None:
        """What the prompt only tells in a summary is still in the transcript."""
        async with await self._context(await self._history()) as context:
            await context.prepare()
            for found in await context.recall(hint):
                print(f"{found.message.role}: {_text(found.message)}")

    async def _answer(self, run: Any, messages: list[CanonicalMessage]) -> None:
        """Where the model refuses for length, the context is compacted and the model asked again."""
        try:
            async with await self._context(messages) as context:
                await context.generate(lambda _: self._stream(run, context.openai()))
        except (RuntimeError, httpx.HTTPError) as error:
            await self._planes.runs.fail(self._thread, run.run_id)
            print(f"(the model failed: {error})")
        else:
            await self._planes.runs.commit(self._thread, run.run_id)

    async def _stream(self, run: Any, prompt: Prompt) -> None:
        """Every delta is durable before it is shown."""
        async for delta in self._model.answer(prompt):
            await self._planes.streams.append(run.stream_id, [StreamEvent("text-delta", {"delta": delta})])
            print(delta, end="", flush=True)
        print()

    async def _context(self, messages: list[CanonicalMessage]) -> Any:
        context = self._planes.context(self._max_tokens, thread=self._thread, strategy=Structured())
        await context.add_openai([INSTRUCTION])
        await context.add(*messages)
        return context

    async def _history(self) -> list[CanonicalMessage]:
        history: list[CanonicalMessage] = []
        after = None
        try:
            while True:
                page = await self._planes.transcript.messages(self._thread, after=after)
                history += page.messages
                after = page.next
                if after is None:
                    return history
        except ThreadNotFound:  # its first run makes it
            return []


def _user(text: str) -> CanonicalMessage:
    """As the model sees it now; the transcript has it when the run is committed."""
    return CanonicalMessage("now", None, "user", (TextPart(text),), "", {})


def _text(message: CanonicalMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart)).strip()


async def _obey(chat: Chat, line: str) -> None:
    command, _, rest = line.partition(" ")
    match command:
        case "/again":
            await chat.again()
        case "/branches":
            await chat.branches()
        case "/switch" if rest.isdigit():
            await chat.switch(int(rest))
        case "/history":
            await chat.show()
        case "/recall":
            await chat.recall(rest)
        case _ if command.startswith("/"):
            print("(there are /again, /branches, /switch N, /history, /recall HINT and /quit)")
        case _:
            await chat.say(line)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default="chat.db")
    parser.add_argument("--thread", default="chat")
    parser.add_argument("--max-tokens", type=int, default=4_000)
    parser.add_argument("--url", help="where an OpenAI-compatible endpoint is; without it, the model is scripted")
    parser.add_argument("--model", default="")
    parser.add_argument("--pause-ms", type=int, default=30, help="between the words of the scripted model")
    options = parser.parse_args()
    model = EndpointModel(options.url, options.model) if options.url else ScriptedModel(options.pause_ms)
    async with open_field(options.db) as field:
        chat = Chat(field.door.planes, model, options.thread, options.max_tokens)
        await chat.resume()
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "/quit":
                break
            if line.strip():
                await _obey(chat, line.strip())


if __name__ == "__main__":
    asyncio.run(main())
