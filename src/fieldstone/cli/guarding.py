"""What `fieldstone hold` and `fieldstone pin` do."""

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where
from fieldstone.core.vocabulary import Guard


def guard(where: Where, unit_id: str, guard: Guard, *, release: bool) -> None:
    run(_guard(where, unit_id, guard, release=release))


async def _guard(where: Where, unit_id: str, guard: Guard, *, release: bool) -> None:
    async with opened(where) as field:
        if release:
            await field.door.unguard(unit_id, guard)
        else:
            await field.door.guard(unit_id, guard)
