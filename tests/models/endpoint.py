"""An endpoint on loopback that speaks OpenAI's embeddings, well or badly: a real server, with no model behind it."""

import base64
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import numpy as np
from msgspec import json

DIMENSION: Final = 64
MOST_AT_ONCE: Final = 16

Items = list[dict[str, Any]]
Answer = Callable[["Handler", Items], None]


class Endpoint(ThreadingHTTPServer):
    """`answer` sends what the texts of a request get; `requests` are the headers and bodies that came."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.over = threading.Event()  # a handler that hangs is let go at the end of the test

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        body = json.decode(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers | {"path": self.path}, body))
        vectors = [bag_of_words(text) for text in body["input"]]
        self.server.answer(self, [{"index": number, "embedding": row} for number, row in enumerate(vectors)])

    def send(self, body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A test's output is the test's."""


@contextmanager
def serving(answer: Answer) -> Iterator[Endpoint]:
    endpoint = Endpoint(answer)
    thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        endpoint.shutdown()
        endpoint.server_close()
        thread.join()


def in_numbers(handler: Handler, items: Items) -> None:
    handler.send(json.encode({"object": "list", "data": items, "usage": {"total_tokens": 1}}))


def in_base64(handler: Handler, items: Items) -> None:
    """In whatever order: `index` says whose it is."""
    for item in items:
        item["embedding"] = base64.b64encode(np.array(item["embedding"], "<f4").tobytes()).decode()
    in_numbers(handler, items[::-1])


def bag_of_words(text: str) -> list[float]:
    """Texts that share words lie close together. Not of unit length: that is the embedder's promise."""
    vector = np.zeros(DIMENSION)
    vector[0] = 0.01
    for word in re.findall(r"\w+", text.lower()):
        vector[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4]) % DIMENSION] += 1
    return [float(number) for number in vector]
