"""Text becomes clean text here, and nowhere else (SR-1)."""

from fieldstone.redact.harness import CleanGroup, Harness, Redaction, shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.redact.seams import Trail
from fieldstone.redact.strength import Weakness, check_value

__all__ = [
    "CleanGroup",
    "Harness",
    "KnownSecret",
    "Redaction",
    "Trail",
    "Weakness",
    "check_value",
    "shared_harness",
]
