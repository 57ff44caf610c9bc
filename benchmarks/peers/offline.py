"""Runs a module with the network refused: `python -m benchmarks.peers.offline MODULE ARGUMENT…`.

The guard stands before the module imports anything. A library that swallows the refusal is still found: every attempt
is listed, and the process then ends with an error. (Python's sockets only; gRPC, which makes its own, is not used by
Qdrant's local mode.)
"""

from __future__ import annotations

import runpy
import socket
import sys
from typing import Any

LOOPBACK = frozenset({None, "", "localhost", "127.0.0.1", "::1"})
NOBODYS_ADDRESS = "192.0.2.1"  # RFC 5737: for documentation, routed nowhere


class NetworkRefused(Exception):
    """A benchmark stays on this machine."""


def main() -> None:
    refused = refuse_network()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    if refused:
        raise SystemExit(f"{sys.argv[0]} tried to reach the network: {', '.join(sorted(set(refused)))}")


def refuse_network() -> list[str]:
    """The attempts that were refused, growing until the process ends: an audit hook cannot be taken off again."""
    refused: list[str] = []

    def hook(event: str, args: tuple[Any, ...]) -> None:
        match event, args:
            case ("socket.connect" | "socket.sendto" | "socket.sendmsg", (_, (host, *_))):
                pass
            case ("socket.getaddrinfo" | "socket.gethostbyname", (host, *_)):
                pass
            case _:  # anything else, and Unix sockets, whose address is no tuple
                return
        if host not in LOOPBACK:
            refused.append(f"{event} {host}")
            raise NetworkRefused(refused[-1])

    sys.addaudithook(hook)
    _prove_refusal()
    refused.clear()
    return refused


def _prove_refusal() -> None:
    with socket.socket() as outward:
        outward.settimeout(1)
        try:
            outward.connect((NOBODYS_ADDRESS, 9))
        except NetworkRefused:
            return
        except OSError:
            pass
    raise SystemExit("the network guard does not hold")


if __name__ == "__main__":
    main()
