"""What an agent was shown is remembered while the field is open, and read back from the log."""

from fieldstone.backends.memory.store import MemoryStore
from fieldstone.field.recent import MOST_SHOWN, RecentReads
from fieldstone.testing import KEY
from tests.field.fields import staffed
from tests.messages import accepted, attune, attuned, record


def test_the_last_reads_are_kept_and_of_one_read_the_best() -> None:
    reads = RecentReads()
    assert reads.nobody_read
    reads.note(1, [5, 4, 3])
    reads.note(1, list(range(1_000, 1_000 + 2 * MOST_SHOWN)))
    assert set(reads.shown_to(1)) == set(range(1_000, 1_000 + MOST_SHOWN))
    reads.note(1, [7])
    assert 7 in reads.shown_to(1)
    assert len(reads.shown_to(1)) == MOST_SHOWN
    assert 1_000 in reads.shown_to(1), "the best of a read stays longest"
    assert list(reads.shown_to(2)) == []


async def test_what_was_shown_before_the_field_closed_is_read_back() -> None:
    store = MemoryStore(KEY)
    field = await staffed(store=store)
    await accepted(field, record("ada", "The pump runs."))
    assert len(await attuned(field, attune("ben", "pump"))) == 1
    await field.close()
    head = await store.log.head()
    reads = await RecentReads.read_back(store.log, head.seq)
    row = (await store.views.scan_units(after=0, limit=1))[0]
    [reader] = [agent.agent for agent in await store.views.agents() if agent.agent != row.agent]
    assert list(reads.shown_to(reader)) == [row.seq]
