"""Threads over HTTP: runs that are streamed and committed, transcripts with their branches, and reconciling."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, get_args

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError, json

from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH
from fieldstone.core.transcripts import DEFAULT_PAGE, Branch, CanonicalMessage, RecoveryAction, Run
from fieldstone.core.vocabulary import Mode
from fieldstone.field.remembering import RememberedUnit
from fieldstone.field.threads import LocalThreads
from fieldstone.planes.findings import FINDING_TYPES, FindingType
from fieldstone.planes.reconcile import STALE_MS
from fieldstone.planes.retention import RetainedStream, StreamRetention
from fieldstone.servers.http.answers import Answer, reply
from fieldstone.servers.http.body import drain, read_json, read_json_within, read_optional_json
from fieldstone.servers.http.entrance import Visit
from fieldstone.servers.http.query import number_in, optional_number, query_of
from fieldstone.servers.http.streams import APPEND_BYTES, Append

_BRANCHES: Final[tuple[Branch, ...]] = get_args(Branch)
_FLAGS: Final = {"true": True, "false": False}

Milliseconds = Annotated[int, Meta(ge=0, le=MAX_EPOCH)]


class BeginRun(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Absent: go on at the active leaf. null: fork at the root."""

    fork_from_message_id: str | UnsetType | None = UNSET


class Recover(Struct, frozen=True, forbid_unknown_fields=True):
    action: RecoveryAction


class RememberRun(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`agentId` is the agent that records it."""

    agent_id: str
    types: tuple[FindingType, ...] = FINDING_TYPES
    mode: Mode = "committed"
    session_id: str | None = None


class RememberedUnits(Struct, frozen=True):
    units: Sequence[RememberedUnit]


class Activate(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    message_id: str


class Activated(Struct, frozen=True, rename="camel"):
    active_leaf: str


class RunList(Struct, frozen=True):
    runs: Sequence[Run]


class MessageList(Struct, frozen=True):
    messages: Sequence[CanonicalMessage]
    next: str | None = None


class ReconcileThreads(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`recover`: what becomes of runs that told nothing for `staleMs`; without it they are only named."""

    thread_id: str | None = None
    dry_run: bool = True
    stale_ms: Milliseconds = STALE_MS
    recover: RecoveryAction | None = None


class RetainStreams(StreamRetention, frozen=True, gc=False, forbid_unknown_fields=True, rename="camel"):
    """What is kept of streams whose runs have ended. Nothing goes by its age alone: a snapshot stands for it first."""

    dry_run: bool = False


class RetainedStreams(Struct, frozen=True):
    streams: Sequence[RetainedStream]


# --- runs -------------------------------------------------------------------------------------------------------------


async def begin_run(visit: Visit) -> Answer:
    wanted = await read_optional_json(visit.scope, visit.receive, BeginRun)
    return reply(await _threads(visit).begin_run(_thread(visit), wanted.fork_from_message_id), 201)


async def append_to_run(visit: Visit) -> Answer:
    wanted = await read_json_within(visit.scope, visit.receive, Append, most_bytes=APPEND_BYTES)
    appended = await _threads(visit).append(
        _thread(visit),
        _run(visit),
        wanted.events,
        expected_seq=wanted.expected_seq,
        idempotency_key=wanted.idempotency_key,
    )
    return reply(appended, 201)


async def commit_run(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await _threads(visit).commit(_thread(visit), _run(visit)))


async def fail_run(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await _threads(visit).fail(_thread(visit), _run(visit)))


async def cancel_run(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await _threads(visit).cancel(_thread(visit), _run(visit)))


async def recover_run(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, Recover)
    return reply(await _threads(visit).recover(_thread(visit), _run(visit), wanted.action))


async def remember_run(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, RememberRun)
    units = await _threads(visit).remember(
        _thread(visit),
        _run(visit),
        wanted.agent_id,
        types=wanted.types,
        mode=wanted.mode,
        session_id=wanted.session_id,
    )
    return reply(RememberedUnits(units))


async def run(visit: Visit) -> Answer:
    return reply(await _threads(visit).run(_thread(visit), _run(visit)))


async def runs(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    limit = number_in(query, "limit", DEFAULT_PAGE)
    return reply(RunList(await _threads(visit).runs(_thread(visit), before=query.get("before"), limit=limit)))


# --- the transcript ---------------------------------------------------------------------------------------------------


async def threads(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    limit = number_in(query, "limit", DEFAULT_PAGE)
    return reply(await _threads(visit).threads(after=query.get("after"), limit=limit))


async def messages(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    if "ids" in query:
        ids = _decoded("ids", query["ids"], list[str])
        return reply(MessageList(await _threads(visit).messages_by_id(_thread(visit), ids)))
    page = await _threads(visit).messages(
        _thread(visit),
        branch=_branch(query.get("branch", "active")),
        selections=_selections(query),
        after=query.get("after"),
        limit=number_in(query, "limit", DEFAULT_PAGE),
    )
    return reply(MessageList(page.messages, page.next))


async def tree(visit: Visit) -> Answer:
    return reply(await _threads(visit).tree(_thread(visit)))


async def set_active(visit: Visit) -> Answer:
    wanted = await read_json(visit.scope, visit.receive, Activate)
    return reply(Activated(await _threads(visit).set_active(_thread(visit), wanted.message_id)))


async def context(visit: Visit) -> Answer:
    query = query_of(visit.scope)
    found = await _threads(visit).context(
        _thread(visit),
        last=optional_number(query, "last"),
        max_tokens=optional_number(query, "maxTokens"),
        reasoning=_flag(query, "reasoning"),
        tool_results=_flag(query, "toolResults"),
        selections=_selections(query),
    )
    return reply(found)


async def delete_thread(visit: Visit) -> Answer:
    await drain(visit.receive)
    return reply(await _threads(visit).delete(_thread(visit)))


# --- keeping it in order ----------------------------------------------------------------------------------------------


async def reconcile(visit: Visit) -> Answer:
    wanted = await read_optional_json(visit.scope, visit.receive, ReconcileThreads)
    done = await _threads(visit).reconcile(
        thread=wanted.thread_id, dry_run=wanted.dry_run, stale_ms=wanted.stale_ms, recover=wanted.recover
    )
    return reply(done)


async def retain_streams(visit: Visit) -> Answer:
    wanted = await read_optional_json(visit.scope, visit.receive, RetainStreams)
    return reply(RetainedStreams(await _threads(visit).compact_all(wanted, dry_run=wanted.dry_run)))


def _threads(visit: Visit) -> LocalThreads:
    return LocalThreads(visit.field, visit.caller)


def _branch(text: str) -> Branch:
    for branch in _BRANCHES:
        if branch == text:
            return branch
    raise InvalidPayload(f"branch must be one of {', '.join(_BRANCHES)}.")


def _selections(query: Mapping[str, str]) -> Mapping[str, str] | None:
    text = query.get("selections")
    return None if text is None else _decoded("selections", text, dict[str, str])


def _decoded(name: str, text: str, kind: Any) -> Any:
    try:
        return json.decode(text, type=kind)
    except (DecodeError, ValidationError, RecursionError, UnicodeEncodeError) as error:
        shape = "an object {parentId: childId}" if name == "selections" else "an array of message ids"
        raise InvalidPayload(f"{name} must be {shape}, as JSON.") from error


def _flag(query: Mapping[str, str], name: str) -> bool:
    """What is not said is wanted."""
    flag = _FLAGS.get(query.get(name, "true"))
    if flag is None:
        raise InvalidPayload(f"{name} must be true or false.")
    return flag


def _thread(visit: Visit) -> str:
    thread: str = visit.scope["path_params"]["thread"]
    return thread


def _run(visit: Visit) -> str:
    run_id: str = visit.scope["path_params"]["run"]
    return run_id
