"""What a field is opened with: what its settings decide, and the models that read its texts."""

from collections.abc import Mapping

from msgspec import Struct, field

from fieldstone.core.validate import Rules
from fieldstone.field.meanings import OpenEmbedder, no_former
from fieldstone.ports.embedder import Embedder
from fieldstone.ports.judge import Judge
from fieldstone.ports.summarizer import Summarizer
from fieldstone.ports.tokens import TokenCounter
from fieldstone.retrieval.score import WEIGHTS


class MemoryOptions(Struct, frozen=True):
    """What settings decide about the memories of the OpenWOP host."""

    shared: bool = False  # every agent of the tenant sees what is in them
    detect_conflicts: bool = False


class Options(Struct, frozen=True):
    """What a field's settings decide."""

    rules: Rules = Rules()
    log_reads: bool = True
    remember_replies_ms: int = 24 * 60 * 60 * 1000
    version: str = ""
    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    enrichment_timeout_ms: int = 50
    detect_conflicts: bool = True
    detection_timeout_ms: int = 50
    vouch_authority: int = 0
    cross_session: bool = False
    refuse_secrets: bool = False
    compaction_ratio: float = 5.0
    memories: MemoryOptions = MemoryOptions()


class Models(Struct, frozen=True):
    """What reads texts for the field. `former` opens the embedder of vectors that another model made; `judge` has a
    word in whether units contradict each other."""

    counter: TokenCounter
    embedder: Embedder | None = None
    former: OpenEmbedder = no_former
    judge: Judge | None = None
    summarizer: Summarizer | None = None  # None: the field's own words
    shared: bool = False

    async def close(self) -> None:
        for model in (self.embedder, self.judge, self.summarizer):
            if model is not None:
                await model.close()
