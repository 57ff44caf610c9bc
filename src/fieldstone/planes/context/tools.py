"""What a context is worked on with. Whoever builds one chooses; nothing here needs a model."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fieldstone.ports.summarizer import Summarizer
from fieldstone.ports.tokens import TokenCounter
from fieldstone.ports.world import Clock, Ids
from fieldstone.redact import Harness


class Tools(NamedTuple):
    counter: TokenCounter
    summarizer: Summarizer
    cleaning: Callable[[], Awaitable[Harness]]
    clock: Clock
    ids: Ids
