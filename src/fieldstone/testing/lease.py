"""What a lease on a store promises. That a holder's death gives it back is tested with a process that is killed."""

from typing import Final, Protocol

import pytest

from fieldstone.ports.lease import Holder, Lease, StoreHeld

FIRST: Final = Holder(4711, "host-a", "fieldstone serve", "2025-06-15T15:06:40.000Z")
SECOND: Final = Holder(4712, "host-a", "notebook", "2025-06-15T15:07:00.000Z")


class MakeLease(Protocol):
    """Each call gives a lease of its own, as another process would have it, on the same store."""

    def __call__(self) -> Lease: ...


class LeaseTests:
    """Give a fixture `make_lease`."""

    def test_the_second_taker_is_told_who_holds_the_store(self, make_lease: MakeLease) -> None:
        lease = make_lease()
        lease.acquire(FIRST)
        with pytest.raises(StoreHeld) as held:
            make_lease().acquire(SECOND)
        assert held.value.holder == FIRST
        sentence = str(held.value)
        assert "fieldstone serve" in sentence
        assert "process 4711 on host-a" in sentence
        assert "since 2025-06-15T15:06:40.000Z" in sentence
        lease.release()

    def test_it_can_be_taken_again_once_it_is_released(self, make_lease: MakeLease) -> None:
        first, second = make_lease(), make_lease()
        first.acquire(FIRST)
        first.release()
        second.acquire(SECOND)
        with pytest.raises(StoreHeld) as held:
            first.acquire(FIRST)
        assert held.value.holder == SECOND
        second.release()

    def test_who_was_refused_can_ask_again(self, make_lease: MakeLease) -> None:
        first, second = make_lease(), make_lease()
        first.acquire(FIRST)
        with pytest.raises(StoreHeld):
            second.acquire(SECOND)
        second.release()  # it never had it, so this takes nothing from the first
        with pytest.raises(StoreHeld):
            second.acquire(SECOND)
        first.release()
        second.acquire(SECOND)
        second.release()

    def test_an_announced_address_is_told_to_the_next_one(self, make_lease: MakeLease) -> None:
        lease = make_lease()
        lease.acquire(FIRST)
        lease.announce(Holder(FIRST.pid, FIRST.host, FIRST.program, FIRST.since, "http://127.0.0.1:8420"))
        with pytest.raises(StoreHeld, match=r"serving at http://127\.0\.0\.1:8420") as held:
            make_lease().acquire(SECOND)
        assert held.value.holder is not None
        assert held.value.holder.url == "http://127.0.0.1:8420"
        lease.release()

    def test_only_the_holder_can_announce(self, make_lease: MakeLease) -> None:
        lease = make_lease()
        with pytest.raises(RuntimeError):
            lease.announce(FIRST)

    def test_releasing_twice_is_no_error(self, make_lease: MakeLease) -> None:
        lease = make_lease()
        lease.acquire(FIRST)
        lease.release()
        lease.release()
