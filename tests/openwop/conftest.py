"""One host for the tests of a file: each of them has refs of its own."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.openwop.host import Caller, Host, serving

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with serving(tmp_path_factory.mktemp("host")) as served:
        yield served


@pytest.fixture(scope="module")
def acme(host: Host) -> Caller:
    return host.acme


@pytest.fixture(scope="module")
def zeta(host: Host) -> Caller:
    return host.zeta


@pytest.fixture
def ref() -> str:
    """A ref that no other test has, shaped as OpenWOP's suite shapes them."""
    return f"mem_tenant:default_agent:number-{next(_numbers)}_longTerm"


@pytest.fixture
def new_ref() -> Callable[[], str]:
    return lambda: f"mem://agents/number-{next(_numbers)}"
