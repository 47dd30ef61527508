"""NaN, -0.0 and NULL compared, searched and sorted, beside ClickHouse. A lone NaN equals nothing,
but in arrays and sets it equals itself; -0.0 equals 0.0 except in sets."""

from __future__ import annotations

import pytest

import olapdb
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("types")

EXPRESSIONS = (
    "[nan] IN ([nan])",
    "[nan] IN ([nan], [1])",
    "[0.0] IN ([-0.0])",
    "nan IN (nan)",
    "(nan, 1) IN ((nan, 1))",
    "(-0.0, 1) IN ((0.0, 1))",
    "nan NOT IN (nan, 1)",
    "-nan IN (nan)",
    "map('a', nan) IN (map('a', nan))",
    "[[nan, NULL]] IN ([[nan, NULL]])",
    "sign(nan)",
    "sign(toFloat32(nan))",
    "sign(materialize(nan))",
    "sign(toNullable(nan))",
    "sign(CAST(NULL AS Nullable(Float64)))",
    "hasAny([nan], [nan])",
    "hasAll([nan], [nan])",
    "hasAny([0.0], [-0.0])",
    "hasAll([0.0], [-0.0])",
    "hasAny(materialize([nan, 0.0]), materialize([nan, 1]))",
    "hasAny(materialize([nan, 0.0]), materialize([-0.0]))",
    "hasAll(materialize([nan, 0.0, NULL]), materialize([-0.0, NULL]))",
    "hasAll(materialize([nan, 0.0]), [0])",
    "hasAny([[0.0]], [[-0.0]])",
    "has([[0.0]], [-0.0])",
    "has([map(1,0.0)], map(1,-0.0))",
    "[map(1,0.0)] = [map(1,-0.0)]",
    "[[1,2],[3]] = [[1,2],[3]]",
    "[[1,2],[3]] = [[1],[2,3]]",
    "[(nan,1)] = [(nan,1)]",
    "[nan,NULL] != [nan,NULL]",
    "[NULL] = [NULL, NULL]",
    "transform(nan, [nan], [1], 2)",
    "least(nan, 1)",
    "greatest(nan, 1)",
    "greatest(1, nan)",
    "least(nan, 1, 2)",
    "greatest(nan, 1, 2)",
    "greatest(1, nan, 2)",
    "least(0.0, -0.0)",
    "greatest(-0.0, 0.0)",
    "least(nan, toNullable(1))",
    "greatest(toNullable(nan), 1)",
    "least(NULL, nan, 1)",
    "least(CAST(NULL AS Nullable(Float64)), 1, 2)",
    "arrayReverseSort([nan, 1, -inf])",
    "arrayReverseSort([1, nan, NULL, 2])",
    "toString(arraySort([0.0, -0.0, -1, 0.0]))",
    "toString(arrayReverseSort([-0.0, 0.0, 1, -0.0]))",
    "toString(arrayReverseSort([[-0.0, 2], [0.0, 1]]))",
    "hasAll([1,2], [2,2,NULL])",
    "hasAny([NULL, 1], [NULL])",
    "hasAll([], [])",
    "hasAny([1], [])",
    "hasAll(materialize([1,2]), [])",
    "hasAll([1,2], [2.0,1])",
    "hasAny([(1,'a')], [(1,'a')])",
    "hasAny(['a'], materialize(['b','a']))",
    "[] = []",
    "[1] = []",
    "map() = map()",
    "map('a',[1]) = map('a',[1])",
)

COLUMNS = (
    "a = b",
    "a != b",
    "hasAny(a, b)",
    "hasAll(a, [1, v])",
    "has(b, v)",
    "indexOf(b, v)",
    "a IN ([nan], [-0.0, 1])",
    "v IN (nan, 0.0)",
    "sign(v)",
    "greatest(v, w)",
    "least(v, w)",
    "arrayReverseSort(b)",
    "[a, b] = [b, a]",
    "hasAny(b, [nan, 2])",
    "(v, 1) = (w, 1)",
)
TABLE = (
    "SELECT arrayJoin([nan, 0.0, -0.0, 1, inf]) AS v, arrayJoin([nan, -0.0, 1, NULL]) AS w,"
    " [v, 1] AS a, arrayJoin([[nan, 1], [-0.0, 1], [], [NULL, 1], [1, 0.0, 1]]) AS b"
)


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_constants(connection: olapdb.Connection, oracle: Oracle, expression: str) -> None:
    assert_same(connection, oracle, f"SELECT {expression} AS v")


def test_an_array_of_nan_is_joined_once(connection: olapdb.Connection, oracle: Oracle) -> None:
    assert_same(connection, oracle, "SELECT arrayJoin([nan, 1]) AS v, [v, 2] AS a")
    assert_same(
        connection,
        oracle,
        "SELECT nan + number AS v, count() AS c FROM numbers(3) GROUP BY nan + number",
    )


@pytest.mark.parametrize("expression", COLUMNS)
def test_columns(connection: olapdb.Connection, oracle: Oracle, expression: str) -> None:
    shown = ", ".join(f"toString({one})" for one in ("v", "w", "a", "b", expression))
    query = f"SELECT {shown} FROM ({TABLE})"
    here = connection.execute(query).fetchall()
    assert sorted(map(repr, here)) == sorted(map(repr, oracle.query(query).rows))
