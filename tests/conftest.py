"""What all tests share: how much hypothesis tries, and the event loop of async tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# `make test` has to say the same of the same tree every time, on a loaded machine too: no chance, no stop-watch.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make fuzz` looks for what nobody has seen yet, and prints how to see it again.
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=2_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fuzz" if os.environ.get("FIELDSTONE_FUZZ") else "ci")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Fieldstone runs on asyncio only; without this every async test would run on trio as well."""
    return "asyncio"
