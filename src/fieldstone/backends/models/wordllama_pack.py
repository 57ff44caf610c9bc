"""The file in which our own wheel carries wordllama's vectors: hatch_build.py makes it, and says of what.

Three arrays, as numpy saves them: the tokens but for the single bytes, a line for each; the mean of all vectors, also
of those that are left out; the vectors of the tokens. The file is known by its hash, so nothing else about it needs to
be checked.
"""

from io import BytesIO
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.backends.models.package_files import read_package_file

PACKAGE: Final = "fieldstone.backends.models"
PACK: Final = "wordllama-256.model"
PACK_SHA256: Final = "a3daa2992918752bd3a3cc1c3d203e688ad6f30134e2a39fc2c7b3122c66bbd1"
BEGINNINGS: Final = range(256, 575)  # of characters that are tokens; they are joined first, and have no vectors


class Pack(Struct, frozen=True):
    """Tokens in the order in which they are joined. The first 256 are the single bytes."""

    tokens: list[bytes]
    vectors: NDArray[np.float32]  # each less the mean of all


def read_pack() -> Pack:
    file = BytesIO(read_package_file(PACKAGE, PACK, sha256=PACK_SHA256))
    listed, mean, halves = (np.load(file, allow_pickle=False) for _ in range(3))
    single = [bytes([byte]) for byte in range(256)]
    # Halves, as they are stored, would have to be made floats for each new word, which takes as long as the rest.
    vectors = halves.astype(np.float32)
    vectors -= mean
    return Pack([*single, *listed.tobytes().split(b"\n")], vectors)
