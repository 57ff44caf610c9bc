"""Snapshots of units that never were, for tests of what is made of them."""

from collections.abc import Sequence
from typing import Any

from fieldstone.ports.views import MarkEcho, UnitRow
from fieldstone.projections.columns import Snapshot, UnitColumns


def row(seq: int, **fields: Any) -> UnitRow:
    plain = UnitRow(
        seq=seq,
        id=f"mem-{seq}",
        mode="committed",
        type="finding",
        status="active",
        epoch=seq,
        at_ms=0,
        agent=1,
        registration=1,
        session=None,
        task=None,
        score=0.5,
        committed_seq=None,
        archived_epoch=None,
    )
    return plain._replace(**fields)


def snapshot(rows: Sequence[UnitRow], epoch: int | None = None) -> Snapshot:
    columns = UnitColumns()
    columns.append(rows)
    columns.apply(MarkEcho(each.seq, each.echo_of) for each in rows if each.echo_of is not None)
    return columns.snapshot(max((each.epoch for each in rows), default=0) if epoch is None else epoch)
