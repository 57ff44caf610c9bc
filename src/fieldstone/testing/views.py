"""What views promise: every change does what its name says, and the checksum is the same in every backend."""

from collections.abc import Sequence
from typing import Final

import pytest

from fieldstone.core.limits import DEFAULT_AUTHORITY
from fieldstone.ports.store import Commit, Store
from fieldstone.ports.views import (
    ArchiveUnits,
    Change,
    CommitUnit,
    CompactionRow,
    DropGuard,
    DropMember,
    ElaborateUnits,
    EndCompaction,
    EntryRow,
    FeedRow,
    KeepHint,
    MarkEcho,
    MemberRow,
    NameRow,
    PurgeUnits,
    PutAgent,
    PutCompaction,
    PutConflict,
    PutEntry,
    PutFeed,
    PutGuard,
    PutMember,
    PutName,
    PutRelation,
    PutUnit,
    RelabelEntry,
    RelationRow,
    RemoveEntries,
    ReplaceName,
    ResolveConflict,
    RestoreUnits,
    ReturnEntries,
    SetUnitStatus,
    ShelveEntries,
)
from fieldstone.testing.opening import OTHER_KEY, OpenStore, StoreCase
from fieldstone.testing.rows import agent_row, conflict_row, draft_row, name_row, unit_row

ONE_OF_EACH: Final[Sequence[Change]] = (
    PutName(name_row(1)),
    PutName(name_row(5)),
    PutAgent(agent_row(1)),
    PutAgent(agent_row(5)._replace(credential="key-0123456789abcdef")),
    PutUnit(unit_row(10)),
    PutUnit(unit_row(11, agent=5)._replace(trust=2)),
    PutUnit(draft_row(12)),
    PutUnit(draft_row(13)._replace(score=None)),
    SetUnitStatus(10, "contested"),
    CommitUnit(13, 40, 41, 0.75),
    PutConflict(conflict_row(20, 11, 10)),
    PutConflict(conflict_row(21, 13, 10)),
    ResolveConflict(21, "retracted", 10, None, 42, 41),
    KeepHint(30),
    KeepHint(31),
    PutRelation(RelationRow(11, 0, "supports", 10)),
    PutRelation(RelationRow(13, 1, "contradicts", 10)),
    MarkEcho(11, 10),
    PutMember(MemberRow(3, 0)),
    PutMember(MemberRow(3, 5)),
    ArchiveUnits((10, 11), 60),
    RestoreUnits((11,)),
    PurgeUnits((13,), 61),
    PutCompaction(CompactionRow(50, "comp-1", "purge", "running", 0, 0, 0, None)),
    PutCompaction(CompactionRow(53, "comp-2", "archive", "running", 0, 0, 0, None)),
    EndCompaction(50, "done", 3, 1, 210, 52),
    PutGuard(11, "pin"),
    PutGuard(11, "hold"),
    PutEntry(EntryRow(10, 3, 62, b"digest of id ten", 70, "00112233aabbccdd"), (b"digest of a tag.",)),
    PutEntry(EntryRow(11, 3, 63), (b"digest of a tag.",)),
    PutEntry(EntryRow(13, 3, 64), (b"digest of a tag.",)),
    ShelveEntries((10,), 65),
    RemoveEntries((13,), 66, purged=True),
    PutFeed(FeedRow(62, "memory.written", 1_000, 10)),
)
# What every backend answers for these rows: SHA-256 over repr() of each row as a tuple, names, agents, units,
# conflicts, hints, relations, members, compactions, guards, entries, their tags (session, digest, unit) and the feed in
# this order, each by its first columns.
CHECKSUM_OF_NOTHING: Final = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
CHECKSUM_OF_ONE_OF_EACH: Final = "5c625fad0a3f5aea18d43e56786a90e817739163e2286245c3abcbff9857cfa6"


class ViewsTests(StoreCase):
    async def test_nothing_is_there_at_first(self, store: Store) -> None:
        views = store.views
        assert await views.agents() == []
        assert await views.conflicts() == []
        assert await views.hints() == []
        assert await views.relations() == []
        assert await views.name("agent", b"no such digest..") is None
        assert await views.unit("mem-unknown") is None
        assert await views.units([1]) == {}
        assert await views.scan_units(after=0, limit=10) == []
        assert await views.drafted_units() == []
        assert await views.open_conflicts_of(1) == []

    async def test_a_name_is_found_by_kind_and_digest(self, store: Store) -> None:
        row = name_row(7)
        await _apply(store, PutName(row), PutName(NameRow(8, "task", row.digest)))
        assert await store.views.name("agent", row.digest) == 7
        assert await store.views.name("task", row.digest) == 8
        assert await store.views.name("session", row.digest) is None

    async def test_agents_come_by_number(self, store: Store) -> None:
        await _apply(store, PutAgent(agent_row(9)), PutAgent(agent_row(2)))
        assert await store.views.agents() == [agent_row(2), agent_row(9)]

    async def test_a_new_registration_takes_the_place_of_the_earlier_one(self, store: Store) -> None:
        await _apply(store, PutAgent(agent_row(1)))
        again = agent_row(1, registration=50)._replace(status="offline", authority=7)
        await _apply(store, PutAgent(again))
        assert await store.views.agents() == [again]

    async def test_the_last_of_two_registrations_in_one_commit_stays(self, store: Store) -> None:
        again = agent_row(1, registration=50)
        await _apply(store, PutAgent(agent_row(1)), PutAgent(again))
        assert await store.views.agents() == [again]

    async def test_a_unit_is_found_by_id_and_by_seq(self, store: Store) -> None:
        row = draft_row(4)._replace(archived_epoch=9)
        await _apply(store, PutUnit(row), PutUnit(unit_row(5)))
        assert await store.views.unit(row.id) == row
        assert await store.views.units([5, 4, 99]) == {4: row, 5: unit_row(5)}

    @pytest.mark.parametrize("score", [None, 0.0, 1.0, 0.1, 1 / 3])
    async def test_a_score_comes_back_as_it_was(self, store: Store, score: float | None) -> None:
        await _apply(store, PutUnit(unit_row(1)._replace(score=score)))
        assert (await store.views.units([1]))[1].score == score

    async def test_relations_come_by_source_and_place(self, store: Store) -> None:
        rows = [RelationRow(4, 0, "supports", 2), RelationRow(4, 3, "answers", 1), RelationRow(9, 0, "informs", 4)]
        await _apply(store, PutRelation(rows[2]))
        await _apply(store, PutRelation(rows[1]), PutRelation(rows[0]))
        assert await store.views.relations() == rows

    async def test_what_a_unit_elaborates_is_a_relation_each_in_the_order_given(self, store: Store) -> None:
        await _apply(store, ElaborateUnits(9, (7, 4, 5)), PutRelation(RelationRow(4, 0, "informs", 2)))
        elaborated = [RelationRow(9, place, "elaborates", target) for place, target in enumerate((7, 4, 5))]
        assert await store.views.relations() == [RelationRow(4, 0, "informs", 2), *elaborated]

    async def test_an_echo_is_marked(self, store: Store) -> None:
        await _apply(store, PutUnit(unit_row(4)), PutUnit(unit_row(5)))
        await _apply(store, MarkEcho(5, 4))
        assert (await store.views.units([5]))[5] == unit_row(5)._replace(echo_of=4)
        assert (await store.views.units([4]))[4] == unit_row(4)

    async def test_a_status_is_set(self, store: Store) -> None:
        await _apply(store, PutUnit(unit_row(4)), PutUnit(unit_row(5)))
        await _apply(store, SetUnitStatus(4, "superseded"))
        assert (await store.views.units([4]))[4] == unit_row(4)._replace(status="superseded")
        assert (await store.views.units([5]))[5] == unit_row(5)

    async def test_the_last_of_several_statuses_in_one_commit_stays(self, store: Store) -> None:
        statuses = (SetUnitStatus(4, "contested"), SetUnitStatus(4, "active"), SetUnitStatus(4, "retracted"))
        await _apply(store, PutUnit(unit_row(4)), *statuses)
        assert (await store.views.units([4]))[4].status == "retracted"

    async def test_a_committed_draft_is_active_and_has_the_commits_epoch_and_score(self, store: Store) -> None:
        draft = draft_row(4)
        await _apply(store, PutUnit(draft))
        await _apply(store, CommitUnit(4, 17, 18, 0.875))
        committed = draft._replace(mode="committed", status="active", epoch=17, committed_seq=18, score=0.875)
        assert await store.views.unit(draft.id) == committed

    async def test_a_commit_without_a_score_keeps_the_drafts(self, store: Store) -> None:
        await _apply(store, PutUnit(draft_row(4)._replace(score=0.25)), CommitUnit(4, 17, 18, None))
        assert (await store.views.units([4]))[4].score == 0.25

    async def test_a_draft_can_be_put_committed_and_contested_in_one_commit(self, store: Store) -> None:
        await _apply(store, PutUnit(draft_row(4)), CommitUnit(4, 17, 18, 1.0), SetUnitStatus(4, "contested"))
        row = (await store.views.units([4]))[4]
        assert (row.mode, row.status, row.epoch) == ("committed", "contested", 17)

    async def test_units_are_scanned_by_seq_after_and_up_to_a_limit(self, store: Store) -> None:
        rows = [unit_row(seq) for seq in (3, 5, 6, 9)]
        await _apply(store, *(PutUnit(row) for row in rows))
        assert await store.views.scan_units(after=0, limit=100) == rows
        assert await store.views.scan_units(after=3, limit=2) == rows[1:3]
        assert await store.views.scan_units(after=9, limit=2) == []

    async def test_units_that_were_drafts_are_told_whatever_became_of_them(self, store: Store) -> None:
        discarded = draft_row(7)._replace(status="retracted")
        rows = [unit_row(3), draft_row(4), draft_row(6), discarded, unit_row(9)]
        await _apply(store, *(PutUnit(row) for row in rows), CommitUnit(6, 17, 18, None))
        drafted = await store.views.drafted_units()
        assert [row.seq for row in drafted] == [4, 6, 7]
        assert drafted == list((await store.views.units([4, 6, 7])).values())

    async def test_conflicts_come_by_seq_all_or_of_a_status(self, store: Store) -> None:
        first, second = conflict_row(20, 10, 11), conflict_row(21, 12, 11)
        await _apply(store, PutConflict(first), PutConflict(second), ResolveConflict(20, "superseded", 11, 1, 30, 31))
        resolved = first._replace(
            status="resolved", strategy="superseded", winner=11, resolved_by=1, resolved_seq=30, resolved_epoch=31
        )
        assert await store.views.conflicts() == [resolved, second]
        assert await store.views.conflicts(["detected"]) == [second]
        assert await store.views.conflicts(["resolved"]) == [resolved]
        assert await store.views.conflicts(["resolved", "detected"]) == [resolved, second]
        assert await store.views.conflicts(["escalated"]) == []
        assert await store.views.conflicts([]) == []

    async def test_open_conflicts_of_a_unit_are_those_with_it_on_either_side(self, store: Store) -> None:
        as_a, as_b, others = conflict_row(20, 10, 11), conflict_row(21, 12, 10), conflict_row(22, 12, 11)
        gone = conflict_row(23, 10, 13)
        await _apply(store, *(PutConflict(row) for row in (as_a, as_b, others, gone)))
        await _apply(store, ResolveConflict(23, "retracted", 10, None, 30, 31))
        assert await store.views.open_conflicts_of(10) == [as_a, as_b]
        assert await store.views.open_conflicts_of(13) == []

    async def test_kept_hints_come_by_seq(self, store: Store) -> None:
        await _apply(store, KeepHint(4), KeepHint(9))
        await _apply(store, KeepHint(12))
        assert await store.views.hints() == [4, 9, 12]

    async def test_an_erased_hint_is_no_longer_kept(self, store: Store) -> None:
        await _apply(store, KeepHint(4), KeepHint(9))
        await store.commit(Commit(changes=[KeepHint(12)], erased_texts=[4, 12]))
        assert await store.views.hints() == [9]

    async def test_the_checksum_is_the_same_in_every_backend(self, store: Store) -> None:
        assert await store.views.checksum() == CHECKSUM_OF_NOTHING
        await _apply(store, *ONE_OF_EACH)
        assert await store.views.checksum() == CHECKSUM_OF_ONE_OF_EACH

    async def test_the_checksum_depends_on_the_rows_and_not_on_how_they_came(self, store: Store) -> None:
        for change in ONE_OF_EACH:
            await _apply(store, change)
        assert await store.views.checksum() == CHECKSUM_OF_ONE_OF_EACH

    @pytest.mark.parametrize(
        "change",
        [
            PutName(name_row(6)),
            PutAgent(agent_row(5, registration=77)),
            PutUnit(unit_row(14)),
            SetUnitStatus(11, "retracted"),
            CommitUnit(12, 50, 51, None),
            PutConflict(conflict_row(22, 12, 11)),
            ResolveConflict(20, "superseded", 11, None, 52, 51),
            KeepHint(32),
            PutMember(MemberRow(3, 1)),
            DropMember(MemberRow(3, 5)),
            ArchiveUnits((11,), 62),
            RestoreUnits((10,)),
            PurgeUnits((11,), 62),
            PutCompaction(CompactionRow(54, "comp-3", "archive", "running", 0, 0, 0, None)),
            EndCompaction(53, "failed", 0, 0, 0, 55),
            PutGuard(10, "hold"),
            DropGuard(11, "pin"),
            PutEntry(EntryRow(12, 3, 67)),
            RelabelEntry(63, None, ()),
            ShelveEntries((11,), 67),
            ReturnEntries((10,)),
            RemoveEntries((11,), 67),
            PutFeed(FeedRow(67, "memory.compacted", 1_001, 10)),
            ReplaceName(name_row(5, b"another digest16")),
        ],
        ids=lambda change: type(change).__name__,
    )
    async def test_every_change_shows_in_the_checksum(self, store: Store, change: Change) -> None:
        await _apply(store, *ONE_OF_EACH)
        await _apply(store, change)
        assert await store.views.checksum() != CHECKSUM_OF_ONE_OF_EACH

    async def test_what_is_archived_is_marked_until_it_is_restored_and_what_is_purged_for_good(
        self, store: Store
    ) -> None:
        await _apply(store, *ONE_OF_EACH)
        rows = await store.views.units([10, 11, 13])
        assert [rows[seq].archived_epoch for seq in (10, 11, 13)] == [60, None, None]
        assert [rows[seq].purged_seq for seq in (10, 11, 13)] == [None, None, 61]
        columns = await store.views.unit_columns(after=9, limit=10)
        assert columns.archived_epoch.tolist() == [60, 0, 0, 0]
        assert columns.purged_seq.tolist() == [0, 0, 0, 61]

    async def test_compactions_and_guards_are_told_in_order(self, store: Store) -> None:
        await _apply(store, *ONE_OF_EACH)
        assert await store.views.compactions() == [
            CompactionRow(50, "comp-1", "purge", "done", 3, 1, 210, 52),
            CompactionRow(53, "comp-2", "archive", "running", 0, 0, 0, None),
        ]
        assert await store.views.guards() == [PutGuard(11, "hold"), PutGuard(11, "pin")]
        await _apply(store, DropGuard(11, "hold"), DropGuard(12, "hold"))
        assert await store.views.guards() == [PutGuard(11, "pin")]

    async def test_a_member_is_there_once_until_it_is_dropped(self, store: Store) -> None:
        member, other = MemberRow(3, 5), MemberRow(7, 5)
        await _apply(store, PutMember(other), PutMember(member), PutMember(member))
        assert await store.views.members() == [member, other]
        await _apply(store, DropMember(member))
        await _apply(store, DropMember(member))
        assert await store.views.members() == [other]

    async def test_a_replaced_name_is_found_by_its_new_digest_alone(self, store: Store) -> None:
        await _apply(store, PutName(name_row(5)))
        new = name_row(5, b"another digest16")
        await _apply(store, ReplaceName(new))
        assert await store.views.name("agent", name_row(5).digest) is None
        assert await store.views.name("agent", new.digest) == 5

    async def test_a_name_whose_row_never_was_may_be_replaced(self, store: Store) -> None:
        await _apply(store, ReplaceName(name_row(5)))
        assert await store.views.name("agent", name_row(5).digest) == 5

    async def test_who_an_agent_belongs_to_and_how_far_a_unit_is_trusted_is_kept(self, store: Store) -> None:
        await _apply(store, *ONE_OF_EACH)
        assert [row.credential for row in await store.views.agents()] == [None, "key-0123456789abcdef"]
        assert [row.trust for row in await store.views.scan_units(after=0, limit=2)] == [None, 2]
        assert (await store.views.unit_columns(after=0, limit=2)).trust.tolist() == [DEFAULT_AUTHORITY, 2]

    async def test_another_field_of_the_same_store_has_views_of_its_own(
        self, store: Store, open_store: OpenStore
    ) -> None:
        other = open_store(key=OTHER_KEY)
        await _apply(store, *ONE_OF_EACH)
        assert await other.views.checksum() == CHECKSUM_OF_NOTHING
        await _apply(other, *ONE_OF_EACH)
        await _apply(other, SetUnitStatus(10, "retracted"))
        assert (await store.views.units([10]))[10].status == "contested"
        assert await store.views.open_conflicts_of(10) == [conflict_row(20, 11, 10)]
        assert await store.views.checksum() == CHECKSUM_OF_ONE_OF_EACH
        await other.close()


async def _apply(store: Store, *changes: Change) -> None:
    await store.commit(Commit(changes=changes))
