"""kill -9 under load loses no acknowledged write; `make crash` does the same a thousand times."""

from tests.crash.rig import run
from tests.requirements import requirement


@requirement("akashik:level:durable", "akashik:idempotency:across-restarts")
def test_no_acknowledged_write_is_lost_and_none_is_half_written() -> None:
    figures = run(cycles=25, seed=2)
    assert figures.problems == []
    assert figures.lost == 0
    assert figures.cycles == 25
    assert figures.acknowledged >= 500


def test_a_planted_acknowledgement_before_the_commit_is_caught() -> None:
    figures = run(cycles=10, seed=3, planted_bug=True)
    assert figures.lost > 0
    assert not figures.good
