"""The bounds of a memory host, as its settings have them. Discovery tells them."""

from typing import Final

from msgspec import Struct

GROUP_ENTRIES: Final = 100  # a compaction of more than this need not name its sources, so ours takes no more at once


class HostLimits(Struct, frozen=True, kw_only=True):
    max_entry_bytes: int = 65_536
    max_input_entries: int = 1_000
    max_output_bytes: int = 65_536
    max_token_budget: int = 100_000
    deletes: bool = False  # originals of a compaction are purged, and not archived

    @property
    def group_entries(self) -> int:
        return min(GROUP_ENTRIES, self.max_input_entries)
