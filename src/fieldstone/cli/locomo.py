"""LoCoMo-shaped files: conversations in sessions of turns, and questions with the turns that hold their answers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import MsgspecError, Raw, Struct, json

from fieldstone.cli.failures import Refused
from fieldstone.core.validate import is_blank

_SESSION: Final = re.compile(r"session_([0-9]{1,6})")
_BETWEEN_IDS: Final = re.compile(r"[;,\s]+")  # some references hold two ids


class Turn(Struct, frozen=True):
    speaker: str
    dia_id: str
    text: str


class Session(NamedTuple):
    number: int
    date: str
    turns: Sequence[Turn]


class Question(NamedTuple):
    text: str
    category: int
    evidence: frozenset[str]  # ids of turns; never empty


class Conversation(NamedTuple):
    sessions: Sequence[Session]
    questions: Sequence[Question]
    unanswerable: int  # questions whose evidence is in no turn; they measure nothing

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]


class _Asked(Struct, frozen=True):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class _Sample(Struct, frozen=True):
    conversation: dict[str, Raw]
    qa: tuple[_Asked, ...]


def read_conversations(file: Path) -> list[Conversation]:
    try:
        samples = json.decode(file.read_bytes(), type=list[_Sample])
        conversations = [_conversation(sample) for sample in samples]
    except (MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"error: {file} is not LoCoMo-shaped: {error}.") from error
    if not any(conversation.questions for conversation in conversations):
        raise Refused(f"error: {file} holds no question whose evidence is in its turns.")
    return conversations


def _conversation(sample: _Sample) -> Conversation:
    sessions = sorted(_sessions(sample.conversation))
    known = {turn.dia_id for session in sessions for turn in session.turns}
    asked = [Question(each.question, each.category, _evidence(each.evidence, known)) for each in sample.qa]
    questions = [question for question in asked if question.evidence]
    return Conversation(sessions, questions, len(asked) - len(questions))


def _sessions(parts: Mapping[str, Raw]) -> Iterator[Session]:
    for name, part in parts.items():
        if found := _SESSION.fullmatch(name):
            turns = [turn for turn in json.decode(part, type=list[Turn]) if not is_blank(turn.text)]
            date = parts.get(f"{name}_date_time")
            yield Session(int(found[1]), name if date is None else json.decode(date, type=str), turns)


def _evidence(references: Sequence[str], known: set[str]) -> frozenset[str]:
    return frozenset(each for reference in references for each in _BETWEEN_IDS.split(reference) if each in known)
