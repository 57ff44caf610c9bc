"""Secrets by their shape: kingfisher's catalogue and our rules.yml, in one native scan.

Only the rules and the scanner of `kingfisher_sdk` are used. The package also holds a validator and a revoker, which
call out to the network: a house test bans them.
"""

import re
from collections.abc import Iterator
from importlib.resources import as_file, files
from typing import Final

from kingfisher_sdk.rules import Rules
from kingfisher_sdk.scanner import Scanner

from fieldstone.redact.plausible import JUDGES
from fieldstone.redact.spans import Span

# The engine looks back from every match, so a text full of matches costs its length squared. A longer text is searched
# in pieces that overlap: no bounded rule's match is longer than the overlap, and no token is cut.
PIECE_BYTES: Final = 4096
OVERLAP_BYTES: Final = 1024
# A run without white space is cut only here. Tokens have to fit in a request's header, which is smaller.
RUN_BYTES_MAX: Final = 16 * 1024

# A scan of many texts takes 0.1 ms. One that takes this long is full of matches: its texts are searched one by one.
MANY_TIMEOUT_S: Final = 0.05

MARKER_RULE: Final = "fieldstone.marker"

# The catalogue hides these because they only help to validate another finding. They are secrets all the same.
HIDDEN_SECRETS: Final = frozenset(
    {
        "betterleaks.alibaba-sts-security-token",
        "betterleaks.aws-secret-access-key",
        "betterleaks.exoscale-api-secret",
        "betterleaks.ovh-consumer-key",
        "betterleaks.polymarket-api-secret",
        "betterleaks.polymarket-passphrase",
    }
)

# It takes a database's whole address, of which only the password is a secret.
WHOLE_ADDRESS: Final = "betterleaks.mongodb-connection-string"
# They take a few characters in the middle of the token.
PART_OF_TOKEN: Final = frozenset({"betterleaks.jwt-base64", "betterleaks.microsoft-teams-webhook"})

# Between two requests: longer than any window in which a rule steps over line breaks, and with the characters at which
# a rule's "anything but" stops, so that no match begins in one request and ends in another.
GROUP_BREAK: Final = b"\n\x1e" * 17 + b"\"'{}" + b"\x1e\n" * 17
# Between two texts of a request: what a rule takes for the end of a token, and what its white space does not step over.
TEXT_BREAK: Final = "\n\x1e\n"


class Patterns:
    """A detector. It keeps no state between calls, and may be used from many threads."""

    def __init__(self) -> None:
        with as_file(files("fieldstone.redact") / "rules.yml") as own_rules:
            rules = Rules([own_rules])
        # base64=True costs half as much again for one encoding of many: disguises want a detector of their own.
        self._scanner: Final = Scanner(rules, base64=False)
        self.rule_ids: Final = frozenset(str(rule["id"]) for rule in rules.metadata())

    def none_in(self, texts: bytes) -> bool:
        """Whether none of the texts holds a secret or a marker. None may be longer than PIECE_BYTES."""
        data = _scannable(texts)
        try:
            # Both views in one scan: a call costs as much as 3 kB of text, and a single request has a tenth of that.
            return not self._scanner.scan(data + GROUP_BREAK + _loosened(data), timeout=MANY_TIMEOUT_S)
        except TimeoutError:
            return False

    def spans(self, text: bytes) -> Iterator[Span]:
        for start, end in pieces(text):
            for span in self._in_piece(text[start:end]):
                yield Span(start + span.start, start + span.end, span.rule_id)

    def _in_piece(self, piece: bytes) -> Iterator[Span]:
        data = _scannable(piece)
        yield from self._found(data, data)
        for span in self._found(_loosened(data), data):
            # Our rules need no loosening, and without its brackets a template would look like a value.
            if not span.rule_id.startswith("fieldstone."):
                yield span

    def _found(self, view: bytes, data: bytes) -> Iterator[Span]:
        for finding in self._scanner.scan(view):
            rule_id = finding.rule_id
            if rule_id == MARKER_RULE or not (finding.visible or rule_id in HIDDEN_SECRETS):
                continue
            location = finding.location
            start, end = _extent(rule_id, data, location["start_offset"], location["end_offset"])
            if start < end:
                yield Span(start - 1, end - 1, rule_id)  # less the line break put before


_ADDRESS: Final = re.compile(rb"[^:]*://[^:]*:(.+)@")
_TOKEN: Final = re.compile(rb"[^\s\"'`<>]+")


def _extent(rule_id: str, data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the secret of a finding begins and ends; for a candidate that is none, nowhere."""
    if rule_id == WHOLE_ADDRESS and (address := _ADDRESS.match(data, start, end)):
        return address.span(1)
    if rule_id in PART_OF_TOKEN:
        return next((token.span() for token in _TOKEN.finditer(data) if token.end() >= end), (start, end))
    if judge := JUDGES.get(rule_id):
        return start, start + len(judge(data[start:end]))
    return start, end


def _scannable(text: bytes) -> bytes:
    """The text as the engine is to see it.

    Line breaks around it are what a text has between two breaks, so that it reads the same alone and among others. And
    many zero bytes make the engine decode UTF-16: its offsets would be those of another text.
    """
    return b"\n%b\n" % text.replace(b"\0", b" ")


def _loosened(text: bytes) -> bytes:
    """The text with a space for each byte of punctuation and of other alphabets.

    Two thirds of the catalogue's rules want a space, a quote or the end behind a token, as in a configuration file. In
    prose it is followed by a full stop, a comma, a bracket, or 「です」.
    """
    return text.translate(_LOOSE)


_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=:~@$\\'\"`;\n\r\t"
_LOOSE: Final = bytes(byte if byte in _TOKEN_BYTES else 0x20 for byte in range(256))


_GAP: Final = re.compile(rb"[ \n]")


def pieces(text: bytes) -> Iterator[tuple[int, int]]:
    """The whole text in ranges that overlap, cut at white space as long as there is some."""
    start = 0
    while len(text) - start > PIECE_BYTES:
        end = _gap(text, start + OVERLAP_BYTES, start + PIECE_BYTES) or _run_end(text, start)
        yield start, end
        if end == len(text):
            return
        start = _gap(text, start + 1, end - OVERLAP_BYTES) or end - OVERLAP_BYTES
    yield start, len(text)


def _gap(text: bytes, start: int, end: int) -> int:
    """Where a word begins behind the last white space in the range, or 0."""
    return max(text.rfind(b" ", start, end), text.rfind(b"\n", start, end)) + 1


def _run_end(text: bytes, start: int) -> int:
    limit = min(start + RUN_BYTES_MAX, len(text))
    gap = _GAP.search(text, start + PIECE_BYTES, limit)
    return gap.end() if gap else limit
