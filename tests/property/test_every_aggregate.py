"""Every aggregate that a view may prove gives the same for any cut of the rows and any order.

The list of aggregates is the engine's own, so a new one is tested the day it is there. Each is tried
on columns of every type. One whose answer depends on the cut must say so: its `merge_class` is
"ordered", and views refuse its states.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error, InternalError, ViewNotProvable

pytestmark = pytest.mark.feature("aggregates", "provability")

ROWS = 40
TRIED = 8
"""The number of argument lists that are tried for an aggregate: the edges first, then random ones."""
EDGES = 4
CUTS = ((1, 0), (7, 1), (ROWS, 2))
"""The number of blocks, and the seed of the order, of each way to cut the rows."""
COLUMNS = {
    "u8": "UInt8",
    "i16": "Int16",
    "i64": "Int64",
    "u128": "UInt128",
    "i256": "Int256",
    "f32": "Float32",
    "f64": "Float64",
    "nf": "Nullable(Float64)",
    "ni": "Nullable(Int64)",
    "dec": "Decimal(18, 3)",
    "flag": "Bool",
    "mark": "UInt8",
    "share": "Float64",
    "s": "String",
    "lc": "LowCardinality(String)",
    "ns": "Nullable(String)",
    "day": "Date",
    "at": "DateTime",
    "tm": "Time",
    "a": "Array(Int64)",
    "m": "Map(String, Int64)",
    "t": "Tuple(Int64, String)",
}
ARGUMENTS = [
    *(("nf", "mark"), ("nf", "nf"), ("f32",), ("i256",)),  # the edges: NaN, narrow floats, wide numbers
    *((name,) for name in COLUMNS),
    *(
        ("f64", "f64"), ("nf", "u8"), ("f64", "mark"), ("u8", "mark"),
        ("f64", "share"), ("f64", "at"), ("i64", "at"), ("at", "f64"), ("i16", "u8"), ("i64", "i16"),
        ("s", "i64"), ("t", "nf"), ("i16", "ni"), ("a", "a"), ("u8", "u8"), ("i16", "i16"),
        ("flag", "flag"), ("at", "flag", "flag"), ("f64", "f64", "f64"), ("f64", "f64", "mark"),
        ("u8", "u8", "u8"), ("s", "lc"), ("i256", "u128"), ("u128", "u8"), ("dec", "i16"),
    ),
]  # fmt: skip
PARAMETERS = {
    "approx_top_count": "(2)",
    "approx_top_k": "(2)",
    "approx_top_sum": "(2)",
    "exponentialMovingAverage": "(2)",
    "exponentialTimeDecayedAvg": "(2)",
    "exponentialTimeDecayedCount": "(2)",
    "exponentialTimeDecayedMax": "(2)",
    "exponentialTimeDecayedSum": "(2)",
    "groupArrayLast": "(4)",
    "groupArraySample": "(4)",
    "groupArraySorted": "(4)",
    "histogram": "(3)",
    "largestTriangleThreeBuckets": "(4)",
    "lttb": "(4)",
    "meanZTest": "(1., 1., 0.9)",
    "quantileDD": "(0.01, 0.5)",
    "quantileGK": "(10, 0.5)",
    "quantilesDD": "(0.01, 0.5, 0.9)",
    "quantilesGK": "(10, 0.5, 0.9)",
    "sequenceCount": "('(?1)(?2)')",
    "sequenceMatchEvents": "('(?1)(?2)')",
    "sequenceMatch": "('(?1)(?2)')",
    "sequenceNextNode": "('forward', 'first_match')",
    "sparkBar": "(5)",
    "sparkbar": "(5)",
    "sumMapFiltered": "([1, 2])",
    "sumMapFilteredWithOverflow": "([1, 2])",
    "topK": "(2)",
    "topKWeighted": "(2)",
    "uniqUpTo": "(3)",
    "windowFunnel": "(5)",
}


def literal(name: str, chance: random.Random) -> str:
    """Return a random value of the column as SQL text: few values, and the ends of its type."""
    small = str(chance.randrange(-4, 5))
    if name in ("ni", "nf", "ns") and chance.random() < 0.2:
        return "NULL"
    if name == "nf" and chance.random() < 0.2:
        return "nan"
    match name:
        case "u8":
            return str(chance.randrange(5))
        case "mark":
            return str(chance.randrange(2))
        case "i64":
            return chance.choice([small, str(chance.randrange(-(2**62), 2**62))])
        case "u128":
            return str(chance.randrange(2**127))
        case "i256":
            return str(chance.randrange(-(2**254), 2**254))
        case "i16" | "ni":
            return small
        case "f32" | "f64" | "nf":
            return chance.choice([f"{chance.uniform(-9, 9)!r}", f"{small}.0", "-0.0"])
        case "dec":
            return f"{chance.uniform(-9, 9):.3f}"
        case "share":
            return repr(chance.choice([0.0, 1.0, chance.random()]))
        case "flag":
            return chance.choice(["true", "false"])
        case "s" | "lc" | "ns":
            return chance.choice(["''", "'a'", "'ab'", "'z'"])
        case "day":
            return f"'2020-01-{chance.randrange(1, 29):02d}'"
        case "at":
            return f"'2020-01-01 00:00:{chance.randrange(60):02d}'"
        case "tm":
            return f"'01:00:{chance.randrange(60):02d}'"
        case "a":
            return str([chance.randrange(4) for _ in range(chance.randrange(4))])
        case "m":
            keys = chance.sample("abc", chance.randrange(3))
            return "{" + ", ".join(f"'{key}': {chance.randrange(9)}" for key in keys) + "}"
        case "t":
            return f"({chance.randrange(4)}, '{chance.choice('ab')}')"
        case _:
            raise KeyError(name)


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    chance = random.Random(20_241_124)
    with olapdb.connect() as opened:
        columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
        opened.execute(f"CREATE TABLE s (n UInt32, {columns}) ENGINE = MergeTree ORDER BY n")
        values = (
            f"({row}, {', '.join(literal(name, chance) for name in COLUMNS)})"
            for row in range(ROWS)
        )
        opened.execute(f"INSERT INTO s VALUES {', '.join(values)}")
        yield opened


def equal(one: object, other: object) -> bool:
    """Return whether two results are equal, floats to 1e-9 of their magnitude."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1.0)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return one == other


def names_of_aggregates() -> list[str]:
    with olapdb.connect() as opened:
        query = (
            "SELECT name FROM system.functions WHERE is_aggregate AND alias_to = '' ORDER BY name"
        )
        return [row[0] for row in opened.execute(query).fetchall()]


def is_provable(connection: Connection, state: str) -> bool:
    """Return whether a view of the state is provable."""
    try:
        connection.execute(
            "CREATE MATERIALIZED VIEW v ENGINE = AggregatingMergeTree ORDER BY u8 AS"
            f" SELECT u8, {state} AS st FROM s GROUP BY u8"
        )
    except ViewNotProvable:
        return False
    try:
        (verdict,) = connection.execute("SELECT verdict FROM system.views").fetchone() or ("",)
        return verdict != "unproven"
    finally:
        connection.execute("DROP VIEW v")


def differing_cut(connection: Connection, call: tuple[str, str, str], whole: object) -> object:
    """Return the first result of a cut of the rows that differs from `whole`, or None."""
    name, parameters, arguments = call
    state = f"{name}State{parameters}({arguments})"
    for blocks, seed in CUTS:
        result = connection.execute(
            f"SELECT {name}Merge{parameters}(st) FROM (SELECT {state} AS st FROM"
            f" (SELECT * FROM s ORDER BY cityHash64(n, {seed})) GROUP BY n % {blocks})"
        ).fetchone()
        assert result is not None
        if not equal(result[0], whole):
            return result[0]
    return None


@pytest.mark.parametrize("name", names_of_aggregates())
def test_a_provable_aggregate_does_not_depend_on_the_cut(connection: Connection, name: str) -> None:
    parameters = PARAMETERS.get(name, "(0.1, 0.9)" if name.startswith("quantiles") else "")
    others = ARGUMENTS[EDGES:]
    random.Random(name).shuffle(others)
    wrong: list[str] = []
    tried = 0
    for columns in (*ARGUMENTS[:EDGES], *others):
        if tried == TRIED:
            break
        arguments = ", ".join(columns)
        call = f"{name}{parameters}({arguments})"
        try:
            whole = connection.execute(f"SELECT {call} FROM s").fetchone()
        except InternalError:
            raise
        except Error:
            continue  # not of these types, or a function of windows
        tried += 1
        assert whole is not None
        different = differing_cut(connection, (name, parameters, arguments), whole[0])
        if different is not None and is_provable(
            connection, f"{name}State{parameters}({arguments})"
        ):
            wrong.append(f"{call}: {whole[0]}, in another cut {different}")
    assert wrong == []
