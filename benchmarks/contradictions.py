"""The contradiction detector: precision and recall on labelled pairs, and how often it cries wolf on lists and talk."""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Report, percentile
from fieldstone.detection import Claim, judge, prepare

LABELLED_FILE = "contradiction_dev.jsonl"
TALK_FILE = "locomo_dev.json"

PRECISION_MIN = 0.90
RECALL_MIN = 0.50
FLAGGED_SHARE_MAX = 0.01
JUDGE_US_MAX = 60.0
LONG_TEXT_MS_MAX = 5.0

CANDIDATES = 20  # how many earlier turns a caller would compare with a new one
FREQUENT_SHARE = 0.1  # words of more turns than this tell no subject
LONG_TEXT_CHARS = 100_000
LONG_TEXT_RUNS = 9


def measure_contradictions(report: Report, data: Path) -> None:
    _measure_labelled(report, data / LABELLED_FILE)
    _measure_lists(report)
    _measure_talk(report, data / TALK_FILE)
    _measure_speed(report)


def _measure_labelled(report: Report, file: Path) -> None:
    if not file.exists():
        print(f"contradictions: {file.name} is not here, precision and recall are skipped", flush=True)
        return
    hits = flagged = opposed = 0
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            is_flagged = _flags(row["a"], row["b"])
            is_opposed = row["label"] == "contradiction"
            hits += is_flagged and is_opposed
            flagged += is_flagged
            opposed += is_opposed
    report.add(Figure("contradictions, precision", hits / max(flagged, 1), "", bar=PRECISION_MIN))
    report.add(Figure("contradictions, recall", hits / max(opposed, 1), "", bar=RECALL_MIN))


def _measure_lists(report: Report) -> None:
    pairs = list(list_pairs())
    flagged = sum(_flags(a, b) for a, b in pairs)
    share = flagged / len(pairs)
    report.add(Figure(f"{len(pairs):,} pairs of list items, flagged", share, "", bar=FLAGGED_SHARE_MAX, at_most=True))


def _measure_talk(report: Report, file: Path) -> None:
    if not file.exists():
        print(f"contradictions: {file.name} is not here, the turns of talk are skipped", flush=True)
        return
    turns = flagged = 0
    for talk in json.loads(file.read_text(encoding="utf-8")):
        claims = _claims(talk["conversation"])
        turns += len(claims)
        flagged += sum(any(judge(claim, claims[at]) for at in earlier) for claim, earlier in _candidates(claims))
    report.add(Figure(f"{turns:,} turns of talk, flagged", flagged / turns, "", bar=FLAGGED_SHARE_MAX, at_most=True))


def _measure_speed(report: Report) -> None:
    texts = _twenty_words()
    claims = [_claim(text)._replace(prepared=prepare(text)) for text in texts]
    pairs = list(itertools.combinations(claims, 2))
    judged = percentile([_seconds(partial(judge, *pair)) for pair in pairs], 0.5)
    prepared = percentile([_seconds(partial(prepare, text)) for text in texts], 0.5)
    long = " ".join(itertools.islice(itertools.cycle(texts), LONG_TEXT_CHARS // 100))[:LONG_TEXT_CHARS]
    a, b = _claim(long), _claim(long.replace("100", "50"))
    long_s = min(_seconds(partial(judge, a, b)) for _ in range(LONG_TEXT_RUNS))  # the others lost their core meanwhile
    report.add(Figure("judge, two of 20 words, p50", judged * 1e6, "µs", bar=JUDGE_US_MAX, at_most=True))
    report.add(Figure("prepare, 20 words, p50", prepared * 1e6, "µs"))
    report.add(Figure("judge, two texts of 100 kB", long_s * 1e3, "ms", bar=LONG_TEXT_MS_MAX, at_most=True))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _flags(a: str, b: str) -> bool:
    return judge(_claim(b, epoch=2), _claim(a, epoch=1)) is not None


def _claim(text: str, epoch: int = 1) -> Claim:
    return Claim(text, "observation", epoch, 0.8)


def _claims(conversation: dict[str, Any]) -> list[Claim]:
    """Every turn as its speaker's unit."""
    speakers = [conversation["speaker_a"], conversation["speaker_b"]]
    claims: list[Claim] = []
    for session in itertools.takewhile(lambda number: f"session_{number}" in conversation, itertools.count(1)):
        for turn in conversation[f"session_{session}"]:
            agent = 1 + speakers.index(turn["speaker"])
            text = turn["text"]
            claims.append(Claim(text, "observation", len(claims) + 1, None, agent, session, prepare(text)))
    return claims


def _candidates(claims: Sequence[Claim]) -> Iterator[tuple[Claim, list[int]]]:
    """Each claim with the earlier ones that share most of its rare words."""
    words = [set(re.findall(r"[a-z]{3,}", claim.text.lower())) for claim in claims]
    frequencies = Counter(itertools.chain.from_iterable(words))
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        scores: Counter[int] = Counter()
        for word in sorted(words[at]):
            if frequencies[word] < FREQUENT_SHARE * len(claims):
                weight = math.log(len(claims) / frequencies[word])
                for place in places[word]:
                    scores[place] += weight  # type: ignore[assignment]  # Counter is typed for whole numbers
            places[word].append(at)
        yield claim, [place for place, _ in scores.most_common(CANDIDATES)]


# Lists as agents leave them behind: {n} counts, the others name things. Whatever differs between two items of one form,
# both hold. The values (…) differ from item to item as well.
LIST_FORMS = (
    "Observation {n}: the {thing} was {state}.",
    "Observation {n}.",
    "Step {n}: restart the {thing}.",
    "Item {n} of the checklist is {done}.",
    "{n}. The {thing} is {state}.",
    "Task {n} is {done}.",
    "We finished task {n} on {day}.",
    "Ticket OPS-{n} is {done}.",
    "Issue #{n} was closed by {name}.",
    "Run {n} took {value} seconds.",
    "Run {n} of the benchmark reached {value} requests per second.",
    "Test case {n} {passed}.",
    "Sprint {n} had a velocity of {value} points.",
    "Chapter {n} is about the {thing}.",
    "Page {n} shows the {thing}.",
    "User {n} is {state}.",
    "Order {n} was shipped to {city}.",
    "Customer {name} lives in {city}.",
    "{name} owns the {thing}.",
    "{name} is on vacation until {day}.",
    "{name} has {value} open tickets.",
    "{name} reviewed pull request {n}.",
    "The {thing} has {value} open bugs.",
    "The {thing} is {state}.",
    "The {thing} runs on host web-{nn}.",
    "The owner of the {thing} is {name}.",
    "Host web-{nn} is {state}.",
    "Host web-{nn} has {value} GB of memory.",
    "10.0.0.{n} answered in {value} ms.",
    "On {date} the {thing} was {state}.",
    "On {date} we had {value} sign-ups.",
    "On {day} the backup {passed}.",
    "{date}: {value} requests failed.",
    "The backup of {date} {passed}.",
    "The build of {date} took {value} minutes.",
    "At {hour}:00 CPU usage was {value}%.",
    "CPU usage was {value}% at {hour}:00.",
    "In {month} revenue was {value} million.",
    "Revenue in {month} was {value} million.",
    "The office in {city} has {value} desks.",
    "The {city} office opened in {year}.",
    "src/{path}.py has {value} lines.",
    "Fixed a bug in src/{path}.py.",
    "/var/log/{path}.log is {value} MB.",
    "Endpoint /v1/{path} returns {value}.",
    "https://example.com/{path} is {state}.",
    "Version 1.{n} {passed} the audit.",
    "Sensor {n} reads {value} degrees.",
    "Room {n} seats {value} people.",
    "Commit {hash} changed the {thing}.",
    "The interview with {name} was on {day}.",
    "Met {name} on {date}.",
    "Question {n} was answered by {name}.",
    "Experiment {n}: accuracy {value}%.",
    "Epoch {n}: loss {value}.",
    "Batch {n} {passed} after {value} retries.",
    "The {ordinal} attempt {passed}.",
    "The {ordinal} request took {value} ms.",
)
FILLERS: dict[str, tuple[str, ...]] = {
    "thing": ("gateway", "billing service", "search index", "login page", "parser", "message queue", "report", "cache"),
    "state": ("stable", "slow", "unstable", "fast", "down", "up", "healthy", "offline"),
    "done": ("done", "not done", "open", "closed", "blocked", "finished", "not started", "ready"),
    "passed": ("passed", "failed", "succeeded", "crashed", "did not finish", "finished", "was skipped", "was aborted"),
    "name": ("Ana", "Kofi", "Lena", "Tomasz", "Priya", "Diego", "Mei", "Omar"),
    "city": ("Berlin", "Madrid", "Oslo", "Lisbon", "Vienna", "Dublin", "Prague", "Rome"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "May 3"),
    "month": ("January", "February", "March", "April", "May", "June", "July", "August"),
    "path": ("login", "logout", "users/list", "users/add", "orders", "orders/cancel", "search", "index"),
    "hash": ("3fa9c1d", "77be02a", "0c4de91", "a81b77f", "5e0d3c2", "9b1fe40", "c7a2d18", "e4f09a6"),
    "ordinal": ("first", "second", "third", "fourth", "fifth", "sixth", "7th", "8th"),
}
ITEMS = 8


def list_pairs() -> Iterator[tuple[str, str]]:
    """All pairs of the items of each list. An item's other words move with its number, at another pace."""
    for form in LIST_FORMS:
        yield from itertools.combinations((_item(form, number) for number in range(ITEMS)), 2)


def _item(form: str, number: int) -> str:
    words = {
        name: fillers[(number * pace) % ITEMS]
        for (name, fillers), pace in zip(FILLERS.items(), itertools.cycle((1, 3, 5)))
    }
    return form.format(
        n=number + 1,
        nn=f"{number + 1:02d}",
        value=20 + number * 17,
        date=f"2024-03-{number + 1:02d}",
        hour=f"{9 + number:02d}",
        year=2001 + number,
        **words,
    )


def _twenty_words() -> list[str]:
    places = ("staging", "production", "testing", "the demo account")
    return [
        f"The {thing} in {place} answered {value} requests per second while the nightly import of customer orders was "
        "running on two small workers."
        for thing, place, value in itertools.product(FILLERS["thing"], places, (50, 100))
    ]
