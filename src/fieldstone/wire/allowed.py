"""Which values a place of a message may have: told to whoever sent another one."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec.inspect as types

_STEPS = re.compile(r"\.(?P<name>[^.\[]+)|\[(?:[0-9]+|\.\.\.)\]")  # to a field, or to an item


@cache
def field_names(kind: Any) -> frozenset[str]:
    """What a path into a type is made of: `$`, and the names of the fields of all that it holds."""
    return frozenset(("$", *_names_in(_described(kind))))


def allowed_values(kind: Any, path: str) -> tuple[str, ...]:
    """Of a place such as `$.relations[0].type`; none where they are not a few names."""
    places = list(_alternatives(_described(kind)))
    for step in _STEPS.finditer(path):
        places = [each for place in places for inner in _inside(place, step["name"]) for each in _alternatives(inner)]
    return tuple(str(value) for place in places if isinstance(place, types.LiteralType) for value in place.values)


@cache
def _described(kind: Any) -> types.Type:
    return types.type_info(kind)


def _alternatives(kind: types.Type) -> Iterator[types.Type]:
    if isinstance(kind, types.Metadata):
        yield from _alternatives(kind.type)
    elif isinstance(kind, types.UnionType):
        for each in kind.types:
            yield from _alternatives(each)
    else:
        yield kind


def _inside(kind: types.Type, name: str | None) -> Iterator[types.Type]:
    """A struct's field of this name; without a name, what a list or a mapping holds."""
    if isinstance(kind, types.StructType):
        yield from (field.type for field in kind.fields if field.encode_name == name)
    elif name is None:
        yield from _items(kind)


def _items(kind: types.Type) -> Iterator[types.Type]:
    """What a list holds, or a mapping."""
    held = (getattr(kind, "item_type", None), getattr(kind, "value_type", None), *getattr(kind, "item_types", ()))
    yield from (each for each in held if each is not None)


def _names_in(kind: types.Type) -> Iterator[str]:
    for each in _alternatives(kind):
        if isinstance(each, types.StructType):
            for field in each.fields:
                yield field.encode_name
                yield from _names_in(field.type)
        for item in _items(each):
            yield from _names_in(item)
