"""Contradictions between statements, found by rules: pure, deterministic, without a model."""

from fieldstone.detection.judge import Claim, Verdict, judge
from fieldstone.detection.statements import Prepared, prepare
from fieldstone.detection.subject import subject_terms

__all__ = ["Claim", "Prepared", "Verdict", "judge", "prepare", "subject_terms"]
