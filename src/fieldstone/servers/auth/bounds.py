"""What a key can hand on: one that it makes, or rotates, may nothing that it may not itself."""

from typing import NamedTuple

from fieldstone.core.access import LOCAL, Caller
from fieldstone.ports.access import KeyRecord
from fieldstone.retrieval.reading import timestamp


class Maker(NamedTuple):
    """Who makes or rotates a key. `default_rate` is what counts for keys that have no rate of their own."""

    caller: Caller = LOCAL
    default_rate: float | None = None


class Excess(NamedTuple):
    """The first field by which a key would grant too much, and what it must be."""

    field: str
    must: str


def excess_of(key: KeyRecord, maker: Maker, own: KeyRecord | None) -> Excess | None:
    """Where the key goes beyond its maker. `own` is the maker's key.

    None: it is a token, whose end is that of a login, and not of what its holder may do.
    """
    caller = maker.caller
    if caller.is_local:
        return None
    if key.authority > caller.authority:
        return Excess("authority", f"at most {caller.authority}")
    if caller.agents is not None and not (key.agents is not None and caller.agents.issuperset(key.agents)):
        return Excess("agents", "some of those that the key that makes it has")
    if _is_above(key.rate_per_second, _most_rate(key, maker)):
        return Excess("rate_per_second", f"at most {_most_rate(key, maker):g}")
    if _is_above(key.quota_units, caller.quota_units):
        return Excess("quota_units", f"at most {caller.quota_units}")
    if own is not None and own.expires_ms is not None and _is_above(key.expires_ms, own.expires_ms):
        return Excess("expires", f"at the latest {timestamp(own.expires_ms)}")
    return None


def _most_rate(key: KeyRecord, maker: Maker) -> float | None:
    """A key without a rate has the server's default: it makes others like itself, or such that may less."""
    own = maker.caller.rate_per_second
    return maker.default_rate if own is None and key.rate_per_second is not None else own


def _is_above(wanted: float | None, most: float | None) -> bool:
    """None is no limit at all."""
    return most is not None and (wanted is None or wanted > most)
