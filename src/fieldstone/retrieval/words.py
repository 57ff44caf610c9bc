"""Which words of a hint are worth searching for."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

# Function words: they match everything and mean nothing for relevance. Rare fields are too small to prune them by
# frequency, so they are named.
_STOP_WORDS_TEXT: Final = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can could did do does doing down during each few for from further had has have having he her here hers him his how i
if in into is it its itself just let me might more most must my no nor not of off on once only or other our ours out
over own per same shall she should so some such than that the their theirs them then there these they this those through
to too under until up upon very via was we were what when where which while who whom why will with would you your yours
d didn doesn don isn ll m re s t ve wasn
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS_TEXT.split())

Analyze = Callable[[str], list[str]]


class Query:
    """The distinct terms of some texts, each with the word it stands for."""

    def __init__(self, texts: Iterable[str], analyze: Analyze) -> None:
        self.words: dict[str, str] = {}
        for text in texts:
            for word in split(text):
                terms = analyze(word)
                if len(terms) == 1:  # what an index would cut once more, it could not look up as one word
                    self.words.setdefault(terms[0], word)
        meaningful = {term: word for term, word in self.words.items() if word not in STOP_WORDS}
        self.words = meaningful or self.words

    def drop(self, words: Collection[str]) -> None:
        """These stand for something else. What is left may be nothing."""
        self.words = {term: word for term, word in self.words.items() if word not in words}


def split(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()
