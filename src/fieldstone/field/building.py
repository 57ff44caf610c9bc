"""Parts of a field that its options and models decide about."""

from fieldstone.compaction.extractive import Extractive
from fieldstone.field.distilling import Distilling
from fieldstone.field.meanings import Meanings
from fieldstone.field.options import Models, Options
from fieldstone.field.reads import Reads
from fieldstone.field.state import FieldState
from fieldstone.field.writer import Writer
from fieldstone.projections.text_follower import TextFollower


def reads_of(
    state: FieldState, writer: Writer, follower: TextFollower, meanings: Meanings, models: Models, options: Options
) -> Reads:
    return Reads(
        state,
        writer,
        follower,
        meanings,
        models.counter,
        options.rules,
        log_reads=options.log_reads,
        weights=options.weights,
        vouch_authority=options.vouch_authority,
    )


def distilling_of(state: FieldState, models: Models, options: Options) -> Distilling:
    summarizer = models.summarizer or Extractive(models.counter)
    return Distilling(state, summarizer, models.counter, ratio=options.compaction_ratio)
