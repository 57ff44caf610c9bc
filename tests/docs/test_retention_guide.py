"""What the guide to retention shows is run."""

import re
import subprocess
import sys
from pathlib import Path

from fieldstone.compaction.retention import check_policies
from fieldstone.core.vocabulary import MEMORY_TYPES
from fieldstone.wire.policies import policies_from_toml

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "retention.md").read_text()


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    text: str = found
    return text


def test_the_policies_of_the_guide_are_policies() -> None:
    policies = policies_from_toml(block("toml"))
    check_policies(policies, frozenset(MEMORY_TYPES))
    assert [policy.strategy for policy in policies] == ["archive", "summarize", "purge"]


def test_the_python_lines_of_the_guide_work(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", block("python")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "capped 0\n"), ran.stderr
