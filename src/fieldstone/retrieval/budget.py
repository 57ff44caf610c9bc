"""A page within a token budget: for each unit its full text, a summary or nothing, so that most relevance is kept.

That is a knapsack with a choice for each unit. It is solved exactly: a greedy answer says what a token is worth, what
cannot be in a better answer is struck out, and what is left (a few units around the price of a token) is tried out.
Being exact has a use: a larger budget never keeps less.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np

from fieldstone.ports.tokens import TokenCounter
from fieldstone.retrieval.summary import READ_CHARS, Wanted, summarize

Format = Literal["full", "summary"]

SUMMARY_TOKENS: Final = 64  # two or three sentences
BEST_SUMMARY_TOKENS: Final = (16, 32, 64, 128)  # the best unit is to be there in any budget
SUMMARIZED_FROM: Final = 1.5  # a text shorter than this many summaries is short enough
SHORT_TOKENS: Final = int(SUMMARY_TOKENS * SUMMARIZED_FROM) - 1
COUNTED_TOKENS: Final = int(max(BEST_SUMMARY_TOKENS) * SUMMARIZED_FROM)  # up to here that has to be known

# Of a unit's relevance a summary keeps a part for being there, and the rest by how much of the text and of the wanted
# words it holds. It is always less than the full text's.
PRESENCE_SHARE: Final = 0.6
TEXT_SHARE: Final = 0.15
WANTED_SHARE: Final = 0.15
LEAST_WORTH: Final = 0.001  # added to every score: what fits is shown, even when nothing speaks for it

# Who is looked at: the first of the page and those that are short for what they are worth, each up to so many budgets.
POOL_BUDGETS: Final = 1.25
DENSE_POOL_BUDGETS: Final = 0.75
LEAST_POOL_TOKENS: Final = 256  # a short page is looked at as a whole, however small the budget is
CHARS_PER_TOKEN: Final = 4  # about, before anything is counted
MOST_CELLS: Final = 4_000_000  # of the table that is filled to be exact: about 20 ms
TOLERANCE: Final = 1e-9


class Piece(NamedTuple):
    content: str
    score: float


class Content(NamedTuple):
    piece: int  # its index
    text: str
    format: Format


class Packed(NamedTuple):
    contents: list[Content]  # in page order
    tokens_used: int
    left_out: list[int]


class Form(NamedTuple):
    """One way to show a unit; without a text it is left out."""

    text: str | None
    format: Format
    tokens: int
    worth: float


class Step(NamedTuple):
    """From one form of a unit to a longer one."""

    price: float  # worth for each token
    unit: int
    form: int


LEFT_OUT: Final = Form(None, "full", 0, 0.0)
Forms = list[Form]  # of one unit, shortest first


def pack(
    pieces: Sequence[Piece],
    max_tokens: int,
    counter: TokenCounter,
    *,
    wanted: Collection[str] = (),
    format: Format = "full",
) -> Packed:
    """The pieces are in page order, best first. The best one is there in some form if any form of it fits."""
    if format == "full" and (packed := _all_in_full(pieces, max_tokens, counter)):
        return packed
    editor = _Editor(max_tokens, counter, Wanted(wanted))
    pool = _pool(pieces, max_tokens)
    chosen = choose([editor.forms(pieces[at], format, best=at == 0) for at in pool], max_tokens)
    contents = [
        Content(at, form.text, form.format) for at, form in zip(pool, chosen, strict=True) if form.text is not None
    ]
    shown = {content.piece for content in contents}
    left_out = [at for at in range(len(pieces)) if at not in shown]
    return Packed(contents, sum(form.tokens for form in chosen), left_out)


def condense(text: str, counter: TokenCounter, wanted: Collection[str] = ()) -> str:
    """The text as format `summary` shows it where there is no budget."""
    if counter.count_within(text, SHORT_TOKENS) is not None:
        return text
    return summarize(text, SUMMARY_TOKENS, counter.count, Wanted(wanted)) or text


def share(text: str, summary: str, wanted: Wanted) -> float:
    """What a summary keeps of its unit's relevance."""
    of_text = min(1.0, len(summary) / len(text))
    held = wanted.found_in(summary)
    all_held = held | wanted.found_in(text[:READ_CHARS])
    of_wanted = len(held) / len(all_held) if all_held else of_text
    return PRESENCE_SHARE + TEXT_SHARE * of_text + WANTED_SHARE * of_wanted


def _all_in_full(pieces: Sequence[Piece], max_tokens: int, counter: TokenCounter) -> Packed | None:
    left = max_tokens
    for piece in pieces:
        tokens = counter.count_within(piece.content, left)
        if tokens is None:
            return None
        left -= tokens
    return Packed([Content(at, piece.content, "full") for at, piece in enumerate(pieces)], max_tokens - left, [])


class _Editor:
    """Makes the forms of a piece. A budget can rule a form out, but never brings another one about."""

    def __init__(self, max_tokens: int, counter: TokenCounter, wanted: Wanted) -> None:
        self._max_tokens = max_tokens
        self._counter = counter
        self._wanted = wanted

    def forms(self, piece: Piece, format: Format, *, best: bool) -> Forms:
        worth = max(piece.score, 0.0) + LEAST_WORTH
        tokens = self._counter.count_within(piece.content, max(self._max_tokens, COUNTED_TOKENS))
        sizes = BEST_SUMMARY_TOKENS if best else (SUMMARY_TOKENS,)
        forms = {size: form for size in sizes if (form := self._summary(piece.content, tokens, worth, size))}
        whole = format == "full" or SUMMARY_TOKENS not in forms
        fitting = {form.text: form for form in forms.values() if form.tokens <= self._max_tokens}
        if whole and tokens is not None and tokens <= self._max_tokens:
            fitting[piece.content] = Form(piece.content, format, tokens, worth)
        found = sorted(fitting.values(), key=lambda form: form.tokens)
        return found if best and found else [LEFT_OUT, *found]

    def _summary(self, text: str, tokens: int | None, worth: float, size: int) -> Form | None:
        if tokens is not None and tokens < size * SUMMARIZED_FROM:
            return None
        said = summarize(text, size, self._counter.count, self._wanted)
        if said is None:
            return None
        return Form(said, "summary", self._counter.count(said), worth * share(text, said, self._wanted))


def _pool(pieces: Sequence[Piece], max_tokens: int) -> list[int]:
    """What may come into the page at all, told by lengths alone: the rest is never tokenised."""
    tokens = np.fromiter((len(piece.content) for piece in pieces), np.float64, len(pieces)) / CHARS_PER_TOKEN
    tokens = np.clip(tokens, 1, SUMMARY_TOKENS)
    before = np.cumsum(tokens) - tokens
    pooled = before <= max(POOL_BUDGETS * max_tokens, LEAST_POOL_TOKENS)
    scores = np.fromiter((piece.score for piece in pieces), np.float64, len(pieces)) + LEAST_WORTH
    dense = np.argsort(-scores / tokens, kind="stable")
    dense = dense[~pooled[dense]]
    before = np.cumsum(tokens[dense]) - tokens[dense]
    pooled[dense[before <= max(DENSE_POOL_BUDGETS * max_tokens, LEAST_POOL_TOKENS)]] = True
    return [int(at) for at in np.flatnonzero(pooled)]


def choose(units: Sequence[Forms], max_tokens: int) -> list[Form]:
    """One form of each unit, together within the budget, worth as much as can be."""
    greedy, price = _greedily(units, max_tokens)
    left = _worth_trying(units, max_tokens, greedy, price)
    open_units = [forms for forms in left if len(forms) > 1]
    room = _room(left, max_tokens)
    if sum(map(len, open_units)) * room > MOST_CELLS:
        return greedy  # so many units that what one of them is worth makes little difference
    decided = iter(_exactly(open_units, room))
    return [next(decided) if len(forms) > 1 else forms[0] for forms in left]


def _greedily(units: Sequence[Forms], max_tokens: int) -> tuple[list[Form], float]:
    """From the shortest form of each, always the step that gives most for a token. And the price where it ended."""
    chosen = [forms[0] for forms in units]
    room = max_tokens - sum(form.tokens for form in chosen)
    price: float | None = None
    for step in sorted((step for at, forms in enumerate(units) for step in _steps(at, forms)), key=lambda s: -s.price):
        form = units[step.unit][step.form]
        tokens = form.tokens - chosen[step.unit].tokens
        if tokens <= room and form.worth > chosen[step.unit].worth:
            chosen[step.unit] = form
            room -= tokens
        elif price is None:
            price = step.price
    return chosen, price or 0.0


def _steps(unit: int, forms: Forms) -> Iterator[Step]:
    """Each step gives less for a token than the one before; forms that would break that are stepped over."""
    hull: list[int] = []
    for at, form in enumerate(forms):
        if hull and form.worth <= forms[hull[-1]].worth:
            continue
        while len(hull) > 1 and _price(forms[hull[-2]], forms[hull[-1]]) <= _price(forms[hull[-1]], form):
            hull.pop()
        hull.append(at)
    for before, after in pairwise(hull):
        yield Step(_price(forms[before], forms[after]), unit, after)


def _price(before: Form, after: Form) -> float:
    tokens = after.tokens - before.tokens
    return (after.worth - before.worth) / tokens if tokens else np.inf


def _worth_trying(units: Sequence[Forms], max_tokens: int, greedy: Sequence[Form], price: float) -> list[Forms]:
    """Without the forms that no better answer can have: paying the price for tokens, no answer is worth more than the
    best form of each together, so a form that falls behind its unit's best by the whole gap is out."""
    gains = [[form.worth - price * form.tokens for form in forms] for forms in units]
    bound = price * max_tokens + sum(map(max, gains))
    gap = bound - sum(form.worth for form in greedy) + TOLERANCE
    return [
        [form for form, gain in zip(forms, of_unit, strict=True) if max(of_unit) - gain <= gap]
        for forms, of_unit in zip(units, gains, strict=True)
    ]


def _room(units: Sequence[Forms], max_tokens: int) -> int:
    """What is left to decide about, once every unit has its shortest form."""
    shortest = sum(forms[0].tokens for forms in units)
    return min(max_tokens, sum(forms[-1].tokens for forms in units)) - shortest


def _exactly(units: Sequence[Forms], room: int) -> list[Form]:
    """Dynamic programming over the tokens beyond the shortest forms: the best worth with so much room, unit by unit."""
    best = np.zeros(room + 1)
    tables = []
    for forms in units:
        taken = np.zeros(room + 1, np.int8)
        worths = best + forms[0].worth
        for number, form in enumerate(forms[1:], start=1):
            more = form.tokens - forms[0].tokens
            if more > room:
                break
            other = best[: room + 1 - more] + form.worth
            better = other > worths[more:]
            np.copyto(worths[more:], other, where=better)
            np.copyto(taken[more:], number, where=better)
        best = worths
        tables.append(taken)
    chosen = []
    for forms, taken in zip(reversed(units), reversed(tables), strict=True):
        form = forms[taken[room]]
        room -= form.tokens - forms[0].tokens
        chosen.append(form)
    return chosen[::-1]
