"""The reference pages that are made from code. `FIELDSTONE_WRITE_DOCS=1 make unit ARGS=tests/docs` writes them."""

import inspect
import re
from collections.abc import Callable
from typing import get_args

import msgspec

from fieldstone import Agent, Field, open_field
from fieldstone.client.agent import AttuneScope, CompactionWish
from fieldstone.client.threads import Threads
from fieldstone.core import events
from fieldstone.core.errors import FieldError
from fieldstone.settings import ENV_PREFIX, SETTING_HELP, Settings
from fieldstone.wire.errors import HTTP_STATUS
from fieldstone.wire.operations import OPERATION_ROUTES

MADE = "<!-- Made from code by tests/docs/reference.py: do not edit. -->\n\n"


def errors_page() -> str:
    rows = ["| code | HTTP | recoverable | what it means | what to do |", "|---|---|---|---|---|"]
    rows += [_error_row(kind, status) for kind, status in HTTP_STATUS.items()]
    head = (
        "Every refusal has the body `{code, message, operation, recoverable, suggested_action}`; a refused RECORD or "
    )
    head += 'REGISTER also has `status: "rejected"` and `rejection_reason`.\n\n'
    return f"{MADE}# Errors\n\n{head}" + "\n".join(rows) + "\n"


def settings_page() -> str:
    rows = ["| setting | variable | default | what it decides |", "|---|---|---|---|"]
    defaults = Settings()
    for name, text in SETTING_HELP.items():
        rows.append(f"| `{name}` | `{ENV_PREFIX}{name.upper()}` | `{_shown(getattr(defaults, name))}` | {text} |")
    head = "In the file of `--config` (TOML), in the environment, or as an option of the command that has it.\n\n"
    return f"{MADE}# Settings\n\n{head}" + "\n".join(rows) + "\n"


def events_page() -> str:
    parts = []
    for kind in get_args(events.AnyEvent):
        info = msgspec.inspect.type_info(kind)
        assert isinstance(info, msgspec.inspect.StructType)
        fields = ", ".join(f"`{field.name}`" for field in info.fields)
        note = (kind.__doc__ or "").strip().splitlines()
        parts.append(f"| `{info.tag}` | {fields or '–'} | {note[0] if note else ''} |")
    head = "What the log holds, at version 1. Texts lie beside it. "
    head += "Numbers refer to entries: of a name, a unit, a conflict.\n\n"
    return f"{MADE}# Events\n\n{head}| event | fields | |\n|---|---|---|\n" + "\n".join(parts) + "\n"


def operations_page() -> str:
    rows = ["| operation | route | level | built | |", "|---|---|---|---|---|"]
    for route in OPERATION_ROUTES:
        built = "yes" if route.request else "answers 501"
        rows.append(f"| {route.operation} | `POST {route.path}` | {route.level} | {built} | {route.summary} |")
    return f"{MADE}# Operations\n\n" + "\n".join(rows) + "\n"


def python_page() -> str:
    head = "Every method is a coroutine of the native API (`async with open_field(…)`, then `await`); inside a plain "
    head += "`with open_field(…)` the same methods return their results directly. Refusals are `fieldstone.FieldError` "
    head += "and its kinds in `fieldstone.errors`, each with `code`, `message`, `recoverable` and `suggested_action`; "
    head += "as a string each is its message and what to do about it. A store that another process holds is "
    head += "`fieldstone.StoreHeld`, and a server that does not answer a `ConnectionError`.\n\n"
    scope = ", ".join(f"`{name}`" for name in AttuneScope.__annotations__)
    parts = [_function("open_field", open_field)]
    for kind in (Field, Threads, Agent):
        parts.append(f"## {kind.__name__}\n\n{inspect.getdoc(kind)}\n")
        parts += [_function(name, method) for name, method in vars(kind).items() if _is_shown(name, method)]
    parts.append(f"`**scope` of `attune` and `attune_ids`: {scope}.\n")
    wish = ", ".join(f"`{name}`" for name in CompactionWish.__annotations__)
    parts.append(f"`**wish` of `compact` and `begin_compaction`: {wish}.\n")
    relation = "A relation is `Relation(type, target_id, description)` or a mapping with these names, such as "
    relation += '`{"type": "contradicts", "target_id": unit_id}`; a draft is recorded with `mode="draft"`.\n'
    return f"{MADE}# Python API\n\n{head}" + "\n".join([*parts, relation])


def _is_shown(name: str, method: object) -> bool:
    return inspect.isfunction(method) and not name.startswith("_")


def _function(name: str, function: Callable[..., object]) -> str:
    signature = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    for long, short in (("collections.abc.", ""), ("typing.", ""), ("'", "")):
        signature = signature.replace(long, short)
    signature = re.sub(r"fieldstone\.[a-z_.]+\.(?=[A-Z])", "", signature)
    return f"### {name}\n\n```text\n{name}{signature}\n```\n\n{inspect.getdoc(function) or ''}\n"


PAGES: dict[str, Callable[[], str]] = {
    "python.md": python_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "events.md": events_page,
    "operations.md": operations_page,
}


def _error_row(kind: type[FieldError], status: int) -> str:
    meaning = (kind.__doc__ or "").strip().splitlines()[0]
    recoverable = "yes" if kind.recoverable else "no"
    return f"| {kind.code} | {status} | {recoverable} | {meaning} | {kind.suggested_action} |"


def _shown(value: object) -> str:
    return "none" if value is None or value == () else str(value)
