"""The harness with 200 known secrets: what it costs, what comes through it in disguise, and how often it cries wolf.

The attacks are those of tests/redact/forms.py, here all of them; the harmless texts those of its neighbour.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.corpus import rows
from benchmarks.figures import Figure, Report, percentile
from fieldstone.redact import Harness, shared_harness
from fieldstone.redact.known import KnownSecret
from fieldstone.redact.seams import Trail
from tests.redact.forms import FORMS, SECRETS, Attack, attacks, compositions, secrets, split, split_attacks
from tests.redact.test_false_alarms import harmless_texts

ROUNDS = 4
TEXT_BYTES = 2_000
TEXTS = 400
HITS_A_FORM = 20  # of every form alike: a common form must not hide a dear one
NO_HIT_MS_MAX = 0.3
HIT_MS_MAX = 2.0

COMPOSITIONS = 10_000
COMPOSITIONS_FOUND_MIN = 0.99
HARMLESS_BYTES = 4_000_000


def measure_redaction(report: Report) -> None:
    harness = shared_harness().knowing(KnownSecret(secret.id, secret.value) for secret in secrets())
    _measure_cost(report, harness)
    _measure_hits(report, harness)
    _measure_single_forms(report, harness)
    _measure_entries(report, harness)
    _measure_compositions(report, harness)
    _measure_false_alarms(report, harness)


def _measure_cost(report: Report, harness: Harness) -> None:
    kinds = {
        "prose": _prose(TEXTS),
        "prose, code, UUIDs and hashes": list(harmless_texts(TEXTS * TEXT_BYTES, with_data=False)),
        "prose, code, ids and data": list(
            harmless_texts(TEXTS * TEXT_BYTES)
        ),  # half of it encoded, images and the like
    }
    for kind, texts in kinds.items():
        bare = _times_ms(shared_harness(), texts)
        ours = _times_ms(harness, texts)
        name = f"2 kB of {kind}, {SECRETS} secrets known, no hit"
        report.add(Figure(f"{name}, p50", percentile(ours, 0.5), "ms", bar=NO_HIT_MS_MAX, at_most=True))
        report.add(Figure(f"{name}, p95", percentile(ours, 0.95), "ms"))
        report.add(Figure(f"{name}, mean", _mean(ours), "ms", "none known", _mean(bare)))


def _measure_hits(report: Report, harness: Harness) -> None:
    around = itertools.cycle(_prose(TEXTS))
    by_form = {
        form: _times_ms(harness, [_within(next(around), attack) for attack in _some(attacks(form))]) for form in FORMS
    }
    every = list(itertools.chain.from_iterable(by_form.values()))
    name = f"2 kB of prose, {SECRETS} secrets known, one hit"
    report.add(Figure(f"{name}, p50", percentile(every, 0.5), "ms", bar=HIT_MS_MAX, at_most=True))
    report.add(Figure(f"{name}, p95", percentile(every, 0.95), "ms"))
    dearest = max(by_form, key=lambda form: percentile(by_form[form], 0.5))
    median = percentile(by_form[dearest], 0.5)
    report.add(Figure(f"{name}, dearest form ({dearest}), p50", median, "ms", bar=HIT_MS_MAX, at_most=True))


def _measure_single_forms(report: Report, harness: Harness) -> None:
    tried = [*itertools.chain.from_iterable(map(attacks, FORMS)), *split_attacks()]
    missed = _succeeded(harness, tried)
    report.add(Figure(f"{len(tried):,} secrets in one disguise, found", 1 - len(missed) / len(tried), "", bar=1.0))
    _report_misses(report, missed, tried)


def _measure_entries(report: Report, harness: Harness) -> None:
    tried = [Attack("split over two entries", secret, *each) for secret in secrets() for each in split(secret.value)]
    missed = [attack for attack in tried if attack.succeeds(*_after_each_other(harness, attack))]
    report.add(
        Figure(f"{len(tried):,} secrets split over two entries, found", 1 - len(missed) / len(tried), "", bar=1.0)
    )
    _report_misses(report, missed, tried)


def _after_each_other(harness: Harness, attack: Attack) -> tuple[list[str], list[str]]:
    """Each text as an entry by itself: what comes out, and the secrets that were named."""
    trail = Trail()
    texts: list[str] = []
    found: list[str] = []
    for text in attack.texts:
        cleaned, trail = harness.clean_after(trail, [text])
        texts += cleaned.texts
        found += cleaned.found
    return texts, found


def _measure_compositions(report: Report, harness: Harness) -> None:
    tried = list(compositions(COMPOSITIONS))
    missed = _succeeded(harness, tried)
    share = 1 - len(missed) / len(tried)
    report.add(Figure(f"{len(tried):,} secrets in two disguises, found", share, "", bar=COMPOSITIONS_FOUND_MIN))
    _report_misses(report, missed, tried)


def _report_misses(report: Report, missed: Sequence[Attack], tried: Sequence[Attack]) -> None:
    counts = Counter(attack.form for attack in tried)
    for form, count in Counter(attack.form for attack in missed).most_common():
        report.add(Figure(f"missed: {form}", count, f"of {counts[form]}"))


def _measure_false_alarms(report: Report, harness: Harness) -> None:
    known = {secret.id for secret in secrets()}
    found = [harness.clean_one(text).found for text in harmless_texts(HARMLESS_BYTES)]
    by_secrets = sum(not known.isdisjoint(each) for each in found)
    by_rules = sum(not known.issuperset(each) for each in found)
    name = f"{HARMLESS_BYTES / 1e6:g} MB that hold no secret, {len(found):,} texts, false alarms"
    report.add(Figure(f"{name} by known secrets", by_secrets, "", bar=0.0, at_most=True))
    report.add(Figure(f"{name} by rules", by_rules, "", bar=0.0, at_most=True))


def _succeeded(harness: Harness, tried: Iterable[Attack]) -> list[Attack]:
    def comes_through(attack: Attack) -> bool:
        [group] = harness.clean_groups([attack.texts])
        return attack.succeeds(group.texts, group.found)

    return list(filter(comes_through, tried))


def _times_ms(harness: Harness, texts: Sequence[str]) -> list[float]:
    """Time on the processor, the least of some rounds: nothing waits here, and what other processes take, or take away
    from the caches, is not the harness's cost."""
    rounds: list[list[float]] = []
    for _ in range(ROUNDS):
        times = []
        for text in texts:
            started = time.thread_time()
            harness.clean_one(text)
            times.append((time.thread_time() - started) * 1e3)
        rounds.append(times)
    return [min(times) for times in zip(*rounds, strict=True)]


def _prose(count: int) -> list[str]:
    """Texts of 2 kB that end with a sentence, as nearly as it goes."""
    contents = (row.content for row in rows(count * TEXT_BYTES // 100))
    texts = []
    for _ in range(count):
        text = ""
        while len(text) < TEXT_BYTES - 150:
            text += next(contents) + " "
        texts.append(text[:TEXT_BYTES])
    return texts


def _within(prose: str, attack: Attack) -> str:
    """The attack in the middle of a text of 2 kB; it may make it longer."""
    [text] = attack.texts
    half = max(0, TEXT_BYTES - len(text)) // 2
    return f"{prose[:half]} {text} {prose[len(prose) - half :]}"


def _some(tried: Iterable[Attack]) -> list[Attack]:
    return random.Random("hits").sample(list(tried), HITS_A_FORM)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
