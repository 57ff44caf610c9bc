"""The list of mutations and the source say the same: no text is outdated, and no scrub is without its mutation."""

import ast
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, ROOT, Source, python_sources
from tests.mutate.__main__ import conclude
from tests.mutate.mutation import Mutation, Outdated, mutated, place, read
from tests.mutate.mutations import MUTATIONS
from tests.mutate.runner import Outcome, Unsound, run
from tests.mutate.scrubs import BY_FULL_NAME, SCRUBBERS, Scrub, returns_clean_text, scrubs, workers


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_source_and_what_it_makes_of_it_is_python(mutation: Mutation) -> None:
    ast.parse(mutated(mutation, read(mutation, ROOT)))
    assert mutation.text != mutation.replacement


def test_every_mutation_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_the_tests_that_are_to_catch_a_mutation_are_there() -> None:
    named = {test for mutation in MUTATIONS for test in mutation.tests}
    assert all(mutation.tests for mutation in MUTATIONS)
    assert sorted(test for test in named if not is_there(test)) == []


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def mutated_places(source: Source) -> list[range]:
    return [place(mutation, source.text) for mutation in MUTATIONS if mutation.path == source.path]


def without_mutation(found: list[Scrub], source: Source) -> list[str]:
    """Those that no mutation touches."""
    places = mutated_places(source)
    return [
        source.problem(scrub.line, f"{scrub.what} is a scrub without a mutation: see tests/mutate/mutations.py")
        for scrub in found
        if not any(max(scrub.place.start, each.start) < min(scrub.place.stop, each.stop) for each in places)
    ]


def test_every_scrub_has_its_mutation() -> None:
    sources = python_sources(PACKAGE)
    found = {source.path: [*scrubs(source), *workers(source)] for source in sources}
    assert sum(map(len, found.values())) > 40, "else the search itself is broken"
    problems = [problem for source in sources for problem in without_mutation(found[source.path], source)]
    assert not problems, "\n".join(problems)


def test_every_function_that_gives_clean_text_back_counts_as_a_scrub() -> None:
    names = {name for source in python_sources(PACKAGE) for name in returns_clean_text(source)}
    assert names - SCRUBBERS == {name.rpartition(".")[2] for name in BY_FULL_NAME}


FIELD = f"{PACKAGE}field/new.py"
NEW = [
    "x = harness.clean_one(text)\n",
    "x = await asyncio.to_thread(harness.clean_groups, groups)\n",
    "configure_logs(level, scrub=entrance.scrub)\n",
    "def f(clean):\n    return ReasonText(clean[0])\n",
    "def f(self, clean):\n    return UnitTexts(content=clean[0])\n",
    "class Merging:\n    def texts(self):\n        return (self.why,)\n    async def decide(self, desk, clean): ...\n",
]


@pytest.mark.parametrize("text", NEW)
def test_a_new_scrub_without_a_mutation_is_found(text: str) -> None:
    source = Source(FIELD, text)
    assert without_mutation([*scrubs(source), *workers(source)], source)


def test_work_without_texts_needs_no_mutation() -> None:
    source = Source(FIELD, "class Resting:\n    def texts(self):\n        return ()\n    async def decide(self): ...\n")
    assert [*scrubs(source), *workers(source)] == []


# --- the run itself, on a tree of a few lines -------------------------------------------------------------------------

TEST = "tests/test_door.py::test_the_secret_is_taken_out"
SCRUB = ".replace('secret', '…')"
DOOR = f"def told(text):\n    return text{SCRUB}\n"
CHECK = "def test_the_secret_is_taken_out():\n    assert 'secret' not in told('a secret')\n"


def mutation_of(text: str, replacement: str, *, name: str = "door", test: str = TEST) -> Mutation:
    return Mutation(name, "the scrub of the door", "door.py", text, replacement, (test,))


def small_tree(root: Path) -> Path:
    (root / "src/fieldstone").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src/fieldstone/__init__.py").write_text("")
    (root / "src/fieldstone/door.py").write_text(DOOR, encoding="utf-8")
    (root / "tests/test_door.py").write_text(f"from fieldstone.door import told\n\n\n{CHECK}", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def outcomes(tree: Path) -> dict[str, Outcome]:
    """Of one run: it takes a second for each mutation."""
    planted = [
        mutation_of(SCRUB, "", name="a scrub taken out"),
        mutation_of("def told", "def tell", name="a function that tests import"),
        mutation_of("return text", "return missing", name="a crash"),
        mutation_of(SCRUB, SCRUB, name="nothing"),
    ]
    return {outcome.name: outcome for outcome in run(planted, tree)}


def test_a_planted_mutation_that_changes_nothing_survives(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["nothing"].verdict == "survived"


def test_a_mutation_that_a_test_notices_is_caught(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["a scrub taken out"].verdict == "caught"
    assert TEST in outcomes["a scrub taken out"].told


@pytest.mark.parametrize("name", ["a function that tests import", "a crash"])
def test_a_mutation_that_breaks_more_than_the_scrub_is_not_taken_for_caught(
    outcomes: dict[str, Outcome], name: str
) -> None:
    assert outcomes[name].verdict == "broken"


@pytest.mark.usefixtures("outcomes")
def test_a_run_leaves_the_tree_as_it_was(tree: Path) -> None:
    assert (tree / "src/fieldstone/door.py").read_text(encoding="utf-8") == DOOR


@pytest.mark.parametrize("text", ["no such text", "text"])
def test_a_mutation_whose_text_is_not_there_exactly_once_is_an_error(tree: Path, text: str) -> None:
    with pytest.raises(Outdated, match=r"stands \d times"):
        list(run([mutation_of(text, "")], tree))


def test_tests_that_do_not_pass_without_any_mutation_prove_nothing(tree: Path) -> None:
    with pytest.raises(Unsound, match="test_nothing"):
        list(run([mutation_of(SCRUB, "", test="tests/test_door.py::test_nothing")], tree))


def test_a_survivor_is_named_and_ends_the_program_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    caught = Outcome("one", "a scrub", "caught", 1.0, "FAILED test")
    assert conclude([caught]) == 0
    assert conclude([caught, caught._replace(name="other", verdict="survived", told="")]) == 1
    assert "survived: other" in capsys.readouterr().err
    assert conclude([caught._replace(verdict="broken")]) == 1
