"""Letters that look like other letters, and characters that are not seen: one plain spelling for all of them.

Unicode's compatibility forms (full-width, circled, mathematical letters) are taken apart by the standard library. What
merely looks alike (a Cyrillic letter for a Latin one) is in no table there, so the Latin look-alikes are listed here.
"""

import re
import unicodedata
from collections.abc import Callable, Set
from functools import cached_property
from typing import Final

from fieldstone.redact.views import Pieced, View

# What is done to each character first: nothing, or a change of case.
Case = Callable[[str], str]

# Each row: what is meant, and what is written for it. Only what decomposition does not give by itself.
_ROWS: Final = """
a аɑα⍺ᴀ  A АΑᎪᗅꓮ  b ЬьƄᏏᑲвʙ  B ВΒᏴᗷꓐꞴ  c сϲᴄⅽⲥꮯ  C СϹᏟⲤꓚ  d ԁɗᏧᑯⅾđᴅ  D ᎠᗞᗪꓓĐÐ  e еҽєεᴇℯəɛ  E ЕΕᎬⴹꓰЄ
f ƒſꬵքғꜰ  F ϜᖴꓝҒ  g ɡցɢᶃǥ  G ԌᏀꓖǤ  h һհᏂнħʜ  H НΗᎻᕼꓧꞪĦ  i іıɩιӏɪɨ  I ІΙⵊꓲӀƗ  j јϳյȷᴊɉ  J ЈᎫᒍꓙͿɈ
k кκⲕᴋƙĸқ  K КΚᏦⲔꓗҚƘ  l ⅼ|ǀլłʟƚ  L ᏞԼᒪⳐꓡŁȽ  m мⅿᴍɱ  M МΜᎷᗰꓟϺ  n пոռηɴƞŋ  N ΝⲚꓠŊ  o оοσօഠဝᴏөøⲟ  O ОΟՕⲞꓳØӨ
p рρϱᴘⲣƿþ  P РΡᏢᑭꓑⲢ  q ԛգզʠ  Q ԚⵕɊ  r гᴦⲅꭇʀɍ  R ᎡᏒᖇꓣƦɌ  s ѕꜱƽʂ  S ЅՏᏕᏚꓢ  t тτᴛŧƭ  T ТΤᎢⲦꓔŦ
u υսʋᴜцꭎμ  U ՍሀᑌꓴЦ  v ѵνᴠᶌ  V ѴᏙᐯꓦⴸ  w ԝωաѡᴡɯ  W ԜᎳꓪѠ  x хχᕁⅹ×  X ХΧ᙭ꓫⲬ  y уүγყʏỿ  Y ҮУΥᎩᎽꓬⲨ  z ᴢʐƶᏃ  Z ΖᏃꓜƵ
0 ⵔ𐓂  1 ⅠƖ  2 ƧᒿꙄ  3 ЗзӠƷȜꝪⳌ  4 ЧчᏎ  5 Ƽ  6 бᏮⳒ  7 𐓒  8 Ȣȣ৪  9 ৭Ⳋ
- ‐‑‒–—―−﹣－ー  _ ˍ＿  . ․‧・。  / ⁄∕╱／  : ː˸∶։  + ➕  = ═᐀  ss ßẞ
"""
# They are letters to Unicode, and nothing to the eye.
_UNSEEN_LETTERS: Final = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_OTHERS: Final = re.compile(r"[^\x00-\x7f]+")
_SQUARED_A: Final = (0x1F150, 0x1F170, 0x1F1E6)  # white letters on black circles, on black squares; flags


def canonical(view: View, case: Case = str) -> View:
    """The text in plain letters: in ASCII as far as its characters, in that case, have a likeness there."""
    text = view.data.decode("utf-8", "surrogateescape")
    plain = _OTHERS.sub(lambda found: found[0].translate(_PLAIN[case]), text)
    return view.read(plain.encode("utf-8"), _Spelled(view.data, case))


def has_other_letters(others: Set[str]) -> bool:
    """Whether one of these characters stands for a letter, and not only for a dash or a quotation mark."""
    return any(_PLAIN[str][ord(other)].isalnum() for other in others)


def has_lookalikes(others: Set[str]) -> bool:
    """Whether one of these letters of another alphabet looks like one of ours."""
    return any(other in _ALIKE and other.isalpha() for other in others)


def others(text: bytes) -> Set[str]:
    """The characters of a text that are not in ASCII."""
    return set("".join(_OTHERS.findall(text.decode("utf-8", "surrogateescape"))))


class _Spelled:
    """The origin of a canonical text: worked out, when it is asked for, from character to character that changed."""

    def __init__(self, source: bytes, case: Case) -> None:
        self._source: Final = source
        self._case: Final = case

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        return self._pieces(start, end)

    @cached_property
    def _pieces(self) -> Pieced:
        at: list[int] = []
        sources: list[tuple[int, int]] = []
        read = written = done = 0
        text = self._source.decode("utf-8", "surrogateescape")
        for found in _OTHERS.finditer(text):
            for part in (text[done : found.start()], *found[0]):
                plain = part if part.isascii() else part.translate(_PLAIN[self._case])
                size = len(part.encode("utf-8", "surrogateescape"))
                length = len(plain.encode("utf-8"))
                # A character as long as its spelling is not to be taken for text that did not change.
                for offset in range(length) if length == size and not part.isascii() else range(bool(length)):
                    at.append(written + offset)
                    sources.append((read, read + size))
                read, written = read + size, written + length
            done = found.end()
        return Pieced([*at, written], [*sources, (read, len(self._source))])


def _spelling(character: str) -> str:
    if character in _UNSEEN_LETTERS:
        return ""
    if character in _ALIKE:
        return _ALIKE[character]
    return "".join(_part(each) for each in unicodedata.normalize("NFKD", character))


def _part(character: str) -> str:
    if character.isascii():
        return character
    if character in _ALIKE:
        return _ALIKE[character]
    category = unicodedata.category(character)
    if category in {"Mn", "Me", "Cf"}:
        return ""
    if category == "Nd":
        return str(unicodedata.digit(character))
    # A symbol is no part of a word, and stands for a gap.
    return character if category.startswith(("L", "N")) else " "


def _alike() -> dict[str, str]:
    fields = _ROWS.split()
    alike = {
        other: meant
        for meant, others in zip(fields[::2], fields[1::2], strict=True)
        for other in others
        if not other.isascii()
    }
    for other, meant in list(alike.items()):
        for turned in (other.lower(), other.upper()):
            if len(turned) == 1 and not unicodedata.normalize("NFKD", turned).isascii():
                alike.setdefault(turned, meant)
    for first in _SQUARED_A:
        alike.update({chr(first + index): chr(ord("A") + index) for index in range(26)})
    return alike


class _Plain(dict[int, str]):
    """Spellings of the characters that were met. Another's choice of characters must not fill the memory."""

    KEPT_MAX: Final = 20_000

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._case: Final = case

    def __missing__(self, code: int) -> str:
        spelling = "".join(map(_spelling, self._case(chr(code))))
        if len(self) < self.KEPT_MAX:
            self[code] = spelling
        return spelling


_ALIKE: Final = _alike()
_PLAIN: Final[dict[Case, _Plain]] = {case: _Plain(case) for case in (str, str.lower, str.upper)}
