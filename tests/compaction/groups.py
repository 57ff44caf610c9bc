"""Groups of originals, drawn and written."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from fieldstone.core.vocabulary import MEMORY_TYPES
from fieldstone.ports.summarizer import Original

PHRASES: Final = [
    "Alice moved the cart to Postgres 16.",
    "Bob met her on 2025-06-15!",
    "How are you?",
    "Why, though",
    "We decided against it.",
    "The key [REDACTED:a. B] was used.",
    "[REDACTED:token]",
    "- an item\n",
    "```\ncode. More\n```\n",
    "第一に記憶。第二に力！",
    "هل هذا صحيح؟",
    'She said "no".',
    "\n\n",
    "It rained last week, and nobody went out at all that day. " * 8,
]

texts = st.lists(st.sampled_from(PHRASES), max_size=12).map(" ".join) | st.text(max_size=80)


@st.composite
def groups(draw: st.DrawFn) -> list[Original]:
    said = draw(st.lists(st.tuples(texts, st.sampled_from(MEMORY_TYPES), st.booleans()), max_size=12))
    authors = st.sampled_from(["alice", "bob", "agent-7"])
    return [
        Original(f"unit-{number}", draw(st.integers(1, 9)), type_, draw(authors), text, contested=is_contested)
        for number, (text, type_, is_contested) in enumerate(said)
    ]


def talk(*said: str | tuple[str, str], type: str = "observation") -> list[Original]:
    """One after the other; by "alice" where no author is given."""
    pairs = [("alice", each) if isinstance(each, str) else each for each in said]
    return [Original(f"unit-{epoch}", epoch, type, author, text) for epoch, (author, text) in enumerate(pairs, start=1)]


def texts_of(group: Sequence[Original]) -> dict[str, str]:
    return {original.unit_id: original.text for original in group}
