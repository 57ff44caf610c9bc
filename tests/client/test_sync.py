"""The sync face: the same API without await."""

import threading
from pathlib import Path
from typing import Any

import pytest

from fieldstone import errors, open_field
from fieldstone.client.sync import SyncFace

WHY: dict[str, Any] = {"intent": "size the market", "confidence": 0.8, "reasoning": "two reports"}


@pytest.fixture(params=["memory:", "team.db"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    where: str = request.param
    return where


def test_ten_lines_of_python(address: str) -> None:
    with open_field(address) as field:
        ada = field.agent("ada", role="researcher", interests=["pricing"])
        ben = field.agent("ben", role="analyst")
        accepted = ada.record("The market grows by 23% a year.", **WHY)
        [found] = ben.attune("market growth").record
        assert found.memory_unit.id == accepted.memory_unit_id
        assert (ada.id, ada.role, ada.profile.interests) == ("ada", "researcher", ("pricing",))
        assert ben.epoch == accepted.epoch
        ada.retract(accepted.memory_unit_id, reason="wrong")
        assert not ben.attune().record
        assert ben.deregister().status == "ok"


def test_agent_joins_or_resumes_and_register_is_strict(address: str) -> None:
    with open_field(address) as field:
        field.register("ada", role="researcher")
        assert field.agent("ada", role="whatever").role == "researcher"
        with pytest.raises(errors.AgentIdTaken):
            field.register("ada", role="researcher")


def test_operators_methods_work_without_await_and_an_export_is_a_plain_iterator(address: str) -> None:
    with open_field(address) as field:
        field.agent("ada", role="researcher").record("First.", **WHY)
        assert field.status().units == 1
        assert field.verify().ok
        lines = b"".join(field.export()).splitlines()
        assert len(lines) == field.status().log_entries
        assert field.import_lines(lines).skipped == len(lines)


def test_errors_of_the_body_go_out_and_the_field_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "team.db"

    def work() -> None:
        with open_field(path) as field:
            field.agent("ada", role="researcher").record("Kept.", **WHY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with open_field(path) as field:
        assert field.status().units == 1


def test_what_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    for _ in range(3):
        with pytest.raises(Exception, match=r"folder\.db|open"), open_field(tmp_path / "folder.db"):
            pass
    assert not our_threads()


def test_closing_ends_the_threads(address: str) -> None:
    with open_field(address) as field:
        field.agent("ada", role="researcher").record("First.", **WHY)
        assert field.agent("ada", role="researcher").attune("first", include_own=True).record
    assert not our_threads()


def test_many_threads_may_share_one_face(address: str) -> None:
    with open_field(address) as field:
        agents = [field.agent(f"agent-{n}", role="researcher") for n in range(8)]

        def work(agent: Any) -> None:
            for n in range(10):
                agent.record(f"{agent.id} unit {n}", **WHY)

        threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert field.status().units == 80
        assert field.verify().ok


def test_two_fields_may_be_open_at_once(tmp_path: Path) -> None:
    with open_field(tmp_path / "a.db") as one, open_field("memory:") as other:
        one.agent("ada", role="researcher").record("Here.", **WHY)
        assert other.status().units == 0
        assert one.status().units == 1


def test_the_face_looks_like_what_it_faces(address: str) -> None:
    with open_field(address) as field:
        ada = field.agent("ada", role="researcher")
        assert isinstance(ada, SyncFace)
        assert "sync" in repr(ada)
        assert ada.record.__name__ == "record"
        assert "intent" in (ada.record.__doc__ or "")
        with pytest.raises(AttributeError, match="dance"):
            ada.dance()


async def test_the_same_file_opens_with_async_with_too(tmp_path: Path) -> None:
    async with open_field(tmp_path / "team.db") as field:
        ada = await field.agent("ada", role="researcher")
        assert (await ada.record("First.", **WHY)).status == "accepted"


def our_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("fieldstone")]
