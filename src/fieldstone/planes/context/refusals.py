"""How models say that a prompt is too long for them."""

import re
from typing import Final, NamedTuple

_REFUSES: Final = re.compile(
    r"(?i)context_length_exceeded|maximum context length|prompt is too long|input is too long|context[ _]window"
    r"|exceeds? the (?:available |model'?s? )?(?:maximum )?context|input length exceeds|too many (?:input )?tokens"
)
_LIMIT: Final = re.compile(r"(?i)maximum context length (?:is|of) ([\d,]+)|> ([\d,]+) maximum|limit of ([\d,]+) tokens")
_SIZE: Final = re.compile(r"(?i)(?:resulted in|requested|too long:|contains?) (?:about )?([\d,]+) tokens")
_READ_CHARS: Final = 10_000


class LengthRefusal(NamedTuple):
    limit_tokens: int | None = None  # where the model told it
    size_tokens: int | None = None


def length_refusal(error: BaseException) -> LengthRefusal | None:
    """None for every other error. Clients differ: a code, a body or the message says it."""
    told = " ".join(str(each) for each in (error, getattr(error, "code", ""), getattr(error, "body", "")))
    told = told[:_READ_CHARS]
    if not _REFUSES.search(told):
        return None
    return LengthRefusal(_number(_LIMIT, told), _number(_SIZE, told))


def _number(pattern: re.Pattern[str], told: str) -> int | None:
    found = pattern.search(told)
    return int(found[found.lastindex or 0].replace(",", "")) if found else None
