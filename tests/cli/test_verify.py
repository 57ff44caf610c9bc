"""`fieldstone verify` and `fieldstone rebuild`"""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.running import answer, done, invoke, record, refused


@pytest.fixture
def store() -> Path:
    """A closed store with one unit: names, roles and contents as texts."""
    record("Tea is hot", "--agent", "ada", "--role", "researcher", "--session", "s1")
    return Path("team.db")


def test_a_whole_history_is_ok(store: Path) -> None:
    said = done("verify", "--db", "team.db")
    assert said.startswith("ok: 4 entries, 4 texts; head 4:")
    assert answer("verify", "--db", "team.db")["ok"] is True


def test_every_flipped_bit_of_an_entry_is_found_and_said_where(store: Path) -> None:
    for seq, body in rows(store, "log", "body"):
        for at in (0, len(body) // 2, len(body) - 1):
            assert fault_after_flip(store, body, at)["seq"] == seq


def test_every_flipped_bit_of_a_text_is_found_and_said_where(store: Path) -> None:
    for seq, body in rows(store, "texts", "body"):
        for at in (0, len(body) // 2, len(body) - 1):
            fault = fault_after_flip(store, body, at)
            assert (fault["seq"], fault["part"]) == (seq, "text")


def test_a_person_reads_where_the_fault_is(store: Path) -> None:
    body = rows(store, "texts", "body")[-1][1]
    store.write_bytes(flipped(store.read_bytes(), body, 3))
    result = invoke("verify", "--db", "team.db")
    assert result.exit_code == 1
    assert result.stdout == (
        "NOT ok: entry 4, text: its text is not the one that was written (3 entries before it are good)\n"
    )


def test_a_person_reads_what_to_do_about_a_fault(store: Path) -> None:
    body = rows(store, "texts", "body")[-1][1]
    store.write_bytes(flipped(store.read_bytes(), body, 3))
    assert "bring the store back from a backup" in invoke("verify", "--db", "team.db").stderr
    assert invoke("verify", "--json", "--db", "team.db").stderr == ""


@pytest.mark.parametrize("damage", ["garbage", "short", "block"])
def test_a_damaged_file_of_archived_texts_is_named_with_what_to_do(store: Path, damage: str) -> None:
    done("compact", "archive", "--db", "team.db")
    cold = Path("team.db-cold")
    if damage == "block":
        connection = apsw.Connection(str(cold))
        connection.execute("UPDATE blocks SET bodies = zeroblob(9)")
        connection.close()
    else:
        cold.write_bytes(b"this is no cold store " * 100 if damage == "garbage" else cold.read_bytes()[:8192])
    result = invoke("verify", "--db", "team.db")
    assert result.exit_code == 1
    assert "team.db-cold: " in result.stdout
    assert "backup" in result.output
    told = refused("export", "team.jsonl", "--db", "team.db")
    assert "team.db-cold: " in told
    assert "move team.db-cold away" in told


def test_without_the_file_of_archived_texts_verify_says_which_is_missing(store: Path) -> None:
    done("compact", "archive", "--db", "team.db")
    Path("team.db-cold").unlink()
    done("status", "--db", "team.db")
    result = invoke("verify", "--db", "team.db")
    assert result.stdout == "NOT ok: entry 4, text: its text is missing (3 entries before it are good)\n"
    assert "STORE-cold" in result.stderr


@pytest.mark.parametrize("damage", ["text", "zeros", "half", "schema"])
def test_a_store_that_cannot_be_read_is_not_ok(store: Path, damage: str) -> None:
    whole = store.read_bytes()
    broken = {
        "text": b"this is no store at all " * 100,
        "zeros": bytes(4096) + whole[4096:],
        "half": whole[: len(whole) // 2 - 100],
        "schema": whole.replace(b"CREATE TABLE", b"CREATE TABLF"),
    }
    store.write_bytes(broken[damage])
    result = invoke("verify", "--db", "team.db")
    assert result.exit_code == 1
    assert result.stdout.startswith("NOT ok: ")
    assert "cannot be read" in result.stdout
    assert "from a backup" in result.output
    assert "Traceback" not in result.output


def test_json_of_a_store_that_cannot_be_read_has_the_same_shape(store: Path) -> None:
    store.write_bytes(b"this is no store at all " * 100)
    result = invoke("verify", "--json", "--db", "team.db")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["first_bad"]["part"] == "store"


def test_verify_makes_no_store() -> None:
    assert "There is no store at gone.db" in refused("verify", "--db", "gone.db")
    assert list(Path.cwd().iterdir()) == []


def test_a_head_that_was_kept_is_found_again_in_a_longer_log(store: Path) -> None:
    kept = done("verify", "--db", "team.db").split()[-1]
    done("verify", "--db", "team.db", "--head", kept.split(":")[1])
    record("Tea is still hot")
    done("verify", "--db", "team.db", "--head", kept)


@pytest.mark.parametrize(("head", "said"), [("4:", "another history"), ("", "another history"), ("9:", "ends before")])
def test_a_history_that_was_written_anew_does_not_have_the_kept_head(store: Path, head: str, said: str) -> None:
    result = invoke("verify", "--db", "team.db", "--head", head + "0f" * 32)
    assert result.exit_code == 1
    assert said in result.stdout


@pytest.mark.parametrize("head", ["4", "0:" + "0f" * 32, "4:xyz"])
def test_a_head_that_is_none_is_a_usage_error(store: Path, head: str) -> None:
    refused("verify", "--db", "team.db", "--head", head, exit_code=2)


def test_rebuild_says_that_the_views_are_what_they_were(store: Path) -> None:
    assert "they are what they were" in done("rebuild", "--db", "team.db")
    assert answer("rebuild", "--db", "team.db")["unchanged"] is True


def test_rebuild_mends_views_that_differ_from_the_log(store: Path) -> None:
    with apsw.Connection(str(store)) as connection:
        connection.execute("UPDATE units SET status = 'retracted'")
    assert "now they are" in done("rebuild", "--db", "team.db")
    assert answer("rebuild", "--db", "team.db")["unchanged"] is True


def test_rebuild_mends_views_that_keep_a_field_from_opening(store: Path) -> None:
    with apsw.Connection(str(store)) as connection:
        connection.execute("UPDATE units SET status = 'agtive'")
    assert refused("status", "--db", "team.db").startswith("error: The store cannot be read (KeyError: 'agtive').")
    assert "now they are" in done("rebuild", "--db", "team.db")
    assert answer("status", "--db", "team.db")["units"] == 1


def rows(store: Path, table: str, column: str) -> list[tuple[int, bytes]]:
    """seq and bytes of every row; the key holds the seq in its lower half."""
    connection = apsw.Connection(str(store))
    try:
        found: list[Any] = connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    finally:
        connection.close()
    at = columns.index(column)
    return [(int(row[0]) & 0xFFFFFFFF, bytes(row[at])) for row in found]


def fault_after_flip(store: Path, body: bytes, at: int) -> Any:
    whole = store.read_bytes()
    try:
        store.write_bytes(flipped(whole, body, at))
        result = invoke("verify", "--json", "--db", str(store))
    finally:
        store.write_bytes(whole)
    assert result.exit_code == 1, result.output
    return json.loads(result.stdout)["first_bad"]


def flipped(whole: bytes, body: bytes, at: int) -> bytes:
    place = whole.index(body) + at
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
