"""The files of the repository, as the house tests read them: nothing is imported, so the tree may be half-written."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/fieldstone/"
# As in .gitignore.
NOT_OURS = re.compile(r"(^|/)(\.git|\.venv[^/]*|\.cache|\.\w+_cache|\.hypothesis|__pycache__|build|dist)/")
MODULE_NAME = re.compile(r"\w+(\.\w+)+")


@dataclass(frozen=True)
class Source:
    """A file's text, with its path from the root (always with slashes)."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def problem(self, line: int, message: str) -> str:
        return f"{self.path}:{line}: {message}"


def python_sources(under: str = "") -> list[Source]:
    return [source for source in all_sources() if source.path.endswith(".py") and source.path.startswith(under)]


@cache
def all_sources() -> tuple[Source, ...]:
    """Every text file that is, or would be, committed."""
    return tuple(_read_texts(sorted(_committed_paths())))


def walk_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imported_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of all that is imported: `from a.b import c` gives a.b.c."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module or ''}.{alias.name}") for alias in node.names)


def module_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is a dotted name and nothing else, as importlib takes them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE_NAME.fullmatch(node.value):
            yield node.lineno, node.value


def dotted(node: ast.expr) -> str:
    """`a.b.c` for that expression, and "" for one that is no plain chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _committed_paths() -> list[Path]:
    if not (ROOT / ".git").exists():  # an unpacked archive
        return [path for path in ROOT.rglob("*") if not NOT_OURS.search(path.relative_to(ROOT).as_posix())]
    # Files that are not added yet count too: a rule should speak before the commit.
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listing.split("\0") if name]


def _read_texts(paths: list[Path]) -> Iterator[Source]:
    for path in paths:
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary file has no lines to speak of
        yield Source(path.relative_to(ROOT).as_posix(), text)
