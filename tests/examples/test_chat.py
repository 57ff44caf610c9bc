"""The chat of the examples, as a user would run it: with no model, with an endpoint, and killed in the middle."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import json

from fieldstone import open_field
from tests.models.server import Handler, serving

CHAT = Path(__file__).resolve().parents[2] / "examples" / "chat.py"
# A model that the developer has set up is none of the test's.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}


def command(*options: str) -> list[str]:
    return [sys.executable, str(CHAT), "--db", "chat.db", *options]


def chat(folder: Path, *lines: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None) -> list[str]:
    ran = subprocess.run(
        command("--pause-ms", "0", *options),
        cwd=folder,
        env=ENVIRONMENT | (env or {}),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return [line.strip() for line in ran.stdout.splitlines()]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server."""
    serve = [sys.executable, "-m", "fieldstone", "serve", "--db", str(folder / "served.db"), "--port", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        try:
            assert found is not None
            yield found.group()
        finally:
            process.terminate()


def shown_until_killed(folder: Path, line: str, words: int) -> str:
    """What a chat had shown of its answer when it was killed; it says a word and then waits for the next."""
    with subprocess.Popen(
        command("--pause-ms", "50"),
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        shown = ""
        while shown.count(" ") < words and (more := process.stdout.read(1)):
            shown += more
        process.kill()
        return shown + process.stdout.read()


def test_what_a_killed_chat_had_shown_is_there_without_a_gap_and_can_be_answered_again(tmp_path: Path) -> None:
    line = f"Count with me: {' '.join(map(str, range(200)))}"  # at 20 a second there is time to kill it
    whole = f"Answer 1 to {line!r}: I have read 2 messages."
    shown = shown_until_killed(tmp_path, line, words=12)
    assert whole.startswith(shown.strip())
    assert len(shown) < len(whole)

    resumed, asked, answered, again = chat(tmp_path, "/history", "/again")
    assert resumed == "(resumed: the run that was cut off is committed)"
    assert asked == f"user: {line}"
    kept = answered.removeprefix("assistant: ")
    assert kept.startswith(shown.strip()), "all that was shown was durable"
    assert whole.startswith(kept), "and nothing is missing in between"
    assert again == whole

    assert chat(tmp_path, "/branches", "/switch 1", "/history")[-1] == f"assistant: {kept}"
    with open_field(str(tmp_path / "chat.db")) as field:
        assert [run.status for run in field.threads.runs("chat")] == ["committed", "committed"]


def test_an_answer_is_watched_live_from_another_process(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        talking = command("--db", url, "--pause-ms", "200")
        with subprocess.Popen(
            talking, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("Hello.\n")
            process.stdin.flush()
            first = process.stdout.read(1)
            watched = chat(tmp_path, options=("--db", url, "--watch"))  # ends with the answer
            process.stdin.close()
            shown = first + process.stdout.read()
    assert watched == [shown.strip()] == ["Answer 1 to 'Hello.': I have read 2 messages."]


def test_an_answer_is_given_again_and_the_chat_goes_on_from_either(tmp_path: Path) -> None:
    first, second = (f"Answer {number} to 'Hello.': I have read 2 messages." for number in (1, 2))
    third = "Answer 3 to 'And now?': I have read 4 messages."
    told = chat(tmp_path, "Hello.", "/again", "/branches", "/switch 1", "And now?")
    branches = [f"1  {first}", f"* 2  {second}"]
    assert told == [first, second, *branches, *branches, "(on branch 1)", third]
    assert chat(tmp_path, "/history") == [
        "user: Hello.",
        f"assistant: {first}",
        "user: And now?",
        f"assistant: {third}",
    ]


def test_a_long_chat_keeps_its_prompt_within_the_budget_and_finds_what_it_left_out(tmp_path: Path) -> None:
    boxes = [f"Day {day}: we packed {day * 7} boxes of glass and sent them to Oslo by train." for day in range(20)]
    options = ("--max-tokens", "600")
    chat(tmp_path, "The door code is kept by Ada in the blue folder.", *boxes, options=options)
    budget, *recalled = chat(tmp_path, "/budget", "/recall door code", options=options)
    found = re.fullmatch(r"\((\d+) messages, (\d+) of 600 tokens\)", budget)
    assert found is not None
    assert int(found[1]) < 2 * (len(boxes) + 1)
    assert int(found[2]) <= 600
    assert "user: The door code is kept by Ada in the blue folder." in recalled


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


def test_an_endpoint_of_the_environment_answers_and_where_it_refuses_for_length_it_gets_less(tmp_path: Path) -> None:
    lines = [f"Day {day}: {'many boxes were packed and sent to Oslo, ' * 8} as planned." for day in range(12)]
    with serving(streaming) as endpoint:
        env = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "any", "OPENAI_MODEL": "wise"}
        told = chat(tmp_path, *lines, options=("--max-tokens", "100000"), env=env)
    assert told[0] == "I have read 2 messages."
    assert len(told) == 12
    assert all(line.startswith("I have read") for line in told)
    headers, body = endpoint.requests[0]
    assert (headers["authorization"], body["model"]) == ("Bearer any", "wise")
    assert "summary" in str(endpoint.requests[-1]).lower()


def failing(handler: Handler) -> None:
    handler.send(b"out of order", status=500)


def test_a_model_that_fails_leaves_a_failed_run_and_the_chat_goes_on(tmp_path: Path) -> None:
    with serving(failing) as endpoint:
        told = chat(tmp_path, "Hello.", options=("--url", endpoint.url))
    assert told == ["(the model failed: out of order)"]
    assert chat(tmp_path, "/history", "Hello again.") == ["Answer 1 to 'Hello again.': I have read 2 messages."]


def test_what_people_copy_uses_the_public_names_only() -> None:
    modules = [node.module for node in ast.walk(ast.parse(CHAT.read_text())) if isinstance(node, ast.ImportFrom)]
    assert "fieldstone" in modules
    assert not [module for module in modules if module and module.startswith("fieldstone.")]
