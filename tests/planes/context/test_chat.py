"""The chat of the examples, as a user would run it: with no model, with an endpoint, and killed in the middle."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import json

from tests.models.server import Handler, serving

CHAT = Path(__file__).resolve().parents[3] / "examples" / "chat.py"


def command(*options: str) -> list[str]:
    return [sys.executable, str(CHAT), "--db", "chat.db", *options]


def chat(folder: Path, *lines: str, options: tuple[str, ...] = ()) -> list[str]:
    ran = subprocess.run(
        command("--pause-ms", "0", *options),
        cwd=folder,
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return [line.strip() for line in ran.stdout.splitlines()]


def test_an_answer_is_given_again_and_both_branches_can_be_gone_on_from(tmp_path: Path) -> None:
    chat(tmp_path, "Hello.", "/again")
    first, second = chat(tmp_path, "/branches")
    assert first == "1  Answer 1 to 'Hello.': I have read 2 messages."
    assert second == "* 2  Answer 2 to 'Hello.': I have read 2 messages."
    assert chat(tmp_path, "/switch 1", "/history")[-2:] == ["user: Hello.", f"assistant: {first[3:]}"]
    assert chat(tmp_path, "And now?")[-1] == "Answer 1 to 'And now?': I have read 4 messages."
    told = chat(tmp_path, "/history")
    assert told[1] == f"assistant: {first[3:]}"
    assert len(told) == 4


def test_a_chat_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--pause-ms", "60000"), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write("Hello.\n")
        process.stdin.flush()
        wait_for_the_run(tmp_path)
        process.kill()
    told = chat(tmp_path, "/history", "Are you there?")
    assert told[0] == "(resumed: the run that was cut off is committed)"
    assert told[1] == "user: Hello."
    assert told[2] == "Answer 1 to 'Are you there?': I have read 3 messages."


def wait_for_the_run(folder: Path) -> None:
    """Until the user's message is on the disk, as another process sees it."""
    program = (
        "import asyncio, sys, time\n"
        "from fieldstone.backends.sqlite.planes import SqlitePlanes\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    planes = SqlitePlanes(Path('chat.db'))\n"
        "    store = planes.open('local\\0default')\n"
        "    async with asyncio.timeout(60):\n"
        "        seen = -1\n"
        "        while not any(r.status == 'streaming' for r in await store.read(lambda tables: tables.open_runs())):\n"
        "            seen = await store.changed(seen, timeout_ms=1000)\n"
        "    await planes.close()\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def streaming(handler: Handler) -> None:
    """Refuses what is long, as endpoints do, and else says how much it read, in two deltas."""
    prompt: list[dict[str, Any]] = handler.body["messages"]
    if sum(len(message["content"]) for message in prompt) > 3_000:
        error = {"error": {"code": "context_length_exceeded", "message": "maximum context length is 700 tokens"}}
        handler.send(json.encode(error), status=400)
        return
    deltas = ["I have read ", f"{len(prompt)} messages."]
    lines = [b"data: " + json.encode({"choices": [{"delta": {"content": delta}}]}) for delta in deltas]
    handler.send(b"\n\n".join([*lines, b"data: [DONE]", b""]))


def test_an_endpoint_answers_and_one_that_refuses_for_length_gets_less(tmp_path: Path) -> None:
    with serving(streaming) as endpoint:
        options = ("--url", endpoint.url, "--model", "wise", "--max-tokens", "100000")
        lines = [f"Day {day}: {'many boxes were packed and sent to Oslo, ' * 8} as planned." for day in range(12)]
        told = chat(tmp_path, *lines, "/history", options=options)
    assert told[0] == "I have read 2 messages."
    assert not [line for line in told if "failed" in line]
    assert len([line for line in told if line.startswith("I have read")]) == 12
    assert "summary" in str(endpoint.requests).lower()
