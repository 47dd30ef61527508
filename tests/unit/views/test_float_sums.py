"""Sums of floats that cancel: RECONCILE compares them by the magnitude of what was added."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import olapdb
from olapdb.model.schema import MaterializedView, Table
from olapdb.views.proof.compare import compare_keys, compare_rows
from olapdb.views.proof.compare_values import compare_columns
from olapdb.views.proof.magnitudes import magnitude_view

pytestmark = pytest.mark.feature("reconcile")

SOURCE = "CREATE TABLE s (z UInt8, k Int64, x Float64) ENGINE = MergeTree ORDER BY z"


def verdict_after(*statements: str) -> str:
    """Return the verdict of the view v after the statements and a RECONCILE."""
    with olapdb.connect() as connection:
        connection.execute("SYSTEM STOP MERGES")
        for statement in (SOURCE, *statements, "SYSTEM RECONCILE VIEW v"):
            connection.execute(statement)
        rows = connection.execute("SELECT verdict FROM system.views").fetchall()
    return str(rows[0][0])


OTHER_ORDER = (
    "INSERT INTO s VALUES (1, 1, 1e16)",
    "INSERT INTO s VALUES (3, 1, -1e16)",
    "INSERT INTO s VALUES (2, 1, 1)",
    "OPTIMIZE TABLE s FINAL",
)
"""The sum is 1 as the rows came, and 0 as they are sorted."""


@pytest.mark.parametrize(
    ("target", "query"),
    [
        (
            "(k Int64, a SimpleAggregateFunction(sum, Float64)) ENGINE = AggregatingMergeTree",
            "SELECT k, sum(x) AS a FROM s GROUP BY k",
        ),
        (
            "(k Int64, a AggregateFunction(avg, Float64)) ENGINE = AggregatingMergeTree",
            "SELECT k, avgState(x) AS a FROM s GROUP BY k",
        ),
        (
            "(k Int64, a AggregateFunction(sumIf, Nullable(Float64), UInt8)) ENGINE = AggregatingMergeTree",
            "SELECT k, sumIfState(toNullable(x), z < 9) AS a FROM s GROUP BY k",
        ),
        ("(k Int64, a Float64) ENGINE = SummingMergeTree", "SELECT k, x AS a FROM s"),
        (
            "(k Int64, a Float64) ENGINE = SummingMergeTree",
            "SELECT k, a FROM (SELECT k, sum(x) AS a FROM s GROUP BY k)",
        ),
        (
            "(k Int64, a Float64) ENGINE = SummingMergeTree",
            "WITH q AS (SELECT k, sum(x) AS b FROM s GROUP BY k) SELECT k, b AS a FROM q",
        ),
        (
            "(k Int64, a Float64) ENGINE = SummingMergeTree",
            "WITH sum(x) AS a SELECT k, a FROM s GROUP BY k",
        ),
        (
            "(k Int64, a Float64) ENGINE = SummingMergeTree",
            "SELECT k, sum(x) AS a FROM (SELECT k, x FROM s) GROUP BY k"
            " UNION ALL SELECT k + 1 AS l, sum(x) AS b FROM s GROUP BY l",
        ),
        (
            "(k Int64, a Float64, n UInt64) ENGINE = SummingMergeTree",
            "SELECT k, sum(x) AS a, count() AS n FROM s WHERE x < 2e16 GROUP BY k",
        ),
    ],
)
def test_a_sum_that_cancels_is_equal_in_any_order(target: str, query: str) -> None:
    view = f"CREATE MATERIALIZED VIEW v TO t AS {query}"
    assert verdict_after(f"CREATE TABLE t {target} ORDER BY k", view, *OTHER_ORDER) == "proven"


def test_a_dimension_that_cancels_is_equal_in_any_order() -> None:
    verdict = verdict_after(
        "CREATE TABLE d (z UInt8, f Float64) ENGINE = MergeTree ORDER BY z",
        *(f"INSERT INTO d VALUES ({z}, {f})" for z, f in ((1, 1e16), (3, -1e16), (2, 1))),
        "CREATE TABLE t (k Int64, r Float64) ENGINE = SummingMergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(x * (SELECT sum(f) FROM d)) AS r FROM s"
        " GROUP BY k",
        "INSERT INTO s VALUES (1, 1, 2), (1, 2, 5)",
        "OPTIMIZE TABLE d FINAL",
    )
    assert verdict == "proven"


@pytest.mark.parametrize(
    ("call", "arguments", "types"),
    [
        ("sumForEach", "[x, 1]", "Array(Float64)"),
        ("avgForEachArray", "[[x]]", "Array(Array(Float64))"),
        ("sumMap", "map(k, x)", "Map(Int64, Float64)"),
        ("avgMap", "map(k, x)", "Map(Int64, Float64)"),
        ("sumMap", "[k], [x]", "Array(Int64), Array(Float64)"),
        ("sumMap", "([k], [x])", "Tuple(Array(Int64), Array(Float64))"),
        ("sumMapIf", "[k], [x], z < 9", "Array(Int64), Array(Float64), UInt8"),
        ("sumArray", "[x]", "Array(Float64)"),
        ("sumArgMax", "x, 1", "Float64, UInt8"),
        ("sumCount", "x", "Float64"),
        ("avgWeighted", "x, x + 1", "Float64, Float64"),
    ],
)
def test_sums_of_elements_that_cancel_are_equal_in_any_order(
    call: str, arguments: str, types: str
) -> None:
    verdict = verdict_after(
        f"CREATE TABLE t (k Int64, a AggregateFunction({call}, {types})) ENGINE = AggregatingMergeTree"
        " ORDER BY k",
        f"CREATE MATERIALIZED VIEW v TO t AS SELECT k, {call}State({arguments}) AS a FROM s GROUP BY k",
        *OTHER_ORDER,
        "INSERT INTO s VALUES (4, 1, 3)",
    )
    assert verdict == "proven"


@pytest.mark.parametrize("engine", ["MergeTree ORDER BY k", "Memory"])
@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("Float64", "SELECT k, f AS r FROM s JOIN totals USING k"),
        ("Float64", "SELECT k, default.more.g * 2 AS r FROM s JOIN default.more USING k"),
        ("Float64", "SELECT k, t.f AS r FROM s JOIN totals AS t USING k"),
        ("Float64", "SELECT k, (SELECT sum(f) FROM totals) AS r FROM s"),
        (
            "AggregateFunction(avg, Float64)",
            "SELECT k, r FROM s JOIN (SELECT k, avgState(f) AS r FROM d GROUP BY k) AS q USING k",
        ),
    ],
)
def test_a_plain_target_of_sums_that_cancel_is_proven(kind: str, query: str, engine: str) -> None:
    verdict = verdict_after(
        "CREATE TABLE d (z UInt8, k Int64, f Float64) ENGINE = MergeTree ORDER BY z",
        *(
            f"INSERT INTO d VALUES ({z}, 1, {f}), (9, 2, 7)"
            for z, f in ((1, 1e16), (3, -1e16), (2, 1))
        ),
        "CREATE VIEW totals AS SELECT k, sum(f) AS f FROM d GROUP BY k",
        "CREATE VIEW more AS SELECT k, f + 1 AS g FROM totals",
        f"CREATE TABLE t (k Int64, r {kind}) ENGINE = {engine}",
        f"CREATE MATERIALIZED VIEW v TO t AS {query}",
        "INSERT INTO s VALUES (1, 1, 0), (1, 1, 0), (1, 2, 5)",
        "OPTIMIZE TABLE d FINAL",
    )
    assert verdict == "proven"


def test_a_row_of_a_plain_target_is_compared_by_its_own_magnitude() -> None:
    """Only what was added up for the same row widens the tolerance."""
    with olapdb.connect() as connection:
        table = table_of(connection, "(k Int64, a Float64) ENGINE = MergeTree ORDER BY k")
    due = pa.table({"k": [1, 2], "a": [0.0, 0.0]})
    rows = pa.table({"k": [1, 2], "a": [1.0, 1.0]})
    added = pa.table({"k": [1, 2], "a": [2e16, 3.0]})
    difference = compare_rows(table, due, rows, frozenset("a"), added)
    assert (difference.missing, difference.extra) == (1, 1)
    others = pa.table({"k": [1, 3], "a": [2e16, 2e16]})
    assert compare_rows(table, due, rows, frozenset("a"), others).missing == 2


def test_a_variance_of_sums_is_unproven() -> None:
    verdict = verdict_after(
        "CREATE TABLE d (z UInt8, f Float64) ENGINE = SummingMergeTree ORDER BY z",
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        " SELECT k, varPopState(x + f) AS a FROM s JOIN (SELECT z, sum(f) AS f FROM d GROUP BY z) AS d"
        " USING (z) GROUP BY k",
    )
    assert verdict == "unproven"


def test_a_dimension_added_up_in_another_order_is_equal_in_a_plain_target() -> None:
    verdict = verdict_after(
        "CREATE TABLE d (z UInt8, f Float64) ENGINE = MergeTree ORDER BY z",
        *(f"INSERT INTO d VALUES ({z}, {f})" for z, f in ((3, 0.1), (1, 0.2), (2, 0.3))),
        "CREATE TABLE t (k Int64, r Float64) ENGINE = MergeTree ORDER BY k",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT k, x + (SELECT sum(f) FROM d) AS r FROM s",
        "INSERT INTO s VALUES (1, 1, 0), (1, 1, 0), (1, 2, 5)",
        "OPTIMIZE TABLE d FINAL",
    )
    assert verdict == "proven"


@pytest.mark.parametrize(
    ("state", "arguments"),
    [
        ("max", "x"),
        ("argMax", "x, z"),
        ("uniqExact", "x"),
        ("groupUniqArray", "x"),
        ("quantileExact", "x"),
        ("maxMap", "[z], [x]"),
        ("max", "(x, z)"),
    ],
)
def test_a_float_that_a_state_keeps_is_no_other_float_nearby(state: str, arguments: str) -> None:
    verdict = verdict_after(
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {state}State({arguments}) AS a FROM s GROUP BY k",
        "INSERT INTO s VALUES (1, 1, 1700000000), (2, 1, 1700000000.5)",
        "ALTER TABLE s UPDATE x = 1700000000.25 WHERE z = 2",
    )
    assert verdict == "stale"


@pytest.mark.parametrize(
    ("state", "arguments"),
    [
        ("quantileExactWeighted", "x, z"),
        ("kolmogorovSmirnovTest", "x, z > 1"),
        ("intervalLengthSum", "x, x + z"),
        ("quantileExactWeightedIf", "x, z, z < 9"),
        ("mannWhitneyUTest", "toNullable(x), z > 1"),
        ("quantileExactWeightedForEach", "[x], [z]"),
        ("quantileExactWeightedArray", "[x], [z]"),
        ("intervalLengthSumTuple", "tuple(x), tuple(x + z)"),
        ("mannWhitneyUTestForEachIf", "[x], [z > 1], z < 9"),
        ("rankCorrIfForEach", "[x], [z], [z < 9]"),
        ("kolmogorovSmirnovTestDistinct", "x, z > 1"),
    ],
)
def test_rows_that_a_state_keeps_may_have_come_in_any_order(state: str, arguments: str) -> None:
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {state}State({arguments}) AS a FROM s GROUP BY k"
    )
    assert verdict_after(view, *OTHER_ORDER) == "proven"
    changed = "ALTER TABLE s UPDATE x = 2 WHERE z = 2"
    assert verdict_after(view, *OTHER_ORDER, changed) == "stale"


def test_the_place_of_a_state_in_an_array_counts() -> None:
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        " SELECT k, rankCorrForEachState([x, z], [z, x]) AS a FROM s GROUP BY k"
    )
    assert verdict_after(view, *OTHER_ORDER) == "proven"
    changed = "ALTER TABLE s UPDATE x = 7 WHERE z = 2"
    assert verdict_after(view, *OTHER_ORDER, changed) == "stale"


NEARBY = (
    "INSERT INTO s VALUES (1, 1, 1700000000), (2, 1, 1700000000.5)",
    "ALTER TABLE s UPDATE x = 1700000000.25 WHERE z = 2",
)


@pytest.mark.parametrize(
    "call",
    [
        "sumMapState([x], [1.5])",
        "sumMapState(map(x, 1.5))",
        "avgMapState(map(x, 1))",
        "sumDistinctState(x)",
        "avgDistinctIfState(x, z < 9)",
        "varPopState(x)",
        "stddevSampOrNullState(x)",
        "covarPopState(x, z)",
        "corrState(x, z)",
        "skewPopState(x)",
        "kurtSampState(x)",
        "corrMatrixState(x, z)",
        "simpleLinearRegressionState(x, z)",
        "studentTTestState(x, z > 1)",
        "varPopForEachState([x])",
        "exponentialMovingAverageState(1)(z, x)",
        "sumArgMaxState(z, x)",
    ],
)
def test_what_stands_beside_sums_is_exact(call: str) -> None:
    """Keys, distinct values and times are those of rows, and a mean is as near as the deviations from it."""
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {call} AS a FROM s GROUP BY k"
    )
    assert verdict_after(view, *NEARBY) == "stale"


@pytest.mark.parametrize("call", ["covarPop", "covarSampStable", "corr"])
def test_products_of_rows_far_out_may_cancel(call: str) -> None:
    """The two largest products cancel, and are far greater than rows times means."""
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {call}State(x, y) AS a FROM p GROUP BY k"
    )
    near = "sin(number) FROM numbers(5000)"
    statements = (
        "CREATE TABLE p (z UInt32, k Int64, x Float64, y Float64) ENGINE = MergeTree ORDER BY z",
        view,
        "INSERT INTO p VALUES (5, 1, 1e10, 1e10)",
        f"INSERT INTO p SELECT cityHash64(number) % 100000, 1, cos(number), {near}",
        "INSERT INTO p VALUES (50000, 1, 1e10, -1e10)",
        f"INSERT INTO p SELECT cityHash64(number, 1) % 100000, 1, 2 * cos(number), {near}",
        "INSERT INTO p VALUES (70000, 1, -2e10, 1)",
        "OPTIMIZE TABLE p FINAL",
    )
    assert verdict_after(*statements) == "proven"
    assert verdict_after(*statements, "ALTER TABLE p UPDATE y = -y WHERE z = 5") == "stale"


@pytest.mark.parametrize("kind", ["Tuple(Array(Float64), Array(Float64))", "Map(Float64, Float64)"])
def test_keys_of_finished_maps_are_exact(kind: str) -> None:
    arguments = "map(x, 1.5)" if kind.startswith("Map") else "[x], [1.5]"
    verdict = verdict_after(
        f"CREATE TABLE t (k Int64, a SimpleAggregateFunction(sumMap, {kind}))"
        " ENGINE = AggregatingMergeTree ORDER BY k",
        f"CREATE MATERIALIZED VIEW v TO t AS SELECT k, sumMap({arguments}) AS a FROM s GROUP BY k",
        *NEARBY,
    )
    assert verdict == "stale"


@pytest.mark.parametrize("base", [0.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize(
    "call",
    [
        "varPopState(x)",
        "covarPopState(x, z)",
        "covarSampState(x, 2 * x)",
        "corrState(x, z)",
        "skewPopState(x)",
        "kurtPopState(x)",
        "corrMatrixState(x, z)",
        "welchTTestState(x, z % 2)",
        "regr_slopeState(x, z)",
    ],
)
def test_moments_are_equal_in_any_order_as_exactly_as_they_are_known(
    call: str, base: float
) -> None:
    generator = random.Random(1)
    inserts = [
        "INSERT INTO s VALUES "
        + ", ".join(
            f"({generator.randrange(50)}, 1, {base + generator.gauss(0, 1)!r})" for _ in range(7)
        )
        for _ in range(12)
    ]
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {call} AS a FROM s GROUP BY k"
    )
    assert verdict_after(view, *inserts, "OPTIMIZE TABLE s FINAL") == "proven"
    moved = "ALTER TABLE s UPDATE x = x + 1 WHERE z = (SELECT min(z) FROM s)"
    assert verdict_after(view, *inserts, moved) == "stale"


@pytest.mark.parametrize("call", ["regr_avgxState(z, x)", "regr_avgyState(x, z)"])
def test_a_mean_is_compared_where_the_squares_of_deviations_overflow(call: str) -> None:
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {call} AS a FROM s GROUP BY k"
    )
    insert = "INSERT INTO s VALUES (1, 1, 1e160), (2, 1, 3e160), (3, 1, 4e160)"
    assert verdict_after(view, insert, "OPTIMIZE TABLE s FINAL") == "proven"
    assert verdict_after(view, insert, "ALTER TABLE s UPDATE x = 2e160 WHERE z = 2") == "stale"


@pytest.mark.parametrize("call", ["sumKahanState(x)", "sumKahanForEachState([x])"])
def test_a_compensated_sum_may_split_otherwise_into_sum_and_error(call: str) -> None:
    """The error of another order of addition is another number, far less than the sum."""
    generator = random.Random(2)
    inserts = [
        "INSERT INTO s VALUES "
        + ", ".join(
            f"({generator.randrange(50)}, 1, {generator.gauss(0, 1e8)!r})" for _ in range(n)
        )
        for n in (7, 1, 30, 12)
    ]
    view = (
        "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY k AS"
        f" SELECT k, {call} AS a FROM s GROUP BY k"
    )
    assert verdict_after(view, *inserts, "OPTIMIZE TABLE s FINAL") == "proven"
    moved = "ALTER TABLE s UPDATE x = x + 1e3 WHERE z = (SELECT min(z) FROM s)"
    assert verdict_after(view, *inserts, moved) == "stale"


def table_of(connection: olapdb.Connection, definition: str) -> Table:
    """Create the table t, and return it."""
    connection.execute(f"CREATE TABLE t {definition}")
    table = connection.database.services.catalog.snapshot().find("default", "t")
    assert isinstance(table, Table)
    return table


def test_more_than_the_tolerance_differs() -> None:
    sums = pa.array([1.0, 1.0]), pa.array([1.0 + 1e-6, 1.0 + 1e-6])
    differs, _ = compare_columns(*sums, 1e-9, pa.array([1e2, 1e4]))
    assert differs.tolist() == [True, False]
    with olapdb.connect() as connection:
        table = table_of(connection, "(k Int64, a Float64) ENGINE = SummingMergeTree ORDER BY k")
    rows = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "a": [1e-12, 1.0, 5.0]})
    due = pa.table({"k": pa.array([2, 4], pa.int64()), "a": [1.0, 1e-3]})
    added = pa.table({"k": pa.array([1, 2, 3, 4], pa.int64()), "a": [1.0, 1.0, 5.0, 1.0]})
    difference = compare_keys(table, ["k"], due, rows, added)
    assert (difference.missing, difference.extra, difference.differing) == (1, 1, 0)


def test_rows_are_paired_within_the_tolerance_of_their_rounded_columns_only() -> None:
    with olapdb.connect() as connection:
        table = table_of(
            connection, "(k Int64, a Float64, b Float64) ENGINE = MergeTree ORDER BY k"
        )
    near = 1.0 + 1e-12
    due = pa.table({"k": [1, 1, 1, 2, 3], "a": [2.0, 1.0, 1.0, 1.0, 1.0], "b": [0.0, 0, 0, 0, 1]})
    rows = pa.table(
        {"k": [1, 1, 1, 2, 3], "a": [near, near, 2.0, 1.1, 1.0], "b": [0.0, 0, 0, 0, near]}
    )
    difference = compare_rows(table, due, rows, frozenset("a"))
    assert (difference.missing, difference.extra) == (2, 2)  # 1.1 of k = 2, and b of k = 3
    assert compare_rows(table, due, rows).missing == 4


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT k, sum(x) AS a FROM s GROUP BY k",
            "SELECT k, sum(abs(x)) AS a FROM default.s GROUP BY k",
        ),
        (
            "SELECT k, x AS a FROM s WHERE x < 0",
            "SELECT k AS k, abs(a) AS a FROM (SELECT k, x AS a FROM default.s WHERE x < 0)",
        ),
    ],
)
def test_the_query_of_magnitudes(query: str, expected: str) -> None:
    with olapdb.connect() as connection:
        connection.execute(SOURCE)
        table = table_of(connection, "(k Int64, a Float64) ENGINE = SummingMergeTree ORDER BY k")
        connection.execute(f"CREATE MATERIALIZED VIEW v TO t AS {query}")
        (view,) = connection.database.services.catalog.snapshot().objects_of(MaterializedView)
    changed = magnitude_view(view, table)
    assert changed is not None
    assert " ".join(changed.query.split()).replace("( ", "(").replace(" )", ")") == expected


def verdict_of(*statements: str) -> str:
    """Return the verdict of the view v after the statements, which create all that they name."""
    with olapdb.connect() as connection:
        for statement in (*statements, "SYSTEM RECONCILE VIEW v"):
            connection.execute(statement)
        rows = connection.execute("SELECT verdict FROM system.views WHERE name = 'v'").fetchall()
    return str(rows[0][0])


def test_a_magnitude_is_not_taken_from_another_row_of_equal_columns() -> None:
    verdict = verdict_of(
        "CREATE TABLE s (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d (k Int64, g String, f Float64) ENGINE = MergeTree ORDER BY (k, g)",
        "CREATE TABLE t (k Int64, f Float64) ENGINE = MergeTree ORDER BY (k, f)",
        "INSERT INTO d VALUES (1, 'a', 1e16), (1, 'a', -1e16), (1, 'b', 5)",
        "CREATE MATERIALIZED VIEW v TO t AS SELECT s.k AS k, q.f AS f FROM s JOIN"
        " (SELECT k, g, sum(f) AS f FROM d GROUP BY k, g) AS q ON s.k = q.k",
        "INSERT INTO s VALUES (1)",
        "INSERT INTO d VALUES (1, 'b', 1000)",
    )
    assert verdict == "stale"


def test_a_query_of_with_hides_a_plain_view_from_the_magnitudes() -> None:
    verdict = verdict_of(
        "CREATE TABLE s (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d (k Int64, f Float64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE e (k Int64, f Float64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE t (k Int64, f Float64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d VALUES (1, 5)",
        "INSERT INTO e VALUES (1, 1e16), (1, -1e16)",
        "CREATE VIEW pv AS SELECT k, sum(f) AS f FROM e GROUP BY k",
        "CREATE MATERIALIZED VIEW v TO t AS WITH pv AS (SELECT k, sum(f) AS f FROM d GROUP BY k)"
        " SELECT s.k AS k, pv.f AS f FROM s JOIN pv ON s.k = pv.k WHERE s.k IN (SELECT k FROM e)",
        "INSERT INTO s VALUES (1)",
        "INSERT INTO d VALUES (1, 1000)",
    )
    assert verdict == "stale"
