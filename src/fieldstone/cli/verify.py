"""`fieldstone verify`"""

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from fieldstone.audit.verify import Fault, Verification
from fieldstone.audit.verify import verify as verify_store
from fieldstone.cli.door import on_store, run
from fieldstone.cli.failures import is_damage, notes, unreadable
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import one_line, print_json, progress
from fieldstone.ports.store import Store

if TYPE_CHECKING:
    from fieldstone.client.field import Field

FROM_BACKUP: Final = "Bring it back from a backup, with the files beside it."
WHEN_BAD: Final = (
    "`fieldstone export FILE` saves what can still be read. Then bring the store back from a backup, with the files "
    "beside it: texts of archived units lie in STORE-cold."
)


class KeptHead(NamedTuple):
    """A head that was written down elsewhere; without a seq it must be the head of now."""

    hash: str
    seq: int | None


class HeadType(click.ParamType[KeptHead]):
    name = "[SEQ:]HASH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> KeptHead:
        match = re.fullmatch(r"(?:(\d{1,18}):)?([0-9a-fA-F]{64})", str(value))
        if match is None or (match[1] is not None and int(match[1]) == 0):
            self.fail("it looks like 42:9f86d081…, as an earlier `fieldstone verify` printed it.", param, ctx)
        return KeptHead(match[2].lower(), None if match[1] is None else int(match[1]))


@click.command("verify")
@click.option("--head", type=HeadType(), help="A head kept elsewhere, which the log must still have.")
@json_option
@where_options
@click.pass_context
def command(ctx: click.Context, where: Where, as_json: bool, head: KeptHead | None) -> None:
    """Check that the history is as it was written.

    Every entry, every link of the hash chain and every text: exit 0 if all are good; exit 1, and where the first fault
    is, if not. Whoever can rewrite the file can rewrite the whole chain, too: keep the head that is printed somewhere
    else, and give it to a later run with --head.

    \b
    Examples:
      fieldstone verify --db team.db
      fieldstone verify --db team.db --head 42:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    """
    found = run(_verify(where, head))
    if as_json:
        print_json(found)
    else:
        click.echo(verdict(found))
        if found.first_bad is not None and found.first_bad.seq > 0:
            click.echo(WHEN_BAD, err=True)
    ctx.exit(0 if found.ok else 1)


def verdict(found: Verification) -> str:
    fault = found.first_bad
    if fault is None:
        head = f"; head {found.entries}:{found.head}" if found.entries else ""
        return f"ok: {found.entries:,} entries, {found.texts:,} texts{head}"
    if fault.seq == 0:
        return f"NOT ok: {one_line(fault.problem)}"
    good = f" ({found.entries:,} entries before it are good)" if fault.seq == found.entries + 1 else ""
    return f"NOT ok: entry {fault.seq}, {fault.part}: {one_line(fault.problem)}{good}"


async def _verify(where: Where, head: KeptHead | None) -> Verification:
    async def here(store: Store) -> Verification:
        with progress("verifying", (await store.log.head()).seq) as advance:
            found = await verify_store(store, advance)
        if head is None or not found.ok:
            return found
        entries = await store.log.read(after=_place(found, head) - 1, limit=1)
        return _compared(found, head, entries[0].hash.hex() if entries else None)

    async def there(field: "Field") -> Verification:
        found = await field.verify()
        if head is None or not found.ok:
            return found
        page = await field.log(after=_place(found, head) - 1, limit=1)
        return _compared(found, head, page.entries[0].hash if page.entries else None)

    try:
        return await on_store(where, here, there)
    except Exception as error:  # why: a damaged file makes its readers raise anything; what is not damage goes on
        if not is_damage(error):
            raise
        problem = " ".join((unreadable(error), *(notes(error) or (FROM_BACKUP,))))
        return Verification(False, 0, 0, "", Fault(0, "store", problem))


def _place(found: Verification, head: KeptHead) -> int:
    return max(1, found.entries if head.seq is None else head.seq)


def _compared(found: Verification, head: KeptHead, has: str | None) -> Verification:
    if has == head.hash:
        return found
    problem = (
        "the log ends before it"
        if has is None
        else f"its hash is {has}, and not the one that was kept: this is another history"
    )
    fault = Fault(_place(found, head), "entry", problem)
    return Verification(False, found.entries, found.texts, found.head, fault)
