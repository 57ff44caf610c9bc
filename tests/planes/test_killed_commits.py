"""kill -9 while two processes commit runs to one thread: every acknowledged run is there, whole, and nothing half."""

import asyncio
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from fieldstone.backends.sqlite.planes import SqlitePlanes
from fieldstone.core.transcripts import MAX_PAGE, OPEN_STATUSES, Run
from tests.planes.scene import SCOPE, THREAD, Scene
from tests.requirements import requirement

LIVES: Final = 3
COMMITTERS: Final = 2
MOST_LINES: Final = 60
OF_ONE_STEP: Final = 3  # user, assistant and tool


@requirement("planes:runs:crash")
def test_no_acknowledged_commit_is_lost_and_none_is_half_there_after_a_kill_at_any_step(tmp_path: Path) -> None:
    chance = random.Random(11)
    said: dict[str, set[str]] = {"begun": set(), "committed": set(), "cancelled": set(), "switched": set()}
    for _ in range(LIVES):
        for word, named in _one_life(tmp_path / "field.db", chance):
            said[word].add(named)
        asyncio.run(_look(tmp_path / "field.db", said))
    assert all(said.values())


def _one_life(path: Path, chance: random.Random) -> list[tuple[str, str]]:
    """What they said until the kill reached them counts, too."""
    said: list[tuple[str, str]] = []
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.planes.committer", str(path)]
        committers = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) for _ in range(COMMITTERS)
        ]
        for committer in committers:
            assert committer.stdout is not None
            left = chance.randint(1, MOST_LINES)
            for line in committer.stdout:
                word, named = line.split()
                said.append((word, named))
                left -= 1
                if left == 0:
                    committer.kill()
    return said


async def _look(path: Path, said: dict[str, set[str]]) -> None:
    planes = SqlitePlanes(path)
    scene = Scene(planes.open(SCOPE))
    runs = {run.run_id: run for run in await scene.runs.runs(THREAD, limit=MAX_PAGE)}
    assert said["begun"] <= set(runs)
    assert {runs[run_id].status for run_id in said["committed"]} <= {"committed", "superseded"}
    assert {runs[run_id].status for run_id in said["cancelled"]} <= {"cancelled"}
    tree = await scene.transcript.tree(THREAD)
    assert said["switched"] <= {node.id for node in tree.nodes}
    for run in runs.values():
        assert _is_whole(run, sum(node.run_id == run.run_id for node in tree.nodes))
    assert (await scene.reconcile.reconcile()).disagreements == ()
    for run in runs.values():  # what the kill has left is ended by whoever comes next
        if run.status in OPEN_STATUSES:
            await scene.runs.recover(THREAD, run.run_id, "commit" if run.status == "streaming" else "fail")
    assert (await scene.reconcile.reconcile()).disagreements == ()
    await planes.close()


def _is_whole(run: Run, messages: int) -> bool:
    told = run.status in ("committed", "superseded")
    return messages == run.message_count and messages in ((OF_ONE_STEP, 3 * OF_ONE_STEP) if told else (0,))
