"""`python -m tests.mutate [--only NAME]… [--json]`: 0 if every mutation is caught, 1 if one survives, 2 if nothing is
proven, because the tree has changed under the list or its tests fail without any mutation."""

import argparse
import sys
from pathlib import Path
from typing import Final

from msgspec import json

from tests.mutate.mutation import Outdated
from tests.mutate.mutations import MUTATIONS
from tests.mutate.runner import Outcome, Unsound, run

ROOT: Final = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    chosen = [each for each in MUTATIONS if not options.only or each.name in options.only]
    outcomes: list[Outcome] = []
    _say(f"{len(chosen)} mutations; first their tests as they are ...")
    try:
        for outcome in run(chosen, ROOT):
            outcomes.append(outcome)
            _say(_line(outcome, len(outcomes), len(chosen)))
    except (Outdated, Unsound) as error:
        _say(f"{type(error).__name__}: {error}")
        return 2
    if options.json:
        sys.stdout.write(json.encode({"mutations": [each._asdict() for each in outcomes]}).decode() + "\n")
    return conclude(outcomes)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="this one, and may be repeated")
    parser.add_argument("--json", action="store_true", help="the outcomes on standard output")
    return parser.parse_args(arguments)


def conclude(outcomes: list[Outcome]) -> int:
    missed = [outcome for outcome in outcomes if outcome.verdict != "caught"]
    _say(f"{len(outcomes) - len(missed)} of {len(outcomes)} caught.")
    for outcome in missed:
        _say(f"  {outcome.verdict}: {outcome.name}, which removes {outcome.removes}\n{outcome.told}".rstrip())
    return 1 if missed else 0


def _line(outcome: Outcome, number: int, of: int) -> str:
    return f"[{number:{len(str(of))}}/{of}] {outcome.verdict:8} {outcome.seconds:5.1f} s  {outcome.name}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
