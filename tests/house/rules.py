"""The rules of the house, as functions from a source to the problems in it. Each knows the rooms it is for."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import PurePosixPath

from tests.house.sources import (
    PACKAGE,
    Source,
    dotted,
    imported_names,
    module_strings,
    python_sources,
    walk_functions,
)

Rule = Callable[[Source], Iterator[str]]

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 80

VAGUE_NAMES = frozenset({"util", "utils", "helper", "helpers", "manager", "managers"})
MAY_IMPORT_LATE = (f"{PACKAGE}wiring/", f"{PACKAGE}__init__.py")  # heavy extras; a quick `import fieldstone`

CORE = f"{PACKAGE}core/"
CORE_THIRD_PARTY = frozenset({"msgspec"})
CHANCE_AND_TIME = frozenset({"random", "secrets", "time", "uuid"})
INPUT_AND_OUTPUT = frozenset(
    {
        *("asyncio", "concurrent", "multiprocessing", "queue", "signal", "subprocess", "threading"),
        *("fcntl", "fileinput", "glob", "io", "mmap", "os", "pathlib", "shelve", "shutil", "sqlite3", "tempfile"),
        *("ftplib", "http", "select", "selectors", "smtplib", "socket", "socketserver", "ssl", "urllib", "xmlrpc"),
        *("importlib", "logging"),
    }
)
IMPURE_BUILTINS = frozenset({"__import__", "input", "open", "print"})
WALL_CLOCK = frozenset({"now", "today", "utcnow"})

MAKE_CLEAN_TEXT = frozenset({f"{PACKAGE}redact/harness.py", f"{PACKAGE}core/text.py"})  # the second defines it
DECODES_BUNDLES = f"{PACKAGE}core/events.py"  # decode_texts: of what is stored, and of imports, which are then refused

SKIPS = frozenset({"SkipTest", "importorskip", "skip", "skipIf", "skipTest", "skipUnless", "skipif", "xfail"})
SKIPPERS = re.compile(r"(pytest|unittest|mark|self)(\.|$)")

MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root|home|Users)/")
REGISTRY = re.compile(
    r"https?://[^\s\"'<>)]*(?:pypi\.org|pythonhosted\.org|registry\.npmjs|/simple\b|\.whl\b|\.tar\.gz\b|\.tgz\b)"
    r"|(?<![\w-])--(?:extra-index-url|index-url|find-links)\b"
)
LOCK_FILES = frozenset({"uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock"})


def vague_module_name(source: Source) -> Iterator[str]:
    for part in PurePosixPath(source.path).with_suffix("").parts:
        if part in VAGUE_NAMES:
            yield source.problem(1, f"{part!r} says nothing: name the file after what is in it")


def import_inside_function(source: Source) -> Iterator[str]:
    if not source.path.startswith(PACKAGE) or source.path.startswith(MAY_IMPORT_LATE):
        return
    for function in walk_functions(source.tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield source.problem(node.lineno, f"import inside {function.name}(): only wiring/ does that")


def broad_except(source: Source) -> Iterator[str]:
    if not source.path.startswith(PACKAGE):
        return
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.ExceptHandler | ast.Call) or not _catches_all(node):
            continue
        if "# why:" not in source.lines[node.lineno - 1]:
            yield source.problem(node.lineno, "catches everything: name the errors, or say `# why:` on the same line")


def impure_core(source: Source) -> Iterator[str]:
    if not source.path.startswith(CORE):
        return
    for line, name in imported_names(source.tree):
        top = name.split(".")[0]
        if top in CHANCE_AND_TIME | INPUT_AND_OUTPUT:
            yield source.problem(
                line, f"core imports {top}: time, chance and I/O are arguments or belong behind a port"
            )
        elif top not in sys.stdlib_module_names | CORE_THIRD_PARTY | {"fieldstone"}:
            yield source.problem(
                line, f"core imports {top}: of third parties it knows only {', '.join(CORE_THIRD_PARTY)}"
            )
    clocks = _names_of_datetime(source.tree)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in WALL_CLOCK and dotted(node.value).split(".")[0] in clocks:
            yield source.problem(node.lineno, f"core reads the wall clock ({dotted(node)}): time is an argument")
        elif isinstance(node, ast.Call) and dotted(node.func) in IMPURE_BUILTINS:
            yield source.problem(node.lineno, f"core calls {dotted(node.func)}(): no I/O here")


def clean_text_made_elsewhere(source: Source) -> Iterator[str]:
    """Elsewhere the type may be imported and stand in annotations. Whatever else is done with it makes one."""
    if not source.path.startswith(PACKAGE) or source.path in MAKE_CLEAN_TEXT:
        return
    for line in sorted({*_uses_of_clean_text(source.tree), *_decoded_bundles(source)}):
        yield source.problem(line, "only the harness makes CleanText: text goes through it, or is not clean")


def scanner_that_calls_out(source: Source) -> Iterator[str]:
    """Kingfisher can also try a found secret against its service, or revoke it. Ours must never leave the process."""
    names = [*imported_names(source.tree), *_attribute_chains(source.tree), *module_strings(source.tree)]
    for line, name in names:
        top, *rest = name.split(".")
        if top == "kingfisher_sdk" and any(re.match(r"(?i)valid|resolved|revo|_native|\*", part) for part in rest):
            yield source.problem(line, f"{name} calls out: detection only")


def too_long(source: Source) -> Iterator[str]:
    if not source.path.startswith(PACKAGE):
        return
    if len(source.lines) > FILE_LINES_MAX:
        yield source.problem(1, f"{len(source.lines)} lines, more than {FILE_LINES_MAX}: two rooms in one")
    for function in walk_functions(source.tree):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield source.problem(
                function.lineno, f"{function.name}() has {lines} lines, more than {FUNCTION_LINES_MAX}"
            )


def skipped_test(source: Source) -> Iterator[str]:
    for line, name in [*imported_names(source.tree), *_attribute_chains(source.tree)]:
        if name.split(".")[-1] in SKIPS and SKIPPERS.match(name):
            yield source.problem(line, f"{name}: a test that does not run proves nothing")


def machine_path(source: Source) -> Iterator[str]:
    yield from _matching_lines(source, MACHINE_PATH, "a path of one machine")


def registry_address(source: Source) -> Iterator[str]:
    if PurePosixPath(source.path).name in LOCK_FILES:
        yield source.problem(1, "such lock files hold registry addresses: `make lock` makes ours")
    yield from _matching_lines(source, REGISTRY, "where packages come from is the reader's choice")


OF_PYTHON: tuple[Rule, ...] = (
    import_inside_function,
    broad_except,
    impure_core,
    clean_text_made_elsewhere,
    scanner_that_calls_out,
    too_long,
    skipped_test,
    vague_module_name,
)
OF_EVERY_FILE: tuple[Rule, ...] = (machine_path, registry_address)


def _catches_all(node: ast.ExceptHandler | ast.Call) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or _names_everything(node.type)
    # contextlib.suppress is an except clause in other clothes
    return dotted(node.func).split(".")[-1] == "suppress" and any(map(_names_everything, node.args))


def _names_everything(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_names_everything(element) for element in node.elts)
    return dotted(node).removeprefix("builtins.") in {"Exception", "BaseException"}


def _names_of_datetime(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "datetime":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "datetime"}
    return names


def _uses_of_clean_text(tree: ast.Module) -> Iterator[int]:
    """Lines on which it is called, cast to, handed on, given another name, or named in a string."""
    annotations = {id(node) for annotation in _annotations(tree) for node in ast.walk(annotation)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (node.lineno for alias in node.names if alias.name == "CleanText" and alias.asname)
        elif isinstance(node, ast.Name | ast.Attribute) and id(node) not in annotations:
            if dotted(node).split(".")[-1] == "CleanText":
                yield node.lineno
        elif isinstance(node, ast.Call):
            yield from (node.lineno for each in _strings_in(node) if re.search(r"\bCleanText\b", each))


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        annotation = node.returns if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        if isinstance(node, ast.arg | ast.AnnAssign):
            annotation = node.annotation
        if annotation is not None:
            yield annotation


def _decoded_bundles(source: Source) -> Iterator[int]:
    """A decoder believes what it is told: whoever decodes a bundle makes every text in it clean."""
    if source.path == DECODES_BUNDLES:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in {"convert", "decode", "Decoder"}:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            names = {each.id for value in values for each in ast.walk(value) if isinstance(each, ast.Name)}
            if names & text_bundles():
                yield node.lineno


@cache
def text_bundles() -> frozenset[str]:
    """The kinds of texts that lie beside events."""
    [events] = python_sources(DECODES_BUNDLES)
    classes = [node for node in ast.walk(events.tree) if isinstance(node, ast.ClassDef)]
    return frozenset(each.name for each in classes if "TextBundle" in {each.name, *map(dotted, each.bases)})


def _strings_in(call: ast.Call) -> list[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _attribute_chains(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of every `a.b.c`, where an imported alias is told by its real name."""
    real = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := dotted(node)):
            top, _, rest = name.partition(".")
            yield node.lineno, f"{real.get(top, top)}.{rest}"


def _matching_lines(source: Source, pattern: re.Pattern[str], message: str) -> Iterator[str]:
    for number, line in enumerate(source.lines, start=1):
        if match := pattern.search(line):
            yield source.problem(number, f"{match.group()!r}: {message}")
