"""Fields as the benchmarks open them: only what is given counts, not the variables of whoever runs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldstone import Field
from fieldstone.settings import load_settings
from fieldstone.wiring import open_door

Given = Mapping[str, Any]
WORDS_ONLY: Given = {"embedder": "none", "detect_conflicts": False}


def field_with(store: Path, given: Given) -> Field:
    settings = load_settings(environ={}, given={"db": str(store), **given}).values
    return Field(lambda: open_door(settings))
