"""The default embedder's model, made when a wheel is built: no binary is committed, and nothing is fetched later.

The model is wordllama's. Its package would bring 50 MB of requirements to run code that is never called, so what is
needed of its two files comes in our wheel. What no text can lead to is left out: an embedder that reads words in small
letters never meets a quarter of the tokens. Every vector stays what it is; tests/models/test_static.py compares.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from numpy.typing import NDArray

SOURCE: Final = "wordllama"
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
WEIGHTS_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256: Final = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"
DIMENSION: Final = 256

FOLDER: Final = "src/fieldstone/backends/models"
MODEL: Final = "wordllama-256.model"
MODEL_SHA256: Final = "a3daa2992918752bd3a3cc1c3d203e688ad6f30134e2a39fc2c7b3122c66bbd1"  # wordllama_pack.py reads it
LICENSE: Final = "wordllama-256.LICENSE"

_WORD_BEGINS: Final = "▁"  # in wordllama's files; in ours it is a space, which is one byte
_SMALL_WORD: Final = re.compile(r"[\w'’]+")  # every character of a word, as static.py finds them


class ModelHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel or an editable install. What is there already, as in a tree that was set up, stays."""
        folder = Path(self.root, FOLDER)
        if not (folder / LICENSE).exists():
            _put(folder / LICENSE, license_text())
        if not (folder / MODEL).exists() or _sha256((folder / MODEL).read_bytes()) != MODEL_SHA256:
            _put(folder / MODEL, model_bytes())


def model_bytes() -> bytes:
    """Three arrays, as numpy saves them: the tokens, the mean of all vectors, the vectors of the tokens."""
    tokenizer = json.loads(_read_source(TOKENIZER, sha256=TOKENIZER_SHA256))["model"]
    weights = _weights(_read_source(WEIGHTS, sha256=WEIGHTS_SHA256))
    rows = list(_rows(tokenizer["vocab"], tokenizer["merges"]))
    vectors = np.zeros((len(rows), DIMENSION), weights.dtype)
    known = [rank for rank, (_, number) in enumerate(rows) if number is not None]
    vectors[known] = weights[[number for _, number in rows if number is not None]]
    listed = b"\n".join(token for token, _ in rows[256:])  # the bytes before them need no list
    content = BytesIO()
    for array in (np.frombuffer(listed, np.uint8), weights.astype("<f4").mean(axis=0), vectors):
        np.save(content, array, allow_pickle=False)
    if _sha256(content.getvalue()) != MODEL_SHA256:
        raise RuntimeError("The model came out as another one than is known: build with another Python or numpy.")
    return content.getvalue()


def license_text() -> bytes:
    [file] = [file for file in distribution(SOURCE).files or () if file.name == "LICENSE"]
    return file.read_binary()


def _rows(vocabulary: dict[str, int], merges: list[str]) -> Iterator[tuple[bytes, int | None]]:
    """Tokens in the order in which tiktoken is to join them, each with its number in the weights.

    tiktoken begins with bytes where wordllama's tokenizer begins with characters. So the beginnings of characters come
    first, then the characters, then what the tokenizer itself would join. A beginning that stays one stands for a
    character that is no token; it has no vector, since its bytes have theirs.
    """
    for byte in range(256):
        character = _WORD_BEGINS if byte == ord(" ") else chr(byte)
        is_token = byte < 128 and character in vocabulary
        yield bytes([byte]), vocabulary[character if is_token else f"<0x{byte:02X}>"]
    characters = [token for token in vocabulary if len(token) == 1 and not token.isascii() and _may_come_up(token)]
    encoded = [character.encode() for character in characters]
    beginnings = {character[:end] for character in encoded for end in range(2, len(character))}
    yield from ((beginning, None) for beginning in sorted(beginnings))
    yield from zip(encoded, map(vocabulary.__getitem__, characters), strict=True)
    for token in dict.fromkeys(merge.replace(" ", "") for merge in merges):
        if _may_come_up(token):
            yield token.replace(_WORD_BEGINS, " ").encode(), vocabulary[token]


def _may_come_up(token: str) -> bool:
    """Whether a word in small letters, with a mark where it begins, may have the token in it."""
    rest = token.removeprefix(_WORD_BEGINS)
    return bool(_SMALL_WORD.fullmatch(rest)) and rest == rest.lower()


def _weights(file: bytes) -> NDArray[np.float16]:
    """The one matrix of a file in the format safetensors: the length of a header, the header, the numbers."""
    start = 8 + int.from_bytes(file[:8], "little")
    return np.frombuffer(file, "<f2", offset=start).reshape(-1, DIMENSION)


def _read_source(path: str, *, sha256: str) -> bytes:
    spec = find_spec(SOURCE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{SOURCE}, which the model is made of, is not installed: see build-system.requires.")
    content = (Path(spec.origin).parent / path).read_bytes()  # as files: none of its code is run
    if _sha256(content) != sha256:
        raise RuntimeError(f"{path} of {SOURCE} is not the known one: see build-system.requires for the version.")
    return content


def _put(path: Path, content: bytes) -> None:
    """All of it or nothing: others may be reading."""
    beside = path.with_suffix(".new")
    beside.write_bytes(content)
    beside.replace(path)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
