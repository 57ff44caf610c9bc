"""The vectors of units: made from their texts, but costly to make again, so they are kept with them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

ModelState = Literal["serving", "preparing"]


class UnknownModel(Exception):
    """The field has no such model, or no longer. What was made with it is of no use: drop it."""


class StoredModel(NamedTuple):
    """Vectors of different models cannot be compared. A number is never given twice."""

    number: int
    name: str
    dimension: int
    state: ModelState


class Quantized(NamedTuple):
    """One vector a row: `codes` times its scale. A quarter of the room of floats."""

    seqs: NDArray[np.int64]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]  # len(seqs) × dimension


class VectorStore(Protocol):
    """The vectors of one field, by model and unit. They are no view: rebuilding the views leaves them alone.

    At most one model serves, and at most one is being prepared to take its place. A write is on disk when it returns
    and raises `StorageFull` where there is no room; for a model that the field does not have it is `UnknownModel`.

    Those of archived units lie in cold storage. The copy is on disk before the original goes, in both directions: after
    a crash a vector may be in both, and moving it again leaves it in one. A unit is given vectors in one part at a
    time: whoever moves it waits for what was begun before.
    """

    async def models(self) -> Sequence[StoredModel]:
        """By number: a younger model has a higher one."""
        ...

    async def begin(self, name: str, dimension: int, *, state: ModelState) -> StoredModel:
        """A model without vectors. `ValueError` where the field has one in this state already."""
        ...

    async def add(self, model: int, batch: Quantized, *, cold: bool = False) -> None:
        """Keep all of these or none. A unit has one vector of a model: the last that it was given."""
        ...

    def scan(self, model: int, *, cold: bool = False) -> AsyncIterator[Quantized]:
        """All vectors of the model in this part by seq, in large pieces. Of a model that is not there, nothing.

        What is written meanwhile may or may not be among them.
        """
        ...

    async def cold_seqs(self, model: int) -> NDArray[np.int64]:
        """The units whose vectors of this model are in cold storage, ascending. The vectors are not read."""
        ...

    async def cool(self, seqs: Sequence[int]) -> None:
        """Into cold storage, whatever model they are of. Those that have none here are passed over."""
        ...

    async def warm(self, seqs: Sequence[int]) -> Mapping[int, Quantized]:
        """Back from there: what came, by model."""
        ...

    async def serve(self, model: int) -> None:
        """The model serves from now on; the one that did so before is dropped, in the same step."""
        ...

    async def drop(self, model: int) -> None:
        """Forget the model and overwrite its vectors, cold ones too."""
        ...

    async def erase(self, seqs: Sequence[int]) -> None:
        """Overwrite the vectors of these units, whatever model they are of, wherever they lie. Those that have none are
        passed over."""
        ...
