"""Targets whose columns are narrower than the view's outputs.

CREATE, MODIFY QUERY and ALTER refuse what the types already show. Otherwise a value that does not
fit fails its INSERT. The rows that are stored equal the query."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import CannotConvertType, CannotInsertNull, DataError, Error, ViewNotProvable
from tests.unit.views.warehouse import rows, verdict

SOURCE = """
    CREATE TABLE s (
        k UInt64, b UInt8, i Int64, u UInt64, f Float64, g Float32, t String, d Decimal(18, 4),
        n Nullable(Int64), at DateTime, m Map(String, UInt8)
    ) ENGINE = MergeTree ORDER BY k
"""


pytestmark = [pytest.mark.warehouse(SOURCE), pytest.mark.feature("views")]


def summing(connection: Connection, data_type: str) -> None:
    connection.execute(
        f"CREATE TABLE t (k UInt64, v {data_type}) ENGINE = SummingMergeTree ORDER BY k"
    )


def aggregating(connection: Connection, data_type: str, key: str = "k UInt64") -> None:
    connection.execute(
        f"CREATE TABLE t ({key}, v {data_type}) ENGINE = AggregatingMergeTree ORDER BY k"
    )


def view(connection: Connection, query: str) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")


@pytest.mark.parametrize(
    ("data_type", "value", "fix"),
    [
        ("UInt8", "sum(b)", "UInt64"),
        ("UInt32", "count()", "UInt64"),
        ("Int8", "sum(i)", "Int64"),
        ("UInt64", "sum(i)", "Int64"),
        ("Int64", "sum(u)", "UInt64"),
        ("Int64", "sum(f)", "Float64"),
        ("Float32", "sum(f)", "Float64"),
        ("Float32", "sum(g)", "Float64"),
        ("Float64", "sum(i)", "Int64"),
        ("Decimal(18, 4)", "sum(d)", "Decimal(38, 4)"),
        ("Decimal(38, 2)", "sum(d)", "Decimal(38, 4)"),
    ],
)
def test_a_sum_that_its_column_may_not_hold(
    connection: Connection, data_type: str, value: str, fix: str
) -> None:
    summing(connection, data_type)
    with pytest.raises(ViewNotProvable, match="column v is") as caught:
        view(connection, f"SELECT k, {value} AS v FROM s GROUP BY k")
    assert f"Make the column {fix}" in str(caught.value)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("UInt64", "sum(b)"),
        ("UInt64", "count()"),
        ("Int64", "sum(i)"),
        ("Float64", "sum(f)"),
        ("Float64", "sum(g)"),
        ("Decimal(38, 4)", "sum(d)"),
        ("Decimal(76, 4)", "sum(d)"),
    ],
)
def test_a_sum_that_its_column_holds(connection: Connection, data_type: str, value: str) -> None:
    summing(connection, data_type)
    view(connection, f"SELECT k, {value} AS v FROM s GROUP BY k")
    for k in (1, 1, 2):
        connection.execute(
            f"INSERT INTO s (k, b, i, u, f, g, d) VALUES ({k}, 200, -3, 7, 0.1, 0.1, 1.5)"
        )
    connection.execute("OPTIMIZE TABLE t FINAL")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"


def test_rows_that_a_merge_adds_up(connection: Connection) -> None:
    """600 was once stored as 88, and RECONCILE proved it: each row fits, their sum does not."""
    summing(connection, "UInt8")
    with pytest.raises(ViewNotProvable, match="outgrow") as caught:
        view(connection, "SELECT k, b AS v FROM s")
    assert "Make the column UInt64" in str(caught.value)
    connection.execute("DROP TABLE t")
    summing(connection, "UInt64")
    view(connection, "SELECT k, b AS v FROM s")
    connection.execute("INSERT INTO s (k, b) VALUES (1, 200), (1, 200), (1, 200)")
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert rows(connection, "SELECT v FROM t") == [(600,)]


def test_a_map_of_sums(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(sumMap, Map(String, UInt64))")
    view(connection, "SELECT k, sumMap(m) AS v FROM s GROUP BY k")
    connection.execute("INSERT INTO s (k, m) VALUES (1, map('a', 200)), (1, map('a', 200))")
    assert rows(connection, "SELECT v FROM t") == [({"a": 400},)]


def test_sums_of_float32_depend_on_the_cut(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(sumWithOverflow, Float32)")
    with pytest.raises(ViewNotProvable, match="order in which blocks come"):
        view(connection, "SELECT k, sumWithOverflow(g) AS v FROM s GROUP BY k")


def test_states_of_sums_of_float32_depend_on_the_cut(connection: Connection) -> None:
    aggregating(connection, "AggregateFunction(sumWithOverflow, Float32)")
    with pytest.raises(ViewNotProvable, match="order in which blocks come"):
        view(connection, "SELECT k, sumWithOverflowState(g) AS v FROM s GROUP BY k")


@pytest.mark.parametrize(
    ("data_type", "function", "value", "fix"),
    [
        ("Int256", "sum", "sum(i)", "Int64"),
        ("Int128", "sum", "sum(u)", "UInt64"),
        ("Decimal(38, 0)", "sum", "sum(i)", "Int64"),
        ("Int64", "sumWithOverflow", "sumWithOverflow(b)", "UInt8"),
        ("Map(String, Int256)", "sumMap", "sumMap(m)", "Map(String, UInt64)"),
    ],
)
def test_a_sum_that_wraps_before_its_column_does(
    connection: Connection, data_type: str, function: str, value: str, fix: str
) -> None:
    """A block's sum wraps in the query's type; merges of such sums would not."""
    aggregating(connection, f"SimpleAggregateFunction({function}, {data_type})")
    with pytest.raises(ViewNotProvable, match="wrap or round") as caught:
        view(connection, f"SELECT k, {value} AS v FROM s GROUP BY k")
    assert f"Make the column {fix}, or cast" in str(caught.value)


def test_counts_never_wrap(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(sum, UInt256)")
    view(connection, "SELECT k, countIf(b > 1) AS v FROM s GROUP BY k")


@pytest.mark.parametrize(
    ("function", "data_type", "value", "wrong"),
    [
        ("max", "UInt8", "max(i)", "-5"),
        ("max", "UInt8", "max(i)", "300"),
        ("min", "Int8", "min(i)", "-300"),
        ("max", "Int64", "max(f)", "1.5"),
    ],
)
def test_an_extreme_that_does_not_fit_fails_the_insert(
    connection: Connection, function: str, data_type: str, value: str, wrong: str
) -> None:
    aggregating(connection, f"SimpleAggregateFunction({function}, {data_type})")
    view(connection, f"SELECT k, {value} AS v FROM s GROUP BY k")
    column = value[4]
    says = rf"Column v of default\.t, row 1: Cannot convert {wrong}.*pushing to view default\.v"
    with pytest.raises(DataError, match=says):
        connection.execute(f"INSERT INTO s (k, {column}) VALUES (1, {wrong})")
    assert rows(connection, "SELECT count() FROM s") == [(0,)]
    connection.execute(f"INSERT INTO s (k, {column}) VALUES (1, 7), (1, 9)")
    connection.execute(f"INSERT INTO s (k, {column}) VALUES (1, 8)")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"
    assert rows(connection, f"SELECT {function}(v) FROM t") == [(9 if function == "max" else 7,)]


def test_the_setting_of_an_insert_is_not_the_view_s(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(max, UInt8)")
    view(connection, "SELECT k, max(i) AS v FROM s GROUP BY k")
    connection.execute("SET insert_allow_lossy_conversion = 1")
    with pytest.raises(DataError, match="pushing to view"):
        connection.execute("INSERT INTO s (k, i) VALUES (1, 300)")


@pytest.mark.parametrize(
    ("data_type", "value"), [("Int64", "max(t)"), ("String", "max(i)"), ("String", "max(f)")]
)
def test_an_extreme_in_another_order(connection: Connection, data_type: str, value: str) -> None:
    """'9' is the larger text, 10 the larger number."""
    aggregating(connection, f"SimpleAggregateFunction(max, {data_type})")
    with pytest.raises(ViewNotProvable, match="orders values otherwise"):
        view(connection, f"SELECT k, {value} AS v FROM s GROUP BY k")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Float32", "f"),
        ("Float64", "i"),
        ("UInt64", "t"),
        ("FixedString(4)", "t"),
        ("String", "at"),
    ],
)
def test_a_key_type_that_joins_groups_is_refused(
    connection: Connection, key: str, value: str
) -> None:
    aggregating(connection, "SimpleAggregateFunction(sum, UInt64)", f"k {key}")
    with pytest.raises(ViewNotProvable, match="their groups would be one"):
        view(connection, f"SELECT {value} AS k, count() AS v FROM s GROUP BY {value}")


def test_a_key_that_does_not_fit_fails_the_insert(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(sum, UInt64)", "k Date")
    view(connection, "SELECT at AS k, count() AS v FROM s GROUP BY at")
    connection.execute("INSERT INTO s (at) VALUES ('2024-01-05 00:00:00')")
    with pytest.raises(DataError, match=r"Column k of default\.t, row 1.*pushing to view"):
        connection.execute("INSERT INTO s (at) VALUES ('2024-01-05 12:00:00')")
    assert rows(connection, "SELECT k, v FROM t")[0][1] == 1


def test_rows_of_a_plain_target(connection: Connection) -> None:
    """Each value fits or fails its INSERT; a Float32 is rounded to the nearest one."""
    connection.execute("CREATE TABLE t (v Int8, w Float32) ENGINE = MergeTree ORDER BY v")
    view(connection, "SELECT i AS v, f AS w FROM s")
    connection.execute("INSERT INTO s (i, f) VALUES (127, 0.1), (-128, 1e-3)")
    connection.execute("INSERT INTO s (i, f) VALUES (5, 16777217)")
    for row in ("(128, 0)", "(1, 1e39)"):
        with pytest.raises(DataError, match=r"default\.t, row 1.*pushing to view default\.v"):
            connection.execute(f"INSERT INTO s (i, f) VALUES {row}")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"


def test_nulls(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(max, Int64)")
    view(connection, "SELECT k, max(n) AS v FROM s GROUP BY k")
    with pytest.raises(CannotInsertNull, match=r"Column v of default\.t.*pushing to view"):
        connection.execute("INSERT INTO s (k, n) VALUES (1, NULL)")
    connection.execute("INSERT INTO s (k, n) VALUES (1, 3)")
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"


@pytest.mark.parametrize(
    ("source", "value", "data_type"),
    [
        ("Dynamic", "NULL", "UInt8"),
        ("Dynamic", "NULL", "String"),
        ("Dynamic", "NULL", "JSON"),
        ("Dynamic", "NULL", "Array(UInt8)"),
        ("Variant(Int64, String)", "NULL", "UInt8"),
        ("Float64", "1.5", "Enum8('a' = 1, 'b' = 2)"),
        ("Decimal(9, 2)", "1.25", "Enum8('a' = 1, 'b' = 2)"),
        ("Int128", "2", "Bool"),
        ("UInt256", "2", "Bool"),
    ],
)
def test_values_of_other_kinds_fail_the_insert(
    connection: Connection, source: str, value: str, data_type: str
) -> None:
    connection.execute(f"CREATE TABLE r (v {source}) ENGINE = MergeTree ORDER BY tuple()")
    connection.execute(f"CREATE TABLE t (v {data_type}) ENGINE = MergeTree ORDER BY tuple()")
    view(connection, "SELECT v FROM r")
    with pytest.raises(DataError, match=r"olumn v of default\.t.*pushing to view default\.v"):
        connection.execute(f"INSERT INTO r SELECT CAST({value} AS {source})")
    assert rows(connection, "SELECT count() FROM r") == [(0,)]


@pytest.mark.parametrize(
    ("source", "value", "data_type", "stored"),
    [
        ("Dynamic", "NULL", "Nullable(UInt8)", None),
        ("Dynamic", "5", "UInt8", 5),
        ("Float64", "2", "Enum8('a' = 1, 'b' = 2)", "b"),
        ("Int128", "1", "Bool", True),
        ("UInt256", "0", "Bool", False),
    ],
)
def test_values_of_other_kinds_that_fit(
    connection: Connection, source: str, value: str, data_type: str, stored: object
) -> None:
    connection.execute(f"CREATE TABLE r (v {source}) ENGINE = MergeTree ORDER BY tuple()")
    connection.execute(f"CREATE TABLE t (v {data_type}) ENGINE = MergeTree ORDER BY tuple()")
    view(connection, "SELECT v FROM r")
    connection.execute(f"INSERT INTO r SELECT CAST({value} AS {source})")
    assert rows(connection, "SELECT v FROM t") == [(stored,)]
    connection.execute("SYSTEM RECONCILE VIEW v")
    assert verdict(connection, "v") == "proven"


def test_a_literal_that_does_not_fit(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (v UInt8) ENGINE = MergeTree ORDER BY v")
    with pytest.raises(CannotConvertType, match="300"):
        view(connection, "SELECT 300 AS v FROM s")


def test_another_query(connection: Connection) -> None:
    aggregating(connection, "SimpleAggregateFunction(max, Int64)")
    view(connection, "SELECT k, max(i) AS v FROM s GROUP BY k")
    with pytest.raises(ViewNotProvable, match="orders values otherwise"):
        connection.execute("ALTER TABLE v MODIFY QUERY SELECT k, max(t) AS v FROM s GROUP BY k")


def test_another_type_of_the_target(connection: Connection) -> None:
    summing(connection, "UInt64")
    view(connection, "SELECT k, sum(b) AS v FROM s GROUP BY k")
    with pytest.raises(Error, match="would not fit any more"):
        connection.execute("ALTER TABLE t MODIFY COLUMN v UInt8")
    assert rows(connection, "SELECT toTypeName(v) FROM t LIMIT 1") in ([], [("UInt64",)])


def test_another_type_of_the_source(connection: Connection) -> None:
    summing(connection, "UInt64")
    view(connection, "SELECT k, sum(b) AS v FROM s GROUP BY k")
    with pytest.raises(Error, match="would not fit any more"):
        connection.execute("ALTER TABLE s MODIFY COLUMN b Int64")


def test_a_backfill_and_an_adoption_name_the_value(connection: Connection) -> None:
    connection.execute("INSERT INTO s (k, i) VALUES (1, 300)")
    aggregating(connection, "SimpleAggregateFunction(max, UInt8)")
    view(connection, "SELECT k, max(i) AS v FROM s GROUP BY k")
    says = r"Column v of default\.t.*Cannot convert 300 to UInt8"
    with pytest.raises(Error, match=says):
        connection.execute("SYSTEM BACKFILL VIEW v")
    ((said, reason),) = rows(connection, "SELECT verdict, reason FROM system.views")
    assert said == "unproven"
    assert "Cannot convert 300 to UInt8" in reason
    connection.execute("INSERT INTO t VALUES (1, 44)")
    with pytest.raises(Error, match=says):
        connection.execute("SYSTEM ADOPT VIEW v")
    assert verdict(connection, "v") not in ("covered", "proven")


def test_a_source_that_wraps(connection: Connection) -> None:
    """A merge of the source makes 144 of 200 + 200, which the view has added up to 400."""
    connection.execute("CREATE TABLE w (k UInt64, b UInt8) ENGINE = SummingMergeTree ORDER BY k")
    summing(connection, "UInt64")
    view(connection, "SELECT k, sum(b) AS v FROM w GROUP BY k")
    connection.execute("INSERT INTO w VALUES (1, 200)")
    assert verdict(connection, "v") == "unproven"


def test_a_rebuild_takes_the_type_that_holds_the_values(connection: Connection) -> None:
    summing(connection, "Int64")
    view(connection, "SELECT k, sum(i) AS v FROM s GROUP BY k")
    connection.execute("INSERT INTO s (k, i, f) VALUES (1, 2, 0.5)")
    connection.execute("SYSTEM REBUILD VIEW v AS SELECT k, sum(f) AS v FROM s GROUP BY k")
    assert rows(connection, "SELECT v, toTypeName(v) FROM t") == [(0.5, "Float64")]
    assert verdict(connection, "v") == "proven"


def test_the_setting_of_an_insert_stands_in_no_view(connection: Connection) -> None:
    summing(connection, "UInt64")
    with pytest.raises(Error, match="is a setting of the INSERT"):
        view(
            connection,
            "SELECT k, sum(b) AS v FROM s GROUP BY k SETTINGS insert_allow_lossy_conversion = 1",
        )
