"""The conformance tests of names in the planes: a stream and a thread can be given another one."""

from collections.abc import Callable
from typing import Final

import pytest

from fieldstone.ports.planes import PlaneStore, Tables, ThreadRow
from fieldstone.testing.plane_rows import PLENTY, append, event_rows, everything, fill, snapshot_row
from fieldstone.testing.planes import PlanesCase

NO_RENAMING: Final[dict[str, Callable[[Tables], None]]] = {
    "a stream like another": lambda tables: tables.rename_stream("s", "another"),
    "a thread like another": lambda tables: tables.rename_thread("t", "u"),
    "no stream": lambda tables: tables.rename_stream("nobody", "new"),
    "no thread": lambda tables: tables.rename_thread("nobody", "new"),
}


class PlaneNamesTests(PlanesCase):
    """Give a fixture `open_planes`, as for the others."""

    async def test_a_stream_has_all_that_belongs_to_it_under_another_name(self, store: PlaneStore) -> None:
        await store.write(fill)
        before = await store.read(everything)
        await store.write(lambda tables: tables.rename_stream("s", "new"))

        assert await store.read(lambda tables: tables.stream("s")) is None
        assert await store.read(lambda tables: tables.events("s", after=0, limit=PLENTY)) == []
        assert await store.read(lambda tables: tables.events("new", after=0, limit=PLENTY)) == event_rows(5)[2:]
        assert await store.read(lambda tables: tables.snapshot("new")) == snapshot_row(2, stream="new")
        assert await store.read(lambda tables: tables.readers("new")) == {"ada": 3}
        assert await store.read(lambda tables: tables.appended("new", "key")) is not None
        await store.write(lambda tables: tables.rename_stream("new", "s"))
        assert await store.read(everything) == before

    async def test_a_stream_goes_on_under_another_name_and_its_old_one_begins_anew(self, store: PlaneStore) -> None:
        await store.write(append("s", 3))
        await store.write(lambda tables: tables.rename_stream("s", "new"))
        assert await store.write(append("new", 2)) == 5
        assert await store.write(append("s", 1)) == 1

    async def test_a_run_follows_its_stream_to_another_name(self, store: PlaneStore) -> None:
        await store.write(fill)
        await store.write(append("run:run-t-1", 2))
        await store.write(lambda tables: tables.rename_stream("run:run-t-1", "new"))
        run = await store.read(lambda tables: tables.run_of_stream("new"))
        assert run is not None
        assert (run.id, run.stream) == ("run-t-1", "new")
        assert await store.read(lambda tables: tables.run("run-t-1")) == run
        assert await store.read(lambda tables: tables.run_of_stream("run:run-t-1")) is None

    async def test_a_thread_has_all_that_belongs_to_it_under_another_name(self, store: PlaneStore) -> None:
        await store.write(fill)
        before = await store.read(everything)
        messages = await store.read(lambda tables: tables.messages("t", after_place=0, limit=PLENTY))
        bodies = await store.read(lambda tables: tables.bodies("t", range(9)))
        await store.write(lambda tables: tables.rename_thread("t", "new"))

        assert await store.read(lambda tables: tables.thread("t")) is None
        assert await store.read(lambda tables: tables.messages("t", after_place=0, limit=PLENTY)) == []
        assert await store.read(lambda tables: tables.messages("new", after_place=0, limit=PLENTY)) == messages
        assert await store.read(lambda tables: tables.bodies("new", range(9))) == bodies
        assert {run.thread for run in await store.read(lambda tables: tables.runs("new", limit=9))} == {"new"}
        await store.write(lambda tables: tables.rename_thread("new", "t"))
        assert await store.read(everything) == before

    @pytest.mark.parametrize("what", NO_RENAMING)
    async def test_nothing_takes_the_name_of_another_and_what_is_not_there_gets_none(
        self, store: PlaneStore, what: str
    ) -> None:
        await store.write(fill)
        await store.write(append("another", 2))
        await store.write(lambda tables: tables.put_thread(_like(tables, "u")))
        before = await store.read(everything)
        with pytest.raises(ValueError, match=r"promise|already|there is no"):
            await store.write(NO_RENAMING[what])
        assert await store.read(everything) == before


def _like(tables: Tables, name: str) -> ThreadRow:
    row = tables.thread("t")
    assert row is not None
    return row._replace(thread=name)
