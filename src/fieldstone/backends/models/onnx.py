"""The better embedder (extra `onnx`): granite-embedding-30m on onnxruntime, weights from a package, no network.

The graph is made in memory, at the first call. That takes 40 ms of the 160 that loading takes: a file in a cache would
save no more, and could be damaged.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fieldstone.backends.models.granite_graph import EMBEDDED, VECTOR, granite_model
from fieldstone.backends.models.granite_pack import Pack, read_pack
from fieldstone.backends.models.local import LocalEmbedder
from fieldstone.backends.models.vectors import beginning, unit_rows
from fieldstone.ports.embedder import EmbeddingModel

DIMENSION: Final = 384
MOST_AT_ONCE: Final = 16  # about 100 ms of work
ERRORS_ONLY: Final = 3  # onnxruntime's log level


class OnnxEmbedder(LocalEmbedder["Granite"]):
    def __init__(self) -> None:
        super().__init__(EmbeddingModel("onnx/granite-30m", DIMENSION), MOST_AT_ONCE, lambda: Granite(read_pack()))

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        granite = await self._ready()
        return await self._worker.run(lambda: granite.vectors(texts))


class Granite:
    def __init__(self, pack: Pack) -> None:
        self._tokenizer = Tokenizer.from_str(pack.tokenizer)
        self._tokenizer.enable_truncation(pack.tokens_max)
        self._words = pack.grouped["word_emb"]
        first = pack.architecture.position_offset
        self._places = pack.plain["pos_emb"][first : first + pack.tokens_max] + pack.plain["type_emb"][0]
        self._session = _session(granite_model(pack))

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        # One by one: in a batch every text would be padded to the longest, and one core gains nothing by it.
        for number, text in enumerate(texts):
            if text and not text.isspace():
                vectors[number] = self._vector(beginning(text))
        return unit_rows(vectors)

    def _vector(self, text: str) -> NDArray[np.float32]:
        tokens = np.array(self._tokenizer.encode(text).ids, np.intp)
        embedded = self._words.rows(tokens) + self._places[: len(tokens)]
        [answer] = self._session.run([VECTOR], {EMBEDDED: embedded[np.newaxis]})
        vector: NDArray[np.float32] = answer[0, 0]
        return vector


def _session(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
