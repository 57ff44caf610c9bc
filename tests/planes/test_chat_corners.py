"""The chat of the examples when it is asked for what is not there: it says so, and goes on."""

import subprocess
from pathlib import Path

from tests.examples.test_chat import ENVIRONMENT, chat, command


def test_commands_before_anything_was_said_are_answered_with_a_sentence(tmp_path: Path) -> None:
    shown = chat(
        tmp_path, "/recall kilns", "/again", "/recall", "/switch ²", "/switch 9", "/branches", "/history", "hi"
    )
    assert shown[:2] == ["(nothing was said yet)"] * 2
    assert all(line.startswith("(there are /again") for line in shown[2:4])
    assert shown[4].startswith("Answer 1 to 'hi'"), "and the chat goes on"


def test_what_cannot_be_done_ends_the_chat_with_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    for options, told in (
        (("--watch", "--thread", "nowhere"), "THREAD_NOT_FOUND: There is no such thread"),
        (("--max-tokens", "0"), "--max-tokens is a number from 1"),
    ):
        ran = subprocess.run(
            command(*options), cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode != 0
        assert told in ran.stderr
        assert "Traceback" not in ran.stderr
