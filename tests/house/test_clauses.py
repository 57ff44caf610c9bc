"""Every clause of the contracts has a test that names it, and every test names clauses that exist."""

import ast
import tomllib
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, Source, dotted, python_sources
from tests.requirements import requirement

# The first part of an id. Of the last two, the rooms stand under their name; the others are the protocol's own.
CONTRACTS = ("akashik", "openwop", "planes")


def test_every_clause_has_a_test() -> None:
    statements = clauses()
    missing = sorted(set(statements) - set(tagged()))
    assert not missing, f"{len(missing)} of {len(statements)} clauses without a test:\n" + "\n".join(
        f"  {clause}  {statements[clause]}" for clause in missing
    )


def test_every_tag_is_a_clause() -> None:
    known = clauses()
    claimed = [(tag, place) for tag, place in tagged().items() if tag.split(":")[0] in CONTRACTS]
    unknown = [f"{place}  {tag}" for tag, place in claimed if tag not in known]
    assert not unknown, "not in tests/clauses.toml:\n" + "\n".join(unknown)


def test_tags_are_literals_on_tests() -> None:
    problems = [problem for source in sources_of_tests() for problem in stray_tags(source)]
    assert not problems, "\n".join(problems)


def clauses() -> dict[str, str]:
    """Clause id to statement."""
    rooms = tomllib.loads((ROOT / "tests/clauses.toml").read_text(encoding="utf-8"))
    akashik, *others = CONTRACTS
    contracts = {name: rooms.pop(name) for name in others} | {akashik: rooms}
    return {
        f"{contract}:{room}:{name}": text
        for contract, listed in contracts.items()
        for room, statements in listed.items()
        for name, text in statements.items()
    }


def tagged() -> dict[str, str]:
    """Every id that a test claims to prove, with one place where it does."""
    return {tag: place for source in sources_of_tests() for tag, place in tags_of(source)}


def sources_of_tests() -> list[Source]:
    return python_sources("tests/")


def tags_of(source: Source) -> Iterator[tuple[str, str]]:
    for call in _calls_on_tests(source.tree):
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value, f"{source.path}:{call.lineno}"


def stray_tags(source: Source) -> Iterator[str]:
    """Tags that would be counted by nobody, or that would count without a test behind them."""
    on_tests = _calls_on_tests(source.tree)
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Call) and _is_requirement(node)):
            continue
        if node not in on_tests and source.path != "tests/requirements.py":
            yield source.problem(node.lineno, "requirement(…) decorates a test or a class of tests, nothing else")
        if node in on_tests and not all(isinstance(argument, ast.Constant) for argument in node.args):
            yield source.problem(node.lineno, "requirement(…) takes string literals")


def _calls_on_tests(tree: ast.Module) -> list[ast.Call]:
    return [
        decorator
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and _is_test(node)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and _is_requirement(decorator)
    ]


def _is_test(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    if not isinstance(node, ast.ClassDef):
        return node.name.startswith("test_")
    # A shared class of tests need not be named Test…: the class that inherits it is.
    functions = [child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)]
    return node.name.startswith("Test") or any(map(_is_test, functions))


def _is_requirement(call: ast.Call) -> bool:
    return dotted(call.func).split(".")[-1] == "requirement"


GOOD = """
@requirement("akashik:a:b", "akashik:c:d")
async def test_one(): ...

@requirement("akashik:e:f")
class TestAll:
    @pytest.mark.parametrize("x", [1])
    @requirement("akashik:g:h")
    def test_two(self, x): ...
"""


def test_tags_are_read_from_functions_classes_and_methods() -> None:
    source = Source("tests/a/test_a.py", GOOD)
    assert sorted(tag for tag, _ in tags_of(source)) == ["akashik:a:b", "akashik:c:d", "akashik:e:f", "akashik:g:h"]
    assert not list(stray_tags(source))


@pytest.mark.parametrize(
    "text",
    [
        '@requirement("akashik:a:b")\ndef make_unit(): ...\n',
        '@requirement("akashik:a:b")\nclass Rig:\n    def run(self): ...\n',
        'pytestmark = requirement("akashik:a:b")\n',
        "@requirement(CLAUSE)\ndef test_a(): ...\n",
        "@requirement(*CLAUSES)\ndef test_a(): ...\n",
    ],
)
def test_a_tag_without_a_test_or_a_literal_is_found(text: str) -> None:
    source = Source("tests/a/test_a.py", text)
    assert list(stray_tags(source))


@requirement("house:tag:function")
async def test_a_tag_on_an_async_test_is_known_to_pytest(request: pytest.FixtureRequest) -> None:
    assert _marked(request) == {"house:tag:function"}


@requirement("house:tag:class")
class TestTag:
    @requirement("house:tag:method", "house:tag:several")
    def test_a_test_has_the_tags_of_its_class_too(self, request: pytest.FixtureRequest) -> None:
        assert _marked(request) == {"house:tag:class", "house:tag:method", "house:tag:several"}

    def test_a_tag_without_an_id_is_refused(self) -> None:
        tag = requirement
        with pytest.raises(ValueError, match="at least one clause"):
            tag()


def _marked(request: pytest.FixtureRequest) -> set[str]:
    return {clause for mark in request.node.iter_markers("requirement") for clause in mark.args}
