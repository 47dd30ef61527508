"""TTL … RECOMPRESS: which parts are written again, with which codec, and that nothing else changes."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import olapdb
from olapdb.commit.origin import CommitOrigin
from olapdb.dbapi.connection import Connection
from olapdb.dml.ttl import apply_ttl
from olapdb.maintenance.merge_planner import recompress
from olapdb.maintenance.scheduler import MergeScheduler
from olapdb.model.part import Part
from olapdb.model.schema import Table
from tests.unit.views.warehouse import rows, verdict

pytestmark = [
    pytest.mark.warehouse(merges=False, on_disk=True, checked=True),
    pytest.mark.feature("changes"),
]


def make(connection: Connection, ttl: str, columns: str = "d Date, n UInt64, s String") -> None:
    connection.execute(
        f"CREATE TABLE t ({columns}) ENGINE = MergeTree ORDER BY n TTL {ttl}"
        " SETTINGS inline_bytes_max = 0"
    )


def insert(connection: Connection, day: str, first: int = 0) -> None:
    connection.execute(
        f"INSERT INTO t SELECT '{day}', {first} + number, repeat(toString(number), 9) FROM numbers(500)"
    )


def table(connection: Connection) -> Table:
    found = connection.database.services.catalog.snapshot().find("default", "t")
    assert isinstance(found, Table)
    return found


def parts(connection: Connection) -> list[Part]:
    snapshot = connection.database.services.catalog.snapshot()
    return sorted(snapshot.parts(table(connection).id), key=lambda part: part.block_range)


def shown(connection: Connection) -> list[tuple[str, str]]:
    return rows(
        connection,
        "SELECT name, default_compression_codec FROM system.parts WHERE table = 't' ORDER BY name",
    )


def compressions(connection: Connection, tmp_path: Path) -> dict[str, str]:
    (part,) = parts(connection)
    group = pq.read_metadata(next(tmp_path.rglob(part.path.rpartition("/")[2]))).row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.compression for chunk in chunks}


def test_old_parts_are_written_again_once(connection: Connection) -> None:
    make(connection, "d + INTERVAL 1 DAY RECOMPRESS CODEC(ZSTD(5))")
    insert(connection, "2020-01-01")
    insert(connection, "2099-01-01", 500)
    before = rows(connection, "SELECT * FROM t ORDER BY n")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert shown(connection) == [("all_1_1_1", "ZSTD(5)"), ("all_2_2_0", "LZ4")]
    ids = [part.id for part in parts(connection)]
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert [part.id for part in parts(connection)] == ids
    assert rows(connection, "SELECT * FROM t ORDER BY n") == before


def test_a_part_with_one_young_row_stays(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD)")
    connection.execute("INSERT INTO t VALUES ('2020-01-01', 1, 'a'), ('2099-01-01', 2, 'b')")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert shown(connection) == [("all_1_1_0", "LZ4")]


def test_columns_with_a_codec_keep_it(connection: Connection, tmp_path: Path) -> None:
    make(
        connection,
        "d RECOMPRESS CODEC(ZSTD(5))",
        "d Date, n UInt64 CODEC(NONE), s String, x String CODEC(Default)",
    )
    connection.execute("INSERT INTO t SELECT '2020-01-01', number, 'a', 'b' FROM numbers(99)")
    plain = {"d": "LZ4", "n": "UNCOMPRESSED", "s": "LZ4", "x": "LZ4"}
    assert compressions(connection, tmp_path) == plain
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert compressions(connection, tmp_path) == {**plain, "d": "ZSTD", "s": "ZSTD", "x": "ZSTD"}


@pytest.mark.parametrize(
    ("ttl", "codec"),
    [
        ("d RECOMPRESS CODEC(ZSTD(2)), d + INTERVAL 1 DAY RECOMPRESS CODEC(ZSTD(3))", "ZSTD(3)"),
        ("d + INTERVAL 1 DAY RECOMPRESS CODEC(ZSTD(3)), d RECOMPRESS CODEC(ZSTD(2))", "ZSTD(3)"),
        ("d RECOMPRESS CODEC(ZSTD(2)), d RECOMPRESS CODEC(ZSTD(3))", "ZSTD(3)"),
        ("d RECOMPRESS CODEC(ZSTD(2)), d + INTERVAL 99 YEAR RECOMPRESS CODEC(ZSTD)", "ZSTD(2)"),
        ("toDateTime(d) RECOMPRESS CODEC(ZSTD(2)), d - 1 RECOMPRESS CODEC(NONE)", "ZSTD(2)"),
        ("d RECOMPRESS CODEC(LZ4HC)", "LZ4HC(0)"),
        ("d RECOMPRESS CODEC(Delta, ZSTD)", "Delta(1), ZSTD(1)"),
        ("if(n < 1000, d, d + INTERVAL 99 YEAR) RECOMPRESS CODEC(ZSTD(4))", "ZSTD(4)"),
        ("if(n < 499, d, d + INTERVAL 99 YEAR) RECOMPRESS CODEC(ZSTD(4))", "LZ4"),
        ("d RECOMPRESS CODEC(Default)", "LZ4"),
        ("toDate(0) + n * 0 + (d - d) RECOMPRESS CODEC(ZSTD)", "LZ4"),
    ],
)
def test_the_rule_that_passed_last(connection: Connection, ttl: str, codec: str) -> None:
    make(connection, ttl)
    insert(connection, "2020-01-01")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    assert [one for _, one in shown(connection)] == [codec]


def test_a_merge_chooses_by_its_rows(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD(5))")
    insert(connection, "2020-01-01")
    insert(connection, "2020-01-02", 500)
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert [codec for _, codec in shown(connection)] == ["ZSTD(5)"]
    insert(connection, "2099-01-02", 1000)
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert [codec for _, codec in shown(connection)] == ["LZ4"]


def test_changed_rows_keep_the_codec(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD(5))")
    insert(connection, "2020-01-01")
    connection.execute("ALTER TABLE t MATERIALIZE TTL")
    connection.execute("DELETE FROM t WHERE n = 3")
    connection.execute("ALTER TABLE t UPDATE s = 'x' WHERE n = 4")
    assert [codec for _, codec in shown(connection)] == ["ZSTD(5)"]
    connection.execute("ALTER TABLE t DETACH PARTITION ALL")
    connection.execute("ALTER TABLE t ATTACH PARTITION ALL")
    assert [codec for _, codec in shown(connection)] == ["ZSTD(5)"]


def test_time_passes_and_the_rule_changes(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD(5))")
    connection.execute("INSERT INTO t SELECT today() + 5, number, 'a' FROM numbers(10)")
    services = connection.database.services
    assert recompress(CommitOrigin(services), table(connection).id) == []
    later = replace(services, clock_ms=lambda: int((time.time() + 7 * 86_400) * 1000))
    assert len(recompress(CommitOrigin(later), table(connection).id)) == 1
    assert recompress(CommitOrigin(later), table(connection).id) == []
    connection.execute("ALTER TABLE t MODIFY TTL d - 99 RECOMPRESS CODEC(ZSTD(6))")
    assert [codec for _, codec in shown(connection)] == ["ZSTD(6)"]
    connection.execute("ALTER TABLE t REMOVE TTL")
    assert [codec for _, codec in shown(connection)] == ["ZSTD(6)"]


def test_in_the_background(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD(5))")
    insert(connection, "2020-01-01")
    scheduler = MergeScheduler(connection.database.services, expire=apply_ttl)
    scheduler.start()
    scheduler.notify(table(connection).id)
    assert scheduler.wait_idle(20)
    scheduler.stop()
    assert not scheduler.errors
    assert shown(connection) == [("all_1_1_1", "ZSTD(5)")]


def test_views_stay_proven(connection: Connection) -> None:
    make(connection, "d RECOMPRESS CODEC(ZSTD(5))")
    connection.execute(
        "CREATE TABLE s (d Date, n UInt64, c UInt64) ENGINE = SummingMergeTree ORDER BY (d, n)"
        " TTL d + n RECOMPRESS CODEC(ZSTD(3)) SETTINGS inline_bytes_max = 0"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO s AS SELECT d, n, count() AS c FROM t GROUP BY d, n"
    )
    insert(connection, "2020-01-01")
    connection.execute("SYSTEM RECONCILE VIEW v")
    before = verdict(connection, "v")
    for name in ("t", "s"):
        connection.execute(f"ALTER TABLE {name} MATERIALIZE TTL")
    codecs = "SELECT table, default_compression_codec FROM system.parts ORDER BY table"
    assert rows(connection, codecs) == [("s", "ZSTD(3)"), ("t", "ZSTD(5)")]
    assert verdict(connection, "v") == before == "proven"


def test_a_lost_catalog_knows_the_codec(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path)) as opened:
        make(opened, "d RECOMPRESS CODEC(ZSTD(5))")
        insert(opened, "2020-01-01")
        opened.execute("ALTER TABLE t MATERIALIZE TTL")
    for file in tmp_path.glob("catalog*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    olapdb.rebuild_catalog(str(tmp_path))
    with olapdb.connect(str(tmp_path)) as opened:
        assert [codec for _, codec in shown(opened)] == ["ZSTD(5)"]
