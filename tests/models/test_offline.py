"""Models of this process never reach for the network: not at their import, not at their load, not at work."""

import subprocess
import sys

import pytest

# In a process of its own, so that imports are seen too. Python tells the hook of every call before it is made.
PROGRAM = """
import asyncio, sys

CALLS_OUT = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}

def forbid(event, arguments):
    if event in CALLS_OUT:
        raise SystemExit(f"called out: {event} {arguments}")

sys.addaudithook(forbid)

from fieldstone.settings import load_settings
from fieldstone.wiring import open_embedder

async def embed():
    embedder = open_embedder(load_settings(environ={"FIELDSTONE_EMBEDDER": sys.argv[1]}).values)
    rows = await embedder.embed(["no network"])
    await embedder.close()
    return rows.shape

HEAVY = {"huggingface_hub", "pydantic", "requests", "safetensors", "tokenizers", "wordllama"}
print(asyncio.run(embed()), sorted(HEAVY & sys.modules.keys()))
"""


@pytest.mark.parametrize(("embedder", "printed"), [("static", "(1, 256) []\n"), ("onnx", "(1, 384) ['tokenizers']\n")])
def test_nothing_is_asked_of_the_network(embedder: str, printed: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, embedder], capture_output=True, text=True, check=False)
    assert done.stdout == printed, done.stderr


def test_the_ban_is_heard() -> None:
    calls_out = PROGRAM + "\nimport socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", calls_out, "static"], capture_output=True, text=True, check=False)
    assert "called out: socket.getaddrinfo" in done.stderr
