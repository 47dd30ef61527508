"""Every aggregate beside ClickHouse: result types and values, by group, whole, over nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from olapdb import functions
from olapdb.errors import Error
from olapdb.functions import Groups
from tests.harness import typed_table
from tests.harness.expressions import Value
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("aggregates")

TABLE = "typed_for_aggregates"
Case = tuple[str, tuple[object, ...], tuple[str, ...]]


def _over(names: str, *columns: str, parameters: tuple[object, ...] = ()) -> list[Case]:
    return [(n, parameters, tuple(c.split())) for n in names.split() for c in columns]


CASES: list[Case] = [
    *_over("count", "", "u8", "n8", "ns"),
    *_over("sum avg", "u8", "u64", "i64", "i8", "num", "f64", "d9", "d18", "b", "n8", "ni", "nf"),
    *_over("sum", "s", "d", "au"),
    *_over(
        "min max",
        "u8",
        "i64",
        "num",
        "f64",
        "d9",
        "s",
        "d",
        "dt",
        "ms",
        "b",
        "n8",
        "ns",
        "nd",
        "lc",
        "fs",
        "id",
        "nf",
    ),
    *_over("sumWithOverflow groupBitAnd groupBitOr groupBitXor", "u8", "i16", "n8"),
    *_over("argMin argMax", "s i32", "u8 s", "ns u8", "n8 ni", "d num", "lc dt", "s ns"),
    *_over("uniq uniqExact", "u8", "s", "ns", "lc", "d", "u8 s", "d9", "n8 ni", "num", "au"),
    *_over("groupUniqArray", "small", "step"),
    *_over("groupArray", "s", "n8", "d"),
    *_over("groupArray", "s", parameters=(2,)),
    *_over("anyLast last_value first_value", "s", "u8", "d"),
    *_over("quantile median", "u8", "i32", "num", "f64", "n8", "ni", "nf", "b"),
    *_over("quantile", "u8", "num", "nf", parameters=(0.9,)),
    *_over("quantiles", "u8", "num", parameters=(0.1, 0.5, 0.99)),
    *_over("quantile", "s"),
    *_over("stddevPop stddevSamp varPop varSamp", "u8", "num", "step", "n8"),
    *_over("sumIf avgIf minIf maxIf countIf quantileIf uniqIf anyLastIf", "u8 b", "n8 i8"),
    *_over("countIf", "b", "n8"),
    *_over("argMaxIf", "s u8 b"),
    *_over("sumOrNull avgOrNull minOrNull sumOrDefault countOrNull", "u8", "n8"),
    *_over("sumOrNullIf sumIfOrNull", "u8 b"),
    *_over("sumDistinct countDistinct avgDistinct", "i8", "n8"),
    *_over("SUM Count MAX any_value", "small"),
]

KNOWN_DIFFERENCES = {
    "min f64": "as ClickHouse, but the sign of NaN is not printed",
    "any_value small": "any is the smallest value, not the first",
}


@pytest.fixture(scope="module")
def table(oracle: Oracle) -> Iterator[str]:
    typed_table.create(oracle, TABLE)
    yield TABLE
    oracle.execute(f"DROP TABLE {TABLE}")


@pytest.fixture(scope="module")
def values() -> dict[str, Value]:
    return typed_table.values()


def _groups(kind: str) -> tuple[Groups, np.ndarray]:
    """Return groups and the rows in them: three groups by row number, one group, or no rows."""
    rows = np.arange(typed_table.ROWS)
    if kind == "grouped":
        return Groups(rows % 3, 3), rows
    return (
        (Groups(np.zeros(len(rows), np.int64), 1), rows)
        if kind == "whole"
        else (Groups(np.zeros(0, np.int64), 1), rows[:0])
    )


def _sql(case: Case, kind: str, table: str) -> str:
    name, parameters, arguments = case
    given = f"({', '.join(str(p) for p in parameters)})" if parameters else ""
    call = f"{name}{given}({', '.join(arguments)})"
    rest = {"grouped": "GROUP BY row % 3 ORDER BY row % 3", "whole": "", "empty": "WHERE 0"}[kind]
    return f"SELECT {call} AS v FROM (SELECT * FROM {table} ORDER BY row) {rest}"


@pytest.mark.parametrize("kind", ["grouped", "whole", "empty"])
def test_aggregates_answer_as_clickhouse_does(
    oracle: Oracle, table: str, values: dict[str, Value], kind: str
) -> None:
    wrong = []
    groups, rows = _groups(kind)
    for case in CASES:
        name, parameters, arguments = case
        label = f"{name} {' '.join(arguments)}".strip()
        if label in KNOWN_DIFFERENCES:
            continue
        try:
            result = oracle.query(_sql(case, kind, table))
            expected: tuple[object, ...] = (result.types[0], [r[0] for r in result.rows])
        except OracleError as error:
            expected = ("error", error.code)
        found = _evaluated(case, values, groups, rows)
        if not _alike(found, expected):
            wrong.append(f"{label} {parameters}\n  olapdb     {found}\n  ClickHouse {expected}")
    assert not wrong, "\n".join(wrong)


def _evaluated(
    case: Case, values: dict[str, Value], groups: Groups, rows: np.ndarray
) -> tuple[object, ...]:
    name, parameters, arguments = case
    given = [values[a] for a in arguments]
    try:
        aggregate = functions.resolve_aggregate(name, parameters, [v.type for v in given])
        state = aggregate.state([v.column.take(pa.array(rows)) for v in given], groups)
        assert state.type == aggregate.state_type.arrow
        finished = aggregate.finalize(state)
    except Error as error:
        return ("error", error.code)
    assert finished.type == aggregate.result_type.arrow
    return (aggregate.result_type.name, functions.display(finished, aggregate.result_type))


def _alike(found: tuple[object, ...], expected: tuple[object, ...]) -> bool:
    if found == expected or found[0] != expected[0] or found[0] == "error":
        return found == expected
    if str(found[0]).startswith("Array("):
        return _sorted_lists(found[1]) == _sorted_lists(expected[1])
    if found[0] not in ("Float64", "Float32", "Nullable(Float64)", "Nullable(Float32)"):
        return False
    close = 1e-6 if "32" in str(found[0]) else 1e-14
    pairs = zip(found[1], expected[1], strict=True)  # type: ignore[call-overload]
    return all(
        a == b or (a and b and float(a) == pytest.approx(float(b), rel=close)) for a, b in pairs
    )


def _sorted_lists(shown: object) -> list[list[str]]:
    """Sort the elements of lists, since ClickHouse's groupUniqArray has no order."""
    assert isinstance(shown, list)
    return [sorted(str(v).strip("[]").split(",")) for v in shown]


@pytest.mark.parametrize(
    ("name", "parameters", "types"),
    [
        ("sumState", (), "UInt8"),
        ("avgState", (), "Nullable(UInt8)"),
        ("countState", (), ""),
        ("sumIfState", (), "UInt8 UInt8"),
        ("sumStateIf", (), "UInt8 UInt8"),
        ("uniqState", (), "String"),
        ("uniqExactState", (), "UInt8 String"),
        ("quantileState", (0.9,), "Float64"),
        ("quantilesState", (0.5, 0.9), "UInt64"),
        ("medianState", (), "UInt64"),
        ("argMaxState", (), "String DateTime"),
        ("maxSimpleState", (), "UInt64"),
        ("sumSimpleState", (), "UInt8"),
        ("sumOrNullState", (), "UInt8"),
        ("anyLastState", (), "UInt8"),
        ("any_valueState", (), "UInt8"),
        ("avgSimpleState", (), "UInt8"),
        ("countIfState", (), "UInt8"),
    ],
)
def test_state_types_have_clickhouse_names(
    oracle: Oracle, name: str, parameters: tuple[object, ...], types: str
) -> None:
    argument_types = [functions.parse_type(t) for t in types.split()]
    columns = ", ".join(f"defaultValueOfTypeName('{t}')" for t in types.split())
    given = f"({', '.join(str(p) for p in parameters)})" if parameters else ""
    try:
        expected: object = oracle.query(f"SELECT toTypeName({name}{given}({columns}))").value
    except OracleError as error:
        expected = error.code
    try:
        aggregate = functions.resolve_aggregate(name, parameters, argument_types)
        found: object = aggregate.result_type.name
        assert functions.parse_type(str(found)).arrow == aggregate.result_type.arrow
    except Error as error:
        found = error.code
    assert found == expected
