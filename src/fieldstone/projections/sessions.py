"""Closed sessions, in memory, and who sees into each."""

from collections.abc import Collection, Iterable

from fieldstone.ports.views import Change, DropMember, MemberRow, PutMember


class Sessions:
    """A session that is not here is open to the whole tenant."""

    def __init__(self, rows: Iterable[MemberRow] = ()) -> None:
        self._members: dict[int, set[int]] = {}
        for row in rows:
            self._put(row)

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, PutMember):
                self._put(change.row)
            elif isinstance(change, DropMember):
                self._members.setdefault(change.row.session, set()).discard(change.row.agent)

    @property
    def closed(self) -> Collection[int]:
        return self._members.keys()

    def copy(self) -> "Sessions":
        other = Sessions()
        other._members = {session: set(members) for session, members in self._members.items()}
        return other

    def is_closed(self, session: int | None) -> bool:
        return session in self._members

    def is_closed_to(self, session: int | None, agent: int) -> bool:
        if session is None:
            return False
        members = self._members.get(session)
        return members is not None and agent not in members

    def hidden_from(self, agents: Collection[int]) -> frozenset[int]:
        """The closed sessions of which none of these agents is a member."""
        if not self._members:
            return _NONE
        return frozenset(session for session, members in self._members.items() if members.isdisjoint(agents))

    def _put(self, row: MemberRow) -> None:
        self._members.setdefault(row.session, set()).add(row.agent)


_NONE: frozenset[int] = frozenset()
