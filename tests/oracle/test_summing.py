"""SummingMergeTree beside ClickHouse: decimals, zero rows, nested maps, and what CREATE refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("aggregates")

_DATABASES = count(1)

# columns, engine's arguments, blocks of VALUES
CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "decimals beyond their precision": (
        "k UInt8, a Decimal(4, 1), b Decimal(9, 2), c Decimal(18, 2), d Decimal(38, 0), "
        "e Decimal(50, 1), n Nullable(Decimal(5, 1))",
        "",
        2
        * (
            f"(1, 999.9, 9999999.99, 9999999999999999.99, {'6' * 38}, 1.5, 9999.9)",
            "(2, -999.9, -9999999.99, -9999999999999999.99, 1, 1, NULL)",
        ),
    ),
    "zeros": (
        "k UInt8, v Int8, f Float64, d Decimal(9, 2), b Bool, s String",
        "",
        (
            "(1, 1, 1, 1, false, 'x'), (2, 0, 0, 0, false, 'y'), (3, 0, 0, 0, true, 'z')",
            "(1, -1, -1, -1, false, 'x'), (4, 0, -0.0, 0, false, 'y')",
        ),
    ),
    "zero is not NULL": (
        "k UInt8, n Nullable(Int32)",
        "",
        ("(1, NULL), (2, 0), (3, 1), (4, NULL), (5, 1)", "(2, 0), (3, -1), (4, 0), (1, NULL)"),
    ),
    "a state or a simple state keeps its row": (
        "k UInt8, v Int8, s SimpleAggregateFunction(sum, Int64)",
        "",
        ("(1, 0, 0), (2, 1, 1)",) * 2,
    ),
    "a state keeps its row, named columns or not": (
        "k UInt8, v Int8, s SimpleAggregateFunction(max, Int64)",
        "v",
        ("(1, 0, 0), (2, 1, 1)",) * 2,
    ),
    "a nested map": (
        "k UInt8, v UInt8, `aMap.id` Array(UInt32), `aMap.v` Array(UInt64)",
        "",
        (
            "(1, 0, [1, 2], [10, 20]), (2, 0, [1], [0]), (3, 0, [], []), (4, 1, [3, 3], [1, 2])",
            "(1, 0, [2, 1], [0, 5]), (5, 0, [1, 2], [1, 0]), (6, 0, [7], [1])",
            "(6, 0, [7, 0], [255, 3])",
        ),
    ),
    "named keys, in any place": (
        "k UInt8, `aMap.x` Array(String), `aMap.yID` Array(UInt8), `aMap.v` Array(Int16)",
        "",
        ("(1, ['a'], [1], [10])", "(1, ['a', 'b'], [1, 2], [1, 2])"),
    ),
    "several keys": (
        "k UInt8, `aMap.x` Array(UInt8), `aMap.y` Array(UInt8), `aMap.zKey` Array(String)",
        "",
        ("(1, [1], [2], ['a'])", "(1, [1], [2], ['b'])", "(1, [1], [2], ['a'])"),
    ),
    "no values: an array like any other": (
        "k UInt8, `aMap.x` Array(String), `aMap.y` Array(String)",
        "",
        ("(1, ['a'], ['b'])",) * 2,
    ),
    "maps are summed although others are named": (
        "k UInt8, v UInt32, w UInt32, `aMap.x` Array(String), `aMap.y` Array(UInt8)",
        "v",
        ("(1, 1, 1, ['a'], [200])", "(1, 1, 1, ['a'], [100])"),
    ),
    "a map by its name": (
        "k UInt8, v UInt32, `aMap.x` Array(String), `aMap.y` Array(Float64)",
        "aMap",
        ("(1, 1, ['b', 'a'], [1, 0.5])", "(1, 1, ['a'], [2])"),
    ),
    "dates, floats, nulls": (
        "k UInt8, `aMap.x` Array(Date), `aMap.y` Array(Float32), `aMap.n` Array(Int8)",
        "",
        (
            "(1, ['2024-01-01', '2023-01-01'], [200, 1], [100, 1])",
            "(1, ['2024-01-01'], [0.5], [100])",
        ),
    ),
}


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "files"])
@pytest.mark.parametrize("case", CASES)
def test_sums_as_clickhouse(oracle: Oracle, tmp_path: Path, case: str, inline: bool) -> None:
    columns, arguments, blocks = CASES[case]
    database = f"summing_{next(_DATABASES)}"
    engine = f"ENGINE = SummingMergeTree({arguments}) ORDER BY k"
    with olapdb.connect(str(tmp_path / "w")) as connection:
        for run in (connection.execute, oracle.execute):
            run(f"CREATE DATABASE {database}")
        setting = "" if inline else " SETTINGS inline_bytes_max = 0"
        connection.execute(f"CREATE TABLE {database}.t ({columns}) {engine}{setting}")
        oracle.execute(f"CREATE TABLE {database}.t ({columns}) {engine}")
        oracle.execute(f"SYSTEM STOP MERGES {database}.t")
        for block in blocks:
            for run in (connection.execute, oracle.execute):
                run(f"INSERT INTO {database}.t VALUES {block}")
        final, plain = (f"SELECT * FROM {database}.t{f} ORDER BY k" for f in (" FINAL", ""))
        assert shown(connection, final) == oracle.query(final).rows
        oracle.execute(f"SYSTEM START MERGES {database}.t")
        for run in (connection.execute, oracle.execute):
            run(f"OPTIMIZE TABLE {database}.t FINAL")
        assert shown(connection, plain) == oracle.query(plain).rows
        assert shown(connection, final) == oracle.query(final).rows


@pytest.mark.parametrize(
    "columns",
    [
        "k UInt8, s SimpleAggregateFunction(avg, Float64)",
        "k UInt8, s SimpleAggregateFunction(uniq, UInt64)",
        "k UInt8, s SimpleAggregateFunction(nope, UInt64)",
    ],
)
def test_a_simple_state_that_does_not_merge_is_refused(oracle: Oracle, columns: str) -> None:
    statement = f"CREATE TABLE refused ({columns}) ENGINE = AggregatingMergeTree ORDER BY k"
    with pytest.raises(OracleError) as theirs:
        oracle.execute(statement)
    with olapdb.connect() as connection, pytest.raises(olapdb.Error) as ours:
        connection.execute(statement)
    assert (ours.value.name, ours.value.code) == (theirs.value.name, theirs.value.code)


def shown(connection: olapdb.Connection, query: str) -> list[tuple[str | None, ...]]:
    result = connection.session.execute(query)
    columns = [
        display(column.combine_chunks(), data_type)
        for column, data_type in zip(result.read_all().columns, result.types, strict=True)
    ]
    return list(zip(*columns, strict=True))


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as made:
        yield made


def test_arrays_of_a_nested_structure_have_one_length(oracle: Oracle) -> None:
    create = "CREATE TABLE sizes (k UInt8, `n.a` Array(UInt8), `n.b` Array(UInt8)) ORDER BY k"
    oracle.execute(create)
    with olapdb.connect() as connection:
        connection.execute(create)
        insert = "INSERT INTO sizes VALUES (1, [1], [2]), (2, [1], [2, 3])"
        with pytest.raises(OracleError) as theirs:
            oracle.execute(insert)
        with pytest.raises(olapdb.Error, match=r"Row 1: n\.a has 1 elements, n\.b has 2") as ours:
            connection.execute(insert)
        assert (ours.value.name, ours.value.code) == (theirs.value.name, theirs.value.code)
        assert shown(connection, "SELECT count() FROM sizes") == [("0",)]


def test_a_decimal_that_outgrew_its_precision_is_copied(oracle: Oracle, tmp_path: Path) -> None:
    """A sum that exceeds Decimal(4, 1) is merged, copied and read again."""
    with olapdb.connect(str(tmp_path / "w")) as connection:
        for statement in (
            "CREATE TABLE t (d Date, v Decimal(4, 1)) ENGINE = SummingMergeTree ORDER BY d "
            "SETTINGS inline_bytes_max = 0",
            *4 * ("INSERT INTO t VALUES ('2024-01-01', 999.9)",),
            "OPTIMIZE TABLE t FINAL",
        ):
            connection.execute(statement)
        assert shown(connection, "SELECT v FROM t") == [("3999.6",)]
        connection.execute("CREATE TABLE copy ENGINE = MergeTree ORDER BY v AS SELECT v FROM t")
        connection.execute("OPTIMIZE TABLE copy FINAL")
        for query in ("v", "v > 3999", "v * 2", "toString(v)", "CAST(v, 'Decimal(3, 1)')"):
            found = shown(connection, f"SELECT {query} FROM copy")
            asked = query.replace("v", "CAST(toDecimal64(3999.6, 1), 'Decimal(4, 1)')", 1)
            assert found == oracle.query(f"SELECT {asked}").rows, query
        with pytest.raises(olapdb.DataError, match="DECIMAL_OVERFLOW"):
            connection.execute("SELECT CAST(toDecimal64(300000000, 1), 'Decimal(4, 1)')")
