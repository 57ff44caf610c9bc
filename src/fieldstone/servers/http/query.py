"""What a request asks for behind the question mark."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl

from starlette.types import Scope

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH

MOST_QUERY_FIELDS: Final = 100

# What may be told back of a field that nobody knows: a name, whole. A piece of something longer would hide from the
# harness what it is a piece of.
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,16}")


def query_of(scope: Scope) -> dict[str, str]:
    """A field that comes twice is refused: nobody can say which one counts."""
    text = scope["query_string"].decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_QUERY_FIELDS)
    except ValueError as error:
        raise InvalidPayload(f"The query has more than {MOST_QUERY_FIELDS} fields.") from error
    query = dict(pairs)
    if len(query) < len(pairs):
        raise InvalidPayload("A field of the query comes twice.")
    return query


def check_known(scope: Scope, known: Sequence[str]) -> None:
    """A mistyped limit, or a dry_run that belongs into the body, must not look as if it counted."""
    unknown = [name for name in query_of(scope) if name not in known]
    if unknown:
        which = f": {unknown[0]}" if _NAME.fullmatch(unknown[0]) else ""
        raise InvalidPayload(
            f"The query has a field that is not known here{which}. Known are: {', '.join(known) or 'none'}."
        )


def number_in(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name)
    return default if text is None else _number(name, text)


def optional_number(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    return None if text is None else _number(name, text)


def _number(name: str, text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text) or int(text) > MAX_EPOCH:
        raise InvalidPayload(f"{name} must be a whole number from 0 to 2^53-1.")
    return int(text)
