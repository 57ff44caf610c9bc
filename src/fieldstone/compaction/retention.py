"""Retention policies: what is to become of aged units, as data that somebody set. Pure.

Nothing expires by itself: a policy acts when somebody applies it, or when its schedule says so.
"""

import re
from collections.abc import Sequence, Set
from typing import Final, get_args

from msgspec import Struct

from fieldstone.compaction.schedule import BadSchedule, Schedule, parse_schedule
from fieldstone.core.errors import InvalidPayload
from fieldstone.core.limits import MAX_EPOCH, MAX_ID_CHARS
from fieldstone.core.vocabulary import Strategy, UnitStatus

MOST_POLICIES: Final = 100
POLICY_NAME: Final = re.compile(r"[a-z0-9-]{1,64}")

_DURATION: Final = re.compile(r"(?P<count>[0-9]{1,6})(?P<unit>[mhdw])")
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


class Match(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which units a policy is about. What is not said does not restrict."""

    session: str | None = None
    types: tuple[str, ...] | None = None
    status: tuple[str, ...] | None = None


class Policy(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of the units that match, those older than the age go, and the oldest beyond the cap. Held and pinned ones stay.

    Without a schedule it acts only when somebody applies it.
    """

    name: str
    strategy: Strategy
    match: Match = Match()
    max_age_epochs: int | None = None
    max_age: str | None = None  # such as 30d
    max_units: int | None = None
    schedule: str | None = None  # cron, UTC
    enabled: bool = True

    @property
    def max_age_ms(self) -> int | None:
        return None if self.max_age is None else duration_ms(self.max_age)

    @property
    def due(self) -> Schedule | None:
        """None: only when somebody applies it."""
        return parse_schedule(self.schedule) if self.enabled and self.schedule is not None else None


def check_policies(policies: Sequence[Policy], memory_types: Set[str]) -> None:
    """Raises `InvalidPayload`, which says what is wrong with which policy."""
    if len(policies) > MOST_POLICIES:
        raise InvalidPayload(f"policies has more than {MOST_POLICIES} of them.")
    names = [policy.name for policy in policies]
    for at, policy in enumerate(policies):
        if not POLICY_NAME.fullmatch(policy.name):
            raise InvalidPayload(f"policies[{at}].name must be 1 to 64 of a-z, 0-9 and -.")
        if policy.name in names[:at]:
            raise InvalidPayload(f"policies[{at}].name is the name of another policy.")
        _check_limits(policy, f"policies[{at}]")
        _check_match(policy.match, f"policies[{at}].match", memory_types)
        _check_schedule(policy, f"policies[{at}].schedule")


def duration_ms(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None or int(found["count"]) == 0:
        raise InvalidPayload("max_age looks like 90m, 12h, 30d or 8w.")
    return int(found["count"]) * _UNIT_MS[found["unit"]]


def _check_limits(policy: Policy, where: str) -> None:
    if policy.max_age_epochs is not None and policy.max_age is not None:
        raise InvalidPayload(f"{where} has max_age_epochs and max_age: an age is in epochs or in time.")
    if policy.max_age_epochs is None and policy.max_age is None and policy.max_units is None:
        raise InvalidPayload(f"{where} needs max_age_epochs, max_age or max_units: without one, everything would go.")
    if policy.max_age_epochs is not None and not 0 <= policy.max_age_epochs <= MAX_EPOCH:
        raise InvalidPayload(f"{where}.max_age_epochs must be from 0 to 2^53-1.")
    if policy.max_units is not None and not 0 <= policy.max_units <= MAX_EPOCH:
        raise InvalidPayload(f"{where}.max_units must be from 0 to 2^53-1.")
    if policy.max_age is not None:
        try:
            duration_ms(policy.max_age)
        except InvalidPayload as wrong:
            raise InvalidPayload(f"{where}.{wrong.message}") from None


def _check_match(match: Match, where: str, memory_types: Set[str]) -> None:
    for name, values, known in (
        ("types", match.types, memory_types),
        ("status", match.status, frozenset(get_args(UnitStatus)) - {"draft"}),  # drafts are their authors' alone
    ):
        if values is not None and not values:
            raise InvalidPayload(f"{where}.{name} must not be empty; leave it out for no restriction.")
        if values is not None and not set(values) <= known:
            raise InvalidPayload(f"{where}.{name} takes {', '.join(sorted(known))}.")
    if match.session is not None and not 0 < len(match.session) <= MAX_ID_CHARS:
        raise InvalidPayload(f"{where}.session must have 1 to {MAX_ID_CHARS} characters.")


def _check_schedule(policy: Policy, where: str) -> None:
    if policy.schedule is None:
        return
    try:
        parse_schedule(policy.schedule)
    except BadSchedule as bad:
        raise InvalidPayload(f"{where}: {bad}") from bad
