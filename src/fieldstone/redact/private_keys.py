"""Private key blocks (PEM, OpenSSH, PGP), whole or cut off before their end.

They are the one secret without a bound on its length, so they are sought in the whole text and not by a pattern.
"""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from fieldstone.redact.spans import Span

RULE_ID: Final = "fieldstone.private-key"

_BEGIN = re.compile(rb"-----BEGIN[ A-Z0-9_-]{0,100}?PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(rb"-----END[ A-Z0-9_-]{0,100}?PRIVATE KEY(?: BLOCK)?-----")
# A line of the key. Without one the words only speak of a key block.
_LINE = re.compile(rb"[A-Za-z0-9+/=]{16,}")
# The lines of a block without an end; between them may stand what quoting, indenting or escaping put there.
_LINES = re.compile(rb"(?:(?:[\s>|\"'+,]|\\[nr]){0,12}[A-Za-z0-9+/=]{16,})+")


class PrivateKeys:
    """A detector."""

    rule_ids: Final = frozenset({RULE_ID})

    def none_in(self, texts: bytes) -> bool:
        return b"-----BEGIN" not in texts

    def spans(self, text: bytes) -> Iterator[Span]:
        if self.none_in(text):
            return
        begins = list(_BEGIN.finditer(text))
        ends = _END.finditer(text)
        end = next(ends, None)
        for begin, following in zip_longest(begins, begins[1:]):
            while end and end.start() < begin.end():
                end = next(ends, None)
            if end and (following is None or end.start() < following.start()):
                if _LINE.search(text, begin.end(), end.start()):
                    yield Span(begin.start(), end.end(), RULE_ID)
            elif lines := _LINES.match(text, begin.end()):
                yield Span(begin.start(), lines.end(), RULE_ID)
