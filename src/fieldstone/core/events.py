"""What happened: the events of a Field's log, and the texts that lie beside them.

An event holds only ids that the Field made, enums and numbers; every text from outside, names of agents, sessions and
tasks included, is in a text bundle beside the log, from where it can be erased without breaking the chain. Names, units
and conflicts are referred to by number: the seq of the entry that brought them.

Stored events are never rewritten. When one changes its shape, the old version stays decodable here (see `UPCASTS`)
and a golden file keeps it so.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct, json, structs

from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import (
    CompactionState,
    ConflictType,
    DetectedBy,
    Guard,
    Mode,
    RelationType,
    SecretChange,
    SecretHolder,
    Strategy,
)

NameKind = Literal["agent", "session", "task"]
LabelKind = Literal["entry", "tag", "source"]  # texts that a keyed digest finds, as it does names


class Event(Struct, frozen=True, gc=False, tag_field="kind", omit_defaults=True, kw_only=True):
    """The kind says the version, too: a new shape of `unit.recorded` is `unit.recorded.2`."""


class ClockRaised(Event, frozen=True, gc=False, tag="clock.raised"):
    """A read brought a later epoch. It is durable before the answer tells it on."""


class NameCoined(Event, frozen=True, gc=False, tag="name.coined"):
    of: NameKind


class AgentRegistered(Event, frozen=True, gc=False, tag="agent.registered"):
    agent: int
    authority: int
    credential: str | None = None  # who may speak as it; None: the local operator of an open field


class AgentDeregistered(Event, frozen=True, gc=False, tag="agent.deregistered"):
    agent: int
    registration: int
    authority: int
    by: int
    credential: str | None = None


class LoggedRelation(Struct, frozen=True, gc=False, omit_defaults=True):
    type: RelationType
    target: int | None = None  # None: the target is not a unit of this Field, and its name lies in the texts


class UnitRecorded(Event, frozen=True, gc=False, tag="unit.recorded"):
    id: str
    mode: Mode
    type: str
    agent: int
    registration: int  # the entry that says which role the author had
    session: int | None = None
    task: int | None = None
    score: float | None = None
    relations: tuple[LoggedRelation, ...] = ()
    trust: int | None = None  # its author's authority, or that of a synthesis' least trusted source; None: not noted


class UnitCommitted(Event, frozen=True, gc=False, tag="unit.committed"):
    unit: int
    by: int
    score: float | None = None


class UnitDiscarded(Event, frozen=True, gc=False, tag="unit.discarded"):
    unit: int
    by: int


class UnitRetracted(Event, frozen=True, gc=False, tag="unit.retracted"):
    unit: int
    by: int


class UnitSuperseded(Event, frozen=True, gc=False, tag="unit.superseded"):
    unit: int
    by_unit: int


class UnitContested(Event, frozen=True, gc=False, tag="unit.contested"):
    unit: int
    conflict: int


class UnitPending(Event, frozen=True, gc=False, tag="unit.pending"):
    """Its embedding failed or is late: it can be found by its words already, and by its meaning later."""

    unit: int


class UnitEnriched(Event, frozen=True, gc=False, tag="unit.enriched"):
    """A pending unit has its embedding now."""

    unit: int


class UnitEchoed(Event, frozen=True, gc=False, tag="unit.echoed"):
    """It restates what its author had just been shown: no new evidence."""

    unit: int
    of: int


class UnitReinstated(Event, frozen=True, gc=False, tag="unit.reinstated"):
    """The last conflict about it is resolved, and it stands."""

    unit: int


class ConflictDetected(Event, frozen=True, gc=False, tag="conflict.detected"):
    id: str
    type: ConflictType
    detected_by: DetectedBy
    unit_a: int
    unit_b: int


class ConflictResolved(Event, frozen=True, gc=False, tag="conflict.resolved"):
    conflict: int
    strategy: str
    winner: int | None = None
    by: int | None = None  # None: the Field itself


class ContextAttuned(Event, frozen=True, gc=False, tag="context.attuned"):
    """What an agent was shown, so that a replay can say what it knew when it decided."""

    agent: int
    max_units: int
    since_epoch: int | None = None
    order: str = "relevance"
    format: str = "full"
    available: int = 0
    returned: int = 0
    shown: tuple[tuple[int, float], ...] = ()


class ConflictsListed(Event, frozen=True, gc=False, tag="conflicts.listed"):
    agent: int
    returned: int


class SessionCreated(Event, frozen=True, gc=False, tag="session.created"):
    """From now on only its members see what is in it. A session that was never created is open to the whole tenant."""

    session: int
    by: int


class SessionJoined(Event, frozen=True, gc=False, tag="session.joined"):
    session: int
    agent: int


class SessionLeft(Event, frozen=True, gc=False, tag="session.left"):
    session: int
    agent: int


class CompactionBegun(Event, frozen=True, gc=False, tag="compaction.begun"):
    """Who asked for it, and for what: it is planned again from this after a crash. Ages are counted from `epoch`."""

    id: str
    strategy: Strategy
    by: int
    epoch: int
    max_age_epochs: int | None = None
    session: int | None = None
    types: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    ancestor: int | None = None
    verify: bool = True
    policy: str | None = None  # the retention policy that asks for it: a keyed digest of its name
    before: int | None = None
    beyond_newest: int | None = None
    group_units: int | None = None  # how many become one synthesis; None: as many as usual
    output_bytes: int | None = None  # how long a synthesis may be
    deletes: bool = False  # the originals are purged, and not archived


class UnitsArchived(Event, frozen=True, gc=False, tag="units.archived"):
    """Their texts lie in cold storage now. `into`: the synthesis that stands for them."""

    compaction: int
    units: tuple[int, ...]
    into: int | None = None


class UnitsRestored(Event, frozen=True, gc=False, tag="units.restored"):
    units: tuple[int, ...]
    credential: str | None = None  # of who asked for it; None: the local operator


class UnitsPurged(Event, frozen=True, gc=False, tag="units.purged"):
    """The tombstone. Units, time and reason stay (the reason beside the compaction); `texts` are the entries whose
    texts are gone for good."""

    compaction: int | None  # None: somebody deleted these by themselves, for the reason beside it
    units: tuple[int, ...]
    texts: tuple[int, ...]
    credential: str | None = None


class EntryWritten(Event, frozen=True, gc=False, tag="memory.written"):
    """A unit is an entry of an OpenWOP memory: its session is the memory's. Id and tags lie beside it."""

    unit: int
    session: int
    expires_ms: int | None = None
    run: str | None = None  # the run whose snapshot it was written under, by the Field's own id of it


class MemoryCompacted(Event, frozen=True, gc=False, tag="memory.compacted"):
    """For the audit, without content: what became of how many. Above 100 sources are counted and not named."""

    compaction: int | None  # None: what it was made from before was deleted, and it was made anew
    output: int
    sources: int
    units: tuple[int, ...] = ()
    bytes: int = 0
    token_budget: int | None = None  # of a distillation
    tokens_used: int | None = None
    index_updated: bool = False


class MemoryConsolidated(Event, frozen=True, gc=False, tag="memory.consolidated"):
    """Entries that say the same, or that are out of date, gave way to others of the same memory."""

    session: int
    inputs: int
    outputs: int
    units: tuple[int, ...] = ()  # those that gave way


class CompactionEnded(Event, frozen=True, gc=False, tag="compaction.ended"):
    compaction: int
    state: CompactionState
    units: int = 0
    syntheses: int = 0
    bytes: int = 0


class UnitGuarded(Event, frozen=True, gc=False, tag="unit.guarded"):
    """Held for a legal reason, or pinned: no compaction touches it."""

    unit: int
    guard: Guard
    credential: str | None = None


class UnitUnguarded(Event, frozen=True, gc=False, tag="unit.unguarded"):
    unit: int
    guard: Guard
    credential: str | None = None


class RetentionSet(Event, frozen=True, gc=False, tag="retention.set"):
    """These policies hold from now on, and no others. They lie beside it: a session's name is a text from outside."""

    policies: int
    credential: str | None = None  # who set them; None: the local operator of an open field


class SecretChanged(Event, frozen=True, gc=False, tag="secret.changed"):
    """A known secret was registered or dropped, and by whom. Its name lies beside the event, its value nowhere."""

    change: SecretChange
    of: SecretHolder
    credential: str | None = None  # who did; None: the local operator of an open field


class ContentReplaced(Event, frozen=True, gc=False, tag="content.replaced"):
    """A text held a secret that became known later. The bundle beside `entry` is another one now, with this hash."""

    entry: int
    text: str
    name: NameKind | None = None  # set where it is the text of a name: it is found by another digest


class AccessRefused(Event, frozen=True, gc=False, tag="access.refused"):
    """Somebody asked for what is not theirs. Repeats within a while are counted, not listed: a log that anyone can
    fill is no audit."""

    asked: str  # an operation, or a route's name
    code: str
    credential: str | None = None
    authority: int = 0
    times: int = 1


AnyEvent = (
    ClockRaised
    | NameCoined
    | AgentRegistered
    | AgentDeregistered
    | UnitRecorded
    | UnitCommitted
    | UnitDiscarded
    | UnitRetracted
    | UnitSuperseded
    | UnitContested
    | UnitPending
    | UnitEnriched
    | UnitEchoed
    | UnitReinstated
    | ConflictDetected
    | ConflictResolved
    | ContextAttuned
    | ConflictsListed
    | SessionCreated
    | SessionJoined
    | SessionLeft
    | ContentReplaced
    | CompactionBegun
    | UnitsArchived
    | UnitsRestored
    | UnitsPurged
    | EntryWritten
    | MemoryCompacted
    | MemoryConsolidated
    | CompactionEnded
    | UnitGuarded
    | UnitUnguarded
    | RetentionSet
    | SecretChanged
    | AccessRefused
)

# Texts of these events may be gone without a tombstone: only the field's last hints are kept.
EXPENDABLE_TEXTS: Final[tuple[type[Event], ...]] = (ContextAttuned,)


class Entry(Struct, frozen=True, gc=False):
    """One entry of the log. `text` is the salted hash of the bundle beside it, if it has one."""

    seq: int
    epoch: int
    at_ms: int
    event: AnyEvent
    text: str | None = None


# --- texts beside the log -------------------------------------------------------------------------------------------


class TextBundle(Struct, frozen=True, gc=False, omit_defaults=True):
    """The texts of one entry. Every string in it is clean."""


SomeTexts = TypeVar("SomeTexts", bound=TextBundle)


class NameText(TextBundle, frozen=True, gc=False):
    name: CleanText


class AgentTexts(TextBundle, frozen=True, gc=False):
    role: CleanText
    interests: tuple[CleanText, ...] = ()


class UnitTexts(TextBundle, frozen=True, gc=False):
    content: CleanText
    purpose: CleanText
    question: CleanText | None = None
    reasoning: CleanText | None = None
    evidence: tuple[CleanText, ...] = ()
    assumptions: tuple[CleanText, ...] = ()
    targets: tuple[CleanText, ...] = ()  # target ids of the relations, in their order
    descriptions: tuple[CleanText | None, ...] = ()


class ConfidenceTexts(TextBundle, frozen=True, gc=False):
    """Confidence that came with COMMIT."""

    reasoning: CleanText | None = None
    evidence: tuple[CleanText, ...] = ()
    assumptions: tuple[CleanText, ...] = ()


class ReasonText(TextBundle, frozen=True, gc=False):
    reason: CleanText


class RetentionTexts(TextBundle, frozen=True, gc=False):
    """Each policy as JSON."""

    policies: tuple[CleanText, ...] = ()


class SecretTexts(TextBundle, frozen=True, gc=False):
    """What a known secret is called. `holder`: the user or run that it is dropped with."""

    name: CleanText
    holder: CleanText | None = None


class EntryTexts(TextBundle, frozen=True, gc=False):
    """What is said of an entry beside its unit. `id` None: it is its unit's."""

    id: CleanText | None = None
    tags: tuple[CleanText, ...] = ()
    node_id: CleanText | None = None
    agent_id: CleanText | None = None


class HintText(TextBundle, frozen=True, gc=False):
    hint: CleanText


def bundle_type(event: AnyEvent) -> type[TextBundle]:
    """The kind of texts that lie beside such an event."""
    match event:
        case NameCoined():
            return NameText
        case AgentRegistered():
            return AgentTexts
        case UnitRecorded():
            return UnitTexts
        case UnitCommitted():
            return ConfidenceTexts
        case ContextAttuned():
            return HintText
        case RetentionSet():
            return RetentionTexts
        case SecretChanged():
            return SecretTexts
        case EntryWritten():
            return EntryTexts
        case _:
            return ReasonText


def strings_of(texts: TextBundle) -> list[CleanText]:
    """Every text of the bundle, in the order of its fields."""
    values = structs.astuple(texts)
    nested = (value if isinstance(value, tuple) else (value,) for value in values)
    return [text for group in nested for text in group if text is not None]


def with_strings(texts: SomeTexts, strings: Iterable[CleanText]) -> SomeTexts:
    """The same bundle with these in the places that `strings_of` took them from."""
    rest = iter(strings)
    values: dict[str, Any] = {}
    for name, value in structs.asdict(texts).items():
        if isinstance(value, tuple):
            values[name] = tuple(None if text is None else next(rest) for text in value)
        elif value is not None:
            values[name] = next(rest)
    return structs.replace(texts, **values)


# --- encoding -------------------------------------------------------------------------------------------------------

_encoder = json.Encoder()
_decoder = json.Decoder(Entry)

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
# A kind that is no longer written → the function that turns such a stored event into its next version's shape, kind
# included. Empty: all are at their first version.
UPCASTS: Final[dict[str, Upcast]] = {}


def encode_entry(entry: Entry) -> bytes:
    return _encoder.encode(entry)


def decode_entry(body: bytes) -> Entry:
    return _decoder.decode(body) if not UPCASTS else _decode_any_version(body)


_bundle_decoders: Final[dict[type[TextBundle], json.Decoder[Any]]] = {}


def encode_texts(texts: TextBundle) -> bytes:
    return _encoder.encode(texts)


def decode_texts(body: bytes, kind: type[SomeTexts]) -> SomeTexts:
    decoder = _bundle_decoders.get(kind)
    if decoder is None:
        decoder = _bundle_decoders[kind] = json.Decoder(kind)
    bundle: SomeTexts = decoder.decode(body)
    return bundle


def _decode_any_version(body: bytes) -> Entry:
    raw = json.decode(body)
    event = raw["event"]
    while upcast := UPCASTS.get(event["kind"]):
        event = upcast(event)
    return _decoder.decode(_encoder.encode({**raw, "event": event}))
