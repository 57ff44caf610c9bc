"""200 registered secrets of 7 kinds, in every form, in every text field and on every route of a server: none comes out.

The server is a process of its own with a file for a store, and writes down every request. There are as many rounds as
forms. In each round every text field of every operation and route gets a text; the form goes on by one from field to
field and from round to round. So over the rounds every field gets every form, and together they get every secret in
every form. What holds no text, or is refused, gets one too in every third round, where an answer might repeat it:
every route in its path, as a parameter or as a field's name and value, and every part of a message that a refusal
speaks of. A third of the forms reaches each of these, and all forms reach them together.

What is not sent is the product: every secret in every form in every field. A field knows nothing of forms, and the
harness nothing of fields. Secrets that are split over several texts are in tests/protocol/test_split_secrets.py.
"""

import asyncio
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from ahocorasick_rs import BytesAhoCorasick
from msgspec import json

from fieldstone.client.remote import RemoteField
from fieldstone.field.options import Options
from fieldstone.redact.known import Known, KnownSecret
from fieldstone.testing.world import ManualClock, SeededIds
from tests.access import table
from tests.access.table import Route
from tests.openwop.host import COMPACT, CONSOLIDATE, DISTILL, SEED, part, serving
from tests.planes.events import call, delta, error, file, finished, reasoning, result, user
from tests.protocol.rig import Body, Rig
from tests.protocol.test_redaction import echo_places, say_everywhere
from tests.protocol.ways import Answer, Place, on_disk
from tests.redact.forms import FORMS, KINDS, Attack, attacks, secrets
from tests.requirements import requirement
from tests.servers.live import message

ATTACKS_A_TEXT: Final = 4
# Fields that hold names take less, see core/limits.py; and the address of a request ends somewhere.
SHORT: Final = {
    "tag": 256,
    "seeded tag": 256,
    "role": 256,
    "scope role": 256,
    "scope session": 256,
    "scope interest": 1_000,
    "interest": 1_000,
}
ADDRESS_CHARS: Final = 500
# Shorter ones stand in ids and hashes by chance.
PIECE_CHARS: Final = 12
# The registry is given the values themselves, what is followed has no end, and an import is a whole field: they are
# tried in tests/cli/test_secrets.py, tests/planes and tests/cli/test_transfer.py.
ELSEWHERE: Final[frozenset[Route]] = frozenset(
    {
        *(("PUT", "/v1/secrets/{id}"), ("POST", "/v1/import"), ("GET", "/v1/streams/{id}/sse")),
        *(route for route in table.LEAST if "/subscriptions/" in route[1]),
    }
)
# They take no text and go through all that is kept: they are asked at the end.
LAST: Final[frozenset[Route]] = frozenset(
    {
        *(("POST", "/v1/sweep"), ("POST", "/v1/rebuild"), ("POST", "/v1/verify"), ("GET", "/v1/export")),
        *(("POST", "/v1/retention/plan"), ("POST", "/v1/retention/apply"), ("POST", "/v1/retention/streams")),
    }
)
TELLING: Final = ("agents", "conflicts", "events", "log", "field/status", "threads", "secrets", "compactions")
NAMES_EVERY: Final = 3  # rounds
AT_ONCE: Final = 8
AROUND_BYTES: Final = 200
ECHO_PLACES: Final = len(echo_places(""))
WORDS_KEPT: Final = b"The market grows."


class Speaker:
    """Gives the texts, and remembers what they gave away."""

    def __init__(self, first: int) -> None:
        """It begins with this secret."""
        made = {form: [*drawn(form)[first:], *drawn(form)[:first]] for form in FORMS}
        self._long: Final = {form: itertools.cycle(each) for form, each in made.items()}
        self._short: Final = {form: itertools.cycle(each) for form, each in made.items()}
        self._said: Final = defaultdict[str, set[str]](set)  # the forms of each place
        self.spoken: Final[set[Attack]] = set()
        self.round = 0

    def __call__(self, place: str) -> str:
        """In this round's form for the place."""
        limit = SHORT.get(re.sub(r" \d$", "", place.rpartition(": ")[2]))
        if limit is not None:
            return self.short(place, limit)
        form = self._form(place)
        return self._spoken([next(self._long[form]) for _ in range(ATTACKS_A_TEXT)])

    def short(self, place: str, limit: int = ADDRESS_CHARS) -> str:
        fitting = (attack for attack in self._short[self._form(place)] if len(attack.texts[0]) <= limit)
        return self._spoken([next(fitting)])

    def name(self, number: int) -> str:
        """Something to be named: of no field, so each number has its own form in this round."""
        form = list(FORMS)[(self.round + number) % len(FORMS)]
        return self._spoken([next(attack for attack in self._short[form] if len(attack.texts[0]) <= ADDRESS_CHARS)])

    def forms_missing(self) -> dict[str, set[str]]:
        return {place: missing for place, forms in self._said.items() if (missing := set(FORMS) - forms)}

    def _form(self, place: str) -> str:
        said = self._said[place]
        form = list(FORMS)[(self.round + list(self._said).index(place)) % len(FORMS)]
        said.add(form)
        return form

    def _spoken(self, chosen: list[Attack]) -> str:
        self.spoken.update(chosen)
        return "\n\n".join(attack.texts[0] for attack in chosen)


@functools.cache
def drawn(form: str) -> list[Attack]:
    """Every secret in one variant of the form, by chance."""
    return list(attacks(form, each=1))


class Listener:
    """Asks as an operator, and keeps all that the server says."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.heard: list[bytes] = []
        self.numbers = itertools.count()

    async def request(self, method: str, path: str, body: Any = None, **params: str) -> httpx.Response:
        answer = await self.client.request(
            method, path, content=None if body is None else json.encode(body), params=params or None
        )
        assert answer.status_code in (501, *range(500)), answer.text
        self.heard.append(answer.content + str(answer.headers.multi_items()).encode())
        return answer

    async def told(self, method: str, path: str, body: Any = None, **params: str) -> Body:
        """The answer to what is no refusal."""
        answer = await self.request(method, path, body, **params)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        told: Body = answer.json() if answer.content else {}
        return told


class OnRoutes:
    """A way into the field, for a `Rig`: every message on one route, or each on its operation's own."""

    def __init__(self, listener: Listener, *, own_routes: bool) -> None:
        self._listener = listener
        self._own_routes = own_routes
        self.door = RemoteField(str(listener.client.base_url), listener.client)

    async def open(self, place: Place) -> None:
        """It is."""

    async def post(self, body: bytes) -> Answer:
        envelope: Body = {**json.decode(body), "id": f"message-{next(self._listener.numbers)}"}
        operation = envelope["operation"].lower() if self._own_routes else "messages"
        answer = await self._listener.request("POST", f"/v1/{part(operation)}", envelope)
        return Answer(answer.status_code, answer.json())

    async def close(self) -> None:
        """Whoever opened the client closes it."""


# --- a round ----------------------------------------------------------------------------------------------------------


async def say_in_operations(listener: Listener, say: Speaker) -> None:
    """In every text field of every operation, on both roads; and on one of them where a refusal might repeat it."""
    for road, own_routes in enumerate((False, True)):
        way = OnRoutes(listener, own_routes=own_routes)
        rig = Rig(lambda way=way: way, Place(None, Options(), ManualClock(), SeededIds()))  # type: ignore[arg-type]  # there is only this one
        await say_everywhere(rig, lambda place, road=road: say(f"{road}: {place}"))
        if say.round % (2 * NAMES_EVERY) == NAMES_EVERY * road:
            echoes = [echo_places(say.name(number))[number] for number in range(ECHO_PLACES)]
            await at_once([rig.send(operation, "ada", payload, **named) for operation, payload, named in echoes])
        for agent in ("ada", "ben"):  # they register anew in the next round
            await rig.ask("DEREGISTER", agent, {"agent_id": agent})


async def say_in_planes(listener: Listener, say: Speaker) -> None:
    """In every text of a stream's and a run's events; the run is committed, remembered, and its stream compacted."""
    thread = f"thread-{say.round}"
    run = (await listener.told("POST", f"/v1/threads/{thread}/runs", {}))["runId"]
    for name, path in (("stream", f"/v1/streams/stream-{say.round}"), ("run", f"/v1/threads/{thread}/runs/{run}")):
        events = [
            user(say(f"{name}: user")),
            delta(f"Decision: we keep to {say(f'{name}: delta')} and so on. "),
            reasoning(say(f"{name}: reasoning")),
            call("c1", question=say(f"{name}: input")),
            result("c1", {"page": say(f"{name}: output")}),
            file("https://example.org/plot.png", name=say(f"{name}: file")),
            error(say(f"{name}: error")),
            finished(usage={"note": say(f"{name}: usage")}),
        ]
        await listener.told("POST", f"{path}/events", {"events": events})
    await listener.told("POST", f"/v1/threads/{thread}/runs/{run}/commit")
    await listener.told("POST", f"/v1/threads/{thread}/runs/{run}/remember", {"agentId": "eve"})
    await listener.told("POST", f"/v1/streams/stream-{say.round}/compact", {})
    for path in (f"streams/stream-{say.round}/snapshot", f"threads/{thread}/messages", f"threads/{thread}/context"):
        await listener.told("GET", f"/v1/{path}")


async def say_in_memories(listener: Listener, say: Speaker) -> None:
    ref = f"mem_{say.round}"
    entry = await listener.told(
        "POST", f"/v1/memory/{ref}", {"content": say("memory: content"), "tags": [say("memory: tag")]}
    )
    seeded = {"id": "seeded", "content": say("memory: seeded"), "tags": [say("memory: seeded tag")]}
    await listener.told("POST", SEED, {"memoryRef": ref, "entries": [seeded]})
    sources = [say("memory: source"), {"content": say("memory: source content")}]
    distilled = {"memoryRef": ref, "tokenBudget": 8_000, "sources": sources, "indexEmitted": True}
    await listener.told("POST", DISTILL, distilled)
    await listener.told("POST", COMPACT, {"memoryRef": ref})
    await listener.told("POST", CONSOLIDATE, {"memoryRef": ref})
    inputs = {"field": say("memory: input")}
    await listener.told("POST", "/v1/runs", {"workflowId": "conformance-noop", "inputs": inputs})
    await listener.told("GET", f"/v1/memory/{ref}", rank="relevance", query=say.short("memory: query"))
    await listener.request("GET", f"/v1/memory/{ref}", tag=say.name(2))
    await listener.request("POST", f"/v1/memory/{ref}/forget", {"tag": say.name(3)})
    for name in ("nodeId", "agentId"):
        told = {"content": "Fine.", name: say.name(4)}
        await listener.request("POST", f"/v1/memory/{ref}", told)
    await listener.request("GET", f"/v1/memory/{ref}/{part(entry['id'])}")


async def say_as_names(listener: Listener, say: Speaker) -> None:
    """On every route, in one of its positions."""
    if say.round % NAMES_EVERY:
        return
    requests = []
    for number, (method, path) in enumerate(sorted({*table.all_routes(), *table.SEAMS} - ELSEWHERE - LAST)):
        said = say.name(number)
        in_path, in_body = "{" in path, method in ("POST", "PUT")
        positions = ["path"] * in_path + ["body"] * in_body + ["parameter"]
        position = positions[say.round // NAMES_EVERY % len(positions)]
        address = re.sub(r"{\w+}", part(said if position == "path" else "some"), path)
        body = {said: said} if position == "body" else None
        params = {said: said} if position == "parameter" else {}
        requests.append(listener.request(method, address, body, **params))
    await at_once(requests)


Group = Callable[[Listener, Speaker], Awaitable[None]]


async def rounds(group: Group, listener: Listener, say: Speaker) -> None:
    for say.round in range(len(FORMS)):
        await group(listener, say)


# With the secret that each begins with: so many are said before that all are said in the end.
GROUPS: Final[tuple[tuple[Group, int], ...]] = (
    (say_in_operations, 0),
    (say_in_planes, 130),
    (say_in_memories, 185),
    (say_as_names, 0),
)


async def at_once(requests: Sequence[Awaitable[object]]) -> None:
    for start in range(0, len(requests), AT_ONCE):
        await asyncio.gather(*requests[start : start + AT_ONCE])


# --- what may have come out -------------------------------------------------------------------------------------------


def pieces(spoken: set[Attack]) -> list[bytes]:
    """Every quarter of what gives a secret away, as it is and as JSON writes it."""
    found = set[bytes]()
    for attack in spoken:
        [core] = attack.cores
        size = max(PIECE_CHARS, len(core) // 4)
        for start in (*range(0, len(core) - size, size), len(core) - size):
            piece = core[start : start + size]
            found |= {piece.encode(), json.encode(piece)[1:-1]}
    return sorted(found)


def leaked(spoken: set[Attack], outputs: Sequence[bytes]) -> list[bytes]:
    """What stands around each piece that is found."""
    automaton = BytesAhoCorasick(pieces(spoken))
    return [
        output[max(0, start - AROUND_BYTES) : end + AROUND_BYTES]
        for output in outputs
        for _, start, end in automaton.find_matches_as_indexes(output)
    ]


def texts_of(heard: bytes) -> Iterator[str]:
    """Every line, with JSON's escapes resolved where it is JSON."""
    for line in heard.splitlines():
        try:
            yield from strings_of(json.decode(line))
        except ValueError:
            yield line.decode("utf-8", "replace")


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from strings_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_of(each)


def readable_in(outputs: Sequence[bytes]) -> list[str]:
    """The texts in which a registered secret can be read, in whatever form."""
    known = Known(KnownSecret(secret.id, secret.value) for secret in secrets())
    texts = {text for heard in outputs for text in texts_of(heard)}
    return [text for text in texts if known.spans(text.encode())]


# --- the test ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Listener]:
    """It knows one secret of each kind by its route, and the others from the environment, which is faster."""
    first, others = secrets()[: len(KINDS)], secrets()[len(KINDS) :]
    environ = {f"FIELDSTONE_SECRET_{number}": secret.value for number, secret in enumerate(others)}
    with serving(tmp_path, environ={**environ, "FIELDSTONE_LOG_LEVEL": "debug"}) as host:
        for secret in first:
            answer = host.acme.http.put(f"/v1/secrets/{secret.id}", json={"value": secret.value})
            assert answer.status_code == 204, answer.text
        headers = host.acme.http.headers
        async with httpx.AsyncClient(base_url=host.url, timeout=60, headers=headers) as client:
            yield Listener(client)


@requirement("akashik:secrets:every-form-everywhere")
async def test_no_secret_in_any_form_in_any_field_of_any_route_is_kept_told_or_logged(
    listener: Listener, tmp_path: Path
) -> None:
    await listener.told("POST", "/v1/register", message("REGISTER", {"id": "eve", "role": "guest"}, agent_id="eve"))
    speakers = [Speaker(first) for _, first in GROUPS]
    # Each group goes its rounds by itself, so that the server has always something to do.
    await asyncio.gather(*(rounds(group, listener, say) for (group, _), say in zip(GROUPS, speakers, strict=True)))
    for method, path in sorted({*LAST, *(("GET", f"/v1/{name}") for name in TELLING)}):
        await listener.request(method, path)

    assert not [missing for say in speakers if (missing := say.forms_missing())], "a field has not had every form"
    spoken = set[Attack]().union(*(say.spoken for say in speakers))
    assert {(attack.form, attack.secret.id) for attack in spoken} == {
        (form, secret.id) for form in FORMS for secret in secrets()
    }
    kept = on_disk(tmp_path)
    assert WORDS_KEPT in kept, "texts are seen on disk, so a secret would be"
    assert b"/v1/threads/{thread}/runs" in kept, "requests are written down"

    assert not leaked(spoken, [kept, *listener.heard])
    assert not readable_in([*listener.heard, (tmp_path / "server.log").read_bytes()])
