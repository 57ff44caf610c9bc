"""A failed assertion of a shared class shows its values, as one in a test file does."""

import pytest

pytest.register_assert_rewrite(
    *(
        f"fieldstone.testing.{name}"
        for name in (
            *("embedder", "lease", "log", "marks", "replies", "store"),
            *("text_index", "tokens", "vectors", "views", "world"),
        )
    )
)
