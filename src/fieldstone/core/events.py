"""What happened: the events of a Field's log, and the texts that lie beside them.

An event holds only ids that the Field made, enums and numbers; every text from outside, names of agents, sessions and
tasks included, is in a text bundle beside the log, from where it can be erased without breaking the chain. Names, units
and conflicts are referred to by number: the seq of the entry that brought them.

Stored events are never rewritten. When one changes its shape, the old version stays decodable here (see `UPCASTS`)
and a golden file keeps it so.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct, json

from fieldstone.core.text import CleanText
from fieldstone.core.vocabulary import ConflictType, DetectedBy, Mode, RelationType

NameKind = Literal["agent", "session", "task"]


class Event(Struct, frozen=True, gc=False, tag_field="kind", omit_defaults=True, kw_only=True):
    """The kind says the version, too: a new shape of `unit.recorded` is `unit.recorded.2`."""


class ClockRaised(Event, frozen=True, gc=False, tag="clock.raised"):
    """A read brought a later epoch. It is durable before the answer tells it on."""


class NameCoined(Event, frozen=True, gc=False, tag="name.coined"):
    of: NameKind


class AgentRegistered(Event, frozen=True, gc=False, tag="agent.registered"):
    agent: int
    authority: int


class AgentDeregistered(Event, frozen=True, gc=False, tag="agent.deregistered"):
    agent: int
    registration: int
    authority: int
    by: int


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


class HintText(TextBundle, frozen=True, gc=False):
    hint: CleanText


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
