"""-Array, -ForEach, -Map, -Resample and their combinations beside ClickHouse: in queries, in
columns of states and of simple aggregates, before and after merges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("aggregates")

TABLE = (
    "nested_g (k UInt8, a Array(UInt32), b Array(String), f Array(Float64), "
    "n Array(Nullable(Int32)), c UInt8, m Map(String, UInt64), "
    "a0 Array(UInt32) ALIAS arrayEnumerate(n), n0 Array(Int64) ALIAS arrayEnumerate(a), "
    "b0 Array(String) ALIAS CAST(a, 'Array(String)'), "
    "f0 Array(Float64) ALIAS arrayEnumerate(a), s0 String ALIAS toString(length(a)), "
    "nk Nullable(Int32) ALIAS if(k = 1, NULL, length(a)), d0 Date ALIAS toDate(k + c), "
    "f00 Float64 ALIAS length(a)) ENGINE = MergeTree ORDER BY k"
)
ROWS = (
    "INSERT INTO nested_g VALUES (1, [1,2,3], ['x','y'], [1.5], [1,NULL], 1, {'a':1}), "
    "(1, [], [], [], [], 0, {}), (2, [7], ['x'], [2.5,3.5], [NULL], 1, {'a':2,'b':3}), "
    "(2, [1,1], ['z','x'], [8.0], [5], 0, {'b':1})"
)
SELECTED = (
    "sumArray(a), countArray(a), uniqArray(b), avgArray(f), minArray(a), maxArray(b)",
    "arraySort(groupUniqArrayArray(b)), arraySort(groupArrayArray(a)), uniqExactArray(a)",
    "sumArrayIf(a, c), countArrayIf(a, c), uniqArrayIf(b, c)",
    "sumArray(n), countArray(n), maxArray(n), uniqArray(n)",
    "quantileArray(0.5)(f), sumDistinctArray(a), sumArrayDistinct(a), sumArrayOrNull(a)",
    "argMaxArray(a, a), sumArrayArray([a, a])",
    "sumForEach(a), maxForEach(a), countForEach(a), avgForEach(f), groupUniqArrayForEach(b)",
    "sumForEachIf(a, c), sumForEach(n), sumForEachArray([a, a])",
    "sumResample(0, 4, 1)(k, k), countResample(0, 10, 3)(k), avgResample(1, 2, 1)(c, k)",
    "sumResample(0, 2, 3)(k, k), countResample(1, 3, 4)(k), sumResample(-2, 1, 2)(k, toInt8(k) - 1)",
    "countResample(0, 9223372036854775807, 4611686018427387904)(toUInt64(9223372036854775806))",
    "countResample(0, 4, 1)(toUInt64(18446744073709551615) - k)",
    "sumMap(m), minMap(m), maxMap(m), avgMap(m), countMap(m), sumMapIf(m, c)",
    "sumMap(a, a), maxMap(a, a), minMap((a, a)), sumMap(n, n)",
    "sumMap([NULL, k, NULL], [2, 3, k]), maxMap([NULL, 'x'], [k, c]), minMap(([NULL, k], [k, 7]))",
    "sumMap(a, a, a), minMap(a, a, n0), maxMap((a, b0, a)), toTypeName(sumMap(a, a, f0))",
    "sumMap(n, n, n), minMap(a0, n), maxMap(a0, n), sumMap(a0, n, n), sumMapIf(a, a, a, c)",
    "sumArgMin(k, c), countArgMax(k), sumArgMax(c, k), uniqExactArgMin(k, c), avgArgMax(k, nk)",
    "sumArgMax(nk, k), countArgMin(nk, k), maxArgMin(k, nk), uniqArgMax(k, nk), minArgMax(s0, d0)",
    "arraySort(groupArrayArgMin(k, c)), sumArgMinIf(k, c, k > 1), sumIfArgMin(k, c, k)",
    "sumArgMinArgMax(k, c, s0), sumArrayArgMin(a, k), sumArgMinOrNull(k, c), sumOrNullArgMin(k, nk)",
    "sumArgMin(k, if(c, nan, f00)), sumArgMax(k, if(c, nan, f00)), quantileArgMax(0.5)(k, c)",
    "sumTuple((k, c)), sumTuple((k, nk)), avgTuple((k, f00)), maxTuple((s0, d0)), countTuple((k, nk))",
    "sumTuple(CAST((k, c), 'Tuple(x UInt8, y UInt8)')), argMinTuple((k, c), (k, c))",
    "sumIfTuple((k, c), (c, k > 1)), sumTupleIf((k, c), c), sumTupleArgMax((k, c), k)",
    "quantilesTuple(0.5)((k, c)), sumArrayTuple((a, a)), uniqExactTuple((nk, s0))",
    "toTypeName(sumArgMinState(k, c)), toTypeName(sumTupleState((k, c))), toTypeName(sumStateTuple((k, c)))",
    "toTypeName(sumArrayState(a)), toTypeName(sumStateArray(a)), toTypeName(sumForEachState(a))",
    "toTypeName(groupUniqArrayArraySimpleState(b)), toTypeName(sumMapSimpleState(m))",
)
THROUGH_STATES = (
    ("sumArray", "a"),
    ("uniqArray", "b"),
    ("avgArray", "f"),
    ("sumArrayIf", "a, c"),
    ("sumForEach", "a"),
    ("avgForEach", "f"),
    ("sumMap", "m"),
    ("maxMap", "m"),
    ("uniqExactArray", "a"),
    ("sumArrayOrNull", "n"),
    ("sumMap", "a, a, a"),
    ("minMap", "a0, n"),
    ("sumArgMin", "k, c"),
    ("avgArgMax", "nk, k"),
    ("countArgMin", "nk, f00"),
    ("maxArgMax", "k, nk"),
    ("uniqExactArgMax", "s0, c"),
    ("sumTuple", "(k, nk)"),
    ("avgTuple", "(k, f00)"),
    ("argMaxTuple", "(k, c), (k, c)"),
    ("sumArgMinTuple", "(k, nk), (c, k)"),
)
REFUSED = (
    "sumArray(c)",
    "sumArray()",
    "argMaxArray(a, b)",
    "sumForEach(c)",
    "sumMap(c)",
    "sumMap(b, b)",
    "sumMap([1,2], [1])",
    "countResample(0, 5, 0)(k)",
    "countResample(0, 5)(k)",
    "countResample(0, 5, 1)('a')",
    "sumIfArray(a, a)",
    "nopeArray(a)",
    "sumMap(a)",
    "sumMap(a, a, b)",
    "sumMap([1, 2], [1, 2], [1])",
    "sumArgMin(k)",
    "countArgMax()",
    "sumArgMin(b0, k)",
    "sumTuple(k)",
    "sumTuple((k, s0))",
    "sumTuple(tuple())",
    "countTuple()",
    "sumTuple((k, c), (k, c))",
    "sumArgMinSimpleState(k, c)",
    "nopeArgMin(k, c)",
)


@pytest.fixture
def connection(oracle: Oracle) -> Iterator[Connection]:
    oracle.execute("DROP TABLE IF EXISTS nested_g")
    oracle.execute(f"CREATE TABLE {TABLE}")
    oracle.execute(ROWS)
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        opened.execute(f"CREATE TABLE {TABLE}")
        opened.execute(ROWS)
        yield opened


def same(connection: Connection, oracle: Oracle, query: str) -> None:
    """Require the same types and, as text, the same rows."""
    cursor = connection.execute(query)
    types = tuple(str(field[1]) for field in cursor.description or ())
    there = oracle.query(query)
    assert types == there.types, query
    width = len(types)
    as_text = ", ".join(f"toString(_{i})" for i in range(width))
    names = ", ".join(f"_{i}" for i in range(width))
    texts = f"WITH q ({names}) AS ({query}) SELECT {as_text} FROM q ORDER BY ALL"
    assert connection.execute(texts).fetchall() == oracle.query(texts).rows, query


@pytest.mark.parametrize("selected", SELECTED)
def test_results_and_types(connection: Connection, oracle: Oracle, selected: str) -> None:
    same(connection, oracle, f"SELECT {selected} FROM nested_g")
    same(connection, oracle, f"SELECT {selected} FROM nested_g WHERE k = 9")
    same(connection, oracle, f"SELECT k, {selected} FROM nested_g GROUP BY k")


@pytest.mark.parametrize(("name", "arguments"), THROUGH_STATES)
def test_merged_states_are_the_whole(
    connection: Connection, oracle: Oracle, name: str, arguments: str
) -> None:
    states = f"SELECT k, {name}State({arguments}) AS s FROM nested_g GROUP BY k, c"
    same(connection, oracle, f"SELECT k, {name}Merge(s) FROM ({states}) GROUP BY k")
    merged = f"SELECT {name}Merge(s) FROM ({states})"
    same(connection, oracle, merged)
    whole = f"SELECT {name}({arguments}) FROM nested_g"
    assert connection.execute(merged).fetchall() == connection.execute(whole).fetchall()


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(connection: Connection, oracle: Oracle, call: str) -> None:
    with pytest.raises(OracleError) as theirs:
        oracle.query(f"SELECT {call} FROM nested_g")
    with pytest.raises(Error) as ours:
        connection.execute(f"SELECT {call} FROM nested_g").fetchall()
    assert (ours.value.name, ours.value.code) == (theirs.value.name, theirs.value.code)


SIMPLE = (
    "nested_s (k UInt8, u SimpleAggregateFunction(groupUniqArrayArray, Array(String)), "
    "l SimpleAggregateFunction(groupArrayArray, Array(UInt32)), "
    "m SimpleAggregateFunction(sumMap, Map(String, UInt64)), "
    "x SimpleAggregateFunction(maxMap, Map(String, UInt64)), "
    "t SimpleAggregateFunction(sumMap, Tuple(Array(UInt32), Array(Int64))), "
    "w AggregateFunction(sumForEach, Array(UInt32)), "
    "v SimpleAggregateFunction(maxMap, Tuple(Array(UInt8), Array(UInt64), Array(String))), "
    "y AggregateFunction(sumArgMin, UInt8, Int32), "
    "z AggregateFunction(avgTuple, Tuple(Int32, Float64))) ENGINE = AggregatingMergeTree ORDER BY k"
)
SIMPLE_ROWS = (
    "SELECT 1, ['a'], [1, 2], map('p', 1), map('p', 5), ([1], [5]), sumForEachState(CAST([1, 2] AS Array(UInt32))),"
    " ([1, 2], [5, 6], ['a', 'b']), sumArgMinState(toUInt8(5), toInt32(3)), avgTupleState((toInt32(1), 2.5))",
    "SELECT 1, ['b', 'a'], [3], map('q', 2, 'p', 3), map('p', 4), ([1, 2], [-5, 3]),"
    " sumForEachState(CAST([7] AS Array(UInt32))), ([2, 3], [9, 1], ['a', 'c']),"
    " sumArgMinState(toUInt8(7), toInt32(2)), avgTupleState((toInt32(2), 3.5))",
    "SELECT 2, [], [], map(), map(), ([], []), sumForEachState(CAST([9, 9, 9] AS Array(UInt32))),"
    " ([], [], []), sumArgMinState(toUInt8(7), toInt32(2)), avgTupleState((toInt32(2), 3.5))",
)


def test_simple_aggregates_and_states_merge(connection: Connection, oracle: Oracle) -> None:
    oracle.execute("DROP TABLE IF EXISTS nested_s")
    for statement in (
        f"CREATE TABLE {SIMPLE}",
        *(f"INSERT INTO nested_s {r}" for r in SIMPLE_ROWS),
    ):
        connection.execute(statement)
        oracle.execute(statement)
    read = (
        "SELECT k, arraySort(u), l, m, x, t, v, sumForEachMerge(w), sumArgMinMerge(y),"
        " avgTupleMerge(z) FROM nested_s FINAL GROUP BY k, u, l, m, x, t, v"
    )
    same(connection, oracle, read)
    connection.execute("OPTIMIZE TABLE nested_s FINAL")
    oracle.execute("OPTIMIZE TABLE nested_s FINAL")
    same(connection, oracle, read.replace(" FINAL", ""))


@pytest.mark.parametrize(
    "column",
    [
        "SimpleAggregateFunction(sumForEach, Array(UInt64))",
        "SimpleAggregateFunction(groupArrayArray, String)",
        "SimpleAggregateFunction(nopeArray, Array(String))",
    ],
)
def test_columns_that_are_refused(connection: Connection, oracle: Oracle, column: str) -> None:
    statement = (
        f"CREATE TABLE nested_r (k UInt8, t {column}) ENGINE = AggregatingMergeTree ORDER BY k"
    )
    with pytest.raises(OracleError) as theirs:
        oracle.execute(statement)
    with pytest.raises(Error) as ours:
        connection.execute(statement)
    assert (ours.value.name, ours.value.code) == (theirs.value.name, theirs.value.code)
