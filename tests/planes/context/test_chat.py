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


def test_an_answer_is_given_again_and_the_chat_goes_on_from_either(tmp_path: Path) -> None:
    first, second = (f"Answer {number} to 'Hello.': I have read 2 messages." for number in (1, 2))
    third = "Answer 3 to 'And now?': I have read 4 messages."
    told = chat(tmp_path, "Hello.", "/again", "/branches", "/switch 1", "And now?")
    assert told == [
        first,
        second,
        f"1  {first}",
        f"* 2  {second}",
        f"1  {first}",
        f"* 2  {second}",
        "(on branch 1)",
        third,
    ]
    assert chat(tmp_path, "/history") == [
        "user: Hello.",
        f"assistant: {first}",
        "user: And now?",
        f"assistant: {third}",
    ]


def test_a_chat_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--pause-ms", "60000"), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("Hello.\n")
        process.stdin.flush()
        # What is shown is durable, and the next word takes a minute.
        assert process.stdout.read(len("Answer ")) == "Answer "
        process.kill()
    assert chat(tmp_path, "/history", "Are you there?") == [
        "(resumed: the run that was cut off is committed)",
        "user: Hello.",
        "assistant: Answer",
        "Answer 1 to 'Are you there?': I have read 4 messages.",
    ]


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
