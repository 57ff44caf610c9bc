"""How well ATTUNE finds the turns that answer a question, beside BM25 on the same turns and beside its own parts."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Report
from benchmarks.peers import PEER_TIMEOUT_S, PeerFailed
from benchmarks.peers.environment import ROOT, bench_python
from fieldstone.cli.eval import CUTS, Asked, Evaluation, evaluate, rate
from fieldstone.cli.locomo import Conversation, Session, Turn, read_conversations
from fieldstone.cli.output import print_table
from fieldstone.retrieval.measures import Answer, Quality
from fieldstone.retrieval.score import WEIGHTS
from fieldstone.settings import load_settings

TALK_FILE = "locomo_dev.json"
CUT = 10
# The second is told as much as a unit holds, with the better of its stop lists. The bars hold against both.
LEXICAL_PEERS = BARE_TURNS, SPEAKER_AND_DATE = "BM25", "BM25, speaker and date"
MULTI_HOP = "multi-hop"

POINTS_MIN = {"static": 10.0, "onnx": 15.0}  # above BM25, over all categories but the adversarial one
MULTI_HOP_POINTS_MIN = 4.0
BELOW_PARTS_MAX = 1.0  # points: six questions of the file
NEAREST_ALONE = {**dict.fromkeys(WEIGHTS, 0.0), "semantic": 1.0}

# What a way of ranking reaches: overall, and by category.
Reached = tuple[Quality, Mapping[str, Quality]]
Text = Callable[[Session, Turn], str]


def measure_quality(report: Report, data: Path) -> None:
    file = data / TALK_FILE
    if not file.exists():
        print(f"quality: {file.name} is not here, recall is skipped", flush=True)
        return
    conversations = read_conversations(file)
    ways = {
        BARE_TURNS: _bm25(conversations, _said, "en"),
        SPEAKER_AND_DATE: _bm25(conversations, _said_by_whom_and_when, "en_plus"),
        "no vectors": _ours(conversations, embedder="none"),
        "static, nearest alone": _ours(conversations, embedder="static", weights=NEAREST_ALONE),
        "static": _ours(conversations, embedder="static"),
        "onnx, nearest alone": _ours(conversations, embedder="onnx", weights=NEAREST_ALONE),
        "onnx": _ours(conversations, embedder="onnx"),
    }
    _print(ways)
    for embedder in POINTS_MIN:
        _compare(report, ways, embedder)


def _compare(report: Report, ways: Mapping[str, Reached], embedder: str) -> None:
    overall, by_category = ways[embedder]
    report.add(Figure(f"LoCoMo recall@{CUT}, {embedder}", overall.recall[CUT], ""))
    for name in LEXICAL_PEERS:
        other, other_by_category = ways[name]
        points = _points(overall, other)
        report.add(Figure(f"{embedder} above {name}", points, "points", bar=POINTS_MIN[embedder]))
        hops = _points(by_category[MULTI_HOP], other_by_category[MULTI_HOP])
        report.add(Figure(f"{embedder} above {name}, {MULTI_HOP}", hops, "points", bar=MULTI_HOP_POINTS_MIN))
    parts = [ways["no vectors"], ways[f"{embedder}, nearest alone"]]
    above = min(_points(overall, part) for part, _ in parts)
    report.add(Figure(f"{embedder} above the better of its parts", above, "points", bar=-BELOW_PARTS_MAX))
    anywhere = min(_points(found, part[name]) for _, part in parts for name, found in by_category.items())
    name = f"{embedder} above the better of its parts, in its worst category"
    report.add(Figure(name, anywhere, "points", bar=-BELOW_PARTS_MAX))


def _points(one: Quality, other: Quality) -> float:
    return 100 * (one.recall[CUT] - other.recall[CUT])


def _print(ways: Mapping[str, Reached]) -> None:
    categories = list(ways[BARE_TURNS][1])
    rows = [
        [name, *(f"{each.recall[CUT]:.3f}" for each in (*by_category.values(), overall))]
        for name, (overall, by_category) in ways.items()
    ]
    print_table([[f"recall@{CUT}", *categories, "overall"], *rows])


# --- ours ------------------------------------------------------------------------------------------------------------


def _ours(conversations: Sequence[Conversation], **given: Any) -> Reached:
    # Only what is given here: the variables of whoever runs it do not count.
    settings = load_settings(environ={}, given=given).values
    found: Evaluation = asyncio.run(evaluate(settings, conversations, k=CUT))
    return found.overall, found.categories


# --- BM25 ------------------------------------------------------------------------------------------------------------


def _bm25(conversations: Sequence[Conversation], text: Text, stop_words: str) -> Reached:
    talks = [
        {
            "texts": [text(session, turn) for session in each.sessions for turn in session.turns],
            "questions": [question.text for question in each.questions],
        }
        for each in conversations
    ]
    asked = [
        Asked(question.category, Answer([conversation.turns[place].dia_id for place in places], question.evidence))
        for conversation, ranked in zip(conversations, _ranked(talks, stop_words), strict=True)
        for question, places in zip(conversation.questions, ranked, strict=True)
    ]
    overall, by_category, _ = rate(asked, CUTS, CUT)
    return overall, by_category


def _said(_session: Session, turn: Turn) -> str:
    return turn.text


def _said_by_whom_and_when(session: Session, turn: Turn) -> str:
    return f"{session.date} {turn.speaker}: {turn.text}"


def _ranked(talks: Sequence[Mapping[str, Sequence[str]]], stop_words: str) -> list[list[list[int]]]:
    """In the peers' environment, with the network refused."""
    guarded = [str(bench_python()), "-m", "benchmarks.peers.offline", "benchmarks.peers.bm25_turns"]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "talks.json"
        file.write_text(json.dumps(talks), encoding="utf-8")
        command = [*guarded, str(file), str(max(CUTS)), stop_words]
        clean = {"PATH": os.environ.get("PATH", os.defpath), "HOME": directory}
        ran = subprocess.run(
            command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=PEER_TIMEOUT_S, check=False
        )
    if ran.returncode != 0:
        raise PeerFailed(f"BM25: exit {ran.returncode}\n{ran.stderr}")
    ranked: list[list[list[int]]] = json.loads(ran.stdout.splitlines()[-1])
    return ranked
