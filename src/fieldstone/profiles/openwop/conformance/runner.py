"""Runs of the fixtures. They end with the process: a memory host has no workflow engine, and pretends to none."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from fieldstone.core.errors import FieldError, NotFound
from fieldstone.field.entries import Moment
from fieldstone.ports.views import FeedRow
from fieldstone.ports.world import Ids
from fieldstone.profiles.openwop.conformance.fixtures import WORKFLOWS, Place, Stage
from fieldstone.profiles.openwop.feed import Feed, FeedEvent
from fieldstone.retrieval.reading import timestamp

MOST_RUNS: Final = 1_000
FEED_PAGE: Final = 500

RunStatus = Literal["completed", "failed"]


class RunSnapshot(Struct, frozen=True, rename="camel"):
    run_id: str
    workflow_id: str
    status: RunStatus
    variables: dict[str, Any]


class RunEvent(Struct, frozen=True, rename="camel"):
    """OpenWOP's own shape, and nothing else."""

    event_id: str
    run_id: str
    type: str
    payload: dict[str, Any]
    timestamp: str
    sequence: int
    node_id: str | UnsetType = UNSET


class Run(NamedTuple):
    snapshot: RunSnapshot
    events: Sequence[RunEvent]


class Runs:
    """The newest runs of all tenants. One of another tenant does not exist."""

    def __init__(self, ids: Ids, *, most_runs: int = MOST_RUNS) -> None:
        self._ids = ids
        self._most_runs = most_runs
        self._kept: dict[tuple[str, str], Run] = {}

    async def start(self, tenant: str, workflow: str, place: Place) -> RunSnapshot:
        """It is over when this returns."""
        if workflow not in WORKFLOWS:
            raise NotFound("There is no such workflow.")
        place.field.require(place.caller, "write to a memory")
        run = await _run(workflow, place, self._ids)
        self._kept[tenant, run.snapshot.run_id] = run
        while len(self._kept) > self._most_runs:
            del self._kept[next(iter(self._kept))]
        return run.snapshot

    def get(self, tenant: str, run_id: str) -> Run:
        run = self._kept.get((tenant, run_id))
        if run is None:
            raise NotFound("There is no such run.")
        return run


class _Happened(Struct, frozen=True):
    """An event that has no place among the run's yet."""

    type: str
    timestamp: str
    node: str | None = None
    payload: dict[str, Any] = {}

    def told(self, run_id: str, sequence: int) -> RunEvent:
        return RunEvent(
            event_id=f"{run_id}.{sequence}",
            run_id=run_id,
            type=self.type,
            payload=self.payload,
            timestamp=self.timestamp,
            sequence=sequence,
            node_id=UNSET if self.node is None else self.node,
        )


async def _run(workflow: str, place: Place, ids: Ids) -> Run:
    run_id, (node, act) = ids.run(), WORKFLOWS[workflow]
    began, stage = _now(place), Stage(place, run_id, node, ids)
    status: RunStatus = "completed"
    try:
        variables = await act(stage)
        ending = [_Happened("node.completed", _now(place), node), _Happened("run.completed", _now(place))]
    except FieldError as refused:  # by a tenant that has secrets refused, or a store that is full: the run says so
        status, variables = "failed", {}
        ending = [_Happened("run.failed", _now(place), payload={"error": refused.code.lower()})]
    happened = [
        _Happened("run.started", began),
        _Happened("node.started", began, node),
        *[_Happened(event.type, event.ts, node, event.payload) for event in await _written(place, stage.moment)],
        *ending,
    ]
    events = [each.told(run_id, sequence) for sequence, each in enumerate(happened)]
    return Run(RunSnapshot(run_id, workflow, status, variables), events)


async def _written(place: Place, moment: Moment) -> Sequence[FeedEvent]:
    """What the feed tells of the run's own entries."""
    audit, found, after = place.field.audit, list[FeedRow](), moment.seq
    while rows := await audit.feed(after=after, limit=FEED_PAGE, kinds=("memory.written",)):
        entries = await audit.entries_of([row.unit for row in rows if row.unit is not None])
        own = {unit for unit, entry in entries.items() if entry.run == moment.run}
        found += [row for row in rows if row.unit in own]
        after = rows[-1].seq
    return await Feed(place.field, place.caller).tell(found)


def _now(place: Place) -> str:
    return timestamp(place.field.memories.now_ms())
