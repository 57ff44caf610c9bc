"""A text becomes statements: what each is about, what it says of it, and how firmly."""

import re
from typing import Final, NamedTuple

from fieldstone.detection.grammar import (
    ARTICLES,
    AUXILIARIES,
    BESIDE,
    COPULAS,
    DEICTIC,
    DROPPED,
    FUNCTIONAL_VERBS,
    HAVE,
    INDEFINITE,
    INDEXICAL,
    NEGATORS,
    PAST_AUXILIARIES,
    PAST_FORMS,
    PAST_STATE,
    PLANNED,
    POSSIBLE,
    PREPOSITIONS,
    PRONOUNS,
    TELLING_PREPOSITIONS,
    VERBS,
)
from fieldstone.detection.lexicon import PHRASES, SCENE_FIGURES, meaning
from fieldstone.detection.stems import stem
from fieldstone.detection.tokens import Kind, Raw, Token, raws
from fieldstone.detection.values import Values

# What is said first is what a memory is about; beyond these a text is not compared.
TEXT_CHARS_MAX = 6_000
SENTENCES_MAX = 12
WORDS_MAX = 80

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+|;\s+")
_SCENE_REACH = 4  # a caption names its figures first


class Statement(NamedTuple):
    tokens: tuple[Token, ...]
    keys: tuple[str, ...]
    bag: frozenset[str]
    verb_at: int  # the tokens before it are the subject
    verb: str = ""  # its stem; "" after a bare "is" or "has"
    copular: bool = False
    negations: int = 0
    denied: str = ""  # the word behind the first negation
    past: bool = False
    scene: bool = False
    enumerates: bool = False
    possible: bool = False
    past_state: bool = False
    planned: bool = False
    beside: bool = False  # "also": something else holds as well
    indexical: bool = False  # "I", "my", "you": who that is depends on who speaks
    deictic: bool = False  # "today": when that is depends on when it was said
    vague: bool = False  # its subject is a pronoun


class Prepared(NamedTuple):
    """A text, read once. It holds words of the text: whoever keeps it forgets it with the text."""

    statements: tuple[Statement, ...]


def prepare(text: str) -> Prepared:
    sentences = _SENTENCE_END.split(text[:TEXT_CHARS_MAX], maxsplit=SENTENCES_MAX)[:SENTENCES_MAX]
    read = (_Reader(raws(sentence, WORDS_MAX)).read() for sentence in sentences if not sentence.rstrip().endswith("?"))
    return Prepared(tuple(statement for statement in read if statement.tokens))


class _Reader:
    """Reads one sentence from left to right."""

    def __init__(self, words: list[Raw]) -> None:
        self._words: Final = words
        self._values: Final = Values(words)
        self._at = 0
        self._tokens: list[Token] = []
        self._preposition = ""
        self._article = ""
        self._after_comma = False
        self._negations = 0
        self._denied = ""
        self._verb_at = -1
        self._verb = ""
        self._copular = False
        self._past = False
        self._verbless = False
        self._ing_at = -1
        self._lowers: Final = {word.lower for word in words}
        self._said: Final[set[str]] = set()  # the words that are only words: "May 3" does not say "may"

    def read(self) -> Statement:
        while self._at < len(self._words):
            self._step()
        self._place_verb()
        lowers, said = self._lowers, self._said
        tokens = tuple(self._tokens)
        keys = tuple(token.key for token in tokens)
        return Statement(
            tokens,
            keys,
            frozenset(keys),
            self._verb_at,
            self._verb,
            self._copular,
            self._negations,
            self._denied,
            self._past,
            self._is_scene(),
            enumerates="," in lowers and ("and" in lowers or "or" in lowers),
            possible=not said.isdisjoint(POSSIBLE),
            past_state=not said.isdisjoint(PAST_STATE) or self._says_used_to(),
            planned=not said.isdisjoint(PLANNED),
            beside=not said.isdisjoint(BESIDE),
            indexical=not lowers.isdisjoint(INDEXICAL),
            deictic=not lowers.isdisjoint(DEICTIC),
            vague=bool(self._words) and self._words[0].lower in PRONOUNS and self._verb_at == 0,
        )

    def _step(self) -> None:
        word = self._words[self._at]
        if word.group == "mark":
            self._mark(word)
        elif (value := self._values.at(self._at, self._tokens, self._verb_at)) is not None:
            token, self._at = value
            preposition, article = self._preposition, self._article
            self._append(token._replace(preposition=preposition, article=article, listed=self._after_comma))
        elif bound := self._values.bound_words(self._at):
            self._at += bound
        elif phrase := self._phrase():
            self._at += len(phrase)
            self._content("_".join(phrase), " ".join(phrase), capital=word.text[0].isupper())
        else:
            self._at += 1
            self._word(word)

    def _mark(self, word: Raw) -> None:
        self._at += 1
        if word.lower == "/":
            self._preposition = "per"
        elif word.lower == ",":
            self._after_comma = True
            if self._tokens:
                self._tokens[-1] = self._tokens[-1]._replace(listed=True)

    def _phrase(self) -> tuple[str, ...]:
        for phrase in PHRASES.get(self._words[self._at].lower, ()):
            *first, last = (word.lower for word in self._words[self._at : self._at + len(phrase)])
            if (*first, last) == phrase or (*first, last.removesuffix("s")) == phrase:
                return phrase
        return ()

    def _word(self, word: Raw) -> None:
        lower = word.lower
        self._said.add(lower)
        if lower in NEGATORS:
            self._negate(lower)
        elif lower in TELLING_PREPOSITIONS:
            self._content(lower, word.text)
            self._preposition = lower
        elif lower == "on" and self._is_switch():
            self._content(lower, word.text)
        elif lower in PREPOSITIONS:
            self._preposition = lower
        elif lower in DROPPED:
            self._dropped(lower)
        else:
            self._content(lower, word.text, capital=self._is_name(word))

    def _negate(self, lower: str) -> None:
        following = self._words[self._at].lower if self._at < len(self._words) else ""
        # "No, …" answers somebody; "not only" says more, not less; "no problem" is a way to say yes.
        if following in {",", "only", "just", "problem", "worries", "wonder", "doubt", "matter"}:
            return
        if lower == "without" and "can" in self._said:
            self._content(lower, lower)  # "can be opened with a key" leaves the other way open
            return
        if following in {"all", "every", "always", "everyone", "necessarily"}:
            self._said.add("sometimes")  # "not all" leaves some
            return
        self._negations += 1
        self._said.discard("will")  # "won't work" speaks of what is
        if lower == "no" and following == "longer":
            self._at += 1
        if lower == "without":
            self._preposition = "with"

    def _is_switch(self) -> bool:
        """ "is on", "turned on for the gateway": a state, not a preposition with a noun behind it."""
        before = self._words[self._at - 2].lower if self._at > 1 else ""
        after = self._words[self._at] if self._at < len(self._words) else None
        stands_alone = (
            after is None or after.group == "mark" or after.lower in PREPOSITIONS or after.lower in {"and", "again"}
        )
        return before in {"turned", "switched"} or (before in COPULAS and stands_alone)

    def _dropped(self, lower: str) -> None:
        if lower in ARTICLES:
            self._article = lower
        if self._verb_at < 0 and (lower in COPULAS or lower in HAVE or lower in AUXILIARIES):
            self._verb_at = len(self._tokens)
            self._copular = lower in COPULAS
            self._past = lower in PAST_AUXILIARIES
        elif lower in COPULAS and not self._verb and self._verb_at == len(self._tokens):
            self._copular = True

    def _content(self, lower: str, text: str, *, capital: bool = False) -> None:
        stemmed = stem(lower)
        is_verb = not capital and (stemmed in VERBS or stemmed in FUNCTIONAL_VERBS)
        if self._verb_at < 0 and self._tokens and is_verb and self._is_finite(lower):
            self._verb_at, self._verb = len(self._tokens), stemmed
            self._past = lower.endswith("ed") or lower in PAST_FORMS
        elif self._verb_at == len(self._tokens) and not self._verb and is_verb and lower != "back":
            self._verb, self._copular = stemmed, False
        if self._ing_at < 0 and lower.endswith("ing") and is_verb:
            self._ing_at = len(self._tokens)
        kind: Kind = "name" if capital else "word"
        listed, preposition, article = self._after_comma, self._preposition, self._article
        self._append(Token(meaning(lower), text, kind, stemmed, preposition, article, listed))

    def _is_finite(self, lower: str) -> bool:
        if lower.endswith("ed") or lower in PAST_FORMS or (lower.endswith("s") and not lower.endswith("ss")):
            return not self._preposition and not self._article
        before = self._words[self._at - 2].lower if self._at > 1 else ""
        return before.endswith("s") or before in {"people", "children", "men", "women", "never", "not", "always"}

    def _append(self, token: Token) -> None:
        if self._negations and not self._denied:
            self._denied = token.text
        self._tokens.append(token)
        self._preposition = self._article = ""
        self._after_comma = False

    def _is_name(self, word: Raw) -> bool:
        capitals = sum(map(str.isupper, word.text))
        return capitals > 1 or word.group == "mixed" or (capitals == 1 and self._at > 1)

    def _place_verb(self) -> None:
        if self._verb_at >= 0:
            return
        tokens = self._tokens
        if self._ing_at >= 0:
            self._verb_at, self._verb = self._ing_at, tokens[self._ing_at].stem
        elif tokens and tokens[0].stem in VERBS:
            self._verb_at, self._verb = 0, tokens[0].stem
            self._past = self._words[0].lower.endswith("ed") or self._words[0].lower in PAST_FORMS
        else:
            self._verbless = True
            led = (at for at, token in enumerate(tokens) if token.preposition)
            self._verb_at = next(led, min(1, len(tokens)))

    def _is_scene(self) -> bool:
        """A caption: an unnamed figure, now. "A man is sleeping", "Two dogs on a beach"."""
        if (self._past and self._ing_at < 0) or not self._words or not self._lowers.isdisjoint(INDEXICAL):
            return False
        figures = self._tokens[: max(self._verb_at, 1)][:_SCENE_REACH]
        if any(token.stem in SCENE_FIGURES for token in figures):
            return True
        first = self._words[0].lower
        return first == "there" or (first in INDEFINITE and (self._ing_at >= 0 or self._verbless))

    def _says_used_to(self) -> bool:
        return any(
            word.lower == "used" and after.lower == "to" and (at == 0 or self._words[at - 1].lower not in COPULAS)
            for at, (word, after) in enumerate(zip(self._words, self._words[1:], strict=False))
        )
