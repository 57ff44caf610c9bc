"""`fieldstone hold` and `pin` list what they guard, and say in JSON what they did."""

import pytest

from tests.cli.running import answer, done, invoke, record, refused, served

HERE = ("--db", "team.db")


@pytest.fixture
def units() -> list[str]:
    return [record(f"Step {n} takes {n}.9 s at checkout", "--session", "s-1") for n in range(3)]


@pytest.mark.parametrize(("guard", "other"), [("hold", "pin"), ("pin", "hold")])
def test_what_is_guarded_is_listed_by_its_guard_until_it_is_released(units: list[str], guard: str, other: str) -> None:
    assert invoke(guard, "--list", *HERE).stdout == ""
    done(other, units[1], *HERE)
    for unit in (units[2], units[0]):
        assert answer(guard, unit, *HERE) == {"unit_id": unit, "guard": guard, "set": True}
    assert done(guard, "--list", *HERE).split() == [units[0], units[2]], "by when they were recorded"
    assert answer(guard, units[0], "--release", *HERE) == {"unit_id": units[0], "guard": guard, "set": False}
    assert answer(guard, "--list", *HERE) == {"guards": [{"unit_id": units[2], "guard": guard}]}


def test_an_empty_list_says_so_where_a_person_reads_it(units: list[str]) -> None:
    assert invoke("hold", "--list", *HERE).stderr == "Nothing is on hold.\n"
    assert invoke("pin", "--list", *HERE).stderr == "Nothing is pinned.\n"
    assert answer("hold", "--list", *HERE) == {"guards": []}


def test_a_list_goes_over_all_pages_also_through_a_server(units: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldstone.cli.guarding.PAGE_UNITS", 1)
    for unit in units:
        done("pin", unit, *HERE)
    assert done("pin", "--list", *HERE).split() == units
    with served("team.db") as url:
        assert done("pin", "--list", "--url", url).split() == units


@pytest.mark.parametrize("said", [[], ["--release"], ["--list", "mem-1"], ["--list", "--release"]])
def test_what_is_neither_a_unit_nor_a_list_is_a_usage_error(said: list[str]) -> None:
    assert "Name a unit to pin" in refused("pin", *said, *HERE, exit_code=2)
