"""Why a unit was brought: a sentence for a person, made from the factors that produced its score."""

from collections.abc import Mapping, Sequence
from typing import Final

MENTIONED_WORDS: Final = 4
TELLING: Final = 0.02  # a factor that adds less than this to the score decided nothing


def explain(
    *,
    unit_type: str,
    agent_id: str,
    role: str,
    age_epochs: int,
    factors: Mapping[str, float],
    weights: Mapping[str, float],
    hint_words: Sequence[str],
    interest_words: Sequence[str],
    confidence: float | None = None,
) -> str:
    """The factors that counted, strongest first."""
    whole = sum(weights.values())
    worth = {name: value * weights[name] / whole for name, value in factors.items()}
    phrases = {
        "lexical": f"matches your hint on {_listed(hint_words)}",
        "semantic": "close in meaning to your hint",
        "surroundings": "stands among what matches your hint",
        "author": "your hint names its author",
        "interests": f"touches your interests: {_listed(interest_words)}"
        if interest_words
        else "touches your interests",
        "task": "belongs to your task",
        "proximity": "related to what you recorded or read",
        "recency": _age(age_epochs),
        "type": f"{_kinds(unit_type)} carry weight",
        "role": "its author has your role" if factors.get("role", 0) >= 1 else "its author's role is close to yours",
        "confidence": f"its author is sure of it ({confidence:.2f})" if confidence is not None else "",
    }
    telling = [name for name in sorted(worth, key=lambda name: -worth[name]) if worth[name] >= TELLING]
    told = [phrases[name] for name in telling if phrases[name]]
    why = "; ".join(told) or "visible to you, and little else speaks for it"
    return f"{_kind(unit_type)} by {agent_id} ({role}): {why}."


def _kind(unit_type: str) -> str:
    return unit_type.replace("_", " ").capitalize()


def _kinds(unit_type: str) -> str:
    word = unit_type.replace("_", " ")
    if word.endswith("is"):
        return f"{word[:-2]}es"
    return word if word.endswith("s") else f"{word}s"


def _age(epochs: int) -> str:
    if epochs <= 0:
        return "the newest there is"
    return f"recent ({epochs} epoch{'s' if epochs != 1 else ''} ago)" if epochs < 1000 else f"{epochs:,} epochs old"


def _listed(words: Sequence[str]) -> str:
    shown = [f"“{word}”" for word in words[:MENTIONED_WORDS]]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
