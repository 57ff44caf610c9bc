"""How every text index here cuts text into terms: Unicode words, accents folded, Porter stems."""

import threading
from typing import Any, Final

import apsw

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"  # as FTS5 has it in a table's definition


class Analyzer:
    """SQLite's own tokenizer, called directly (3 µs for 60 words). A tokenizer belongs to the thread that made it."""

    def __init__(self) -> None:
        self._local = threading.local()

    def terms(self, text: str) -> list[str]:
        tokenizer = getattr(self._local, "tokenizer", None) or self._make()
        terms: list[str] = tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return terms

    def _make(self) -> Any:
        name, *arguments = TOKENIZER.split()
        self._local.connection = apsw.Connection(":memory:")
        self._local.tokenizer = self._local.connection.fts5_tokenizer(name, arguments)
        return self._local.tokenizer
