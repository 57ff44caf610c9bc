"""A real server on loopback, with no model behind it: it answers well or badly, as it is told."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import json

Answer = Callable[["Handler"], None]


class Endpoint(ThreadingHTTPServer):
    """`answer` sends what a request gets; `requests` are the headers and bodies that came."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.asked = threading.Event()
        self.over = threading.Event()  # a handler that hangs is let go at the end of the test

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is none of the test's errors, and its output is the test's."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.decode(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((headers | {"path": self.path}, self.body))
        self.server.asked.set()
        self.server.answer(self)

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


def said(content: Any, **message: Any) -> bytes:
    """The body of a chat's answer."""
    return json.encode({"choices": [{"message": {"role": "assistant", "content": content, **message}}]})


def saying(content: Any, **message: Any) -> Answer:
    return with_body(said(content, **message))


def with_body(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return lambda handler: handler.send(body, status=status, headers=headers)


def hanging(handler: Handler) -> None:
    handler.server.over.wait()


def trickling(handler: Handler) -> None:
    handler.send(b"", headers={"content-length": "1000000"})
    while not handler.server.over.wait(0.01):
        handler.wfile.write(b" ")


def breaking_off(handler: Handler) -> None:
    handler.send(b'{"choices"', headers={"content-length": "1000"})
    handler.close_connection = True
