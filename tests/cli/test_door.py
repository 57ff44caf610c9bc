"""Who holds a store, and how a command gets to it: through the server, after a moment, or not at all."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fieldstone.backends.sqlite.lease import FileLease
from fieldstone.cli import door
from fieldstone.ports.lease import Holder
from tests.cli.running import PROGRAM, SURE, answer, done, invoke, record, refused, served


def test_commands_on_a_file_that_a_server_holds_go_through_that_server() -> None:
    first = record("Tea is hot")
    with served("team.db") as url:
        second = record("Coffee is hot", "--agent", "ada")
        found = answer("attune", "--agent", "bob", "--format", "ids_only", "--db", "team.db")
        assert {scoped["memory_unit"]["id"] for scoped in found["record"]} == {first, second}
        assert answer("status", "--url", url)["units"] == 2
        assert answer("status", env={"FIELDSTONE_URL": url})["units"] == 2
        assert answer("verify", "--db", "team.db")["ok"] is True
        head = done("verify", "--db", "team.db").split()[-1]
        done("verify", "--db", "team.db", "--head", head)
        assert answer("rebuild", "--db", "team.db")["unchanged"] is True
        exported = invoke("export", "--db", "team.db").stdout_bytes
        assert answer("import", "-", "--db", "team.db", input=exported)["imported"] == 0
        assert "resolved" in done("demo", "--db", "team.db")
        assert "and not 'other'" in refused("status", "--db", "team.db", "--field", "other")
        assert "is held by fieldstone serve" in refused("serve", "--db", "team.db", "--port", "0")
        follow_until_interrupted(url)
    assert done("verify", "--db", "team.db").startswith("ok: ")


def test_a_store_that_a_script_holds_is_refused_at_once_with_a_sentence() -> None:
    record("Tea is hot")
    with held("team.db", Holder(4711, "host", "train.py", "2024-05-01T10:00:00.000Z")):
        for command in ("status", "verify", "rebuild"):
            stderr = refused(command, "--db", "team.db")
            assert stderr.startswith("error: team.db is held by train.py (process 4711 on host, ")


def test_another_command_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HELD_PAUSE_S", 0)
    record("Tea is hot")
    with held("team.db", Holder(4711, "host", "fieldstone import", "2024-05-01T10:00:00.000Z")):
        assert "is held by fieldstone import" in refused("status", "--db", "team.db")


def test_a_store_that_is_let_go_meanwhile_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    record("Tea is hot")
    lease = FileLease(Path("team.db"))
    lease.acquire(Holder(4711, "host", "fieldstone import", "2024-05-01T10:00:00.000Z"))

    async def let_go(_seconds: float) -> None:
        lease.release()

    monkeypatch.setattr("fieldstone.cli.door.asyncio.sleep", let_go)
    assert answer("status", "--db", "team.db")["units"] == 1


def test_commands_tell_the_next_one_who_they_are() -> None:
    command = [*PROGRAM, "record", "-", "--intent", "tell", *SURE, "--db", "team.db"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recording:
        assert recording.communicate(b"Tea is hot")[0].startswith(b"mem-")
    assert Path("team.db.lock").read_bytes() == b""


@pytest.mark.parametrize("command", ["attune", "status", "log", "verify", "rebuild", "export"])
def test_a_command_that_only_reads_makes_no_store(command: str) -> None:
    assert refused(command, "--db", "typo.db").startswith("error: There is no store at typo.db. ")
    assert not Path("typo.db").exists()


@pytest.mark.parametrize("command", ["attune", "status", "log", "verify", "rebuild", "export", "compact archive"])
def test_a_mistyped_tenant_or_field_is_refused_and_not_made(command: str) -> None:
    record("Tea is hot")
    for typo in ("FIELDSTONE_TENANT", "FIELDSTONE_FIELD"):
        assert "holds no " in refused(*command.split(), "--db", "team.db", env={typo: "typo"})
        assert "holds no " in refused(*command.split(), "--db", "team.db", env={typo: "typo"})  # it is still not there
    assert answer("status", "--db", "team.db", "--field", "main")["units"] == 1


def test_whoever_mistypes_a_tenant_or_field_is_told_which_there_are() -> None:
    record("Tea is hot")
    done("record", "Coffee", "--intent", "tell", *SURE, "--db", "team.db", env={"FIELDSTONE_TENANT": "acme"})
    wrong = refused("status", "--db", "team.db", env={"FIELDSTONE_TENANT": "acmee"})
    assert wrong == "error: team.db holds no tenant 'acmee', but: acme, local.\n"
    assert answer("status", "--db", "team.db", env={"FIELDSTONE_TENANT": "acme"})["units"] == 1
    assert "but: main.\n" in refused("log", "--db", "team.db", "--field", "mian")


def test_the_default_tenant_is_read_although_only_others_are_there() -> None:
    done("record", "Coffee", "--intent", "tell", *SURE, "--db", "team.db", env={"FIELDSTONE_TENANT": "acme"})
    assert "FIELDSTONE_TENANT names another: acme." in invoke("status", "--db", "team.db").stderr


def test_a_server_that_takes_one_for_another_tenant_is_not_written_to() -> None:
    record("Tea is hot")
    other = {"FIELDSTONE_TENANT": "acme"}
    with served("team.db"):
        said = refused("record", "Coffee", "--intent", "tell", *SURE, "--db", "team.db", env=other)
        assert "takes you for tenant 'local', and not 'acme'" in said
        assert answer("status", "--db", "team.db")["units"] == 1


def test_a_server_that_does_not_answer_is_told_in_a_sentence() -> None:
    stderr = refused("status", "--url", "http://127.0.0.1:1")
    assert stderr.startswith("error: http://127.0.0.1:1 does not answer")
    assert "Is `fieldstone serve` running there?" in stderr


def follow_until_interrupted(url: str) -> None:
    command = [*PROGRAM, "log", "--follow", "--json", "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["entry"]["seq"] == 1
        following.send_signal(signal.SIGINT)
        _, stderr = following.communicate()
    assert following.returncode == 130
    assert stderr == b""


@contextmanager
def held(db: str, holder: Holder) -> Iterator[None]:
    lease = FileLease(Path(db))
    lease.acquire(holder)
    try:
        yield
    finally:
        lease.release()
