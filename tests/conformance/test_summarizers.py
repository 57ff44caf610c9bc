"""Every summariser keeps what the port promises."""

import pytest

from fieldstone.backends.tokens import Cl100kCounter
from fieldstone.compaction.extractive import Extractive
from fieldstone.testing.summarizer import OpenSummarizer, SummarizerTests

COUNTER = Cl100kCounter()  # loaded once for all tests


class TestExtractive(SummarizerTests):
    @pytest.fixture
    def open_summarizer(self) -> OpenSummarizer:
        return lambda: Extractive(COUNTER)
