"""Lamport's clock as arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.core import clock
from fieldstone.core.errors import EpochOverflow
from fieldstone.core.limits import DEFAULT_EPOCH_LEAP, MAX_EPOCH

epochs = st.integers(0, MAX_EPOCH)


@given(local=epochs, received=epochs)
def test_a_write_comes_strictly_after_both_clocks_and_a_read_at_the_later_one(local: int, received: int) -> None:
    assert clock.after_read(local, received) == max(local, received)
    if max(local, received) < MAX_EPOCH:
        assert clock.after_write(local, received) == max(local, received) + 1


@given(local=epochs, received=st.integers(0, 2**60), leap=st.integers(0, 20_000))
def test_an_epoch_is_refused_only_when_it_is_too_large_or_too_far_ahead(local: int, received: int, leap: int) -> None:
    refused = received > MAX_EPOCH or received > local + leap
    if refused:
        with pytest.raises(EpochOverflow):
            clock.check_epoch(local, received, leap=leap)
    else:
        clock.check_epoch(local, received, leap=leap)


@given(received=st.lists(st.integers(0, 50_000), max_size=40))
def test_whatever_is_received_the_clock_never_goes_back(received: list[int]) -> None:
    local = 0
    for at, epoch in enumerate(received):
        try:
            clock.check_epoch(local, epoch, leap=DEFAULT_EPOCH_LEAP)
        except EpochOverflow:
            continue
        after = clock.after_write(local, epoch) if at % 2 else clock.after_read(local, epoch)
        assert after >= max(local, epoch)
        assert after - local <= DEFAULT_EPOCH_LEAP + 1
        local = after


def test_the_last_epoch_cannot_be_passed() -> None:
    assert clock.after_write(MAX_EPOCH - 1, 0) == MAX_EPOCH
    with pytest.raises(EpochOverflow, match="2\\^53"):
        clock.after_write(MAX_EPOCH, 0)
    clock.check_epoch(MAX_EPOCH, MAX_EPOCH, leap=0)
