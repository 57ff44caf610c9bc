"""`fieldstone eval`: on a conversation that was written for these tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from fieldstone.cli import eval as eval_command
from fieldstone.cli.door import opened_for_a_while
from fieldstone.cli.eval import evaluate, rate, record_turns
from fieldstone.cli.locomo import Conversation, read_conversations
from fieldstone.retrieval.measures import Answer
from fieldstone.settings import Settings
from tests.cli.running import answer, done, invoke, refused

SAID = (
    ("Noor", "The kiln in my studio broke down on Friday."),
    ("Piet", "Oh no! What happened to it?"),
    ("Noor", "A heating element burnt through."),
    ("Piet", "I have started to keep bees on the roof."),
)
LATER = (("Noor", "My new kiln has arrived."), ("Piet", "The bees gave us four jars of honey."))


def sample(**changes: Any) -> dict[str, Any]:
    conversation: dict[str, Any] = {"speaker_a": "Noor", "speaker_b": "Piet"}
    # Sessions stand in any order, and ten comes after two.
    for number, said in ((10, LATER), (2, SAID)):
        conversation[f"session_{number}"] = [
            {"speaker": speaker, "dia_id": f"D{number}:{place}", "text": text, "img_url": []}
            for place, (speaker, text) in enumerate(said, start=1)
        ]
        conversation[f"session_{number}_date_time"] = f"{number} pm on 8 May"
    questions = [
        {"question": "What does Piet keep on the roof?", "evidence": ["D2:4"], "category": 4, "answer": "bees"},
        {"question": "What burnt through?", "evidence": ["D2:3; D2:1"], "category": 1, "answer": "an element"},
        {"question": "Where does Noor keep bees?", "evidence": ["D2:4"], "category": 5},
        {"question": "Who likes honey?", "evidence": ["D", "D99:1"], "category": 3},
        {"question": "Who knows?", "evidence": [], "category": 3},
    ]
    return {"conversation": conversation, "qa": questions, "sample_id": "conv-1"} | changes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([sample()]))
    return path


@pytest.fixture
def conversation(file: Path) -> Conversation:
    [conversation] = read_conversations(file)
    return conversation


def test_turns_come_in_the_order_of_the_talk(conversation: Conversation) -> None:
    assert [session.number for session in conversation.sessions] == [2, 10]
    assert [turn.text for turn in conversation.turns] == [text for _, text in (*SAID, *LATER)]


def test_a_reference_of_two_turns_is_two_and_one_of_no_turn_is_none(conversation: Conversation) -> None:
    assert [question.evidence for question in conversation.questions] == [{"D2:4"}, {"D2:3", "D2:1"}, {"D2:4"}]
    assert conversation.unanswerable == 2


async def test_every_turn_is_a_unit_of_its_speaker_in_its_session_in_order(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eval_command, "TURNS_AT_ONCE", 4)
    async with opened_for_a_while(Settings(embedder="none")) as field:
        dia_ids = await record_turns(field, conversation)
        units = [await field.unit(unit_id) for unit_id in dia_ids]
    assert list(dia_ids.values()) == [turn.dia_id for turn in conversation.turns]
    assert [(unit.source.agent_id, unit.content) for unit in units] == [*SAID, *LATER]
    assert [unit.epoch for unit in units] == sorted({unit.epoch for unit in units})
    assert {(unit.type, unit.source.agent_role) for unit in units} == {("observation", "speaker")}
    assert [unit.source.session_id for unit in units] == ["session-2"] * 4 + ["session-10"] * 2
    assert units[0].intent.purpose == "2 pm on 8 May"


@pytest.mark.parametrize("embedder", ["static", "none"])
def test_what_is_there_is_found(file: Path, embedder: str) -> None:
    found = answer("eval", "locomo", str(file), "--embedder", embedder)
    assert (found["conversations"], found["turns"], found["unanswerable"]) == (1, 6, 2)
    assert found["categories"]["single-hop"]["recall"] == {"5": 1.0, "10": 1.0, "20": 1.0}
    assert found["overall"]["questions"] == 2
    assert found["adversarial"]["questions"] == 1
    assert found["model"].startswith(embedder)


def test_a_person_reads_a_table(file: Path) -> None:
    about, _, head, *rows = done("eval", "locomo", str(file), "--embedder", "none", "--k", "3").splitlines()
    assert about == "1 conversations, 6 turns, embedder none; 2 questions name no turn and are left out"
    assert head.split() == ["questions", "recall@3", "recall@5", "recall@10", "recall@20", "MRR", "nDCG@3"]
    assert [row.split()[0] for row in rows] == ["multi-hop", "single-hop", "overall", "adversarial"]
    assert rows[1].split()[1] == "1"
    assert len({len(line) for line in (head, *rows)}) == 1


def test_settings_apply_as_to_any_field(file: Path) -> None:
    found = answer("eval", "locomo", str(file), env={"FIELDSTONE_EMBEDDER": "none"})
    assert found["model"] == "none"
    assert "embedder (option --embedder) is wrong" in refused("eval", "locomo", str(file), "--embedder", "magic")


def test_measuring_leaves_nothing_behind_but_the_answer(file: Path) -> None:
    result = invoke("eval", "locomo", str(file), "--embedder", "none", "--json", env={"FIELDSTONE_DB": "team.db"})
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    assert list(Path.cwd().iterdir()) == [file]


async def test_progress_counts_every_turn_and_question_up_to_the_end(conversation: Conversation) -> None:
    told: list[int] = []
    await evaluate(Settings(), [conversation, conversation], told=told.append)
    assert told == sorted(told)
    assert told[-1] == 2 * (len(conversation.turns) + len(conversation.questions))


def test_the_overall_figure_is_without_the_adversarial_questions() -> None:
    hit, miss = Answer("a", {"a"}), Answer("a", {"b"})
    asked = [eval_command.Asked(category, answer) for category, answer in ((1, hit), (9, miss), (5, miss))]
    overall, by_category, adversarial = rate(asked, (5,), 5)
    assert (overall.questions, overall.recall[5]) == (2, 0.5)
    assert list(by_category) == ["multi-hop", "category 9"]
    assert (adversarial.questions, adversarial.recall[5]) == (1, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "is not LoCoMo-shaped"),
        ("\udcff", "is not LoCoMo-shaped"),
        ("{}", "Expected `array`"),
        ('[{"qa": []}]', "missing required field `conversation`"),
        ('[{"qa": [{"question": "Who?"}], "conversation": {}}]', "missing required field `category`"),
        ('[{"qa": [], "conversation": {"session_1": [{"text": "Hi"}]}}]', "missing required field `speaker`"),
        ('[{"qa": [], "conversation": {}}]', "holds no question whose evidence is in its turns"),
        ("[]", "holds no question"),
    ],
)
def test_another_file_is_told_in_a_sentence(text: str, said: str) -> None:
    Path("other.json").write_text(text, errors="surrogateescape")
    stderr = refused("eval", "locomo", "other.json")
    assert stderr.startswith("error: other.json ")
    assert said in stderr
    assert stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_a_usage_error() -> None:
    assert "does not exist" in refused("eval", "locomo", "gone.json", exit_code=2)
