"""What the README shows is run, twice, as a newcomer would."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SERVED = "http://127.0.0.1:8420"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "fieldstone", "serve", "--db", str(tmp_path / "served.db"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = process.stdout.readline()  # the line comes when it accepts connections
    found = re.search(r"http://127\.0\.0\.1:\d+", ready)
    assert found, ready
    yield found.group()
    process.terminate()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def test_the_ten_lines_of_python_work_and_work_again(tmp_path: Path) -> None:
    code, _ = blocks("python")
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "Rivals charge 40 euros a seat." in ran.stdout
        assert "matches your hint" in ran.stdout or "Finding by ada (researcher)" in ran.stdout


def test_the_ten_lines_of_python_are_ten() -> None:
    code, _ = blocks("python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_the_conversation_is_streamed_committed_and_read_and_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    _, code = blocks("python")
    for times in (1, 2):
        ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        said = ["user Which price do we ask?", "assistant Forty euros."]
        assert ran.stdout.splitlines() == said * times


def test_the_curl_lines_work_and_work_again(server: str, tmp_path: Path) -> None:
    script = next(block for block in blocks("sh") if "/v1/record" in block)
    commands = [command for command in re.split(r"\n\n+", script.replace(SERVED, server)) if command.strip()]
    answers = []
    for _ in range(2):
        ran = [subprocess.run(["bash", "-c", command], capture_output=True, check=True) for command in commands]
        answers.append([json.loads(each.stdout) for each in ran])
    first, again = answers
    assert [answer["status"] for answer in first] == ["registered", "accepted", "registered", "ok"]
    assert first[:3] == again[:3], "the same message gets its first answer"
    assert first[3]["record"][0]["memory_unit"]["content"] == "Rivals charge 40 euros a seat."


def test_the_shell_lines_work_and_work_again(tmp_path: Path) -> None:
    script = next(block for block in blocks("sh") if "fieldstone attune" in block)
    script = script.replace("fieldstone ", f"{sys.executable} -m fieldstone ")
    for _ in range(2):
        ran = subprocess.run(
            ["bash", "-euc", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin"},
        )
        assert ran.returncode == 0, ran.stderr
        assert "Rivals charge 40 euros a seat." in ran.stdout


def test_the_demo_of_the_readme_runs() -> None:
    ran = subprocess.run([sys.executable, "-m", "fieldstone", "demo"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
