"""A view of a stream: an initial state, and a reducer that takes the state over one event."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Final, Generic, Protocol, TypeVar

State = TypeVar("State")


class Sequenced(Protocol):
    """An event that knows its place in the stream."""

    @property
    def seq(self) -> int: ...


Event = TypeVar("Event", bound=Sequenced)


class SequenceGap(Exception):
    """An event is missing: what follows it cannot be projected."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"Event {expected} is missing: the next one has seq {found}.")
        self.expected: Final = expected
        self.found: Final = found


def unchanged(state: State) -> State:
    """The `copy` of a state that nobody can change."""
    return state


class Projector(Generic[State, Event]):
    """`copy` keeps the inside apart from what is given and handed out, the reducer included: it may raise half-way.

    A state of frozen values needs no copies, see `unchanged`.
    """

    def __init__(
        self,
        initial: State,
        reducer: Callable[[State, Event], State],
        *,
        last_seq: int = 0,
        copy: Callable[[State], State] = deepcopy,
    ) -> None:
        self._copy: Final = copy
        self._reducer: Final = reducer
        self._state = copy(initial)
        self._last_seq = last_seq

    @property
    def last_seq(self) -> int:
        """The last event that the state reflects."""
        return self._last_seq

    @property
    def state(self) -> State:
        return self._copy(self._state)

    def apply(self, events: Iterable[Event]) -> int:
        """How many of them were new. Whatever is raised, the projector stays at the last good event.

        Events that it knows already are skipped: a reader may get some twice. A gap raises `SequenceGap`.
        """
        before = self._last_seq
        for event in events:
            seq = event.seq
            if seq <= self._last_seq:
                continue
            if seq != self._last_seq + 1:
                raise SequenceGap(self._last_seq + 1, seq)
            self._state = self._reducer(self._copy(self._state), event)
            self._last_seq = seq
        return self._last_seq - before
