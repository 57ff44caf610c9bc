"""The bare thing that RECORD over HTTP is measured against: a Starlette route that only decodes the same body.

python -m benchmarks.bare_http        prints its URL and serves until it is killed
"""

from __future__ import annotations

import asyncio
import socket
from typing import Literal

import uvicorn
from msgspec import Struct, json
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Intent(Struct):
    purpose: str
    task_id: str | None = None
    question: str | None = None


class Confidence(Struct):
    score: float
    reasoning: str
    evidence: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


class Record(Struct):
    mode: Literal["draft", "committed"]
    type: str
    content: str
    intent: Intent
    confidence: Confidence | None = None


class Envelope(Struct):
    protocol: str
    version: str
    id: str
    operation: str
    agent_id: str
    session_id: str | None
    epoch: int
    payload: Record


ANSWER = json.encode(
    {
        "memory_unit_id": "mem-01890a5d-ac96-774b-bcce-b302099a8057",
        "epoch": 1,
        "conflicts_detected": [],
        "status": "accepted",
        "rejection_reason": None,
    }
)
decoder = json.Decoder(Envelope)


async def record(request: Request) -> Response:
    decoder.decode(await request.body())
    return Response(ANSWER, media_type="application/json")


app = Starlette(routes=[Route("/v1/record", record, methods=["POST"])])


def main() -> None:
    # With its protocol said: else asyncio leaves Nagle's algorithm on, and each answer waits 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, http="httptools", log_config=None, access_log=False, lifespan="off")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
