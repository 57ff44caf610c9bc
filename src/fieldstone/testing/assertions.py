"""A failed assertion of a shared class shows its values, as one in a test file does."""

import pytest

pytest.register_assert_rewrite(
    *(f"fieldstone.testing.{name}" for name in ("lease", "log", "replies", "store", "text_index", "views", "world"))
)
