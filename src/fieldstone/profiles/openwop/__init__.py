"""The OpenWOP memory host (RFC 0004, 0012, 0057, 0062, 0068, 0113), as a view on a Field."""

from fieldstone.profiles.openwop.adapter import Distilled, MemoryAdapter, MemoryEntry, MemoryList, SeedEntry
from fieldstone.profiles.openwop.feed import Feed, FeedEvent
from fieldstone.profiles.openwop.limits import HostLimits

__all__ = (
    "Distilled",
    "Feed",
    "FeedEvent",
    "HostLimits",
    "MemoryAdapter",
    "MemoryEntry",
    "MemoryList",
    "SeedEntry",
)
