"""Ties a test to the clauses of the protocol that it proves.

    @requirement("akashik:record:intent-required")
    def test_record_without_purpose_is_refused_and_nothing_is_appended() -> None: ...

It decorates test functions, sync or async, and test classes. The ids are string literals from tests/clauses.toml:
tests/house/test_clauses.py reads them from the source, and fails for unknown ids and for clauses without a test.
"""

import pytest


def requirement(*ids: str) -> pytest.MarkDecorator:
    if not ids:
        raise ValueError("a requirement names at least one clause, see tests/clauses.toml")
    return pytest.mark.requirement(*ids)
