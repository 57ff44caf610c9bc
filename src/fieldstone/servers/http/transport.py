"""What a connection writes through: an answer's head waits for its body."""

import asyncio
from typing import Any, Final

HEAD: Final = b"HTTP/1.1 "
INTERIM: Final = b"HTTP/1.1 1"


class JoinedWrites(asyncio.Transport):
    """A transport that keeps an answer's head until its body comes. uvicorn writes the two one after the other, and
    each write is a system call that wakes the client: together they are a third of what a small request costs."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._head = b""

    @property
    def beneath(self) -> asyncio.Transport:
        return self._transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data[:9] == HEAD and data[:10] != INTERIM:
            self._head = bytes(data)
            return
        self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """Head and body at once."""
        self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
