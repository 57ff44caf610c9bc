"""`python -m tests.golden.make`: write the golden files that are missing. Those that are there are left as they are."""

import asyncio
from pathlib import Path

from msgspec import json

from fieldstone.backends.sqlite.connection import migration_steps
from tests.golden import field
from tests.golden.samples import FIRST_VERSION, golden_file, stored_line
from tests.golden.schemas import dump, golden_schema, migrated_to


def main() -> None:
    for kind, samples in FIRST_VERSION.items():
        _write(golden_file(kind, 1), b"".join(stored_line(sample) + b"\n" for sample in samples))
    for version in range(1, len(migration_steps()) + 1):
        _write(golden_schema(version), dump(migrated_to(version)).encode())
    lines, facts = asyncio.run(field.make())
    _write(field.EXPORT, lines)
    _write(field.FACTS, json.format(json.encode(facts)) + b"\n")


def _write(path: Path, content: bytes) -> None:
    if path.exists():
        print(f"  kept   {path.name}")
        return
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    print(f"  wrote  {path.name}")


if __name__ == "__main__":
    main()
