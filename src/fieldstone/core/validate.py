"""Requests against level and limits: every refusal names the field and changes nothing."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import get_args

from msgspec import Struct

from fieldstone.core import limits
from fieldstone.core.errors import (
    AgentIdTaken,
    Forbidden,
    InvalidConfidence,
    InvalidEnvelope,
    InvalidPayload,
    InvalidType,
    MissingConfidence,
    MissingIntent,
    UnsupportedOperation,
)
from fieldstone.core.requests import (
    Attune,
    Commit,
    Compact,
    CompactFilter,
    Deregister,
    Detect,
    Discard,
    Message,
    Record,
    Register,
    Retract,
    Scope,
)
from fieldstone.core.units import Confidence, Relation
from fieldstone.core.vocabulary import (
    BUILT_OPERATIONS,
    FIELD_AGENT_ID,
    HIGHEST_COMPLETE_LEVEL,
    MEMORY_TYPES,
    OPERATION_LEVELS,
    RESERVED_SESSION_PREFIX,
    Operation,
    UnitStatus,
)


class Rules(Struct, frozen=True):
    """What a field's configuration decides about validation."""

    conformance_level: int = HIGHEST_COMPLETE_LEVEL
    memory_types: frozenset[str] = frozenset(MEMORY_TYPES)
    epoch_leap: int = limits.DEFAULT_EPOCH_LEAP

    @property
    def extended_scope(self) -> bool:
        """As with operations: only a lowered level takes away what is built."""
        return self.conformance_level >= HIGHEST_COMPLETE_LEVEL

    @property
    def supported_operations(self) -> tuple[Operation, ...]:
        return tuple(op for op in BUILT_OPERATIONS if self._allows(op))

    def check_operation(self, operation: Operation) -> None:
        if operation not in BUILT_OPERATIONS:
            raise UnsupportedOperation(f"{operation} is not built yet.")
        if not self._allows(operation):
            raise UnsupportedOperation(f"{operation} is above this Field's conformance level {self.conformance_level}.")

    def _allows(self, operation: Operation) -> bool:
        # Only a lowered level takes away what is built; the default level takes away nothing.
        return self.conformance_level >= HIGHEST_COMPLETE_LEVEL or OPERATION_LEVELS[operation] <= self.conformance_level


def check_message(message: Message, rules: Rules) -> None:
    rules.check_operation(message.operation)
    if message.id is not None:
        _check_id(message.id, "id", InvalidEnvelope)
    _check_id(message.agent_id, "agent_id", InvalidEnvelope)
    if message.session_id is not None:
        _check_id(message.session_id, "session_id", InvalidEnvelope)
    match message.request:
        case Record() as request:
            check_record(request, rules, message.session_id)
        case Attune() as request:
            check_attune(request)
        case Register() as request:
            check_register(request, message.agent_id)
        case Deregister() as request:
            _check_id(request.agent_id, "agent_id")
        case Detect() as request:
            check_detect(request, rules)
        case Commit() as request:
            _check_id(request.memory_unit_id, "memory_unit_id")
            check_confidence(request.confidence)
        case Discard() as request:
            _check_id(request.memory_unit_id, "memory_unit_id")
            _check_optional(request.reason, "reason", limits.MAX_REASON_CHARS)
        case Retract() as request:
            _check_id(request.memory_unit_id, "memory_unit_id")
            _check_filled(request.reason, "reason", limits.MAX_REASON_CHARS)
        case Compact() as request:
            check_compact(request, rules)


def check_compact(request: Compact, rules: Rules) -> None:
    _check_optional(request.reason, "reason", limits.MAX_REASON_CHARS)
    wanted = request.filter or CompactFilter()
    if request.strategy == "purge" and wanted == CompactFilter():
        raise InvalidPayload("filter must not be empty for purge: everything would be gone for good.")
    if wanted.max_age_epochs is not None and not 0 <= wanted.max_age_epochs <= limits.MAX_EPOCH:
        raise InvalidPayload("filter.max_age_epochs must be from 0 to 2^53-1.")
    for name, values, known in (
        ("types", wanted.types, rules.memory_types),
        ("status", wanted.status, frozenset(get_args(UnitStatus))),
    ):
        if values is not None and not values:
            raise InvalidPayload(f"filter.{name} must not be empty; leave it out for no restriction.")
        if values is not None and not set(values) <= known:
            raise InvalidPayload(f"filter.{name} takes {', '.join(sorted(known))}.")
    for name, value in (("session_id", wanted.session_id), ("ancestor_id", wanted.ancestor_id)):
        if value is not None:
            _check_id(value, f"filter.{name}")


def check_record(request: Record, rules: Rules, session_id: str | None) -> None:
    if request.type not in rules.memory_types:
        raise InvalidType(f"type is not one of: {', '.join(sorted(rules.memory_types))}.")
    _check_filled(request.content, "content", limits.MAX_CONTENT_CHARS)
    intent = request.intent
    if intent is None or intent.purpose is None or is_blank(intent.purpose):
        raise MissingIntent
    _check_text(intent.purpose, "intent.purpose", limits.MAX_INTENT_CHARS)
    _check_optional(intent.question, "intent.question", limits.MAX_INTENT_CHARS)
    if intent.task_id is not None:
        _check_id(intent.task_id, "intent.task_id")
    check_confidence(request.confidence)
    if request.mode == "committed":
        require_confidence(request.confidence, rules)
    if request.relations:
        _check_relations(request.relations)
    if session_id is not None and session_id.startswith(RESERVED_SESSION_PREFIX):
        raise Forbidden(
            f"session ids that begin with {RESERVED_SESSION_PREFIX!r} are reserved.",
            suggested_action="Choose another id.",
        )


def check_confidence(confidence: Confidence | None) -> None:
    """What is there must be right, whether or not it had to be there."""
    if confidence is None:
        return
    score = confidence.score
    if score is not None and not 0.0 <= score <= 1.0:  # NaN fails every comparison
        raise InvalidConfidence
    _check_optional(confidence.reasoning, "confidence.reasoning", limits.MAX_REASONING_CHARS)
    if confidence.evidence:
        _check_list(confidence.evidence, "confidence.evidence", limits.MAX_LIST_ITEMS, limits.MAX_ITEM_CHARS)
    if confidence.assumptions:
        _check_list(confidence.assumptions, "confidence.assumptions", limits.MAX_LIST_ITEMS, limits.MAX_ITEM_CHARS)


def require_confidence(confidence: Confidence | None, rules: Rules) -> None:
    if rules.conformance_level < 1:
        return
    if confidence is None or confidence.score is None:
        raise MissingConfidence("A committed unit needs confidence.score.")
    if confidence.reasoning is None or is_blank(confidence.reasoning):
        raise MissingConfidence("A committed unit needs confidence.reasoning.")


def check_register(request: Register, agent_id: str) -> None:
    _check_id(request.id, "id")
    if request.id != agent_id:
        raise InvalidPayload("id must equal the envelope's agent_id.")
    if request.id == FIELD_AGENT_ID:
        raise AgentIdTaken(f"{FIELD_AGENT_ID!r} is the Field's own id.")
    if request.id.startswith(RESERVED_SESSION_PREFIX):
        raise Forbidden(
            f"agent ids that begin with {RESERVED_SESSION_PREFIX!r} are reserved.",
            suggested_action="Choose another id.",
        )
    _check_filled(request.role, "role", limits.MAX_ROLE_CHARS)
    _check_list(request.interests or (), "interests", limits.MAX_INTERESTS, limits.MAX_INTEREST_CHARS)
    _check_list(request.required_operations or (), "required_operations", limits.MAX_LIST_ITEMS, limits.MAX_ID_CHARS)
    if request.authority is not None and not 0 <= request.authority <= limits.MAX_AUTHORITY:
        raise InvalidPayload(f"authority must be from 0 to {limits.MAX_AUTHORITY}.")


def check_attune(request: Attune) -> None:
    _check_scope(request.scope)
    _check_optional(request.context_hint, "context_hint", limits.MAX_HINT_CHARS)
    for name, value in (("since_epoch", request.since_epoch), ("min_epoch", request.min_epoch)):
        _check_epoch(value, name)


def check_detect(request: Detect, rules: Rules) -> None:
    if request.mode != "list" and not rules.extended_scope:
        raise UnsupportedOperation(f"DETECT {request.mode} is above conformance level {rules.conformance_level}.")
    if request.mode == "check" and request.target_id is None:
        raise InvalidPayload("target_id is missing: check looks at one unit.")
    if request.target_id is not None:
        _check_id(request.target_id, "target_id")
    _check_epoch(request.after_epoch, "after_epoch")
    if request.filter is None:
        return
    for name, values in (
        ("status", request.filter.status),
        ("types", request.filter.types),
        ("involving_agents", request.filter.involving_agents),
    ):
        _check_list(values or (), f"filter.{name}", limits.MAX_LIST_ITEMS, limits.MAX_ID_CHARS)


def is_blank(text: str) -> bool:
    """Nothing that a reader would see: white space, controls, zero-width and filler characters only."""
    first = text[:1]
    if first.isascii() and first.isalnum():  # nearly always
        return False
    return all(
        char.isspace() or unicodedata.category(char) in _INVISIBLE_CATEGORIES or _INVISIBLE.match(char) for char in text
    )


# What Unicode files under letters and marks and shows nothing of: fillers, variation selectors, the empty Braille cell.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_INVISIBLE_CATEGORIES = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp", "Cn", "Co"))


def _check_scope(scope: Scope) -> None:
    _check_filled(scope.role, "scope.role", limits.MAX_ROLE_CHARS)
    if not 1 <= scope.max_units <= limits.MAX_UNITS:
        raise InvalidPayload(f"scope.max_units must be from 1 to {limits.MAX_UNITS}.")
    if scope.max_tokens is not None and scope.max_tokens < 1:
        raise InvalidPayload("scope.max_tokens must be at least 1.")
    _check_list(scope.interests or (), "scope.interests", limits.MAX_INTERESTS, limits.MAX_INTEREST_CHARS)
    if scope.active_task_id is not None:
        _check_id(scope.active_task_id, "scope.active_task_id")
    for name in ("relevance_threshold", "recency_weight"):
        value: float | None = getattr(scope, name)
        if value is not None and not 0.0 <= value <= 1.0:
            raise InvalidPayload(f"scope.{name} must be from 0.0 to 1.0.")
    _check_epoch(scope.since_epoch, "scope.since_epoch")
    _check_list(scope.sessions or (), "scope.sessions", limits.MAX_SESSIONS, limits.MAX_ID_CHARS)


def _check_relations(relations: Sequence[Relation]) -> None:
    if len(relations) > limits.MAX_RELATIONS:
        raise InvalidPayload(f"relations holds {len(relations)} items; the most is {limits.MAX_RELATIONS}.")
    for at, relation in enumerate(relations):
        _check_id(relation.target_id, f"relations[{at}].target_id")
        _check_optional(relation.description, f"relations[{at}].description", limits.MAX_DESCRIPTION_CHARS)


def _check_epoch(value: int | None, name: str) -> None:
    if value is not None and not 0 <= value <= limits.MAX_EPOCH:
        raise InvalidPayload(f"{name} must be from 0 to 2^53-1.")


def _check_id(value: str, name: str, error: type[InvalidEnvelope | InvalidPayload] = InvalidPayload) -> None:
    if not value or value.isspace():
        raise error(f"{name} must not be empty.")
    if len(value) > limits.MAX_ID_CHARS:
        raise error(f"{name} is longer than {limits.MAX_ID_CHARS} characters.")
    if not value.isprintable():
        raise error(f"{name} holds control or invisible characters.")


def _check_filled(value: str, name: str, most: int) -> None:
    if is_blank(value):
        raise InvalidPayload(f"{name} must not be empty.")
    _check_text(value, name, most)


def _check_optional(value: str | None, name: str, most: int) -> None:
    if value is not None:
        _check_text(value, name, most)


def _check_list(values: Iterable[str], name: str, most_items: int, most_chars: int) -> None:
    for at, value in enumerate(values):
        if at >= most_items:
            raise InvalidPayload(f"{name} holds more than {most_items} items.")
        _check_text(value, f"{name}[{at}]", most_chars)


def _check_text(value: str, name: str, most: int) -> None:
    if len(value) > most:
        raise InvalidPayload(f"{name} is longer than {most} characters.")
    if value.isascii():
        if "\x00" in value:
            raise InvalidPayload(f"{name} holds a NUL character.")
    elif "\x00" in value or _has_surrogate(value):
        raise InvalidPayload(f"{name} holds a NUL character or half of a surrogate pair.")


def _has_surrogate(value: str) -> bool:
    # Such a string cannot be written as UTF-8, so it could be neither stored nor answered.
    return any("\ud800" <= char <= "\udfff" for char in value)
