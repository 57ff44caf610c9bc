"""How often a credential may call: a token bucket for each one that has a rate."""

from typing import Final

from fieldstone.core.access import Caller
from fieldstone.core.errors import RateLimited

BURST_S: Final = 2.0  # what was not used of the last two seconds may be used at once
REMEMBERED_CREDENTIALS: Final = 10_000


class Limits:
    """A bounded table: the credential that called longest ago is forgotten first, and begins with a full bucket."""

    def __init__(self, *, most: int = REMEMBERED_CREDENTIALS) -> None:
        self._most = most
        self._buckets: dict[str, tuple[float, float]] = {}  # credential → requests it may send, and as of when

    def take(self, caller: Caller, *, now_ms: float, times: int = 1) -> None:
        """Count a request, or all that it holds, or raise `RateLimited`. `now_ms`: of a clock that never goes back."""
        rate = caller.rate_per_second
        if caller.credential is None or rate is None:
            return
        burst = max(1.0, rate * BURST_S)
        left, since_ms = self._buckets.pop(caller.credential, (burst, now_ms))
        left = min(burst, left + (now_ms - since_ms) * rate / 1_000)
        refused = left < 1.0  # one that holds many is let in with one to spare, and the next ones wait the longer
        self._remember(caller.credential, left if refused else left - times, now_ms)
        if refused:
            # Whoever is refused is not counted, so that asking too early does not put off the next answer.
            raise RateLimited(
                f"This credential may send {rate:g} requests a second.", retry_after_s=(1.0 - left) / rate
            )

    def _remember(self, credential: str, left: float, now_ms: float) -> None:
        if len(self._buckets) >= self._most:
            self._buckets.pop(next(iter(self._buckets)))
        self._buckets[credential] = (left, now_ms)
