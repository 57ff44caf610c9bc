"""Entries, texts and view rows for tests of stores. A store does not look inside: their content is arbitrary."""

from collections.abc import Sequence

from fieldstone.core.chain import link
from fieldstone.ports.log import GENESIS_HASH, Head, StoredEntry, StoredText
from fieldstone.ports.replies import RememberedReply
from fieldstone.ports.views import AgentRow, ConflictRow, NameRow, UnitRow

EMPTY_LOG = Head(0, GENESIS_HASH)


def entries(count: int, *, after: Head = EMPTY_LOG) -> list[StoredEntry]:
    """Entries that continue a log with this head."""
    made: list[StoredEntry] = []
    for seq in range(after.seq + 1, after.seq + count + 1):
        body = b'{"entry":%d}' % seq
        made.append(StoredEntry(seq, body, link(made[-1].hash if made else after.hash, body)))
    return made


def head_of(stored: Sequence[StoredEntry]) -> Head:
    return Head(stored[-1].seq, stored[-1].hash)


def text(seq: int, content: str = "what was said") -> StoredText:
    return StoredText(seq, b"salt of %12d" % seq, b'{"content":"%s"}' % content.encode())


def reply(name: str, *, at_ms: int = 1_000) -> RememberedReply:
    key = name.encode().rjust(16, b".")
    return RememberedReply(key, b"request of " + key, at_ms, b'{"answer":"%s"}' % name.encode())


def name_row(number: int, digest: bytes | None = None) -> NameRow:
    return NameRow(number, "agent", b"digest of %6d" % number if digest is None else digest)


def agent_row(agent: int, *, registration: int | None = None) -> AgentRow:
    return AgentRow(agent, agent + 1 if registration is None else registration, "idle", 4)


def unit_row(seq: int, *, agent: int = 1) -> UnitRow:
    return UnitRow(
        seq=seq,
        id=f"mem-{seq:032x}",
        mode="committed",
        type="finding",
        status="active",
        epoch=seq,
        at_ms=1_750_000_000_000 + seq,
        agent=agent,
        registration=2,
        session=None,
        task=None,
        score=0.5,
        committed_seq=None,
        archived_epoch=None,
    )


def draft_row(seq: int) -> UnitRow:
    return unit_row(seq)._replace(mode="draft", status="draft", session=3, task=4)


def conflict_row(seq: int, unit_a: int, unit_b: int) -> ConflictRow:
    return ConflictRow(
        seq=seq,
        id=f"conf-{seq:032x}",
        type="factual",
        status="detected",
        unit_a=unit_a,
        unit_b=unit_b,
        detected_by="explicit",
        strategy=None,
        winner=None,
        resolved_by=None,
        resolved_seq=None,
        resolved_epoch=None,
    )
