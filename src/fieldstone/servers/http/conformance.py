"""The conformance mode over HTTP: the seams of OpenWOP's scenarios, and runs of its fixtures.

The suite sends more than it needs (a tenant, inputs, a configuration): what we do not know we pass over, and nothing
of it is repeated. The tenant is the key's.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from fieldstone.core.errors import InvalidPayload, NotFound
from fieldstone.ports.world import Ids
from fieldstone.profiles.openwop.adapter import MOST_ID_CHARS, SeedEntry
from fieldstone.profiles.openwop.conformance.fixtures import Place
from fieldstone.profiles.openwop.conformance.runner import Run, RunEvent, Runs, RunStatus
from fieldstone.profiles.openwop.conformance.seams import Seams
from fieldstone.profiles.openwop.discovery import HostFeatures
from fieldstone.servers.http.answers import Answer, done, reply
from fieldstone.servers.http.body import drain, read_json_within
from fieldstone.servers.http.endpoint import Handler
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.query import query_of

PROBE_TENANTS: Final = ("openwop-probe", "openwop-probe-2")  # the second is for the first
BEFORE_ALL: Final = -1

_SEQUENCE: Final = re.compile(r"-?[0-9]{1,15}")

Name = Annotated[str, Meta(min_length=1)]
B = TypeVar("B", bound=Struct)
EntryId = Annotated[str, Meta(min_length=1, max_length=MOST_ID_CHARS)]


class Seeded(Struct, frozen=True):
    id: EntryId
    content: Name
    tags: tuple[str, ...] = ()


class Seeding(Struct, frozen=True, rename="camel"):
    memory_ref: Name
    entries: tuple[Seeded, ...]


class Compaction(Struct, frozen=True, rename="camel"):
    memory_ref: Name


class Source(Struct, frozen=True):
    content: Name


class Distillation(Struct, frozen=True, rename="camel"):
    memory_ref: Name
    token_budget: Annotated[int, Meta(ge=1)] | None = None
    sources: Annotated[tuple[Name | Source, ...], Meta(min_length=1)] | None = None
    index_emitted: bool = False

    @property
    def texts(self) -> Sequence[str] | None:
        if self.sources is None:
            return None
        return [each.content if isinstance(each, Source) else each for each in self.sources]


class Consolidation(Struct, frozen=True, rename="camel"):
    memory_ref: Name
    include_secret_canary: bool = False


class NewRun(Struct, frozen=True, rename="camel"):
    workflow_id: Name


class StartedRun(Struct, frozen=True, rename="camel"):
    run_id: str
    status: RunStatus


class RunEvents(Struct, frozen=True):
    events: Sequence[RunEvent]


class PolledEvents(Struct, frozen=True, rename="camel"):
    events: Sequence[RunEvent]
    is_complete: bool


class ConformanceRoutes:
    def __init__(self, host: HostFeatures, ids: Ids) -> None:
        self._host = host
        self._ids = ids
        self._runs = Runs(ids)

    def handlers(self) -> dict[str, Mapping[str, Handler]]:
        """By path and method. What is switched off has no seam either."""
        seams = {
            "/v1/test/memory/seed": (True, self.seed),
            "/v1/test/memory/compact": (self._host.compaction, self.compact),
            "/v1/host/sample/memory/distill": (self._host.distillation, self.distill),
            "/v1/host/sample/memory/consolidate": (self._host.consolidation, self.consolidate),
        }
        return {
            **{path: {"POST": handler} for path, (is_on, handler) in seams.items() if is_on},
            "/v1/runs": {"POST": self.start_run},
            "/v1/runs/{id}": {"GET": self.run, "POST": _no_command},
            "/v1/runs/{id}/events": {"GET": self.run_events},
            "/v1/runs/{id}/events/poll": {"GET": self.poll_run_events},
        }

    # --- the seams ----------------------------------------------------------------------------------------------------

    async def seed(self, visit: Visit) -> Answer:
        given = await self._body(visit, Seeding)
        entries = [SeedEntry(id=each.id, content=each.content, tags=each.tags) for each in given.entries]
        await self._seams(visit).seed(given.memory_ref, entries)
        return reply({}, 201)

    async def compact(self, visit: Visit) -> Answer:
        given = await self._body(visit, Compaction)
        compacted = await self._seams(visit).compact(given.memory_ref)
        return done() if compacted is None else reply(compacted)

    async def distill(self, visit: Visit) -> Answer:
        given = await self._body(visit, Distillation)
        distilling = self._seams(visit).distil(
            given.memory_ref, given.token_budget, given.texts, index=given.index_emitted
        )
        return reply(await distilling)

    async def consolidate(self, visit: Visit) -> Answer:
        given = await self._body(visit, Consolidation)
        plants_secret = given.include_secret_canary
        return reply(await self._seams(visit).consolidate(given.memory_ref, plants_secret=plants_secret))

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def start_run(self, visit: Visit) -> Answer:
        wanted = await self._body(visit, NewRun)
        elsewhere = partial(visit.tenants.visit, _other_than(visit.tenant))
        place = Place(visit.field, visit.caller, self._host.limits, elsewhere)
        run = await self._runs.start(visit.tenant, wanted.workflow_id, place)
        return reply(StartedRun(run.run_id, run.status), 201)

    async def run(self, visit: Visit) -> Answer:
        return reply(self._run(visit).snapshot)

    async def run_events(self, visit: Visit) -> Answer:
        return reply(RunEvents(self._run(visit).events))

    async def poll_run_events(self, visit: Visit) -> Answer:
        """Nobody waits: a run is over before anybody knows its id."""
        seen = _last_sequence(query_of(visit.scope).get("lastSequence"))
        events = [event for event in self._run(visit).events if event.sequence > seen]
        return reply(PolledEvents(events, is_complete=True))

    async def _body(self, visit: Visit, kind: type[B]) -> B:
        return await read_json_within(visit.scope, visit.receive, kind, most_bytes=self._host.max_body_bytes)

    def _seams(self, visit: Visit) -> Seams:
        return Seams(visit.field, visit.caller, self._host.limits, self._ids)

    def _run(self, visit: Visit) -> Run:
        visit.field.require(visit.caller, "read a memory")
        return self._runs.get(visit.tenant, visit.scope["path_params"]["id"])


async def _no_command(visit: Visit) -> Answer:
    """`/v1/runs/{id}:fork` and its like: replay is a workflow engine's, and not advertised."""
    await drain(visit.receive)
    raise NotFound


def _other_than(tenant: str) -> str:
    return next(each for each in PROBE_TENANTS if each != tenant)


def _last_sequence(text: str | None) -> int:
    if text is None:
        return BEFORE_ALL
    if not _SEQUENCE.fullmatch(text):
        raise InvalidPayload("lastSequence must be a whole number.")
    return int(text)
