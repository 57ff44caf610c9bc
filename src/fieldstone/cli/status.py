"""`fieldstone status`"""

import click

from fieldstone.cli.door import opened, run
from fieldstone.cli.options import Where, json_option, where_options
from fieldstone.cli.output import in_bytes, print_json, print_pairs
from fieldstone.core.replies import EmbeddingProgress, FieldStatus


@click.command("status")
@json_option
@where_options
def command(where: Where, as_json: bool) -> None:
    """Show what a field holds, and how it is doing.

    \b
    Examples:
      fieldstone status --db team.db
      fieldstone status --url http://127.0.0.1:8420 --json
    """
    found = run(_status(where))
    if as_json:
        print_json(found)
    else:
        print_status(found)


async def _status(where: Where) -> FieldStatus:
    async with opened(where) as field:
        return await field.status()


def print_status(found: FieldStatus, *, indent: str = "") -> None:
    print_pairs(
        [
            ("field", f"{found.field} (tenant {found.tenant})"),
            *_store_lines(found),
            ("epoch", f"{found.epoch:,}"),
            ("units", _units_line(found)),
            ("agents", f"{found.agents:,} active"),
            ("conflicts", f"{found.conflicts_open:,} open"),
            ("log", f"{found.log_entries:,} entries"),
            ("text index", f"up to entry {found.text_index_position:,}; what is newer is scanned"),
            *(("vectors", vectors_line(each)) for each in found.embeddings),
            ("detection", f"{found.detection_behind:,} units are still to be looked at"),
            ("protocol", f"Akashik {found.protocol_version}, level {found.conformance_level}"),
            ("operations", ", ".join(found.supported_operations)),
            ("version", f"fieldstone {found.version}"),
        ],
        indent=indent,
    )


def _units_line(found: FieldStatus) -> str:
    archived = f", of which {found.units_archived:,} archived" if found.units_archived else ""
    return f"{found.units:,}{archived}"


def _store_lines(found: FieldStatus) -> list[tuple[str, str]]:
    """A server with keys tells nobody where its file is."""
    if found.store is None:
        return []
    return [("store", found.store if found.bytes is None else f"{found.store}, {in_bytes(found.bytes)}")]


def vectors_line(found: EmbeddingProgress) -> str:
    made = f"{found.waiting:,} of {found.units:,} units wait for theirs" if found.waiting else "of every unit"
    return f"{made}; {found.model}{'' if found.state == 'serving' else ', which will serve when it has all of them'}"
