"""How long a text is to a model."""

from typing import Protocol


class TokenCounter(Protocol):
    """A real tokenizer, asked only for numbers. What looks like a control token in a text counts as text.

    The time is linear in the text, whatever stands in it: a unit must not be able to stop those who read it.
    """

    @property
    def name(self) -> str:
        """As `context_budget.tokenizer` tells it."""
        ...

    def count(self, text: str) -> int: ...

    def count_within(self, text: str, most_tokens: int) -> int | None:
        """The count, or None where it is above `most_tokens`: of a text that is too long not much has to be read."""
        ...
