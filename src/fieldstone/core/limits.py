"""Named bounds, each with its reason. A bound that is met is refused with a sentence that names it."""

from typing import Final

MAX_EPOCH: Final = 2**53 - 1  # the largest integer that every JSON client can hold
DEFAULT_EPOCH_LEAP: Final = (
    10_000  # how far ahead of the Field a caller's epoch may be: it can neither wreck the clock nor age the field
)

MAX_ID_CHARS: Final = 256  # agent, session, task, message and target ids are names, not texts
MAX_ROLE_CHARS: Final = 256
MAX_INTERESTS: Final = 100  # each one widens every ATTUNE of the agent
MAX_INTEREST_CHARS: Final = 1_000
MAX_CONTENT_CHARS: Final = 1_000_000
MAX_INTENT_CHARS: Final = 10_000
MAX_REASONING_CHARS: Final = 100_000
MAX_LIST_ITEMS: Final = 1_000  # evidence, assumptions
MAX_ITEM_CHARS: Final = 10_000
MAX_RELATIONS: Final = 1_000
MAX_DESCRIPTION_CHARS: Final = 10_000
MAX_REASON_CHARS: Final = 10_000
MAX_HINT_CHARS: Final = 20_000
MAX_UNITS: Final = 1_000_000  # "all of them", as the contract has it
MAX_SESSIONS: Final = 1_000

MAX_AUTHORITY: Final = 10
DEFAULT_AUTHORITY: Final = 4

MIN_EPOCH_WAIT_MS: Final = 2_000  # how long ATTUNE waits for min_epoch before EPOCH_NOT_REACHED

KEPT_HINTS: Final = 1_000  # compaction is tested on the field's last requests; older hints are erased
LOGGED_RESULTS: Final = 1_000  # unit ids a read's log entry names; the count beside them is always the whole
