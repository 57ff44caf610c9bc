"""A scene's transport log, with a harness that knows one secret, put together at run time."""

from collections.abc import Sequence
from typing import Final

from fieldstone.core.streams import StreamEvent
from fieldstone.planes.delivery import Delivery, ReplayEnd, Subscription
from fieldstone.planes.streams import Streams
from fieldstone.redact import Harness, KnownSecret, shared_harness
from tests.planes.scene import Scene
from tests.redact.fakes import noise

STREAM: Final = "run:talk"
KNOWN: Final = "Zq7-" + noise(20)
HARNESS: Final = shared_harness().knowing([KnownSecret("db-key", KNOWN)])


async def cleaning() -> Harness:
    return HARNESS


def streams_of(scene: Scene) -> Streams:
    """As a process of its own would have them: they share the store and nothing else."""
    return Streams(scene.store, cleaning, scene.clock)


def delivery_of(scene: Scene, streams: Streams, **bounds: int) -> Delivery:
    return Delivery(streams, scene.clock, **bounds)


async def stored_texts(scene: Scene, stream: str = STREAM) -> list[str]:
    """What the store has of each delta, whether or not readers may see it yet."""
    scene.clock.advance(1_000)
    page = await streams_of(scene).read(stream, limit=10_000)
    return [str(each.event.payload.get("delta", each.event.payload.get("text", ""))) for each in page.events]


async def shown_text(streams: Streams, stream: str = STREAM) -> str:
    """What a reader gets now."""
    page = await streams.read(stream, limit=10_000)
    return "".join(str(each.event.payload.get("delta", "")) for each in page.events)


async def taken(subscription: Subscription, until: int) -> tuple[list[int], list[ReplayEnd]]:
    """The seqs up to this one in the order they came, and the ends of replays."""
    seqs: list[int] = []
    ends: list[ReplayEnd] = []
    async for found in subscription:
        if isinstance(found, ReplayEnd):
            ends.append(found)
        else:
            seqs += [each.seq for each in found]
        if ends and (not until or (seqs and seqs[-1] >= until)):
            break
    return seqs, ends


def kinds(events: Sequence[StreamEvent]) -> list[str]:
    return [event.kind for event in events]
