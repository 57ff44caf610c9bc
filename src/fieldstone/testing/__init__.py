"""For those who write a backend: what every port promises, as classes of tests.

A backend's test is a fixture plus the shared classes, and nothing else:

    @pytest.fixture
    def open_store(tmp_path: Path) -> OpenStore:
        def open_it(*, key: FieldKey = KEY, max_bytes: int | None = None) -> Store:
            return SqliteStore.open(tmp_path / "field.db", key, max_bytes=max_bytes)
        return open_it

    class TestStore(StoreTests): ...
    class TestViews(ViewsTests): ...

The tests are `async def`: run them with anyio's plugin in auto mode. Beside them: time and chance that replay from a
seed (`ManualClock`, `SeededIds`), and stores that fail when they are told to (`FaultyStore`, `FaultyLog`).
"""

from fieldstone.testing import assertions as assertions  # first: it has to be there before what it is about
from fieldstone.testing.access import AccessStoreTests, OpenAccess
from fieldstone.testing.cold import ColdStoreTests
from fieldstone.testing.cold_units import ColdUnitsTests
from fieldstone.testing.embedder import EmbedderTests, OpenEmbedder
from fieldstone.testing.entries import EntriesTests
from fieldstone.testing.faults import FaultyLog, FaultyStore, die, fail
from fieldstone.testing.lease import LeaseTests, MakeLease
from fieldstone.testing.log import ContentStoreTests, EventLogTests
from fieldstone.testing.marks import MarksTests
from fieldstone.testing.opening import KEY, OpenStore
from fieldstone.testing.plane_names import PlaneNamesTests
from fieldstone.testing.planes import OpenPlanes, PlaneStoreTests, TranscriptTablesTests
from fieldstone.testing.replies import RepliesTests
from fieldstone.testing.store import OpenStores, StoresTests, StoreTests
from fieldstone.testing.text_index import TextIndexTests
from fieldstone.testing.tokens import TokenCounterTests, WordCounter
from fieldstone.testing.vectors import VectorStoreTests
from fieldstone.testing.views import ViewsTests
from fieldstone.testing.world import ClockTests, IdsTests, ManualClock, SeededIds

__all__ = [
    "KEY",
    "AccessStoreTests",
    "ClockTests",
    "ColdStoreTests",
    "ColdUnitsTests",
    "ContentStoreTests",
    "EmbedderTests",
    "EntriesTests",
    "EventLogTests",
    "FaultyLog",
    "FaultyStore",
    "IdsTests",
    "LeaseTests",
    "MakeLease",
    "ManualClock",
    "MarksTests",
    "OpenAccess",
    "OpenEmbedder",
    "OpenPlanes",
    "OpenStore",
    "OpenStores",
    "PlaneNamesTests",
    "PlaneStoreTests",
    "RepliesTests",
    "SeededIds",
    "StoreTests",
    "StoresTests",
    "TextIndexTests",
    "TokenCounterTests",
    "TranscriptTablesTests",
    "VectorStoreTests",
    "ViewsTests",
    "WordCounter",
    "die",
    "fail",
]
