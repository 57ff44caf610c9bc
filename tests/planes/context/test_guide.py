"""What the guide to contexts shows is run."""

import re
import subprocess
import sys
from pathlib import Path

from fieldstone import open_field

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "context.md").read_text()


def test_the_python_lines_of_the_guide_work(tmp_path: Path) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    first, pinned, *_, last = ran.stdout.splitlines()
    assert re.fullmatch(r"9 messages, \d+ tokens", first)
    assert pinned == "Budget for the move: 40,000 euros at most."
    assert last == "The license server moved to Lisbon."


def test_a_field_gives_contexts_without_await_too() -> None:
    with open_field("memory:") as field:
        context = field.context(600)
        context.add_openai([{"role": "user", "content": f"Day {day}: many boxes were sent."} for day in range(60)])
        context.prepare()
        assert context.budget.usage <= 0.5
        assert [found.message.role for found in context.recall("day", limit=2)] == ["user", "user"]
        context.close()
