"""Parts that are older than their table: how columns are read from them; pruning loses no rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import CannotParse, DecimalOverflow, ViolatedConstraint
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("schema")


@pytest.fixture(params=["inline", "files"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    size = 0 if request.param == "files" else 262_144
    with olapdb.connect(tmp_path) as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(
            "CREATE TABLE t (k UInt32, v Int64, s String) ENGINE = MergeTree ORDER BY k"
            f" SETTINGS inline_bytes_max = {size}, index_granularity = 2"
        )
        opened.execute(
            "INSERT INTO t VALUES (1, 10, 'a'), (2, 300, 'b'), (3, -5, 'c'), (4, 7, 'd')"
        )
        yield opened


def test_a_default_over_other_columns_is_evaluated_for_each_row(connection: Connection) -> None:
    connection.execute(
        "ALTER TABLE t ADD COLUMN w Int64 DEFAULT v * 2, ADD COLUMN x String DEFAULT concat(s, toString(w))"
    )
    assert rows(connection, "SELECT x FROM t ORDER BY k") == [
        ("a20",),
        ("b600",),
        ("c-10",),
        ("d14",),
    ]
    assert rows(connection, "SELECT k FROM t WHERE w > 100") == [(2,)]
    assert rows(connection, "SELECT sum(w) FROM t WHERE x = 'a20'") == [(20,)]
    assert rows(connection, "SELECT count() FROM t PREWHERE w < 0 WHERE s = 'c'") == [(1,)]


def test_a_part_without_a_column_is_written_with_it_by_a_merge(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN w Int64 DEFAULT v * 2")
    connection.execute("INSERT INTO t VALUES (5, 1, 'e', 99)")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT count() FROM system.parts WHERE table = 't'") == [(1,)]
    connection.execute("ALTER TABLE t MODIFY COLUMN w DEFAULT 0")
    assert rows(connection, "SELECT w FROM t ORDER BY k") == [(20,), (600,), (-10,), (14,), (99,)]


def test_a_decimal_that_does_not_fit_an_integer_refuses_the_alter(connection: Connection) -> None:
    """The table could not be read any more: a Decimal is not cut to the integer's bits."""
    connection.execute("ALTER TABLE t ADD COLUMN d Decimal(18, 2)")
    connection.execute("INSERT INTO t VALUES (5, 1, 'e', 1000003)")
    with pytest.raises(DecimalOverflow, match="Nothing was changed"):
        connection.execute("ALTER TABLE t MODIFY COLUMN d Int8")
    connection.execute("ALTER TABLE t MODIFY COLUMN d Int64")
    assert rows(connection, "SELECT d FROM t WHERE k = 5") == [(1000003,)]


def test_a_single_old_part_is_rewritten_by_optimize_final(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN w Int64 DEFAULT v")
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("ALTER TABLE t MODIFY COLUMN w DEFAULT 0")
    assert rows(connection, "SELECT sum(w) FROM t") == [(312,)]


def test_a_dropped_column_does_not_come_back(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DROP COLUMN v")
    connection.execute("ALTER TABLE t ADD COLUMN v Int64")
    assert rows(connection, "SELECT v FROM t") == [(0,)] * 4
    assert rows(connection, "SELECT k FROM t WHERE v = 10") == []
    assert rows(connection, "SELECT count() FROM t WHERE v = 0") == [(4,)]
    ids = rows(
        connection,
        "SELECT data_uncompressed_bytes FROM system.columns WHERE table = 't' AND name = 'v'",
    )
    assert ids == [(0,)], "no part has the new column"


def test_names_may_change_places(connection: Connection) -> None:
    """A part keeps bounds by the column names of its time, which must not apply to renamed
    columns."""
    connection.execute("ALTER TABLE t ADD COLUMN w Int64 DEFAULT 1000")
    connection.execute("INSERT INTO t VALUES (5, 1, 'e', 2000)")
    connection.execute("ALTER TABLE t RENAME COLUMN v TO x, RENAME COLUMN w TO v")
    assert rows(connection, "SELECT k FROM t WHERE x = 300") == [(2,)]
    assert rows(connection, "SELECT k FROM t WHERE v = 1000 ORDER BY k") == [(1,), (2,), (3,), (4,)]
    assert rows(connection, "SELECT k FROM t WHERE v = 2000") == [(5,)]


def test_types_are_converted_one_after_the_other(connection: Connection) -> None:
    connection.execute("ALTER TABLE t MODIFY COLUMN v Int8")
    connection.execute("ALTER TABLE t MODIFY COLUMN v Int64")
    assert rows(connection, "SELECT v FROM t ORDER BY k") == [(10,), (44,), (-5,), (7,)]
    assert rows(connection, "SELECT k FROM t WHERE v = 44") == [(2,)]
    assert rows(connection, "SELECT k FROM t WHERE v = 300") == []


def test_a_skip_index_of_before_a_conversion_is_not_asked(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD INDEX i v TYPE minmax GRANULARITY 1")
    connection.execute("ALTER TABLE t MATERIALIZE INDEX i")
    connection.execute("ALTER TABLE t MODIFY COLUMN v Int8")
    connection.execute("ALTER TABLE t MODIFY COLUMN v Int64")
    assert rows(connection, "SELECT k FROM t WHERE v = 44") == [(2,)]


def test_a_text_sorts_otherwise_than_a_number(connection: Connection) -> None:
    connection.execute("ALTER TABLE t MODIFY COLUMN v String")
    assert rows(connection, "SELECT k FROM t WHERE v > '4' ORDER BY k") == [(4,)]
    assert rows(connection, "SELECT max(v), min(v) FROM t") == [("7", "-5")]
    connection.execute("INSERT INTO t VALUES (5, '5', 'e')")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT v FROM t ORDER BY k") == [
        ("10",),
        ("300",),
        ("-5",),
        ("7",),
        ("5",),
    ]


def test_what_does_not_convert_is_refused_and_nothing_is_changed(connection: Connection) -> None:
    with pytest.raises(CannotParse, match=r"MODIFY COLUMN s of default\.t.*Cannot parse 'a'"):
        connection.execute("ALTER TABLE t MODIFY COLUMN s UInt8, ADD COLUMN z UInt8")
    assert rows(connection, "SELECT * FROM t WHERE k = 1") == [(1, 10, "a")]
    connection.execute("ALTER TABLE t DELETE WHERE 1")
    connection.execute("ALTER TABLE t MODIFY COLUMN s UInt8")


def test_nulls_become_the_default_and_stay_what_they_became(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD COLUMN n Nullable(Int64)")
    connection.execute("INSERT INTO t VALUES (5, 1, 'e', NULL), (6, 2, 'f', 8)")
    connection.execute("ALTER TABLE t MODIFY COLUMN n Int64 DEFAULT v * 10")
    wanted = [(100,), (3000,), (-50,), (70,), (10,), (8,)]
    assert rows(connection, "SELECT n FROM t ORDER BY k") == wanted
    connection.execute("ALTER TABLE t MODIFY COLUMN n DEFAULT 0")
    assert rows(connection, "SELECT n FROM t WHERE k > 4 ORDER BY k") == wanted[4:]


def test_the_past_reads_as_it_did(connection: Connection) -> None:
    number = rows(connection, "SELECT max(number) FROM system.snapshots")[0][0]
    connection.execute("ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN z UInt8, DROP COLUMN s")
    connection.execute("UPDATE t SET w = 0 WHERE 1")
    assert rows(connection, f"SELECT * FROM t ORDER BY k SETTINGS snapshot = {number}") == [
        (1, 10, "a"),
        (2, 300, "b"),
        (3, -5, "c"),
        (4, 7, "d"),
    ]


def test_an_update_may_follow_in_the_same_alter(connection: Connection) -> None:
    before = rows(connection, "SELECT max(number) FROM system.snapshots")[0][0]
    connection.execute(
        "ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN z Int64 DEFAULT w, UPDATE z = w + 1 WHERE k < 3,"
        " DELETE WHERE z < 0, UPDATE w = 0 WHERE k = 1"
    )
    assert rows(connection, "SELECT k, w, z FROM t ORDER BY k") == [
        (1, 0, 11),
        (2, 300, 301),
        (4, 7, 7),
    ]
    assert rows(connection, "SELECT max(number) FROM system.snapshots")[0][0] == before + 1


def test_an_alter_that_fails_late_leaves_no_file(connection: Connection) -> None:
    with pytest.raises(olapdb.Error):
        connection.execute(
            "ALTER TABLE t UPDATE v = v + 1 WHERE 1, UPDATE v = intDiv(v, v - v) WHERE 1"
        )
    services = connection.database.services
    files = [file.path for file in services.store.list("data/")]
    assert set(files) <= set(services.catalog.referenced_paths())
    assert rows(connection, "SELECT sum(v) FROM t") == [(312,)]


def test_a_table_like_an_altered_one_is_fresh(connection: Connection) -> None:
    connection.execute("ALTER TABLE t DROP COLUMN v, ADD COLUMN z UInt8 DEFAULT 9")
    connection.execute("CREATE TABLE u AS t")
    connection.execute("INSERT INTO u SELECT k, s, 1 FROM t")
    assert rows(connection, "SELECT DISTINCT z FROM u") == [(1,)]


def test_columns_survive_a_reopening(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE t (k UInt32, v Int64) ENGINE = MergeTree ORDER BY k")
        connection.execute("INSERT INTO t VALUES (1, 300)")
        connection.execute("ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN v UInt8 DEFAULT 5")
        connection.execute("ALTER TABLE t MODIFY COLUMN w Int8, ADD CONSTRAINT small CHECK k < 10")
    with olapdb.connect(tmp_path) as connection:
        assert rows(connection, "SELECT * FROM t") == [(1, 44, 5)]
        assert rows(connection, "SELECT k FROM t WHERE w = 44 AND v = 5") == [(1,)]
        with pytest.raises(ViolatedConstraint):
            connection.execute("INSERT INTO t VALUES (10, 1, 1)")


def test_a_constraint_names_the_row_and_the_values(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD CONSTRAINT wide CHECK v > k AND s != ''")
    with pytest.raises(ViolatedConstraint) as caught:
        connection.execute("INSERT INTO t VALUES (1, 2, 'a'), (7, 3, 'x')")
    text = caught.value.message
    assert "Constraint wide of default.t is violated at row 2" in text
    assert "k = 7, s = x, v = 3" in text
    assert rows(connection, "SELECT count() FROM t") == [(4,)]
    with pytest.raises(ViolatedConstraint, match="row 3"):
        connection.execute(
            "INSERT INTO t SELECT number, 5 - number * 2, 'q' FROM numbers(4) SETTINGS max_insert_block_size = 2"
        )


def test_mutations_are_listed(connection: Connection) -> None:
    connection.execute("UPDATE t SET v = 0 WHERE k = 1")
    connection.execute("ALTER TABLE t DELETE WHERE k = 2")
    connection.execute("ALTER TABLE t ADD COLUMN z UInt8")
    assert rows(
        connection, "SELECT table, command, is_done, parts_to_do FROM system.mutations"
    ) == [("t", "UPDATE t SET v = 0 WHERE k = 1", 1, 0), ("t", "(DELETE WHERE k = 2)", 1, 0)]


def test_codecs_are_shown_as_they_are_and_as_they_are_stored(connection: Connection) -> None:
    connection.execute(
        "ALTER TABLE t MODIFY COLUMN v CODEC(Delta, ZSTD(3)), MODIFY COLUMN s CODEC(LZ4HC)"
    )
    connection.execute("INSERT INTO t VALUES (5, 1, 'e')")
    assert rows(
        connection,
        "SELECT name, compression_codec, parquet_codec FROM system.columns WHERE table = 't'",
    ) == [
        ("k", "", "LZ4"),
        ("v", "CODEC(Delta(8), ZSTD(3))", "ZSTD(3), DELTA_BINARY_PACKED"),
        ("s", "CODEC(LZ4HC(0))", "LZ4, DICTIONARY"),
    ]
    shown = rows(connection, "SHOW CREATE TABLE t")[0][0]
    assert "CODEC(Delta(8), ZSTD(3))" in shown
    connection.execute("DROP TABLE t")
    connection.execute(shown)


def test_a_detached_part_is_converted_when_it_comes_back() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE u (k UInt8, n Nullable(Int64), s String) ENGINE = MergeTree PARTITION BY k ORDER BY k"
        )
        connection.execute(
            "INSERT INTO u VALUES (1, NULL, '5'), (1, 4, '6'), (2, 5, '7'), (3, 1, 'x')"
        )
        connection.execute("ALTER TABLE u DETACH PARTITION 1, DETACH PARTITION 3")
        connection.execute("ALTER TABLE u MODIFY COLUMN n Int64 DEFAULT 3, MODIFY COLUMN s UInt8")
        connection.execute("ALTER TABLE u ATTACH PARTITION 1")
        assert rows(connection, "SELECT * FROM u ORDER BY ALL") == [(1, 3, 5), (1, 4, 6), (2, 5, 7)]
        with pytest.raises(CannotParse):
            connection.execute("ALTER TABLE u ATTACH PARTITION 3")
        assert rows(connection, "SELECT count() FROM u") == [(3,)]


def test_a_ttl_follows_a_rename_and_keeps_its_columns() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE u (k UInt8, d DateTime, x UInt8) ENGINE = MergeTree ORDER BY k"
            " TTL d + INTERVAL 1 YEAR WHERE x = 1"
        )
        connection.execute("INSERT INTO u VALUES (1, '2001-01-01', 1), (2, '2001-01-01', 0)")
        connection.execute("ALTER TABLE u RENAME COLUMN d TO e, RENAME COLUMN x TO y")
        for statement in ("DROP COLUMN e", "DROP COLUMN y", "MODIFY COLUMN e UInt32"):
            with pytest.raises(olapdb.Error):
                connection.execute(f"ALTER TABLE u {statement}")
        connection.execute("OPTIMIZE TABLE u FINAL")
        assert rows(connection, "SELECT k FROM u") == [(2,)]


def test_an_index_is_materialized_for_parts_that_are_there() -> None:
    with olapdb.connect() as connection:
        connection.execute(
            "CREATE TABLE u (k UInt32, v UInt32) ENGINE = MergeTree ORDER BY k"
            " SETTINGS index_granularity = 10, inline_bytes_max = 0"
        )
        connection.execute(
            "INSERT INTO u SELECT number, intDiv(number, 10) * 7 % 100 FROM numbers(100)"
        )
        query = "SELECT k FROM u WHERE v * 2 = 28"
        found = rows(connection, query)
        connection.execute("ALTER TABLE u ADD INDEX i v * 2 TYPE set(10) GRANULARITY 1")
        connection.execute("ALTER TABLE u MATERIALIZE INDEX i")
        plan = "\n".join(str(line) for (line,) in rows(connection, f"EXPLAIN indexes = 1 {query}"))
        assert "Granules: 1/10" in plan, plan
        assert rows(connection, query) == found
        with pytest.raises(olapdb.Error):
            connection.execute("ALTER TABLE u DROP COLUMN v")
        connection.execute("ALTER TABLE u RENAME COLUMN v TO w")
        assert rows(connection, query.replace("v * 2", "w * 2")) == found
