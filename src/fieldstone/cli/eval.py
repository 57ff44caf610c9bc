"""`fieldstone eval`"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
from msgspec import Struct

from fieldstone.cli.door import opened_for_a_while, run
from fieldstone.cli.locomo import Conversation, read_conversations
from fieldstone.cli.options import config_option, json_option, setting_option
from fieldstone.cli.output import print_json, print_table, progress
from fieldstone.cli.reembed import until_embedded
from fieldstone.retrieval.measures import Answer, Quality, quality
from fieldstone.settings import Settings, load_settings

if TYPE_CHECKING:
    from fieldstone.client.agent import Agent
    from fieldstone.client.field import Field

CUTS: Final = (5, 10, 20)
CATEGORIES: Final[Mapping[int, str]] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
ADVERSARIAL: Final = 5  # asks for what nobody said: its evidence only looks like one, so it is counted apart
ASKER: Final = "fieldstone-eval"
TURNS_AT_ONCE: Final = 64  # one group commit

Told = Callable[[int], None]


class Asked(NamedTuple):
    category: int
    answer: Answer


class Evaluation(Struct, frozen=True):
    """`overall` is without the adversarial questions; `unanswerable` ones name no turn and are not asked."""

    model: str
    conversations: int
    turns: int
    unanswerable: int
    k: int
    overall: Quality
    categories: dict[str, Quality]
    adversarial: Quality


@click.group("eval")
def command() -> None:
    """Measure how well ATTUNE finds what it should.

    \b
    Example:
      fieldstone eval locomo locomo10.json
    """


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--k", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Measure nDCG and recall at it."
)
@setting_option("embedder", metavar="KIND")
@config_option
@json_option
def locomo(file: Path, k: int, embedder: str | None, config: Path | None, as_json: bool) -> None:
    """Measure on LoCoMo-shaped conversations.

    Each conversation becomes a field in memory, each turn a unit of its speaker. Another agent attunes with each
    question as its hint; recall is the share of the question's evidence that comes back. What helps here is meant to be
    a property of memory: the settings are those of any other field.

    \b
    Examples:
      fieldstone eval locomo locomo10.json
      fieldstone eval locomo locomo10.json --embedder onnx --json
      FIELDSTONE_WEIGHTS=lexical=0.6 fieldstone eval locomo locomo10.json --k 5
    """
    settings = load_settings(config=config, given={"embedder": embedder}).values
    conversations = read_conversations(file)
    steps = sum(len(each.turns) + len(each.questions) for each in conversations)
    with progress("measuring", steps) as advance:
        found = run(evaluate(settings, conversations, k=k, told=advance))
    if as_json:
        print_json(found)
    else:
        print_evaluation(found)


async def evaluate(
    settings: Settings, conversations: Sequence[Conversation], *, k: int = 10, told: Told = lambda done: None
) -> Evaluation:
    """`told` hears how many turns are recorded and questions asked by now."""
    cuts = sorted({*CUTS, k})
    asked: list[Asked] = []
    model, done = "none", 0
    for conversation in conversations:
        async with opened_for_a_while(settings) as field:
            dia_ids = await record_turns(field, conversation)
            if settings.embedder != "none":
                status = await until_embedded(field, _beyond(done + len(dia_ids), told))
                model = status.embeddings[0].model
            done += len(dia_ids)
            asker = await field.agent(ASKER, role="reader")
            for question in conversation.questions:
                found = await _ask(asker, question.text, dia_ids, most=cuts[-1])
                asked.append(Asked(question.category, Answer(found, question.evidence)))
                told(done := done + 1)
    turns = sum(len(each.turns) for each in conversations)
    unanswerable = sum(each.unanswerable for each in conversations)
    return Evaluation(model, len(conversations), turns, unanswerable, k, *rate(asked, cuts, k))


def rate(asked: Sequence[Asked], cuts: Sequence[int], k: int) -> tuple[Quality, dict[str, Quality], Quality]:
    """Overall without the adversarial questions, each category, and the adversarial ones."""

    def rated(categories: set[int]) -> Quality:
        answers = [each.answer for each in asked if each.category in categories]
        return quality(answers, cuts=cuts, ndcg_cut=k)

    known = {each.category for each in asked} - {ADVERSARIAL}
    by_name = {CATEGORIES.get(category, f"category {category}"): rated({category}) for category in sorted(known)}
    return rated(known), by_name, rated({ADVERSARIAL})


async def record_turns(field: "Field", conversation: Conversation) -> dict[str, str]:
    """Every turn as its speaker's unit, in the order of the talk; unit id → turn id."""
    turns = [(session, turn) for session in conversation.sessions for turn in session.turns]
    names = dict.fromkeys(turn.speaker for _, turn in turns)
    speakers = {name: await field.agent(name, role="speaker") for name in names}
    dia_ids: dict[str, str] = {}
    for first in range(0, len(turns), TURNS_AT_ONCE):
        chunk = turns[first : first + TURNS_AT_ONCE]
        # Requests of one loop are taken in the order in which they were made: neighbours stay neighbours.
        recorded = await asyncio.gather(
            *(
                speakers[turn.speaker].record(
                    turn.text,
                    type="observation",
                    intent=session.date,
                    confidence=1.0,
                    reasoning="It was said.",
                    session_id=f"session-{session.number}",
                )
                for session, turn in chunk
            )
        )
        dia_ids |= {accepted.memory_unit_id: turn.dia_id for accepted, (_, turn) in zip(recorded, chunk, strict=True)}
    return dia_ids


def _beyond(whole: int, told: Told) -> Told:
    """Turns count once they have their vectors: making those is what takes time."""
    return lambda left: told(whole - left)


async def _ask(asker: "Agent", question: str, dia_ids: Mapping[str, str], *, most: int) -> list[str]:
    context = await asker.attune_ids(question, max_units=most)
    return [dia_ids[scoped.memory_unit.id] for scoped in context.record]


def print_evaluation(found: Evaluation) -> None:
    what = f"{found.conversations:,} conversations, {found.turns:,} turns, embedder {found.model}"
    left_out = f"; {found.unanswerable:,} questions name no turn and are left out" if found.unanswerable else ""
    click.echo(f"{what}{left_out}\n")
    rows = [*found.categories.items(), ("overall", found.overall)]
    if found.adversarial.questions:
        rows.append(("adversarial (apart)", found.adversarial))
    cuts = list(found.overall.recall)
    head = ["", "questions", *(f"recall@{cut}" for cut in cuts), "MRR", f"nDCG@{found.k}"]
    print_table([head, *([name, *_cells(each)] for name, each in rows)])


def _cells(found: Quality) -> list[str]:
    return [f"{found.questions:,}", *(f"{value:.3f}" for value in (*found.recall.values(), found.mrr, found.ndcg))]
