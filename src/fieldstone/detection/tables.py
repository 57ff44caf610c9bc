"""Tables of words are written as text, which a person can read and extend."""


def listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
