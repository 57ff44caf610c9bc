"""What every embedder does with its vectors and texts."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

# A text's beginning says what it is about. Endpoints commonly take 8,192 tokens, and few characters are more than one.
TEXT_CHARS_MAX: Final = 8_000


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row with length one; a row of zeros stays as it is."""
    lengths = np.sqrt(np.vecdot(rows, rows))[:, np.newaxis]
    unit: NDArray[np.float32] = np.divide(rows, np.where(lengths > 0, lengths, np.float32(1)))
    return unit


def beginning(text: str) -> str:
    """What is embedded of a text. Half of a surrogate pair is no character, and no model's library takes it."""
    start = text[:TEXT_CHARS_MAX]
    return start if start.isascii() else start.encode(errors="replace").decode()
