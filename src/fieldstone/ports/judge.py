"""A model that is asked whether two statements contradict each other. The rules' verdict stands where it is silent."""

from typing import Protocol


class Judge(Protocol):
    async def contradicts(self, newer: str, older: str) -> bool | None:
        """Whether both cannot be true of the same thing at the same time. None: it does not know, or did not answer.

        It answers within a bound of its own, and never raises for what a model or a network does.
        """
        ...

    async def close(self) -> None:
        """Later calls answer None, and so may those under way. Twice does no harm."""
        ...
