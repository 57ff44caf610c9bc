"""`fieldstone export` and `fieldstone import`"""

import json
from io import BytesIO
from pathlib import Path

import pytest

from fieldstone.cli import import_lines
from fieldstone.cli.export import Gaps
from tests.cli.running import answer, done, invoke, record, refused


@pytest.fixture
def team() -> bytes:
    """A store of five entries, and its export."""
    for content in ("Tea is hot", "Coffee is hot", "Water is cold"):
        record(content)
    done("export", "team.jsonl", "--db", "team.db")
    return Path("team.jsonl").read_bytes()


def test_an_export_is_a_line_of_json_for_each_entry(team: bytes) -> None:
    assert [json.loads(line)["entry"]["seq"] for line in team.splitlines()] == [1, 2, 3, 4, 5]
    assert invoke("export", "--db", "team.db").stdout_bytes == team


def test_json_tells_of_the_file(team: bytes) -> None:
    told = answer("export", "again.jsonl", "--db", "team.db")
    assert told == {"file": "again.jsonl", "entries": 5, "bytes": len(team)}


def test_an_export_overwrites_only_when_forced(team: bytes) -> None:
    Path("team.jsonl").write_text("precious")
    assert "--force overwrites it" in refused("export", "team.jsonl", "--db", "team.db")
    assert Path("team.jsonl").read_text() == "precious"
    done("export", "team.jsonl", "--force", "--db", "team.db")
    assert Path("team.jsonl").read_bytes() == team


def test_an_export_through_a_link_keeps_the_link(team: bytes) -> None:
    Path("link.jsonl").symlink_to("team.jsonl")
    done("export", "link.jsonl", "--force", "--db", "team.db")
    assert Path("link.jsonl").is_symlink()


def test_an_export_that_fails_leaves_nothing(team: bytes) -> None:
    refused("export", "new.jsonl", "--db", "gone.db")
    assert not list(Path.cwd().glob("new.jsonl*"))


def test_a_device_is_not_replaced_by_a_file(team: bytes) -> None:
    assert "is not a file" in refused("export", "/dev/null", "--force", "--db", "team.db")


def test_an_export_that_lacks_texts_says_so() -> None:
    kept = record("Tea is hot", "--session", "kept")
    record("Water is cold", "--session", "purged")
    done("compact", "purge", "--session", "purged", "--db", "team.db")
    done("compact", "archive", "--session", "kept", "--db", "team.db")
    assert "texts_missing" not in answer("export", "whole.jsonl", "--db", "team.db"), "a purged text is not missed"
    Path("team.db-cold").unlink()
    result = invoke("export", "--db", "team.db")
    assert kept.encode() in result.stdout_bytes
    assert "warning: 1 text could not be exported" in result.stderr
    assert answer("export", "team.jsonl", "--db", "team.db")["texts_missing"] == 1


def test_an_export_finds_its_gaps_however_its_lines_come_in() -> None:
    lines = (
        b'{"entry":{"seq":1,"event":{"kind":"unit.recorded"}},"hash":"","replaced":true}\n'
        b'{"entry":{"seq":2,"event":{"kind":"unit.recorded"}},"hash":"","replaced":true}\n'
        b'{"entry":{"seq":3,"event":{"kind":"unit.recorded"}},"hash":"","replaced":true}\n'
        b'{"entry":{"seq":4,"event":{"kind":"units.purged","texts":[1]}},"hash":""}\n'
        b'{"entry":{"seq":5,"event":{"kind":"content.replaced","entry":2}},"hash":"","replaced":true}\n'
        b'{"entry":{"seq":6,"event":{"kind":"content.replaced","entry":2}},"hash":""}\n'
    )
    for size in (1, 7, len(lines)):
        gaps = Gaps()
        for at in range(0, len(lines), size):
            gaps.look(lines[at : at + size])
        assert gaps.missing() == {3}


def test_an_import_makes_the_same_history(team: bytes) -> None:
    assert done("import", "team.jsonl", "--db", "copy.db") == "5 entries imported, 0 were there already\n"
    assert done("verify", "--db", "copy.db") == done("verify", "--db", "team.db")
    assert invoke("export", "--db", "copy.db").stdout_bytes == team


def test_an_import_that_broke_off_goes_on_where_it_was(team: bytes) -> None:
    first = b"".join(team.splitlines(keepends=True)[:2])
    assert answer("import", "-", "--db", "copy.db", input=first) == {"imported": 2, "skipped": 0}
    assert answer("import", "-", "--db", "copy.db", input=team) == {"imported": 3, "skipped": 2}
    assert answer("import", "team.jsonl", "--db", "copy.db") == {"imported": 0, "skipped": 5}


def test_another_history_is_refused(team: bytes) -> None:
    record("Something else", db="other.db")
    assert "has another history" in refused("import", "team.jsonl", "--db", "other.db")


def test_a_bad_line_is_named_by_its_place_in_the_file(team: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "CHUNK_LINES", 2)
    lines = team.splitlines(keepends=True)
    lines[3] = lines[3].replace(b"hot", b"old").replace(b"cold", b"bold").replace(b"Coffee", b"Cocoa!")
    stderr = refused("import", "-", "--db", "copy.db", input=b"".join(lines))
    assert stderr.startswith("error INVALID_PAYLOAD: line 4: ")
    assert answer("status", "--db", "copy.db")["log_entries"] == 2


def test_what_is_no_export_is_refused() -> None:
    stderr = refused("import", "-", "--db", "copy.db", input=b"hello\n")
    assert "line 1 is not a line of an export" in stderr
    assert "Import what `fieldstone export` wrote." in stderr


def test_a_file_that_is_not_there_is_a_usage_error() -> None:
    assert "does not exist" in refused("import", "gone.jsonl", "--db", "copy.db", exit_code=2)


def test_chunks_are_bounded_in_lines_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "CHUNK_LINES", 3)
    monkeypatch.setattr(import_lines, "CHUNK_BYTES", 10)
    source = BytesIO(b"1\n2\n3\n4\n" + b"5" * 8 + b"\n" + b"6" * 20 + b"\n7")
    assert [len(b"".join(chunk)) for chunk in import_lines.chunks(source)] == [6, 2, 9, 21, 1]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_lines, "LINE_BYTES", 1000)
    assert "this is not an export" in refused("import", "-", "--db", "copy.db", input=b"x" * 5000)


@pytest.mark.parametrize("harm", [b"not an export\n", b'{"entry": {}, "hash": "00"}\n'])
def test_an_import_that_is_refused_makes_no_store(team: bytes, harm: bytes) -> None:
    Path("harmed.jsonl").write_bytes(harm + team)
    assert "line 1" in refused("import", "harmed.jsonl", "--db", "new.db")
    assert not list(Path.cwd().glob("new.db*"))
    Path("late.jsonl").write_bytes(team + harm)
    assert "line 6" in refused("import", "late.jsonl", "--db", "new.db")
    assert not list(Path.cwd().glob("new.db*"))
    assert "5 entries imported" in done("import", "team.jsonl", "--db", "new.db")
