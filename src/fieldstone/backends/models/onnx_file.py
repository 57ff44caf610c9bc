"""As much of the ONNX format as it takes to write a model: messages of protocol buffers, by field number.

The package `onnx` would do the same with 33 MB more to install.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Value = int | float | str | bytes
Tensor = NDArray[np.float32] | NDArray[np.uint8] | NDArray[np.int64]

IR_VERSION: Final = 10
OPSET: Final = 18
MICROSOFT: Final = "com.microsoft"  # onnxruntime's own operators: quantised products, whole attention
MICROSOFT_OPSET: Final = 1
_TENSOR_TYPES: Final = {"float32": 1, "uint8": 2, "int64": 7}
_FLOAT_ATTRIBUTE, _INT_ATTRIBUTE = 1, 2


class Graph:
    """Nodes and constants in the order in which they are added; names connect them."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, name: str, tensor: Tensor) -> str:
        dims = b"".join(_field(1, size) for size in tensor.shape)
        kind = _field(2, _TENSOR_TYPES[tensor.dtype.name])
        self._constants.append(dims + kind + _field(8, name) + _field(9, tensor.tobytes()))
        return name

    def node(self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = "", **options: float) -> str:
        """Returns its first output. An input that is left out is an empty name."""
        parts = [_field(1, name) for name in inputs] + [_field(2, name) for name in outputs]
        attributes = [_field(5, _attribute(name, value)) for name, value in options.items()]
        self._nodes.append(b"".join([*parts, _field(4, operator), *attributes, _field(7, domain)]))
        return outputs[0]

    def model(self, *, takes: tuple[str, Sequence[int | str]], gives: tuple[str, Sequence[int | str]]) -> bytes:
        """The whole file. `takes` and `gives` are floats by name and shape; a size by name is free."""
        nodes = b"".join(_field(1, node) for node in self._nodes)
        constants = b"".join(_field(5, constant) for constant in self._constants)
        graph = nodes + _field(2, "graph") + constants + _field(11, _floats(*takes)) + _field(12, _floats(*gives))
        opsets = ((("", OPSET)), (MICROSOFT, MICROSOFT_OPSET))
        imports = b"".join(_field(8, _field(1, domain) + _field(2, version)) for domain, version in opsets)
        return _field(1, IR_VERSION) + _field(7, graph) + imports


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _INT_ATTRIBUTE)
    return _field(1, name) + _field(2, value) + _field(20, _FLOAT_ATTRIBUTE)


def _floats(name: str, shape: Sequence[int | str]) -> bytes:
    sizes = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape)
    tensor_type = _field(1, _TENSOR_TYPES["float32"]) + _field(2, sizes)
    return _field(1, name) + _field(2, _field(1, tensor_type))


def _field(number: int, value: Value) -> bytes:
    match value:
        case int():
            return _varint(number << 3) + _varint(value)
        case float():
            return _varint(number << 3 | 5) + struct.pack("<f", value)
        case str() | bytes():
            content = value.encode() if isinstance(value, str) else value
            return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
