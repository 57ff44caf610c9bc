"""The memories of the OpenWOP host: what a field does for them, in one place. They own nothing: all of it is units."""

from fieldstone.field.cleaning import Cleaning
from fieldstone.field.compact import Compactions
from fieldstone.field.condensing import Condensing
from fieldstone.field.consolidating import Consolidating
from fieldstone.field.entries import Entries
from fieldstone.field.options import Models, Options
from fieldstone.field.reads import Reads
from fieldstone.field.state import FieldState
from fieldstone.field.syntheses import Syntheses
from fieldstone.field.writer import Writer
from fieldstone.ports.world import Clock, Ids


class Memories:
    def __init__(
        self,
        state: FieldState,
        writer: Writer,
        reads: Reads,
        compactions: Compactions,
        cleaning: Cleaning,
        models: Models,
        options: Options,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._clock = clock
        self._counter = models.counter
        self.syntheses = Syntheses(state)
        self.entries = Entries(state, writer, reads, compactions, clock, ids, shared=options.memories.shared)
        self.consolidating = Consolidating(state, writer, self.entries)
        self.condensing = Condensing(
            state,
            writer,
            self.entries,
            compactions,
            cleaning,
            models.counter,
            ids,
            ratio=options.compaction_ratio,
        )

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def count_tokens(self, text: str) -> int:
        return self._counter.count(text)
