"""Every event that was ever stored is read today, and what is written today is what was written then."""

from typing import get_args

import pytest
from msgspec import Struct, structs

from fieldstone.core import events
from fieldstone.core.events import AnyEvent, Entry, TextBundle, UnitReinstated, decode_entry, decode_texts, encode_entry
from tests.golden.samples import BETWEEN, EVENTS, FIRST_VERSION, Sample, golden_file, stored_line

KINDS = sorted(FIRST_VERSION)


def test_every_kind_of_event_has_a_golden_file() -> None:
    kinds = {_tag(kind) for kind in get_args(AnyEvent)}
    assert kinds == set(FIRST_VERSION)
    assert {path.name for path in EVENTS.iterdir()} >= {golden_file(kind, 1).name for kind in kinds}


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_version_decodes_to_what_it_meant(kind: str) -> None:
    stored = golden_file(kind, 1).read_bytes().splitlines()
    assert [_decoded(line, sample) for line, sample in zip(stored, FIRST_VERSION[kind], strict=True)] == list(
        FIRST_VERSION[kind]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_are_of_their_kind_and_show_every_field(kind: str) -> None:
    said = {name for sample in FIRST_VERSION[kind] for name in _filled(sample.entry.event)}
    [event_type] = {type(sample.entry.event) for sample in FIRST_VERSION[kind]}
    assert _tag(event_type) == kind
    assert said == set(event_type.__struct_fields__)


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_is_byte_stable(kind: str) -> None:
    stored = golden_file(kind, 1).read_bytes().splitlines()
    assert [stored_line(sample) for sample in FIRST_VERSION[kind]] == stored


def test_an_older_version_is_brought_up_step_by_step_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The road for the first event that changes: its old bytes stay, and two small functions bring them up."""
    second = "unit.restored.2"
    monkeypatch.setitem(events.UPCASTS, "unit.restored", lambda old: {"kind": second, "unit": old["unit_no"]})
    monkeypatch.setitem(events.UPCASTS, second, lambda old: {"kind": "unit.reinstated", "unit": old["unit"]})
    stored = b'{"seq":9,"epoch":5,"at_ms":1750000000123,"event":{"kind":"unit.restored","unit_no":7},"text":null}'
    assert decode_entry(stored) == Entry(9, 5, 1_750_000_000_123, UnitReinstated(unit=7))
    present = Entry(10, 5, 1_750_000_000_123, UnitReinstated(unit=8))
    assert decode_entry(encode_entry(present)) == present


def _decoded(line: bytes, sample: Sample) -> Sample:
    body, _, bundle = line.partition(BETWEEN)
    texts: TextBundle | None = decode_texts(bundle, type(sample.texts)) if sample.texts is not None else None
    assert bool(bundle) == (sample.texts is not None)
    return Sample(decode_entry(body), texts)


def _tag(kind: type[Struct]) -> str:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def _filled(event: Struct) -> list[str]:
    """Fields that the bytes show: those that are not at their default."""
    defaults = dict(
        zip(
            event.__struct_fields__[len(event.__struct_fields__) - len(event.__struct_defaults__) :],
            event.__struct_defaults__,
            strict=True,
        )
    )
    return [name for name, value in structs.asdict(event).items() if name not in defaults or value != defaults[name]]
