"""A provider of JSON web tokens: its keys, its document of public keys, and a real server for that on loopback."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

ISSUER: Final = "https://issuer.example/"
AUDIENCE: Final = "fieldstone"
NOW_S: Final = 1_750_000_000  # where a ManualClock begins

Jwk = dict[str, Any]


class Signer:
    """A private key of the provider, known by its id."""

    def __init__(self, key_id: str, private: Any, algorithm: str, public: Jwk) -> None:
        self.private = private
        self.algorithm = algorithm
        self.jwk = {**public, "kid": key_id, "use": "sig", "alg": algorithm}
        self.key_id = key_id

    def token(self, *, header: dict[str, Any] | None = None, without: str | None = None, **claims: Any) -> str:
        """A good token, but for what is given."""
        payload = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ada@example",
            "exp": NOW_S + 3_600,
            "tenant": "acme",
            **claims,
        }
        payload.pop(without or "", None)
        # Python's own JSON, and no checks: a provider may sign what we would not.
        return jwt.api_jws.encode(
            json.dumps(payload).encode(), self.private, self.algorithm, {"kid": self.key_id, **(header or {})}
        )


def elliptic(key_id: str = "elliptic", number: int = 20_250_615) -> Signer:
    private = ec.derive_private_key(number, ec.SECP256R1())
    return Signer(key_id, private, "ES256", ECAlgorithm.to_jwk(private.public_key(), as_dict=True))


def edwards(key_id: str = "edwards", seed: bytes = b"a seed of exactly thirty-two byt") -> Signer:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    return Signer(key_id, private, "EdDSA", OKPAlgorithm.to_jwk(private.public_key(), as_dict=True))


def document(*jwks: Jwk) -> bytes:
    return json.dumps({"keys": jwks}).encode()


class Provider(ThreadingHTTPServer):
    """`answer` gives status and body; `asked` counts."""

    daemon_threads = True

    def __init__(self, answer: Callable[[], tuple[int, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/keys.json"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        self.server.asked += 1
        status, body = self.server.answer()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A test's output is the test's."""


@contextmanager
def providing(answer: Callable[[], tuple[int, bytes]]) -> Iterator[Provider]:
    provider = Provider(answer)
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        provider.server_close()
        thread.join()
