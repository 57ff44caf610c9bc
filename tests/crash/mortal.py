"""A warm process whose children do one job each, and may die of it. The jobs come in by lines of JSON.

in   a job          out  dead <signal>, or done
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct, json

from fieldstone.redact import shared_harness

J = TypeVar("J", bound=Struct)
Mother = subprocess.Popen[bytes]


@contextmanager
def mother(module: str) -> Iterator[Mother]:
    """The process: `module` is run, and calls `bear_all`."""
    with subprocess.Popen([sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def borne(process: Mother, job: Struct) -> str:
    """How a child with this job ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.encode(job) + b"\n")
    process.stdin.flush()
    return process.stdout.readline().decode().strip()


def bear_all(kind: type[J], work: Callable[[J], Awaitable[None]]) -> None:
    """In the process itself: a child for every job that comes in."""
    shared_harness()
    for line in sys.stdin.buffer:
        print(_bear(work(json.decode(line, type=kind))), flush=True)


def _bear(work: Awaitable[None]) -> str:
    child = os.fork()
    if child == 0:
        asyncio.run(_done(work))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return f"dead {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "done"


async def _done(work: Awaitable[None]) -> None:
    await work
