"""Text becomes clean text here, and nowhere else (SR-1)."""

from fieldstone.redact.harness import CleanGroup, Harness, Redaction, shared_harness

__all__ = ["CleanGroup", "Harness", "Redaction", "shared_harness"]
