"""Where in a source the scrubs are: found by their names, so that a new one is missed by nobody."""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.house.rules import text_bundles
from tests.house.sources import PACKAGE, Source, dotted, walk_functions

# Whoever names one of these takes secrets out of a text, or refuses what holds one.
SCRUBBERS: Final = frozenset(
    {
        *("clean_groups", "clean_if_nothing_is_found", "clean_one", "clean_after", "knowing", "holds_secret"),
        *(
            "_clean",
            "_clean_group",
            "_cleaned",
            "_cleaned_for",
            "_clean_early",
            "_without_parts",
            "_offence",
            "_rewritten",
        ),
        *("scrub", "scrubbed", "_scrub", "_scrubbed", "Scrubbing"),
        *("_refuse_altered_names", "_refuse_secrets", "given_secrets"),
        *("clean_words", "clean_values", "_clean_snapshot", "_clean_bodies", "_clean_message", "_with_clean_kind"),
        *("_clean_told", "_count_names", "refuse_told", "_refuse_told"),
        *("clean_text", "_without_secrets", "_scanned", "_refuse_names"),
    }
)
# A common name: others follow the log, or a thread of units.
BY_FULL_NAME: Final = frozenset({"harness.follow", "self._trails.follow"})

# In the methods that get clean texts, what is made of them; beside these, every bundle.
LAST_ARGUMENT: Final = frozenset({"with_strings", "contest"})  # their last one is a clean text, or all of them
# Their texts are refused where they would be altered: clean or not, they are the same.
REFUSED: Final = frozenset({"NameText", "RetentionTexts"})
CLEAN: Final = "clean"
# Ids: one that would be altered is refused before, so the clean one is the given one.
IDS: Final = frozenset({"targets"})


class Scrub(NamedTuple):
    """What stands at these characters of the source, and has to be within a mutation."""

    path: str
    line: int
    what: str
    place: range


def scrubs(source: Source) -> Iterator[Scrub]:
    """Every mention of a scrubber, and every clean text that goes into a bundle."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_scrubber(node):
            yield _scrub(source, node, ast.unparse(node))
    if source.path.startswith(f"{PACKAGE}field/"):
        yield from _clean_arguments(source)


def workers(source: Source) -> Iterator[Scrub]:
    """Work that brings texts from outside: it must have a mutation, whatever it does with them."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            methods = {
                each.name: each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            }
            if "decide" in methods and "texts" in methods and not _brings_nothing(methods["texts"]):
                yield _scrub(source, node, node.name)


def returns_clean_text(source: Source) -> Iterator[str]:
    """The functions whose answer is a text and what was found in it."""
    for function in walk_functions(source.tree):
        if function.returns is not None and any(
            isinstance(node, ast.Name) and node.id in {"CleanGroup", "Redaction"} for node in ast.walk(function.returns)
        ):
            yield function.name


def _is_scrubber(node: ast.Name | ast.Attribute) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr
    return name in SCRUBBERS or dotted(node) in BY_FULL_NAME


def _clean_arguments(source: Source) -> Iterator[Scrub]:
    for function in walk_functions(source.tree):
        if CLEAN not in {argument.arg for argument in function.args.args}:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and (name := dotted(node.func)) in _takers():
                yield from _arguments(source, node, name)


def _takers() -> frozenset[str]:
    return (text_bundles() | LAST_ARGUMENT) - REFUSED


def _arguments(source: Source, call: ast.Call, name: str) -> Iterator[Scrub]:
    if name not in LAST_ARGUMENT:
        for argument in call.args:
            yield _scrub(source, argument, f"{name}({ast.unparse(argument)})")
        for keyword in call.keywords:
            if keyword.arg not in IDS and not _is_empty(keyword.value):
                yield _scrub(source, keyword.value, f"{name}({keyword.arg}=…)")
    else:
        yield _scrub(source, call.args[-1], f"{name}(…, {ast.unparse(call.args[-1])})")


def _is_empty(value: ast.expr) -> bool:
    """`(None,) * n`: places without a text."""
    return isinstance(value, ast.BinOp) and ast.unparse(value.left) == "(None,)"


def _brings_nothing(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """`return ()`, or a Protocol's promise without a body."""
    [*_, last] = method.body
    returned = last.value if isinstance(last, ast.Return | ast.Expr) else None
    return (isinstance(returned, ast.Tuple) and not returned.elts) or isinstance(returned, ast.Constant)


def _scrub(source: Source, node: ast.expr | ast.ClassDef, what: str) -> Scrub:
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    place = range(_offset(source, node.lineno, node.col_offset), _offset(source, end_line, end_column))
    return Scrub(source.path, node.lineno, what, place)


def _offset(source: Source, line: int, column: int) -> int:
    """The character of a place that is told in lines and bytes, as ast does."""
    lines = source.text.splitlines(keepends=True)
    return sum(len(each) for each in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())
