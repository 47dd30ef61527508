"""Merges on a real warehouse: the same answers from fewer parts, and an intact ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import olapdb
from olapdb.commit.origin import CommitOrigin
from olapdb.database import Database
from olapdb.errors import CommitConflict, MemoryLimitExceeded, NotEnoughSpace
from olapdb.maintenance import merge_planner
from olapdb.maintenance.check import check_database
from olapdb.maintenance.merge_planner import merge_worthwhile, optimize
from olapdb.maintenance.merge_policy import MergeLimits
from olapdb.maintenance.merger import merge_batch, merge_parts
from olapdb.maintenance.scheduler import MergeScheduler
from olapdb.maintenance.vacuum import vacuum
from olapdb.model.changes import Commit, RaiseDataVersion
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import Table
from olapdb.runtime.failpoints import watching
from olapdb.runtime.services import Services
from olapdb.storage.store import LocalStore

pytestmark = pytest.mark.feature("upkeep")


class Warehouse:
    """Yield a connection whose background merges are stopped."""

    def __init__(self, location: str) -> None:
        self.connection = olapdb.connect(location)
        self.database = Database.open(location) if location != ":memory:" else None
        self.query("SYSTEM STOP MERGES")

    @property
    def services(self) -> Services:
        assert self.database is not None
        return self.database.services

    def query(self, text: str) -> list[tuple[object, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(text)
        return list(cursor.fetchall()) if cursor.description else []

    def table(self, name: str) -> Table:
        found = self.services.catalog.snapshot().find("default", name)
        assert isinstance(found, Table)
        return found

    def parts(self, name: str) -> tuple[Part, ...]:
        return self.services.catalog.snapshot().parts(self.table(name).id)

    def check(self) -> None:
        assert check_database(self.services.catalog, self.services.store) == []

    def close(self) -> None:
        self.connection.close()
        assert self.database is not None
        self.database.release()


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    opened = Warehouse(str(tmp_path / "warehouse"))
    opened.query(
        "CREATE TABLE s (d Date, k String, n UInt64) ENGINE = MergeTree"
        " PARTITION BY toYYYYMM(d) ORDER BY k"
    )
    opened.query(
        "CREATE TABLE t (k String, total SimpleAggregateFunction(sum, UInt64),"
        " users AggregateFunction(uniq, UInt64)) ENGINE = AggregatingMergeTree ORDER BY k"
    )
    opened.query(
        "CREATE MATERIALIZED VIEW v TO t AS"
        " SELECT k, sum(n) AS total, uniqState(n) AS users FROM s GROUP BY k"
    )
    yield opened
    opened.close()


ANSWERS = (
    "SELECT toYYYYMM(d) AS m, k, sum(n), count() FROM s GROUP BY m, k ORDER BY m, k",
    "SELECT k, sum(total), uniqMerge(users) FROM t GROUP BY k ORDER BY k",
)


def fill(warehouse: Warehouse, inserts: int = 12) -> list[list[tuple[object, ...]]]:
    for i in range(inserts):
        month = 1 + i % 2
        rows = ", ".join(f"('2024-0{month}-05', 'k{j % 5}', {i * 10 + j})" for j in range(8))
        warehouse.query(f"INSERT INTO s VALUES {rows}")
    return [warehouse.query(text) for text in ANSWERS]


def test_optimize_final_leaves_one_part_a_partition(warehouse: Warehouse) -> None:
    before = fill(warehouse)
    warehouse.query("OPTIMIZE TABLE s FINAL")
    warehouse.query("OPTIMIZE TABLE t FINAL")
    assert [p.name for p in warehouse.parts("s")] == ["202401_1_11_1", "202402_2_12_1"]
    (target,) = warehouse.parts("t")
    assert target.rows == 5
    assert target.block_range == BlockRange(1, 12)
    (joined,) = target.contributions
    assert joined.blocks == (BlockRange(1, 12),)
    assert joined.rows == 60
    assert not any(p.inline for p in (*warehouse.parts("s"), target))
    assert [warehouse.query(text) for text in ANSWERS] == before
    warehouse.check()
    number = warehouse.services.catalog.snapshot().number
    warehouse.query("OPTIMIZE TABLE s FINAL")
    assert warehouse.services.catalog.snapshot().number == number, "nothing is left to do"


def test_optimize_of_one_partition(warehouse: Warehouse) -> None:
    fill(warehouse)
    optimize(
        CommitOrigin(warehouse.services, "OPTIMIZE"), warehouse.table("s").id, partition_id="202402"
    )
    assert [p.partition_id for p in warehouse.parts("s")] == ["202401"] * 6 + ["202402"]


def test_bypass_rows_and_gaps_stay_apart(warehouse: Warehouse) -> None:
    fill(warehouse, 4)
    warehouse.query("INSERT INTO t SELECT 'k1', 1000, uniqState(toUInt64(7))")
    warehouse.query("INSERT INTO t SELECT 'k2', 1000, uniqState(toUInt64(8))")
    warehouse.query("OPTIMIZE TABLE t FINAL")
    parts = warehouse.parts("t")
    assert sorted(bool(p.contributions) for p in parts) == [False, True]
    warehouse.query("DETACH TABLE v")
    warehouse.query("INSERT INTO s VALUES ('2024-01-01', 'gap', 1), ('2024-02-01', 'gap', 1)")
    warehouse.query("ATTACH TABLE v")
    warehouse.query("INSERT INTO s VALUES ('2024-01-01', 'seen', 1)")
    warehouse.query("OPTIMIZE TABLE s FINAL")
    january = [p.block_range for p in warehouse.parts("s") if p.partition_id == "202401"]
    assert january == [BlockRange(1, 3), BlockRange(5, 5), BlockRange(6, 6)]
    warehouse.check()


def test_blocks_that_gave_nothing_are_joined(warehouse: Warehouse) -> None:
    warehouse.query("CREATE TABLE few (k String) ENGINE = MergeTree ORDER BY k")
    warehouse.query("CREATE MATERIALIZED VIEW w TO few AS SELECT k FROM s WHERE n > 1000000")
    fill(warehouse, 6)
    assert [p.rows for p in warehouse.parts("few")] == [0] * 6
    warehouse.query("OPTIMIZE TABLE few FINAL")
    (void,) = warehouse.parts("few")
    assert (void.rows, void.path) == (0, "")
    assert void.contributions[0].blocks == (BlockRange(1, 6),)


def test_a_merge_that_lost_the_race_changes_nothing(warehouse: Warehouse) -> None:
    fill(warehouse, 6)
    services, table = warehouse.services, warehouse.table("s")
    stale = services.catalog.snapshot()
    parts = [p for p in stale.parts(table.id) if p.partition_id == "202401"]
    warehouse.query("OPTIMIZE TABLE s FINAL")
    now = warehouse.parts("s")
    with pytest.raises(CommitConflict):
        merge_parts(CommitOrigin(services, "MERGE"), stale, table, parts, inline=False)
    assert warehouse.parts("s") == now
    warehouse.check()


def test_a_schema_change_conflicts_with_a_merge(warehouse: Warehouse) -> None:
    fill(warehouse, 4)
    services, table = warehouse.services, warehouse.table("s")
    snapshot = services.catalog.snapshot()
    with pytest.raises(CommitConflict):
        merge_parts(
            CommitOrigin(services, "MERGE"),
            snapshot,
            replace(table, version=2),
            snapshot.parts(table.id)[:2],
        )


def test_final_beyond_memory_is_refused(warehouse: Warehouse) -> None:
    fill(warehouse, 8)
    limits = MergeLimits(memory_bytes_max=500)
    with pytest.raises(MemoryLimitExceeded, match="without FINAL"):
        optimize(
            CommitOrigin(warehouse.services, "OPTIMIZE"),
            warehouse.table("s").id,
            final=True,
            limits=limits,
        )
    before = warehouse.query(ANSWERS[0])
    optimize(CommitOrigin(warehouse.services, "OPTIMIZE"), warehouse.table("s").id, limits=limits)
    assert 2 < len(warehouse.parts("s")) < 8
    assert warehouse.query(ANSWERS[0]) == before


PARTITIONED = (
    "CREATE TABLE many (p UInt32, n Int64) ENGINE = MergeTree PARTITION BY p ORDER BY p"
    " SETTINGS inline_bytes_max = 0"
)


def many(warehouse: Warehouse, partitions: int, inserts: int = 2) -> None:
    warehouse.query(PARTITIONED)
    for _ in range(inserts):
        warehouse.query(f"INSERT INTO many SELECT number, number FROM numbers({partitions})")


def files(warehouse: Warehouse) -> set[str]:
    return {file.path for file in warehouse.services.store.list("data/")}


def test_optimize_of_many_partitions_is_few_commits(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(warehouse, 30)
    monkeypatch.setattr(merge_planner, "BATCH_MERGES_MAX", 12)
    number = warehouse.services.catalog.snapshot().number
    warehouse.query("OPTIMIZE TABLE many FINAL")
    assert warehouse.services.catalog.snapshot().number == number + 3
    assert len(warehouse.parts("many")) == 30
    assert warehouse.query("SELECT sum(n), count() FROM many") == [(870, 60)]
    many_bytes = sum(warehouse.parts("many")[0].uncompressed_bytes.values())
    warehouse.query("INSERT INTO many SELECT number, number FROM numbers(30)")
    monkeypatch.setattr(merge_planner, "BATCH_BYTES_MAX", 4 * many_bytes)
    number = warehouse.services.catalog.snapshot().number
    warehouse.query("OPTIMIZE TABLE many FINAL")
    assert warehouse.services.catalog.snapshot().number > number + 9, "bounded by bytes, too"
    warehouse.check()


def test_a_batch_commits_what_did_not_lose_the_race(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A concurrent change of one partition of ten makes only that partition's merge fail."""
    many(warehouse, 10)
    services, table = warehouse.services, warehouse.table("many")
    stale = services.catalog.snapshot()
    planned = [
        [part for part in stale.parts(table.id) if part.partition_id == str(partition)]
        for partition in range(10)
    ]
    warehouse.query("ALTER TABLE many UPDATE n = 100 WHERE p = 3")
    before = files(warehouse)
    done = merge_batch(CommitOrigin(services, "MERGE"), stale, table, planned, inline=False)
    assert [one.partition_id for one in done] == [str(p) for p in range(10) if p != 3]
    assert len({one.commit for one in done}) == 1
    assert len(files(warehouse) - before) == 9, "the file of the one that lost is deleted"
    assert warehouse.query("SELECT sum(n), count() FROM many") == [(2 * 42 + 200, 20)]
    with pytest.raises(CommitConflict):
        merge_batch(CommitOrigin(services, "MERGE"), stale, table, planned, inline=False)
    assert len(files(warehouse) - before) == 9
    warehouse.check()


@pytest.mark.parametrize("merges", [3, 20], ids=["one by one", "by threads"])
@pytest.mark.parametrize("stage", ["stage.part_staged", "transaction.before_commit"])
def test_a_batch_that_fails_leaves_no_file(warehouse: Warehouse, merges: int, stage: str) -> None:
    many(warehouse, merges)
    before, parts = files(warehouse), warehouse.parts("many")
    reached = []

    def fail(one: str) -> None:
        if one == stage:
            reached.append(one)
            if len(reached) == (2 if stage == "stage.part_staged" else 1):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watching(fail):
        warehouse.query("OPTIMIZE TABLE many FINAL")
    assert files(warehouse) == before
    assert warehouse.parts("many") == parts
    warehouse.check()


def test_the_background_merges_many_partitions_in_one_commit(warehouse: Warehouse) -> None:
    many(warehouse, 20, inserts=8)
    services, table = warehouse.services, warehouse.table("many")
    number = services.catalog.snapshot().number
    done = merge_worthwhile(services, table.id)
    assert len(done) == 20
    assert services.catalog.snapshot().number == number + 1
    assert warehouse.query("SELECT sum(n), count() FROM many") == [(8 * 190, 160)]


def test_background_merges_choose_and_stop(warehouse: Warehouse) -> None:
    before = fill(warehouse, 16)
    services, table = warehouse.services, warehouse.table("s")
    done = []
    while result := merge_worthwhile(services, table.id):
        done += result
    assert done
    assert len(warehouse.parts("s")) < 16
    assert [warehouse.query(text) for text in ANSWERS] == before
    assert merge_worthwhile(services, "no such table") == []


def test_inline_rows_become_files(warehouse: Warehouse) -> None:
    before = fill(warehouse, 5)
    assert all(p.inline for p in warehouse.parts("t"))
    later = replace(warehouse.services, clock_ms=lambda: time.time_ns() // 10**6 + 3_600_000)
    assert merge_worthwhile(later, warehouse.table("t").id)
    assert not any(p.inline for p in warehouse.parts("t"))
    assert [warehouse.query(text) for text in ANSWERS] == before


def test_the_scheduler_merges_and_records_failures(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fill(warehouse, 16)
    services, table = warehouse.services, warehouse.table("s")
    scheduler = MergeScheduler(services)
    scheduler.start()
    scheduler.start()
    scheduler.notify(table.id)
    assert scheduler.wait_idle(30)
    assert len(warehouse.parts("s")) < 16
    assert scheduler.merges
    assert not scheduler.errors
    target = warehouse.table("t").id
    monkeypatch.setattr(LocalStore, "write", _no_space)
    warehouse.query("ALTER TABLE t MODIFY SETTING inline_bytes_max = 0")
    scheduler.notify(target)
    assert scheduler.wait_idle(30)
    assert [(f.table_id, type(f.error)) for f in scheduler.errors] == [(target, NotEnoughSpace)]
    assert scheduler.running
    monkeypatch.undo()
    scheduler.notify(target)
    assert scheduler.wait_idle(30)
    assert len(warehouse.parts("t")) < 16
    scheduler.stop()
    scheduler.stop()
    assert not scheduler.running
    assert [warehouse.query(text) for text in ANSWERS] == before
    warehouse.check()


def _no_space(*arguments: object) -> int:
    raise OSError(28, "No space left on device")


def test_inserts_go_on_while_merges_run(warehouse: Warehouse) -> None:
    scheduler = MergeScheduler(warehouse.services)
    scheduler.start()
    waits: list[float] = []

    def write(thread: int) -> None:
        connection = olapdb.connect(warehouse.database.location)  # type: ignore[union-attr]
        for i in range(30):
            started = time.monotonic()
            connection.cursor().execute(f"INSERT INTO s VALUES ('2024-01-01', 'k{thread}', {i})")
            scheduler.notify(warehouse.table("s").id)
            waits.append(time.monotonic() - started)
        connection.close()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scheduler.stop()
    assert warehouse.query("SELECT count(), sum(n) FROM s") == [(90, 3 * 435)]
    assert warehouse.query("SELECT sum(total) FROM t") == [(3 * 435,)]
    assert max(waits) < 30
    warehouse.check()


def test_vacuum_deletes_what_nobody_can_read(warehouse: Warehouse) -> None:
    fill(warehouse, 4)
    warehouse.query("OPTIMIZE TABLE s FINAL")
    services, store = warehouse.services, warehouse.services.store
    catalog = services.catalog
    warehouse.query(
        "INSERT INTO s SELECT toDate('2024-01-09'), toString(number), number FROM numbers(100000)"
    )
    old = [p.path for p in warehouse.parts("s") if p.path]
    with catalog.pinned() as pinned:
        warehouse.query("OPTIMIZE TABLE s FINAL")
        assert vacuum(services, lifetime_seconds=0).files == 0
        assert all(store.exists(path) for path in old)
        assert pinned.parts(warehouse.table("s").id)
    report = vacuum(services)
    assert report.files == 0, "younger than old_parts_lifetime"
    report = vacuum(services, lifetime_seconds=0)
    kept = {p.path for p in warehouse.parts("s")}
    assert report.files == len(set(old) - kept) > 0
    assert not any(store.exists(path) for path in set(old) - kept)
    warehouse.check()
    assert vacuum(services, lifetime_seconds=0).files == 0


def test_without_a_lifetime_it_goes_although_the_clock_was_set_back(warehouse: Warehouse) -> None:
    services = warehouse.services
    earlier = replace(services, clock_ms=lambda: services.clock_ms() - 3_600_000)
    fill(warehouse, 2)
    warehouse.query("OPTIMIZE TABLE s FINAL")
    warehouse.query("DROP VIEW v")
    warehouse.query("DROP TABLE t")
    assert vacuum(earlier).parts == 0
    warehouse.query("ALTER TABLE s MODIFY SETTING old_parts_lifetime = 0")
    assert vacuum(earlier).parts > 0
    assert vacuum(earlier, lifetime_seconds=0).parts > 0
    assert services.catalog.dropped_tables() == ()
    warehouse.check()


def test_vacuum_takes_files_of_the_dead_and_no_others(warehouse: Warehouse) -> None:
    services = warehouse.services
    catalog, store = services.catalog, services.store
    closed = catalog.open_lease("closed")
    catalog.close_lease(closed)
    for lease in (closed, services.lease_id, "feedbeef"):
        for suffix in (".parquet", ".parquet.tmp"):
            store.write(f"data/s/{lease}-part{suffix}", lambda sink: sink.write(b"x"))
    report = vacuum(services)
    assert report.files == 2
    assert len(report.unknown_files) == 2
    left = {f.path.split("/")[-1].split("-")[0] for f in store.list("data/s/")}
    assert left == {services.lease_id, "feedbeef"}
    assert closed in {one.id for one in catalog.leases()}
    vacuum(services)
    assert closed not in {one.id for one in catalog.leases()}
    catalog.apply(Commit((), (RaiseDataVersion("s", "all"),), "TEST"))
