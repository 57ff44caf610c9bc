"""A server with keys, and a connection to it, for the fuzzers that send requests by hand."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.fuzz.bent import HANGS_S
from tests.fuzz.served import Guarded, guarded


@pytest.fixture(scope="module")
def server() -> Iterator[Guarded]:
    with guarded() as one:
        yield one


@pytest.fixture(scope="module")
def connection(server: Guarded) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(server.url)
    one = http.client.HTTPConnection(address.hostname or "", address.port, timeout=HANGS_S)
    yield one
    one.close()
