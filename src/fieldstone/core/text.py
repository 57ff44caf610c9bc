"""Text that took the redaction road.

Events and stores accept `CleanText` and never plain `str`, so that forgetting to redact is a type error.
"""

from typing import NewType

# Only fieldstone.redact may make one: a house test looks for the call, and for a cast, everywhere else.
CleanText = NewType("CleanText", str)
