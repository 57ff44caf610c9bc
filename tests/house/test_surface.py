"""What a user may import is a decision: a new public name, or one that is gone, shows up in a diff of the list."""

import importlib
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from tests.house.sources import ROOT

LIST = ROOT / "tests/house/public_surface.txt"


def test_the_public_names_are_those_of_the_list() -> None:
    package = importlib.import_module("fieldstone")
    problems = surface_problems(package, committed_names(LIST.read_text(encoding="utf-8")))
    assert not problems, f"fieldstone.__all__ and {LIST.name}:\n" + "\n".join(problems)


def committed_names(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def surface_problems(package: object, committed: Iterable[str]) -> list[str]:
    public: list[str] = list(getattr(package, "__all__", []))
    committed = set(committed)
    return [
        *(f"  {name} is public and not in the list" for name in sorted(set(public) - committed)),
        *(f"  {name} is in the list and not public" for name in sorted(committed - set(public))),
        *(f"  {name} is promised and not there" for name in sorted(public) if not hasattr(package, name)),
        *(f"  {name} is named twice" for name in sorted(set(public)) if public.count(name) > 1),
    ]


@pytest.mark.parametrize(
    ("package", "committed"),
    [
        (SimpleNamespace(__all__=["Field", "Agent"], Field=1, Agent=1), ["Field"]),
        (SimpleNamespace(__all__=["Field"], Field=1), ["Field", "Agent"]),
        (SimpleNamespace(__all__=["Field"]), ["Field"]),
        (SimpleNamespace(__all__=["Field", "Field"], Field=1), ["Field"]),
    ],
    ids=["new", "gone", "hollow", "twice"],
)
def test_a_drift_of_the_surface_is_found(package: object, committed: list[str]) -> None:
    assert surface_problems(package, committed)
