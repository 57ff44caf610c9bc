"""Whatever goes wrong: a sentence, an exit code, and no traceback."""

import os
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

from fieldstone.cli.door import run
from fieldstone.cli.failures import refusal
from tests.cli.running import PROGRAM, SURE, done, invoke, process, record, refused


def test_a_refusal_is_the_same_in_a_real_process() -> None:
    result = process("record", "Tea", "--intent", "tell", "--db", "team.db")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        "error MISSING_CONFIDENCE: A committed unit needs confidence.score.\n"
        "Resubmit with confidence {score, reasoning}, or record it as a draft.\n"
    )


def test_a_reader_that_has_seen_enough_ends_a_command_quietly() -> None:
    with subprocess.Popen([*PROGRAM, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        stderr = demo.stderr.read()
    assert demo.returncode == 141
    assert stderr == b""


def test_ctrl_c_stops_at_once_even_where_nothing_waits() -> None:
    went_on = []

    async def busy() -> None:
        signal.raise_signal(signal.SIGINT)
        went_on.append(True)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(busy())
    assert not went_on
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_exits_130_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fieldstone.cli.config.load_settings", interrupted)
    result = invoke("config", "show")
    assert (result.exit_code, result.output) == (130, "")


def test_a_store_of_a_newer_version_is_told_in_a_sentence() -> None:
    record("Tea is hot")
    connection = apsw.Connection("team.db")
    connection.execute("PRAGMA user_version=999")
    connection.close()
    for command in ("status", "verify"):
        stderr = refused(command, "--db", "team.db")
        assert "schema version 999" in stderr
        assert stderr.count("\n") == 1


def test_a_file_that_is_no_store_is_told_in_a_sentence() -> None:
    Path("notes.txt").write_text("buy tea " * 1000)
    assert refused("status", "--db", "notes.txt").startswith("error: notes.txt is not a Fieldstone store")
    assert not Path("notes.txt.lock").exists()


@pytest.mark.parametrize("path", [".", "/", "", "sqlite:"])
def test_a_path_that_names_no_file_is_told_in_a_sentence(path: str) -> None:
    assert "names no file. A store's path looks like team.db." in refused("status", "--db", path)


def test_a_damaged_file_beside_the_store_is_named_with_what_to_do() -> None:
    record("Tea is hot")
    Path("retention.toml").write_text(
        '[[policies]]\nname = "old"\nstrategy = "archive"\nmax_age = "30d"\nschedule = "0 3 * * *"\n'
    )
    done("retention", "set", "retention.toml", "--db", "team.db")
    for name, command in (("team.db-planes", ("status",)), ("team.db-access", ("keys", "list"))):
        Path(name).write_bytes(b"this is no database " * 100)
        stderr = refused(*command, "--db", "team.db")
        assert f"{name}: file is not a database" in stderr
        assert f"move {name} away" in stderr
        assert "fieldstone verify" not in stderr, "it looks at the history, and would find nothing"
        assert stderr.count("\n") == 2, "what runs by itself in an open field is not heard of"


def test_a_kind_of_store_that_is_not_known_is_told_in_a_sentence() -> None:
    stderr = refused("status", "--db", "mysql://me:hush@host/db")
    assert stderr.startswith("error: mysql: is not a store that this version knows.")
    assert "hush" not in stderr


def test_a_path_that_cannot_be_made_is_told_in_a_sentence() -> None:
    Path("file").touch()
    stderr = refused("record", "Tea", "--intent", "tell", *SURE, "--db", "file/team.db")
    assert stderr.startswith("error: file")
    assert stderr.count("\n") == 1


def test_a_host_that_is_not_loopback_is_refused() -> None:
    assert "not a loopback address" in refused("serve", "--host", "192.0.2.1", "--db", "team.db")
    assert not Path("team.db").exists()


def test_a_server_is_no_store_for_a_server() -> None:
    assert "needs a store" in refused("serve", "--db", "http://127.0.0.1:8420")


def test_a_bad_port_is_told_in_a_sentence() -> None:
    assert "port (command line) is out of its range" in refused("serve", "--port", "99999")


def test_a_bug_of_ours_keeps_its_traceback() -> None:
    assert refusal(ZeroDivisionError()) is None


def test_a_terminal_that_does_not_know_unicode_gets_an_answer() -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run([*PROGRAM, "demo"], capture_output=True, env=environ, check=False)
    assert result.returncode == 0
    assert b"\\u201c" in result.stdout
