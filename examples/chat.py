"""A chat that survives: it streams, can be killed and resumed, and every answer can be given again on a branch.

    python examples/chat.py                      # a scripted model: nothing else is needed
    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=llama3.1 python examples/chat.py
    OPENAI_BASE_URL=https://api.openai.com/v1 OPENAI_API_KEY=… OPENAI_MODEL=gpt-4o-mini python examples/chat.py

Say something, or: /again (another answer), /branches, /switch N, /history, /budget, /recall HINT. End with /quit or
Ctrl-D. Kill it in the middle of an answer and start it again: all that you have seen is there.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx

from fieldstone import Field, errors, open_field

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

    def __init__(self, field: Field, model: ScriptedModel | EndpointModel, thread: str, max_tokens: int) -> None:
        self._field = field
        self._threads = field.threads
        self._model = model
        self._thread = thread
        self._max_tokens = max_tokens

    async def resume(self) -> None:
        """A run that was cut off is committed as far as it came: every event that was shown is in the log.

        One chat at a time has the thread, so a run that is still open was cut off.
        """
        try:
            runs = await self._threads.runs(self._thread)
        except errors.ThreadNotFound:
            return
        for run in runs:
            if run.status in {"created", "streaming"}:
                ended = await self._threads.recover(run, "commit" if run.status == "streaming" else "cancel")
                print(f"(resumed: the run that was cut off is {ended.status})")

    async def say(self, text: str) -> None:
        history = await self._history()
        run = await self._threads.begin_run(self._thread)
        await self._threads.append(run, [_event("user-message", content=text)])
        await self._answer(run, history, {"role": "user", "content": text})

    async def again(self) -> None:
        """Forks at the last message of the user: the first answer stays, on a branch of its own."""
        history = await self._history()
        asked = [at for at, message in enumerate(history) if message.role == "user"]
        if not asked:
            print("(nothing was said yet)")
            return
        run = await self._threads.fork(self._thread, history[asked[-1]].id)
        await self._answer(run, history[: asked[-1] + 1])

    async def branches(self) -> list[str]:
        """The answers that stand beside the last one."""
        active = await self._history()
        if not active:
            return []
        every = self._threads.transcript(self._thread, branch="all")
        found = [each async for each in every if each.parent_message_id == active[-1].parent_message_id]
        for number, message in enumerate(found, start=1):
            print(f"{'*' if message.id == active[-1].id else ' '} {number}  {_text(message)}")
        return [message.id for message in found]

    async def switch(self, number: int) -> None:
        found = await self.branches()
        if 1 <= number <= len(found):
            await self._threads.set_active(self._thread, found[number - 1])
            print(f"(on branch {number})")

    async def show(self) -> None:
        for message in await self._history():
            print(f"{message.role}: {_text(message)}")

    async def budget(self) -> None:
        """What the next prompt takes. What is old becomes a summary before it is too much."""
        async with await self._context(await self._history()) as context:
            await context.prepare()
            print(f"({len(context.messages)} messages, {context.budget.current} of {self._max_tokens} tokens)")

    async def recall(self, hint: str) -> None:
        """What the prompt tells only in a summary is still in the transcript."""
        history = await self._history()
        if not history:
            print("(nothing was said yet)")
            return
        async with await self._context(history) as context:
            await context.prepare()
            for found in await context.recall(hint):
                print(f"{found.message.role}: {_text(found.message)}")

    async def watch(self) -> None:
        """The newest run, from its beginning and on as it comes, also if another process writes it."""
        for run in await self._threads.runs(self._thread, limit=1):
            await self._show_run(run)

    async def _answer(self, run: Any, history: list[Any], *more: dict[str, Any]) -> None:
        """Where the model refuses for length, the context is compacted and the model asked again."""
        watching = asyncio.create_task(self._show_run(run))
        try:
            async with await self._context(history, *more) as context:
                await context.generate(lambda _: self._stream(run, context.openai()))
        except (RuntimeError, httpx.HTTPError) as error:
            await self._threads.append(run, [_event("error", message=str(error))])
            await watching
            await self._threads.fail(run)
        else:
            await self._threads.append(run, [_event("step-finished", stepIndex=0, finishReason="stop")])
            await watching
            await self._threads.commit(run)

    async def _stream(self, run: Any, prompt: Prompt) -> None:
        """An event is durable when `append` returns."""
        async for delta in self._model.answer(prompt):
            await self._threads.append(run, [_event("text-delta", delta=delta)])

    async def _show_run(self, run: Any) -> None:
        """As anybody sees it who follows its stream: from the log, without a gap, and without secrets."""
        async for stored in self._threads.follow(run.stream_id):
            kind, payload = stored.event.kind, stored.event.payload
            if kind == "text-delta":
                print(payload["delta"], end="", flush=True)
            elif kind == "error":
                print(f"(the model failed: {payload['message']})")
                return
            elif kind == "step-finished":
                print()
                return

    async def _context(self, history: list[Any], *more: dict[str, Any]) -> Any:
        context = self._field.context(self._max_tokens, thread=self._thread)
        await context.add_openai([INSTRUCTION])
        await context.add(*history)
        await context.add_openai(more)
        return context

    async def _history(self) -> list[Any]:
        try:
            return [message async for message in self._threads.transcript(self._thread)]
        except errors.ThreadNotFound:  # its first run makes it
            return []


def _event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"kind": kind, "payload": payload}


def _text(message: Any) -> str:
    return "".join(part.text for part in message.parts).strip()


async def _converse(chat: Chat) -> None:
    await chat.resume()
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip() == "/quit":
            break
        if line.strip():
            try:
                await _obey(chat, line.strip())
            except errors.FieldError as refused:  # the next line may be a better one
                print(f"({refused.message})")


async def _obey(chat: Chat, line: str) -> None:
    command, _, rest = line.partition(" ")
    match command:
        case "/again":
            await chat.again()
        case "/branches":
            await chat.branches()
        case "/switch" if rest.isdecimal():
            await chat.switch(int(rest))
        case "/history":
            await chat.show()
        case "/budget":
            await chat.budget()
        case "/recall" if rest:
            await chat.recall(rest)
        case _ if command.startswith("/"):
            print("(there are /again, /branches, /switch N, /history, /budget, /recall HINT and /quit)")
        case _:
            await chat.say(line)


async def main() -> None:
    env = os.environ
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default="chat.db", help="a file, or the address of a server")
    parser.add_argument("--thread", default="chat")
    parser.add_argument("--watch", action="store_true", help="show the newest answer live, and do no more")
    parser.add_argument("--max-tokens", type=int, default=4_000, help="what a prompt may take")
    parser.add_argument("--url", default=env.get("OPENAI_BASE_URL"), help="an OpenAI-compatible endpoint")
    parser.add_argument("--model", default=env.get("OPENAI_MODEL", ""))
    parser.add_argument("--pause-ms", type=int, default=30, help="between the words of the scripted model")
    options = parser.parse_args()
    if options.max_tokens < 1:
        parser.error("--max-tokens is a number from 1")
    model = EndpointModel(options.url, options.model) if options.url else ScriptedModel(options.pause_ms)
    async with open_field(options.db) as field:
        chat = Chat(field, model, options.thread, options.max_tokens)
        try:
            await (chat.watch() if options.watch else _converse(chat))
        except errors.FieldError as refused:
            sys.exit(f"{refused.code}: {refused.message}")


if __name__ == "__main__":
    asyncio.run(main())
