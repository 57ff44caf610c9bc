"""From headers to who calls."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldstone.backends.memory.access import MemoryAccess
from fieldstone.core.access import LOCAL
from fieldstone.core.errors import Unauthenticated
from fieldstone.servers.auth.credentials import MAX_TOKEN_BYTES, Credentials
from fieldstone.servers.auth.jwt import JwtRules, JwtTokens
from fieldstone.servers.auth.keys import Keys
from fieldstone.testing import ManualClock
from tests.servers.auth.tokens import bearer, make, with_secret


@pytest.fixture
def keys() -> Keys:
    return Keys(MemoryAccess(), ManualClock())


@pytest.fixture
def credentials(keys: Keys) -> Credentials:
    return Credentials(keys, local_tenant="local")


@pytest.fixture
def tokens() -> JwtTokens:
    rules = JwtRules(jwks="no-such-file.json", issuer="https://issuer.example", audience="fieldstone")
    return JwtTokens(rules, ManualClock())


async def test_without_a_key_the_field_is_open_for_the_local_operator(credentials: Credentials) -> None:
    assert credentials.is_open()
    assert await credentials.caller([]) == ("local", LOCAL)
    assert await credentials.caller(bearer("whatever")) == ("local", LOCAL)


async def test_the_first_key_closes_the_field_at_once_and_revoking_it_opens_nothing(
    keys: Keys, credentials: Credentials
) -> None:
    key_id = make(keys, "acme").id
    assert not credentials.is_open()
    with pytest.raises(Unauthenticated):
        await credentials.caller([])
    keys.revoke(key_id)
    assert not credentials.is_open()
    with pytest.raises(Unauthenticated):
        await credentials.caller([])


async def test_with_json_web_tokens_the_field_is_never_open(keys: Keys, tokens: JwtTokens) -> None:
    credentials = Credentials(keys, local_tenant="local", tokens=tokens)
    assert not credentials.is_open()
    for headers in ([], bearer("a.b.c")):
        with pytest.raises(Unauthenticated):
            await credentials.caller(headers)


async def test_a_key_opens_its_tenant_however_the_scheme_is_written(keys: Keys, credentials: Credentials) -> None:
    key_id, key = make(keys, "acme")
    for scheme in (b"Bearer ", b"bearer ", b"BEARER   "):
        granted = await credentials.caller([(b"authorization", scheme + key.encode() + b" ")])
        assert (granted.tenant, granted.caller.credential) == ("acme", key_id)


async def test_everything_that_is_not_one_good_bearer_token_is_refused(keys: Keys, credentials: Credentials) -> None:
    key = make(keys, "acme").key
    wrong: list[list[tuple[bytes, bytes]]] = [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", key.encode())],
        [(b"authorization", b"Basic " + key.encode())],
        [(b"x-api-key", key.encode())],
        bearer(key, name=b"proxy-authorization"),
        [*bearer(key), *bearer(key)],
        [*bearer(with_secret(key)), *bearer(key)],
        bearer(f"{key}, {key}"),
        bearer(key.encode() + b"\xff"),
        bearer("é" + key),
        bearer("a" * (MAX_TOKEN_BYTES + 1)),
        bearer("header.payload.signature"),
    ]
    for headers in wrong:
        with pytest.raises(Unauthenticated):
            await credentials.caller(headers)


@given(st.lists(st.tuples(st.sampled_from([b"authorization", b"host", b""]), st.binary()), max_size=3), st.binary())
async def test_any_bytes_in_any_header_are_refused_and_never_an_exception(
    headers: list[tuple[bytes, bytes]], token: bytes
) -> None:
    rules = JwtRules(jwks="no-such-file.json", issuer="https://issuer.example", audience="fieldstone")
    keys = Keys(MemoryAccess(), ManualClock())
    make(keys, "acme")
    credentials = Credentials(keys, local_tenant="local", tokens=JwtTokens(rules, ManualClock()))
    for given_headers in (headers, bearer(token), bearer(b"fsk_" + token), bearer(b"." + token + b".")):
        with pytest.raises(Unauthenticated):
            await credentials.caller(given_headers)


async def test_a_refused_token_is_neither_told_nor_logged(
    keys: Keys, tokens: JwtTokens, log_lines: io.StringIO
) -> None:
    key = make(keys, "acme").key
    credentials = Credentials(keys, local_tenant="local", tokens=tokens)
    telling = "telling-bytes-of-a-token"
    for token in (with_secret(key), key + telling, telling, f"eyJ{telling}.{telling}.{telling}"):
        with pytest.raises(Unauthenticated) as refused:
            await credentials.caller(bearer(token))
        told = "".join(map(str, (refused.value.message, refused.value.suggested_action, refused.value.__cause__)))
        assert telling not in told + log_lines.getvalue()
        assert key[21:] not in told + log_lines.getvalue()
