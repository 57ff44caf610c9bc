"""Retention policies: TOML and Python values → policies."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from fieldstone.compaction.retention import Policy
from fieldstone.core.errors import InvalidPayload
from fieldstone.wire.messages import told

T = TypeVar("T")


class PolicyFile(Struct, frozen=True, forbid_unknown_fields=True):
    policies: tuple[Policy, ...]  # a file without any is cut off, or another one: `policies = []` says that none hold


def policies_from(given: Sequence[Policy | Mapping[str, Any]]) -> tuple[Policy, ...]:
    """Raises `InvalidPayload`, which says what is wrong."""
    return tuple(each if isinstance(each, Policy) else _converted(each, Policy) for each in given)


def policies_from_toml(text: str) -> tuple[Policy, ...]:
    """A file of `[[policies]]` tables. Raises `InvalidPayload`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPayload(f"The policies are not TOML: {error}.") from error
    return _converted(tables, PolicyFile).policies


def _converted(given: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        # Of a wrong name the decoder does not say which are right; all else it says better.
        what = told(str(error), kind) if str(error).startswith("Invalid enum value") else str(error)
        raise InvalidPayload(f"The policies are malformed: {what}.") from error
