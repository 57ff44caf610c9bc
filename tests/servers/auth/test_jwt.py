"""JSON web tokens of the one provider that is configured, and of nobody else."""

import asyncio
import base64
import hmac
import io
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, derive_private_key
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from msgspec import json

from fieldstone.core.access import Caller
from fieldstone.core.errors import Unauthenticated
from fieldstone.servers.auth import jwt as jwt_module
from fieldstone.servers.auth.jwt import ALGORITHMS, FRESH_MS, OLDEST_MS, JwtRules, JwtTokens
from fieldstone.testing import ManualClock
from tests.requirements import requirement
from tests.servers.auth.provider import AUDIENCE, ISSUER, NOW_S, Signer, document, edwards, elliptic, providing

MINUTE_MS = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_bytes(document(elliptic().jwk, edwards().jwk))
    return path


@pytest.fixture
def tokens(file: Path, clock: ManualClock) -> JwtTokens:
    return JwtTokens(JwtRules(jwks=str(file), issuer=ISSUER, audience=AUDIENCE), clock)


@pytest.fixture(scope="module")
def wide_rsa() -> Signer:
    private = rsa.generate_private_key(65_537, 2_048)
    return Signer("rsa", private, "RS256", RSAAlgorithm.to_jwk(private.public_key(), as_dict=True))


@requirement("akashik:access:jwt")
async def test_a_token_tells_tenant_authority_and_agents(tokens: JwtTokens) -> None:
    granted = await tokens.caller(elliptic().token(authority=6, agents=["ada", "ben"]))
    assert granted == ("acme", Caller(granted.caller.credential, 6, frozenset(("ada", "ben"))))
    assert (await tokens.caller(edwards().token(tenant="other"))).tenant == "other"


async def test_a_token_without_authority_and_agents_has_4_and_any(tokens: JwtTokens) -> None:
    caller = (await tokens.caller(elliptic().token())).caller
    assert (caller.authority, caller.agents, caller.rate_per_second, caller.quota_units) == (4, None, None, None)


async def test_which_claims_are_read_is_a_setting(file: Path, clock: ManualClock) -> None:
    rules = JwtRules(
        jwks=str(file),
        issuer=ISSUER,
        audience=AUDIENCE,
        tenant_claim="https://example/org",
        authority_claim="level",
        agents_claim="bots",
    )
    claims: dict[str, Any] = {"https://example/org": "zeta", "level": 2, "bots": ["r2"], "authority": 10}
    granted = await JwtTokens(rules, clock).caller(elliptic().token(**claims))
    assert (granted.tenant, granted.caller.authority, granted.caller.agents) == ("zeta", 2, frozenset(("r2",)))


async def test_a_credential_is_of_the_subject_and_not_of_the_token(tokens: JwtTokens) -> None:
    first, second, other = [
        (await tokens.caller(elliptic().token(**claims))).caller.credential or ""
        for claims in ({"jti": "1"}, {"jti": "2", "authority": 2}, {"sub": "ben@example"})
    ]
    assert first == second != other
    assert first.startswith("jwt-")
    assert len(first) == len("jwt-") + 32
    assert int(first[4:], 16)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://other.example/"},
        {"iss": ISSUER.rstrip("/")},
        {"iss": [ISSUER]},
        {"aud": "another service"},
        {"aud": []},
        {"aud": {}},
        {"exp": NOW_S - 30},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": 10**400},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"nbf": NOW_S + 31},
        {"iat": NOW_S + 31},
        {"nbf": "now"},
        {"tenant": ""},
        {"tenant": 7},
        {"tenant": ["acme"]},
        {"tenant": "a\x00b"},
        {"tenant": "\ud800"},
        {"tenant": "a" * 257},
        {"sub": ""},
        {"sub": 7},
        {"sub": "\ud800"},
        {"authority": 11},
        {"authority": -1},
        {"authority": "6"},
        {"authority": 6.5},
        {"authority": True},
        {"authority": None},
        {"agents": "ada"},
        {"agents": [1]},
        {"agents": [""]},
        {"agents": None},
        {"without": "exp"},
        {"without": "iss"},
        {"without": "aud"},
        {"without": "sub"},
        {"without": "tenant"},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
async def test_a_token_with_a_wrong_claim_is_refused(tokens: JwtTokens, wrong: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await tokens.caller(elliptic().token(**wrong))
    assert refused.value.message == Unauthenticated().message
    assert await tokens.caller(elliptic().token())


@pytest.mark.parametrize(
    "right",
    [
        {"exp": NOW_S - 29},
        {"exp": NOW_S + 0.5},
        {"nbf": NOW_S + 30, "iat": NOW_S + 30},
        {"aud": ["another", AUDIENCE]},
        {"authority": 0},
        {"authority": 10},
        {"agents": []},
    ],
    ids=str,
)
async def test_a_token_at_the_edge_is_accepted(tokens: JwtTokens, right: dict[str, Any]) -> None:
    assert (await tokens.caller(elliptic().token(**right))).tenant == "acme"


async def test_a_token_that_was_accepted_is_refused_when_it_has_expired(tokens: JwtTokens, clock: ManualClock) -> None:
    token = elliptic().token(exp=NOW_S + 100)
    assert await tokens.caller(token)
    clock.advance(129_999)
    assert await tokens.caller(token)
    clock.advance(1)
    with pytest.raises(Unauthenticated):
        await tokens.caller(token)


async def test_a_forged_token_is_refused(tokens: JwtTokens) -> None:
    ours, forger = elliptic(), elliptic(number=4_711)
    header, payload, signature = ours.token().split(".")
    raised = elliptic().token(authority=10).split(".")[1]
    forged = {
        "signed by another": forger.token(),
        "another payload": f"{header}.{raised}.{signature}",
        "no signature": f"{header}.{payload}.",
        "another key's id": ours.token(header={"kid": "edwards"}),
        "an unknown key": ours.token(header={"kid": "unknown"}),
        "its own key": forger.token(header={"kid": "mine", "jwk": {**forger.jwk, "kid": "mine"}}),
        "its own address": forger.token(header={"jku": "http://127.0.0.1:9/keys", "x5u": "http://127.0.0.1:9/"}),
        "a critical extension": ours.token(header={"crit": ["other"], "other": 1}),
    }
    assert [kind for kind, token in forged.items() if await is_accepted(tokens, token)] == []
    assert await is_accepted(tokens, ours.token())


@requirement("akashik:access:jwt")
async def test_no_signature_and_shared_secrets_are_refused_whatever_the_set_holds(
    tmp_path: Path, clock: ManualClock
) -> None:
    """The oldest forgeries: alg none, and a public key used as a shared secret."""
    file = tmp_path / "keys.json"
    secret = b"a shared secret of a good length"
    shared = {"kty": "oct", "k": unpadded(secret), "kid": "shared", "alg": "HS256"}
    file.write_bytes(document(elliptic().jwk, shared))
    tokens = JwtTokens(JwtRules(jwks=str(file), issuer=ISSUER, audience=AUDIENCE), clock)
    payload = elliptic().token().split(".")[1]
    for token in (
        f"{header(alg='none', kid='elliptic')}.{payload}.",
        with_shared_secret(f"{header(alg='HS256', kid='shared')}.{payload}", secret),
        with_shared_secret(f"{header(alg='HS256', kid='elliptic')}.{payload}", json.encode(elliptic().jwk)),
    ):
        assert not await is_accepted(tokens, token)
    assert all(not name.startswith("HS") and name != "none" for name in ALGORITHMS)


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")  # it signs with the narrow key all the same
async def test_keys_that_are_not_for_this_are_not_used(tmp_path: Path, clock: ManualClock, wide_rsa: Signer) -> None:
    narrow = rsa.generate_private_key(65_537, 1_024)
    bitcoin = derive_private_key(7, SECP256K1())
    signers = [
        Signer("narrow", narrow, "RS256", RSAAlgorithm.to_jwk(narrow.public_key(), as_dict=True)),
        Signer("bitcoin", bitcoin, "ES256K", ECAlgorithm.to_jwk(bitcoin.public_key(), as_dict=True)),
        Signer("private", elliptic().private, "ES256", ECAlgorithm.to_jwk(elliptic().private, as_dict=True)),
        Signer("encrypts", elliptic().private, "ES256", elliptic().jwk),
    ]
    signers[-1].jwk["use"] = "enc"
    nameless = {name: value for name, value in elliptic(number=9).jwk.items() if name != "kid"}
    file = tmp_path / "keys.json"
    unknown = {"kty": "OKP", "crv": "Ed448", "kid": "unknown", "x": "AAAA"}
    file.write_bytes(document(nameless, unknown, *(signer.jwk for signer in signers), wide_rsa.jwk))
    tokens = JwtTokens(JwtRules(jwks=str(file), issuer=ISSUER, audience=AUDIENCE), clock)
    assert [signer.key_id for signer in signers if await is_accepted(tokens, signer.token())] == []
    assert await is_accepted(tokens, wide_rsa.token())


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")), st.sampled_from(["", ".", "..", "eyJ"]))
async def test_any_text_but_a_token_is_refused_and_never_an_exception(text: str, beginning: str) -> None:
    tokens = JwtTokens(JwtRules(jwks="no-such-file.json", issuer=ISSUER, audience=AUDIENCE), ManualClock())
    for token in (beginning + text, f"{text}.{text}.{text}", elliptic().token() + text, text + elliptic().token()):
        with pytest.raises(Unauthenticated):
            await tokens.caller(token)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
async def test_any_header_and_any_claim_is_judged_and_never_an_exception(value: Any) -> None:
    tokens = JwtTokens(JwtRules(jwks="no-such-file.json", issuer=ISSUER, audience=AUDIENCE), ManualClock())
    signer = elliptic()
    tokens._signing_keys._keys = {"elliptic": jwt.PyJWK(signer.jwk)}
    tokens._signing_keys._read_ms = 0.0
    for claim in ("exp", "iss", "aud", "sub", "nbf", "iat", "tenant", "authority", "agents", "jti"):
        try:
            granted = await tokens.caller(signer.token(**{claim: value}))
        except Unauthenticated:
            continue
        assert granted.tenant == (value if claim == "tenant" else "acme")
        assert 0 <= granted.caller.authority <= 10
    assert not await is_accepted(tokens, signer.token(header={"crit": value}))


# --- the provider's keys ---------------------------------------------------------------------------------------------


async def test_the_keys_are_fetched_when_first_needed_and_once_for_many(clock: ManualClock) -> None:
    with providing(lambda: (200, document(elliptic().jwk))) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        assert provider.asked == 0
        many = [tokens.caller(elliptic().token(sub=f"agent-{number}")) for number in range(20)]
        assert {granted.tenant for granted in await asyncio.gather(*many)} == {"acme"}
        assert provider.asked == 1


async def test_an_unknown_key_is_asked_for_at_most_once_a_minute(clock: ManualClock) -> None:
    with providing(lambda: (200, document(elliptic().jwk))) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        for _ in range(5):
            for number in range(10):
                with pytest.raises(Unauthenticated):
                    await tokens.caller(elliptic().token(header={"kid": f"unknown-{number}"}))
            clock.advance(MINUTE_MS // 2)
        assert provider.asked == 3


async def test_a_new_key_of_the_provider_is_found_and_one_it_took_back_stops(clock: ManualClock) -> None:
    current = [elliptic("first")]
    with providing(lambda: (200, document(*(signer.jwk for signer in current)))) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        old = elliptic("first").token()
        assert await tokens.caller(old)
        current[:] = [elliptic("second", number=4_711)]
        clock.advance(MINUTE_MS)
        assert await tokens.caller(current[0].token())
        clock.advance(FRESH_MS)
        with pytest.raises(Unauthenticated):
            await tokens.caller(old)


async def test_a_provider_that_is_down_locks_nobody_out_for_an_hour_and_is_asked_again(
    clock: ManualClock, log_lines: io.StringIO
) -> None:
    answers = [(200, document(elliptic().jwk))]
    with providing(lambda: answers[-1]) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        token = elliptic().token(exp=NOW_S + 1_000_000)
        assert await tokens.caller(token)
        answers.append((503, b"down"))
        clock.advance(OLDEST_MS)
        assert await tokens.caller(token)
        assert "the address answered with the status 503" in log_lines.getvalue()
        clock.advance(FRESH_MS)
        with pytest.raises(Unauthenticated):
            await tokens.caller(token)
        answers.append((200, document(elliptic().jwk)))
        clock.advance(MINUTE_MS)
        assert await tokens.caller(token)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((302, b""), "the status 302"),
        ((200, b""), "not a set of keys"),
        ((200, b"\xff"), "not a set of keys"),
        ((200, b"[]"), "not a set of keys"),
        ((200, b'{"keys": "many"}'), "not a set of keys"),
        ((200, document()), "no key that could be used"),
        ((200, document({"kty": "EC", "kid": "elliptic"})), "no key that could be used"),
        ((200, document({"kty": "RSA", "kid": "elliptic", "n": 7, "e": []})), "no key that could be used"),
        ((200, document({"kty": ["EC"], "kid": {}, "alg": []})), "no key that could be used"),
        ((200, b" " * (jwt_module.MAX_DOCUMENT_BYTES + 1)), "longer than 1000000 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value)[:40],
)
async def test_what_is_not_a_set_of_keys_is_told_to_the_operator(
    clock: ManualClock, log_lines: io.StringIO, answer: tuple[int, bytes], why: str
) -> None:
    with providing(lambda: answer) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        with pytest.raises(Unauthenticated):
            await tokens.caller(elliptic().token())
    assert why in log_lines.getvalue()


async def test_an_address_or_file_that_is_not_there_is_told_to_the_operator(
    clock: ManualClock, tmp_path: Path, log_lines: io.StringIO
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}/", "https://[", str(tmp_path / "no-such.json"), str(tmp_path)):
        tokens = JwtTokens(JwtRules(jwks=address, issuer=ISSUER, audience=AUDIENCE), clock)
        with pytest.raises(Unauthenticated):
            await tokens.caller(elliptic().token())
    assert log_lines.getvalue().count("the signing keys cannot be read") == 4


async def test_the_event_loop_goes_on_while_a_provider_is_slow(clock: ManualClock) -> None:
    loop = asyncio.get_running_loop()
    goes_on = asyncio.Event()

    def slow() -> tuple[int, bytes]:
        # It answers only once the event loop has done something else.
        asyncio.run_coroutine_threadsafe(turn(goes_on.set), loop).result(30)
        return 200, document(elliptic().jwk)

    with providing(slow) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        assert await tokens.caller(elliptic().token())
    assert goes_on.is_set()


async def test_a_request_that_is_given_up_while_it_fetches_takes_nothing_from_the_next(clock: ManualClock) -> None:
    with providing(lambda: (200, document(elliptic().jwk))) as provider:
        tokens = JwtTokens(JwtRules(jwks=provider.url, issuer=ISSUER, audience=AUDIENCE), clock)
        given_up = asyncio.create_task(tokens.caller(elliptic().token()))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await tokens.caller(elliptic().token())).tenant == "acme"


async def test_checked_tokens_are_remembered_and_bounded(
    tokens: JwtTokens, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0
    decoded = jwt_module._decoded

    def counting(*args: Any) -> Any:
        nonlocal checks
        checks += 1
        return decoded(*args)

    monkeypatch.setattr(jwt_module, "_decoded", counting)
    monkeypatch.setattr(jwt_module, "REMEMBERED_TOKENS", 2)
    first, second, third = (elliptic().token(jti=str(number)) for number in range(3))
    for token in (first, first, second, first, third, second):
        await tokens.caller(token)
    assert checks == 3
    await tokens.caller(first)
    assert checks == 4
    assert len(tokens._accepted) == 2


async def turn(then: Callable[[], None]) -> None:
    then()


async def is_accepted(tokens: JwtTokens, token: str) -> bool:
    try:
        await tokens.caller(token)
    except Unauthenticated:
        return False
    return True


def header(**fields: str) -> str:
    return unpadded(json.encode(fields))


def with_shared_secret(signed: str, secret: bytes) -> str:
    return f"{signed}.{unpadded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
