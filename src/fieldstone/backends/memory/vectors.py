"""Vectors in dictionaries."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fieldstone.ports.vectors import ModelState, Quantized, StoredModel, UnknownModel

Take = Callable[[int], None]  # so many more bytes, or fewer; raises StorageFull where there is no room
Held = dict[int, tuple[np.float32, NDArray[np.int8]]]  # by seq


class MemoryVectors:
    def __init__(self, take: Take) -> None:
        self._take = take
        self._models: dict[int, StoredModel] = {}
        self._vectors: dict[int, Held] = {}
        self._cold: dict[int, Held] = {}  # no bytes of the store's cap
        self._last_number = 0

    async def models(self) -> Sequence[StoredModel]:
        return list(self._models.values())

    async def begin(self, name: str, dimension: int, *, state: ModelState) -> StoredModel:
        if any(model.state == state for model in self._models.values()):
            raise ValueError(f"the field has a {state} model already")
        self._last_number += 1
        model = StoredModel(self._last_number, name, dimension, state)
        self._models[model.number] = model
        self._vectors[model.number], self._cold[model.number] = {}, {}
        return model

    async def add(self, model: int, batch: Quantized, *, cold: bool = False) -> None:
        dimension = self._model(model).dimension
        if batch.codes.shape != (len(batch.seqs), dimension):
            raise ValueError(f"{batch.codes.shape} codes for {len(batch.seqs)} vectors of {dimension} dimensions")
        held = (self._cold if cold else self._vectors)[model]
        given = dict(zip(batch.seqs.tolist(), zip(batch.scales, batch.codes.copy(), strict=True), strict=True))
        if not cold:
            self._take(len(given.keys() - held.keys()) * dimension)
        held.update(given)

    async def scan(self, model: int, *, cold: bool = False) -> AsyncIterator[Quantized]:
        held = (self._cold if cold else self._vectors).get(model)
        if held:
            yield _quantized(held)

    async def cold_seqs(self, model: int) -> NDArray[np.int64]:
        return np.asarray(sorted(self._cold.get(model, ())), np.int64)

    async def cool(self, seqs: Sequence[int]) -> None:
        for number, held in self._vectors.items():
            gone = held.keys() & set(seqs)
            self._cold[number].update({seq: held.pop(seq) for seq in gone})
            self._take(-len(gone) * self._models[number].dimension)

    async def warm(self, seqs: Sequence[int]) -> Mapping[int, Quantized]:
        came: dict[int, Quantized] = {}
        for number, held in self._cold.items():
            back = {seq: held[seq] for seq in held.keys() & set(seqs)}
            if back:
                came[number] = _quantized(back)
                await self.add(number, came[number])
                for seq in back:
                    del held[seq]
        return came

    async def serve(self, model: int) -> None:
        served = self._model(model)._replace(state="serving")
        for other in [other for other in self._models.values() if other.state == "serving" and other.number != model]:
            await self.drop(other.number)
        self._models[model] = served

    async def drop(self, model: int) -> None:
        dimension = self._model(model).dimension
        del self._models[model]
        self._take(-len(self._vectors.pop(model)) * dimension)
        del self._cold[model]

    async def erase(self, seqs: Sequence[int]) -> None:
        for number, held in self._vectors.items():
            gone = held.keys() & set(seqs)
            for seq in gone:
                del held[seq]
            self._take(-len(gone) * self._models[number].dimension)
        for held in self._cold.values():
            for seq in held.keys() & set(seqs):
                del held[seq]

    def _model(self, number: int) -> StoredModel:
        if number not in self._models:
            raise UnknownModel(f"the field has no model {number}")
        return self._models[number]


def _quantized(held: Held) -> Quantized:
    seqs = sorted(held)
    scales, codes = zip(*(held[seq] for seq in seqs), strict=True)
    return Quantized(np.asarray(seqs, np.int64), np.asarray(scales, np.float32), np.stack(codes))
