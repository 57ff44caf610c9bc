"""The pieces that statements are compared by."""

import re
from typing import Final, Literal, NamedTuple

from fieldstone.detection.quantities import Moment, Quantity
from fieldstone.detection.tables import words

# word, name: by their letters. number: a quantity. label: a number that belongs to the word before it ("port 80").
# ordinal, moment: which one, when. id: a path, an address, a ticket, a hash.
Kind = Literal["word", "name", "number", "label", "ordinal", "moment", "id"]


class Token(NamedTuple):
    """A word or value that carries meaning. `key` is equal for what means the same."""

    key: str
    text: str
    kind: Kind
    stem: str = ""
    preposition: str = ""  # the last one since the token before
    article: str = ""
    listed: bool = False  # a comma stands beside it
    quantity: Quantity | None = None
    moment: Moment | None = None
    label: str = ""  # of a label: the key of the word it belongs to


# Most words are plain, so they are tried first: it halves the time. Then in the order of what must not be cut.
# Runs are bounded, so that a line of hyphens costs no more than a line of words.
_RAW: Final = re.compile(
    r"""
    (?P<plain> [A-Za-z][a-z]*(?=[\s,;:!?)]|\.?$|\.\s) )
  | (?P<id> [a-zA-Z][\w+.-]{0,20}://\S+ | \w[\w.+-]{0,60}@[\w-]+(?:\.[\w-]+)+
          | (?:\.{0,2}/)?\w[\w.-]{0,60}(?:/[\w.-]+){2,} | (?<!\w)/[\w.-]+ | (?:\w[\w.-]{0,60}/)?\w[\w-]{0,60}
              \.(?:py|tsx?|js|md|txt|json|toml|ya?ml|csv|sql|go|rs|java|html|css|sh|log|cfg|ini|xml|pdf)\b
          | \d+\.\d+\.\d+\.\d+(?::\d+)? | [A-Z][A-Z0-9]+-\d+\b | \#\d+ | \b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b )
  | (?P<moment> \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)? | \d{1,2}:\d\d(?::\d\d)? | \d{1,2}[/.]\d{1,2}[/.]\d{2,4} )
  | (?P<number> [$€£]?(?<![\w.])\d[\d,]*(?:\.\d+)*(?:st|nd|rd|th|%|[a-zA-Zµ]{1,4}\b)? )
  | (?P<mixed> [A-Za-z]{1,40}(?:[-_.][A-Za-z]{1,40}){0,4}[-_.]?\d[\w.-]*\b | [cC](?:\+\+|\#) | \w+_\w+ )
  | (?P<word> [^\W\d_]+(?:['’][^\W\d_]+)? )
  | (?P<mark> [,:()/] )
    """,
    re.VERBOSE,
)


class Raw(NamedTuple):
    text: str
    lower: str
    group: str


_CONTRACTED: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_TAILS: Final = {"s": "is", "re": "are", "m": "am", "ll": "will"}
_MAY_TAKE_IS: Final = words("it he she that this there here who what where how i we you they")


def raws(sentence: str, most: int) -> list[Raw]:
    """The words, numbers and marks of a sentence, contractions written out."""
    found: list[Raw] = []
    for match in _RAW.finditer(sentence):
        group = match.lastgroup or "mark"
        text = match.group()
        lower = text.lower()
        if group == "plain":
            group = "word"
        if lower == "cannot" or (group == "word" and not lower.isalpha()):
            found += (Raw(part, part.lower(), "word") for part in _written_out(text.replace("’", "'")))
        else:
            found.append(Raw(text, lower, group))
        if len(found) >= most:
            break
    return found


def _written_out(text: str) -> list[str]:
    lower = text.lower()
    if lower == "cannot":
        return ["can", "not"]
    if lower.endswith("n't"):
        base = lower[:-3]
        return [_CONTRACTED.get(base, base), "not"]
    base, _, tail = text.partition("'")
    if tail in _TAILS and base.lower() in _MAY_TAKE_IS:
        return [base, _TAILS[tail]]
    return [base]
