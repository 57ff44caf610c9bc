"""Compactions whose steps a test holds in its hands."""

import os
import signal

import pytest

from fieldstone.compaction import plan
from fieldstone.core.errors import StorageFull
from fieldstone.field.archiving import Archive


def in_steps(monkeypatch: pytest.MonkeyPatch, happens: str) -> None:
    """Steps of one unit; in the first of them something happens."""
    put, steps = Archive.put, iter([happens])

    async def step(self: Archive, units: list[int], compaction: int) -> tuple[int, int]:
        happening = next(steps, None)
        if happening == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        elif happening == "break":
            raise StorageFull
        return await put(self, units, compaction)

    monkeypatch.setattr(plan, "BATCH_UNITS", 1)
    monkeypatch.setattr(Archive, "put", step)
