"""A model's word on what the rules decided: it may acquit, and find what no rule knows. Silent, it changes nothing."""

import asyncio
from collections.abc import Mapping
from typing import Final

from fieldstone.detection.judge import CLAIMS_NOTHING, Claim, Verdict
from fieldstone.ports.judge import Judge

NEAR: Final = 0.6  # of similarity: about the same, most likely
MOST_NEAR: Final = 4  # units without a verdict that it is asked about, for each unit
MOST_ACCUSED: Final = 8  # and with one, the strongest: a unit that contradicts more than these is worth a look anyway

FOUND: Final = Verdict("semantic", NEAR, "A model reads them as statements that cannot both be true.")

Verdicts = dict[int, Verdict | None]


class SecondReading:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    async def read(
        self, newer: Claim, older: Mapping[int, Claim], verdicts: Verdicts, similar: Mapping[int, float]
    ) -> Verdicts:
        """The verdicts as they stand after the model was asked about the ones that matter."""
        asked = [*_accused(verdicts), *_near(newer, older, verdicts, similar)]
        words = await asyncio.gather(*(self._judge.contradicts(newer.text, older[unit].text) for unit in asked))
        told = {unit: _told(verdicts[unit], word) for unit, word in zip(asked, words, strict=True)}
        return verdicts | told

    async def close(self) -> None:
        await self._judge.close()


def _told(verdict: Verdict | None, word: bool | None) -> Verdict | None:
    if word is None:
        return verdict
    return (verdict or FOUND) if word else None


def _accused(verdicts: Verdicts) -> list[int]:
    strength = {unit: verdict.strength for unit, verdict in verdicts.items() if verdict is not None}
    return sorted(strength, key=lambda unit: -strength[unit])[:MOST_ACCUSED]


def _near(newer: Claim, older: Mapping[int, Claim], verdicts: Verdicts, similar: Mapping[int, float]) -> list[int]:
    if newer.type in CLAIMS_NOTHING:
        return []
    near = [
        unit
        for unit, similarity in similar.items()
        if similarity >= NEAR and unit in older and verdicts[unit] is None and older[unit].type not in CLAIMS_NOTHING
    ]
    return sorted(near, key=lambda unit: -similar[unit])[:MOST_NEAR]
