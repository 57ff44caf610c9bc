"""The stores of keys and sealed secrets keep what their port promises, whatever happens to the process and the disk."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import pytest

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.backends.sqlite.access import SqliteAccess, access_path
from fieldstone.backends.sqlite.late_access import LateAccess
from fieldstone.core.errors import StorageFull
from fieldstone.ports.access import AccessStore
from fieldstone.ports.store import StoreTooNew
from fieldstone.testing import AccessStoreTests, OpenAccess
from fieldstone.testing.access import CREATED_MS, key_record, sealed_secret
from tests.faults.disk import faulty_disk, of_folder

OPENERS: Final = 8
KILLS: Final = 5
WRITES_BEFORE_KILL: Final = 20

# A process that writes keys, and tells of each one that is written.
WRITER: Final = """
import sys
from pathlib import Path
from fieldstone.backends.sqlite.access import SqliteAccess
from fieldstone.testing.access import key_record, sealed_secret
first = int(sys.argv[2])
access = SqliteAccess(Path(sys.argv[1]))
print("open", flush=True)
for number in range(first, first + 100_000):
    access.put_key(key_record(1, id=f"key-{number:016x}", created_ms=number, agents=("ada",) * 200))
    access.put_secret(sealed_secret(f"secret-{number:06}", sealed=bytes(3_000)))
    print(number, flush=True)
"""


class TestMemory(AccessStoreTests):
    @pytest.fixture
    def open_access(self) -> OpenAccess:
        store = MemoryAccess()
        return lambda: store


class TestLate(AccessStoreTests):
    @pytest.fixture
    def open_access(self, tmp_path: Path) -> OpenAccess:
        return lambda: LateAccess(tmp_path / "field.db")

    def test_without_anything_to_keep_no_file_is_made(self, tmp_path: Path, access: AccessStore) -> None:
        access.version(), access.keys(), access.secrets(), access.drop_secret("acme", "db-password")
        assert list(tmp_path.iterdir()) == []


class TestSqlite(AccessStoreTests):
    @pytest.fixture
    def open_access(self, tmp_path: Path) -> OpenAccess:
        return lambda: SqliteAccess(tmp_path / "field.db")

    def test_what_was_written_is_there_after_closing(self, open_access: OpenAccess) -> None:
        first = open_access()
        first.put_key(key_record())
        first.put_secret(sealed_secret())
        first.close()
        again = open_access()
        assert list(again.keys()) == [key_record()]
        assert list(again.secrets()) == [sealed_secret()]
        again.close()

    def test_nobody_but_the_owner_reads_the_file_or_its_journals(self, tmp_path: Path, open_access: OpenAccess) -> None:
        before = os.umask(0o000)
        try:
            access = open_access()
            access.put_key(key_record())
        finally:
            os.umask(before)
        files = sorted(tmp_path.iterdir())
        assert [file.name for file in files] == ["field.db-access", "field.db-access-shm", "field.db-access-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        access.close()

    def test_a_file_that_others_could_read_is_closed_to_them(self, tmp_path: Path, open_access: OpenAccess) -> None:
        open_access().close()
        path = access_path(tmp_path / "field.db")
        path.chmod(0o644)
        open_access().close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_the_database_itself_refuses_to_delete_a_key(self, tmp_path: Path, access: AccessStore) -> None:
        access.put_key(key_record())
        connection = apsw.Connection(str(access_path(tmp_path / "field.db")))
        with pytest.raises(apsw.ConstraintError, match="never deleted"):
            connection.execute("DELETE FROM keys")
        connection.close()
        assert list(access.keys()) == [key_record()]

    def test_a_newer_schema_is_refused_and_left_alone(self, tmp_path: Path, open_access: OpenAccess) -> None:
        open_access().close()
        connection = apsw.Connection(str(access_path(tmp_path / "field.db")))
        connection.execute("PRAGMA user_version=99")
        connection.close()
        with pytest.raises(StoreTooNew, match="schema version 99"):
            open_access()

    def test_many_may_open_the_new_file_at_the_same_moment(self, open_access: OpenAccess) -> None:
        errors: list[BaseException] = []
        start = threading.Barrier(OPENERS)

        def open_and_write(number: int) -> None:
            try:
                start.wait()
                access = open_access()
                access.put_key(key_record(number))
                access.close()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=open_and_write, args=(number,)) for number in range(OPENERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        access = open_access()
        assert list(access.keys()) == [key_record(number) for number in range(OPENERS)]
        access.close()

    def test_a_running_process_sees_what_another_writes_at_once(self, tmp_path: Path, access: AccessStore) -> None:
        before, seen = access.version(), _numbers(access)
        with _writer(tmp_path / "field.db", first=1) as told:
            for number in range(1, WRITES_BEFORE_KILL):
                assert next(told) == number
                version = access.version()
                assert version != before or number in seen  # the writer does not wait: it may be ahead of what it told
                before, seen = version, _numbers(access)
                assert number in seen

    def test_a_writer_that_is_killed_loses_nothing_it_told_of_and_leaves_nothing_half(
        self, tmp_path: Path, open_access: OpenAccess
    ) -> None:
        first = 1
        told_of: set[int] = set()
        for _ in range(KILLS):
            with _writer(tmp_path / "field.db", first=first) as told:
                told_of |= {next(told) for _ in range(WRITES_BEFORE_KILL)}
            access = open_access()
            numbers, records = _numbers(access), access.keys()
            secrets = {int(secret.id.removeprefix("secret-")) for secret in access.secrets()}
            assert told_of <= secrets <= set(numbers)
            assert numbers == list(range(1, numbers[-1] + 1))
            assert all(record.agents == ("ada",) * 200 for record in records)
            access.close()
            first = numbers[-1] + 1

    def test_on_a_full_disk_writes_are_refused_whole_and_reads_go_on(self, tmp_path: Path) -> None:
        with faulty_disk(of_folder(tmp_path)) as disk:
            access = SqliteAccess(tmp_path / "field.db")
            access.put_key(key_record())
            access.put_secret(sealed_secret())
            disk.shrink_to(0)
            for write in (
                lambda: access.put_key(key_record(revoked_ms=CREATED_MS + 1, agents=("ada",) * 2_000)),
                lambda: access.put_secret(sealed_secret("another", sealed=bytes(100_000))),
                lambda: access.drop_secret("acme", "db-password"),
            ):
                with pytest.raises(StorageFull):
                    write()
            assert list(access.keys()) == [key_record()]
            assert list(access.secrets()) == [sealed_secret()]
            disk.heal()
            access.put_key(key_record(revoked_ms=CREATED_MS + 1))
            assert list(access.keys()) == [key_record(revoked_ms=CREATED_MS + 1)]
            access.close()

    def test_without_room_for_a_new_file_opening_is_refused_and_works_with_room(self, tmp_path: Path) -> None:
        with faulty_disk(of_folder(tmp_path)) as disk:
            disk.shrink_to(0)
            with pytest.raises(StorageFull):
                SqliteAccess(tmp_path / "field.db")
            disk.heal()
            access = SqliteAccess(tmp_path / "field.db")
            assert list(access.keys()) == []
            access.close()


def _numbers(access: AccessStore) -> list[int]:
    records = access.keys()
    return [record.created_ms for record in records]


@contextmanager
def _writer(store: Path, *, first: int) -> Iterator[Iterator[int]]:
    """A process that writes from `first` on, until it is killed at the end; what it tells, number by number."""
    command = [sys.executable, "-c", WRITER, str(store), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "open\n"
            yield (int(line) for line in process.stdout)
        finally:
            process.send_signal(signal.SIGKILL)
            process.stdout.close()
