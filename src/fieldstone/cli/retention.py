"""`fieldstone retention`"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fieldstone.cli.door import opened, run
from fieldstone.cli.failures import Refused
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import counted, in_bytes, one_line, print_json, print_pairs
from fieldstone.cli.watching import end_if_cancelled, on_ctrl_c

if TYPE_CHECKING:
    from fieldstone.client.field import Field
    from fieldstone.compaction.retention import Policy
    from fieldstone.field.retention import Outcome, PolicyStatus

MAX_FILE_BYTES: Final = 1_000_000
NO_POLICIES: Final = "There are no policies: nothing goes by itself. `fieldstone retention set FILE` sets some."


@click.group("retention")
def command() -> None:
    """Retention: what becomes of aged units, by policies that are set.

    Nothing expires by itself. A policy acts when `apply` is called, or on its own schedule while the field is open.
    Units on hold and pinned ones stay, whatever a policy says.

    \b
    Examples:
      fieldstone retention set retention.toml --db team.db
      fieldstone retention plan --db team.db
      fieldstone retention apply --db team.db
    """


@command.command("set")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@json_option
@where_options
def set_policies(where: Where, as_json: bool, file: Path) -> None:
    """Set the policies of a TOML file: these hold from now on, and no others.

    A file holds a [[policies]] table for each: name, strategy, match (session, types, status), max_age_epochs or
    max_age (90m, 12h, 30d, 8w), max_units, schedule (cron, five fields, UTC) and enabled.

    \b
    Example:
      fieldstone retention set retention.toml --db team.db
    """
    policies = import_module("fieldstone.wire.policies").policies_from_toml(_text(file))
    held = run(_set(where, policies))
    if as_json:
        print_json({"policies": held})
        return
    click.echo("1 policy holds from now on" if len(held) == 1 else f"{len(held):,} policies hold from now on")


@command.command()
@json_option
@where_options
def show(where: Where, as_json: bool) -> None:
    """Show the policies that hold.

    \b
    Example:
      fieldstone retention show --db team.db
    """
    held = run(_held(where))
    if as_json:
        print_json({"policies": held})
        return
    for policy in held:
        print_pairs([("policy", policy.name), *_lines(policy)])
    if not held:
        click.echo(NO_POLICIES, err=True)


@command.command()
@json_option
@where_options
def plan(where: Where, as_json: bool) -> None:
    """Show what each policy would do now. Nothing is done.

    \b
    Example:
      fieldstone retention plan --db team.db
    """
    _print_outcomes(run(_planned(where)), as_json=as_json, would=True)


@command.command()
@json_option
@where_options
def apply(where: Where, as_json: bool) -> None:
    """Carry out every policy that is enabled, in their order.

    Ctrl-C stops it after the step it is in; what is done stays done.

    \b
    Example:
      fieldstone retention apply --db team.db
    """
    outcomes = run(_applied(where))
    _print_outcomes(outcomes, as_json=as_json, would=False)
    end_if_cancelled(*(each.result for each in outcomes))


@command.command()
@json_option
@where_options
def status(where: Where, as_json: bool) -> None:
    """Show when each policy last ran, and when it runs next.

    \b
    Example:
      fieldstone retention status --db team.db
    """
    found = run(_status(where))
    if as_json:
        print_json({"policies": found})
        return
    for policy in found:
        last = policy.last_run
        print_pairs(
            [
                ("policy", policy.name + ("" if policy.enabled else " (not enabled)")),
                ("last run", "never" if last is None else f"{last.at}, {last.state}: {counted(last.units, 'unit')}"),
                ("next run", policy.next_run or "when it is applied"),
            ]
        )
    if not found:
        click.echo(NO_POLICIES, err=True)


async def _set(where: Where, policies: "Sequence[Policy]") -> "Sequence[Policy]":
    async with opened(where) as field:
        return await field.set_retention(policies)


async def _held(where: Where) -> "Sequence[Policy]":
    async with opened(where) as field:
        return await field.retention()


async def _planned(where: Where) -> "Sequence[Outcome]":
    async with opened(where) as field:
        return await field.plan_retention()


async def _applied(where: Where) -> "Sequence[Outcome]":
    cancelling: list[asyncio.Task[None]] = []
    async with opened(where) as field:
        with on_ctrl_c(lambda: cancelling.append(asyncio.ensure_future(_cancel(field)))):
            outcomes = await field.apply_retention()
        await asyncio.gather(*cancelling)
        return outcomes


async def _cancel(field: "Field") -> None:
    """Cancel the run that is under way; `apply` goes on with no other."""
    for policy in await field.retention_status():
        if policy.last_run is not None and policy.last_run.state == "running":
            await field.cancel_compaction(policy.last_run.compaction_id)


async def _status(where: Where) -> "Sequence[PolicyStatus]":
    async with opened(where) as field:
        return await field.retention_status()


def _text(file: Path) -> str:
    content = file.read_bytes()[: MAX_FILE_BYTES + 1]
    if len(content) > MAX_FILE_BYTES:
        raise Refused(f"error: {file} holds more than {MAX_FILE_BYTES:,} bytes: it is no list of policies.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"error: {file} is not UTF-8 text (byte {error.start}).") from error


def _lines(policy: "Policy") -> list[tuple[str, str]]:
    match = policy.match
    told = {
        "strategy": policy.strategy,
        "session": match.session,
        "types": None if match.types is None else ", ".join(match.types),
        "status": None if match.status is None else ", ".join(match.status),
        "older than": policy.max_age if policy.max_age_epochs is None else f"{policy.max_age_epochs:,} epochs",
        "beyond": None if policy.max_units is None else f"the newest {counted(policy.max_units, 'unit')}",
        "schedule": policy.schedule or "when it is applied",
        "enabled": None if policy.enabled else "no",
    }
    return [(name, value) for name, value in told.items() if value is not None]


def _print_outcomes(outcomes: "Sequence[Outcome]", *, as_json: bool, would: bool) -> None:
    if as_json:
        print_json({"policies": outcomes})
        return
    for each in outcomes:
        if each.result is None:
            click.echo(f"{each.name}: not enabled")
            continue
        units, size = each.result.units_affected, each.result.storage_reclaimed_bytes or 0
        kept = f", {len(each.result.skipped):,} kept" if each.result.skipped else ""
        go = "would go" if would else "went"
        click.echo(f"{one_line(each.name)}: {counted(units, 'unit')} {go} ({each.strategy}), {in_bytes(size)}{kept}")
    if not outcomes:
        click.echo(NO_POLICIES, err=True)
