"""Figures with their bars: printed as ratios, kept with date and machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` against `against`; the bar is on their ratio, from below unless `at_most`."""

    name: str
    value: float
    unit: str
    against_name: str = ""
    against: float | None = None
    bar: float | None = None
    at_most: bool = False

    @property
    def ratio(self) -> float | None:
        return None if not self.against else self.value / self.against

    @property
    def met(self) -> bool | None:
        measured = self.value if self.against is None else self.ratio
        if self.bar is None or measured is None:
            return None
        return measured <= self.bar if self.at_most else measured >= self.bar

    def line(self) -> str:
        text = f"{self.name}: {self.value:,.4g} {self.unit}"
        if self.ratio is not None:
            text += f" = {self.ratio:.2f} × {self.against_name} ({self.against:,.4g})"
        if self.bar is not None:
            verdict = "met" if self.met else "MISSED"
            text += f"   [bar: {'≤' if self.at_most else '≥'} {self.bar:g}{' ×' if self.against else ''}, {verdict}]"
        return text


@dataclass(slots=True)
class Report:
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        print(figure.line(), flush=True)

    def keep(self) -> Path:
        """One JSON file a run, and the newest of each figure as a table."""
        RESULTS.mkdir(exist_ok=True)
        now = datetime.now(UTC)
        machine = (
            f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"
        )
        content = {
            "date": now.isoformat(timespec="seconds"),
            "machine": machine,
            "load_average": os.getloadavg(),
            "figures": [{**asdict(figure), "ratio": figure.ratio, "met": figure.met} for figure in self.figures],
        }
        path = RESULTS / f"{now:%Y-%m-%dT%H%M%S}.json"
        with path.open("x") as file:  # a run never writes over another
            file.write(json.dumps(content, indent=1) + "\n")
        (RESULTS / "latest.md").write_text(_newest())
        return path


def _newest() -> str:
    """Of every figure the newest, whichever run it is from: a run of one part leaves the others as they were."""
    newest: dict[tuple[str, str], tuple[str, Figure]] = {}
    machine = ""
    for path in sorted(RESULTS.glob("*.json")):
        run = json.loads(path.read_text())
        machine = run["machine"]
        for told in run["figures"]:
            figure = Figure(**{name: told[name] for name in Figure.__dataclass_fields__})
            newest[figure.name, figure.against_name] = (run["date"][:16], figure)
    head = [f"The newest of each figure; {machine}.", "", "| figure | run |", "|---|---|"]
    rows = [f"| {figure.line().replace('|', '/')} | {date} |" for date, figure in newest.values()]
    return "\n".join([*head, *rows]) + "\n"


def median_rate(counts_and_seconds: Sequence[tuple[int, float]]) -> float:
    return statistics.median(count / seconds for count, seconds in counts_and_seconds)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
