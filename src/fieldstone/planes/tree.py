"""Messages as a tree: the way to any ancestor in O(log n) reads, pages of a path, and what comes later to its parent.

Each message stores its depth, which is 1 at the beginning of a chain, and one ancestor further up, its jump: the
parent's jump's jump where the two jumps before it are of one length, else the parent (a skew-binary list). How far a
jump goes follows from the depth alone. A way up takes every jump that does not pass the depth it looks for.

Depth alone says where a chain begins. So a parent that is not there (yet), or whose chain would close a circle, ends no
read and hangs none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from fieldstone.core.errors import ThreadNotFound
from fieldstone.ports.planes import MessageRow, ReadTables, Tables, ThreadRow

FIRST_DEPTH: Final = 1


class FindsMessages(Protocol):
    """All that a way up needs of the tables."""

    def message(self, thread: str, message_id: str) -> MessageRow | None: ...


class Remembering:
    """Messages that were found or made a moment ago are not looked for again."""

    def __init__(self, tables: FindsMessages) -> None:
        self._tables: Final = tables
        self._known: Final[dict[str, MessageRow]] = {}

    def remember(self, row: MessageRow) -> None:
        self._known[row.id] = row

    def message(self, thread: str, message_id: str) -> MessageRow | None:
        row = self._known.get(message_id) or self._tables.message(thread, message_id)
        if row is not None:
            self._known[message_id] = row
        return row


class Place(NamedTuple):
    """Where a message hangs."""

    depth: int
    jump: str | None


BEGINNING: Final = Place(FIRST_DEPTH, None)


def thread_row(tables: ReadTables, thread: str) -> ThreadRow:
    row = tables.thread(thread)
    if row is None or row.deleted_ms is not None:
        raise ThreadNotFound
    return row


def active_leaf(tables: ReadTables, row: ThreadRow) -> MessageRow | None:
    """The end of the active path; None as long as the thread has no message."""
    return None if row.leaf is None else tables.message(row.thread, row.leaf)


def place_under(tables: FindsMessages, thread: str, parent: MessageRow | None) -> Place:
    """Of a child of this message."""
    if parent is None:
        return BEGINNING
    depth = parent.depth + 1
    length = _jump_length(depth)
    if length == 1:
        return Place(depth, parent.id)
    jump = _row(tables, thread, parent.jump) if length < depth else None
    return Place(depth, jump.jump if jump else None)


def ancestor_at(tables: FindsMessages, thread: str, message: MessageRow, depth: int) -> MessageRow:
    """The message itself, or the one above it at this depth, which is between 1 and its own."""
    while message.depth > depth:
        is_jump = message.depth - _jump_length(message.depth) >= depth
        message = _above(tables, thread, message, message.jump if is_jump else message.parent)
    return message


def is_on_path(tables: FindsMessages, thread: str, message: MessageRow, leaf: MessageRow) -> bool:
    return message.depth <= leaf.depth and ancestor_at(tables, thread, leaf, message.depth).id == message.id


def path_page(
    tables: FindsMessages, thread: str, leaf: MessageRow, *, after_depth: int, limit: int
) -> Sequence[MessageRow]:
    """Messages of the path to `leaf`, the oldest first. It reads those that it gives, and the way to their last."""
    last_depth = min(leaf.depth, after_depth + limit)
    if last_depth <= after_depth:
        return []
    rows = [ancestor_at(tables, thread, leaf, last_depth)]
    while rows[-1].depth > after_depth + 1:
        rows.append(_parent(tables, thread, rows[-1]))
    return rows[::-1]


def upwards(tables: FindsMessages, thread: str, message: MessageRow) -> Iterator[MessageRow]:
    """The message, its parent, and so on to the beginning of the chain."""
    yield message
    while message.depth > FIRST_DEPTH:
        message = _parent(tables, thread, message)
        yield message


def leaf_through(tables: ReadTables, thread: str, message: MessageRow) -> MessageRow:
    """On from this message by the default rule: at each fork the newest child that stands, else the newest."""
    while child := _default_child(tables, thread, message):
        message = child
    return message


def first_leaf(tables: ReadTables, thread: str) -> MessageRow | None:
    """The end of the path that the default rule takes from the root; None in a thread without messages.

    Where no message hangs at the root, a chain of its own begins the path.
    """
    roots = tables.children(thread, None, limit=1) or tables.messages(thread, after_place=0, limit=1)
    return leaf_through(tables, thread, roots[0]) if roots else None


def leaf_by_selections(
    tables: ReadTables, thread: str, leaf: MessageRow | None, selections: Mapping[str, str]
) -> MessageRow | None:
    """The end of the path that takes the selected child at each fork it comes by; "" is the root.

    A selection elsewhere, or of what is no child there, chooses nothing. It reads the ways to the forks, not the path.
    """
    if (root := _selected(tables, thread, None, selections.get(""))) and (
        leaf is None or not is_on_path(tables, thread, root, leaf)
    ):
        leaf = leaf_through(tables, thread, root)
    forks = [row for parent in selections if parent and (row := tables.message(thread, parent))]
    for fork in sorted(forks, key=lambda row: row.depth):
        child = _selected(tables, thread, fork, selections[fork.id])
        if leaf is None or child is None or not is_on_path(tables, thread, fork, leaf):
            continue
        if not is_on_path(tables, thread, child, leaf):
            leaf = leaf_through(tables, thread, child)
    return leaf


def attach(tables: Tables, thread: str, parent: MessageRow) -> int:
    """Hang what waited for this message under it: how many messages got their place anew.

    A chain whose own end the message is would close a circle, and stays where it is.
    """
    waiting = [row for row in tables.children(thread, parent.id) if row.depth != parent.depth + 1]
    if not waiting:
        return 0
    beginning = ancestor_at(tables, thread, parent, FIRST_DEPTH)
    return sum(_hang_below(tables, thread, parent, row) for row in waiting if row.id != beginning.id)


def is_hung(tables: FindsMessages, thread: str, row: MessageRow) -> bool:
    """Whether its depth and jump are what its parent's are followed by."""
    parent = _row(tables, thread, row.parent)
    if parent is not None and row.depth == FIRST_DEPTH:
        return row.jump is None and _closes_circle(tables, thread, row)
    return (row.depth, row.jump) == place_under(tables, thread, parent)


def hang(tables: Tables, thread: str, row: MessageRow) -> int:
    """Give it, and all below it, their places anew: how many."""
    parent = None if _closes_circle(tables, thread, row) else _row(tables, thread, row.parent)
    return _hang_below(tables, thread, parent, row)


def _hang_below(tables: Tables, thread: str, parent: MessageRow | None, top: MessageRow) -> int:
    """Parents before children: a child's jump is read off its parent's."""
    left, hung = [(parent, top)], {top.id}
    while left:
        above, row = left.pop()
        depth, jump = place_under(tables, thread, above)
        row = row._replace(depth=depth, jump=jump)
        tables.put_messages(thread, [row])
        below = [child for child in tables.children(thread, row.id) if child.id not in hung]
        hung.update(child.id for child in below)
        left.extend((row, child) for child in below)
    return len(hung)


def _closes_circle(tables: FindsMessages, thread: str, message: MessageRow) -> bool:
    """By the parents alone: depths may be wrong."""
    seen: set[str] = set()
    parent = _row(tables, thread, message.parent)
    while parent is not None and parent.id not in seen and parent.id != message.id:
        seen.add(parent.id)
        parent = _row(tables, thread, parent.parent)
    return parent is not None and parent.id == message.id


def _default_child(tables: ReadTables, thread: str, message: MessageRow) -> MessageRow | None:
    best = tables.children(thread, message.id, limit=1)
    if not best or best[0].depth == message.depth + 1:
        return best[0] if best else None
    # It would close a circle. Another child may not.
    others = tables.children(thread, message.id)
    return next((child for child in others if child.depth == message.depth + 1), None)


def _selected(tables: ReadTables, thread: str, parent: MessageRow | None, child_id: str | None) -> MessageRow | None:
    child = _row(tables, thread, child_id)
    if child is None or child.parent != (parent.id if parent else None):
        return None
    return child if child.depth == _depth(parent) + 1 else None


def _parent(tables: FindsMessages, thread: str, message: MessageRow) -> MessageRow:
    return _above(tables, thread, message, message.parent)


def _above(tables: FindsMessages, thread: str, message: MessageRow, above: str | None) -> MessageRow:
    row = _row(tables, thread, above)
    if row is None or row.depth >= message.depth:
        raise LookupError(f"Message {message.id} of thread {thread} hangs wrongly: reconcile the thread.")
    return row


def _jump_length(depth: int) -> int:
    """How far up the jump from this depth goes: the depth is a sum of 1, 3, 7, 15 …, the largest first; the last of it.

    6 is 3 + 3, and so 3; 7 is 7; 8 is 7 + 1, and so 1.
    """
    while True:
        largest = (1 << (depth + 1).bit_length() - 1) - 1
        if largest == depth:
            return largest
        depth -= largest


def _row(tables: FindsMessages, thread: str, message_id: str | None) -> MessageRow | None:
    return None if message_id is None else tables.message(thread, message_id)


def _depth(row: MessageRow | None) -> int:
    return row.depth if row else 0
