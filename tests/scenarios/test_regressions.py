"""Bugs that users met, one test for each."""

from __future__ import annotations

import datetime
import subprocess
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb import errors

pytestmark = pytest.mark.feature("views")


def _execute(connection: olapdb.Connection, value: object) -> None:
    connection.execute("INSERT INTO t (k, v) VALUES (?, ?)", [1, value])


def _execute_many(connection: olapdb.Connection, value: object) -> None:
    connection.executemany("INSERT INTO t (k, v) VALUES (?, ?)", [(1, value)])


def _mapping(connection: olapdb.Connection, value: object) -> None:
    connection.insert("t", {"k": [1], "v": [value]})


WAYS = [_execute, _execute_many, _mapping]
"""Ways to insert a Python value; all must store the same."""


@pytest.mark.parametrize("insert", WAYS)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("UUID", "zz"),
        ("Int32", "abc"),
        ("Date", "no date"),
        ("FixedString(3)", "abcdef"),
        ("Date", datetime.date(3000, 1, 1)),
        ("Date", datetime.date(1800, 1, 1)),
        ("DateTime", datetime.datetime(1900, 1, 1)),
        ("DateTime", datetime.datetime(2200, 1, 1)),
        ("Int8", 1000),
        ("UInt64", -1),
        ("Array(String)", ["a", None]),
        ("Decimal(10, 2)", Decimal("1e20")),
    ],
)
def test_a_python_value_that_does_not_fit_is_refused_not_replaced(
    connection: olapdb.Connection,
    insert: Callable[[olapdb.Connection, object], None],
    column: str,
    value: object,
) -> None:
    connection.execute(f"CREATE TABLE t (k Int8, v {column}) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(errors.DataError, match=r"v.*row 1"):
        insert(connection, value)
    assert connection.execute("SELECT count() FROM t").fetchone()[0] == 0


@pytest.mark.parametrize("insert", WAYS)
@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("String", 5, "5"),
        ("String", datetime.date(2024, 1, 1), "2024-01-01"),
        ("Int8", True, 1),
        ("Int8", Decimal("1.0"), 1),
        ("Decimal(10, 2)", Decimal("1.230"), Decimal("1.23")),
        ("Decimal(10, 2)", 1.5, Decimal("1.50")),
        ("Float32", Decimal("1.5"), 1.5),
        ("UInt64", 2**64 - 1, 2**64 - 1),
        ("DateTime", datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)),
        ("UUID", uuid.UUID(int=9), uuid.UUID(int=9)),
        ("Map(String, UInt8)", {"a": 1}, {"a": 1}),
        ("Tuple(Int8, String)", (1, "x"), (1, "x")),
        ("Array(Tuple(Int8, String))", [(1, "x")], [(1, "x")]),
        ("Nullable(UUID)", None, None),
        ("String", b"\xff", b"\xff"),
    ],
)
def test_a_python_value_is_cast_the_same_way_wherever_it_comes_in(
    connection: olapdb.Connection,
    insert: Callable[[olapdb.Connection, object], None],
    column: str,
    value: object,
    stored: object,
) -> None:
    connection.execute(f"CREATE TABLE t (k Int8, v {column}) ENGINE = MergeTree ORDER BY k")
    insert(connection, value)
    assert connection.execute("SELECT v FROM t").fetchone()[0] == stored


def test_values_of_several_types_keep_their_order(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (k Int8, v Nullable(String)) ENGINE = MergeTree ORDER BY k")
    given = ["a", 1, None, Decimal("2.5"), "b", 1.5, None]
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(given)))
    rows = connection.execute("SELECT v FROM t ORDER BY k").fetchall()
    assert [v for (v,) in rows] == ["a", "1", None, "2.5", "b", "1.5", None]


def test_a_text_expression_in_values_that_does_not_parse_is_refused(
    connection: olapdb.Connection,
) -> None:
    connection.execute("CREATE TABLE t (k Int32) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(errors.DataError):
        connection.execute("INSERT INTO t VALUES (concat('a', 'b'))")
    assert connection.execute("SELECT count() FROM t").fetchone()[0] == 0


def test_maps_are_written_in_braces(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (k Int8, m Map(String, UInt8)) ENGINE = MergeTree ORDER BY k"
    )
    connection.execute("INSERT INTO t VALUES (1, {'a': 1, 'b': 2}), (2, {})")
    rows = connection.execute("SELECT m FROM t ORDER BY k").fetchall()
    assert [m for (m,) in rows] == [{"a": 1, "b": 2}, {}]
    assert connection.execute("SELECT {'x': [1]}['x'], map()").fetchone() == ([1], {})
    assert connection.execute("SELECT {a:UInt8} + 1", {"a": 3}).fetchone()[0] == 4


def test_an_error_in_values_names_its_place_in_the_statement(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (k Int8) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(errors.SyntaxError) as caught:
        connection.execute("INSERT INTO t VALUES (1), (+)")
    assert caught.value.position is not None
    assert caught.value.position.column == 29


@pytest.mark.parametrize(
    "data",
    [
        {"k": [1], "s": ["a", "b"]},
        {"k": [1], "s": [object()]},
        pa.table({"k": [1], "s": pa.array([[b"\xff"]], pa.list_(pa.binary()))}),
    ],
)
def test_data_that_arrow_refuses_is_an_error_of_ours(
    connection: olapdb.Connection, data: Any
) -> None:
    connection.execute("CREATE TABLE t (k Int8, s String) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(olapdb.Error):
        connection.insert("t", data)


def test_a_parameter_list_is_no_text(connection: olapdb.Connection) -> None:
    with pytest.raises(errors.ProgrammingError, match="single text"):
        connection.execute("SELECT ?", "a")


WRITER = """
import sys, olapdb
for number in range(30):
    with olapdb.connect(sys.argv[1]) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
"""


def test_a_read_only_process_can_open_while_writers_come_and_go(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE t (k Int8) ENGINE = MergeTree ORDER BY k")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    reads = refused = 0
    while writer.poll() is None:
        try:
            with olapdb.connect(tmp_path, read_only=True) as reader:
                reader.execute("SELECT count() FROM t").fetchone()
            reads += 1
        except errors.CannotOpenWarehouse:
            refused += 1
        except errors.OperationalError:  # the error itself says "run it again"
            pass
    assert writer.returncode == 0
    assert refused <= reads // 20


def test_values_may_be_computed(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE t (at DateTime, s String) ENGINE = MergeTree ORDER BY at")
    connection.execute("INSERT INTO t VALUES (now(), ?), (now() - 5, lower('X'))", ["/home"])
    rows = connection.execute("SELECT s FROM t WHERE at > now() - 100 ORDER BY s").fetchall()
    assert [s for (s,) in rows] == ["/home", "x"]
    with pytest.raises(errors.IllegalDivision):
        connection.execute("INSERT INTO t VALUES (intDiv(1, 0), '')")


@pytest.mark.parametrize(
    "condition",
    [
        "b = concat(unhex('ff'), '3')",
        "b IN (concat(unhex('ff'), '3'), 'x2')",
        "(b, a) IN ((concat(unhex('ff'), '3'), 3), ('x2', 12))",
        "[b] IN ([concat(unhex('ff'), '3')])",
        "[b] = [concat(unhex('ff'), '3')]",
        "(b, a) = (concat(unhex('ff'), '3'), 3)",
        "startsWith(b, unhex('ff'))",
        "startsWith(b, 'x')",
        "b LIKE 'x%' AND b > 'x3' OR b > concat(unhex('ff'), '7')",
    ],
)
def test_text_that_is_not_utf8_is_found_through_keys_and_indexes(
    connection: olapdb.Connection, condition: str
) -> None:
    connection.execute(
        "CREATE TABLE t (a UInt8, b String, INDEX i1 b TYPE bloom_filter, INDEX i2 b TYPE set(9),"
        " INDEX i3 b TYPE minmax) ENGINE = MergeTree ORDER BY b"
        " SETTINGS index_granularity = 2, inline_bytes_max = 0"
    )
    connection.execute("CREATE TABLE bare (a UInt8, b String) ENGINE = Memory")
    for table in ("t", "bare"):
        for start, text in ((0, "unhex('ff')"), (10, "'x'")):
            connection.execute(
                f"INSERT INTO {table} SELECT number + {start}, concat({text}, toString(number))"
                " FROM numbers(9)"
            )
    assert connection.execute(f"EXPLAIN SELECT a FROM t WHERE {condition}").fetchall()
    query = "SELECT a FROM {} WHERE {} ORDER BY a"
    found = connection.execute(query.format("t", condition)).fetchall()
    kept = connection.execute(query.format("bare", f"materialize({condition})")).fetchall()
    assert found == kept
    assert 0 < len(found) < 18


def test_default_and_null_stand_for_the_default_of_arrays_maps_and_tuples(
    connection: olapdb.Connection,
) -> None:
    connection.execute(
        "CREATE TABLE t (k UInt8, a Array(UInt8) DEFAULT [k, 9], m Map(String, UInt8) DEFAULT"
        " map('x', 1), u Tuple(UInt8, String) DEFAULT (5, 'q'), e Array(UInt8))"
        " ENGINE = MergeTree ORDER BY k"
    )
    connection.execute(
        "INSERT INTO t VALUES (1, DEFAULT, map('a', 2), (1, 's'), [1]),"
        " (2, [5 + 1], DEFAULT, (2, 't'), DEFAULT), (3, DEFAULT, DEFAULT, DEFAULT, [3])"
    )
    connection.execute(
        "INSERT INTO t VALUES (4, NULL, NULL, NULL, NULL), (5, [1], map(), NULL, [])"
    )
    nothing = [None] * 4
    connection.execute("INSERT INTO t VALUES (6, ?, ?, ?, ?), (7, [2], map(), NULL, [])", nothing)
    connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [8, *nothing])
    assert connection.execute("SELECT * FROM t ORDER BY k").fetchall() == [
        (1, [1, 9], {"a": 2}, (1, "s"), [1]),
        (2, [6], {"x": 1}, (2, "t"), []),
        (3, [3, 9], {"x": 1}, (5, "q"), [3]),
        (4, [4, 9], {"x": 1}, (5, "q"), []),
        (5, [1], {}, (5, "q"), []),
        (6, [6, 9], {"x": 1}, (5, "q"), []),
        (7, [2], {}, (5, "q"), []),
        (8, [8, 9], {"x": 1}, (5, "q"), []),
    ]
    connection.execute("SET input_format_null_as_default = 0")
    with pytest.raises(errors.DataError):
        connection.execute("INSERT INTO t (k, a) VALUES (6, NULL)")
    with pytest.raises(errors.NotSupportedError):
        connection.execute("INSERT INTO t (k, a) VALUES (6, DEFAULT)")


def test_default_in_values_is_the_columns_default(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (k Int32, s String DEFAULT concat('a', toString(k)), n Nullable(Int8) DEFAULT 5)"
        " ENGINE = MergeTree ORDER BY k"
    )
    connection.execute("INSERT INTO t (k, s) VALUES (1, DEFAULT), (2, 'x'), (DEFAULT, DEFAULT)")
    rows = connection.execute("SELECT k, s, n FROM t ORDER BY k").fetchall()
    assert rows == [(0, "a0", 5), (1, "a1", 5), (2, "x", 5)]
    with pytest.raises(errors.NotSupportedError, match="column n"):
        connection.execute("INSERT INTO t VALUES (1, 'x', DEFAULT)")


def test_a_summing_table_keeps_narrow_decimals_and_true(connection: olapdb.Connection) -> None:
    connection.execute(
        "CREATE TABLE t (k Int8, d Decimal(4, 2), b Bool) ENGINE = SummingMergeTree ORDER BY k"
    )
    connection.execute("INSERT INTO t VALUES (1, 10.5, true), (2, 0, true), (3, 0, false)")
    connection.execute("INSERT INTO t VALUES (1, 10.25, false)")
    left = [(1, Decimal("20.75"), True), (2, Decimal("0.00"), True)]
    assert connection.execute("SELECT * FROM t FINAL ORDER BY k").fetchall() == left
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert connection.execute("SELECT * FROM t ORDER BY k").fetchall() == left


def test_a_decimal_sum_beyond_its_column_is_an_error_never_another_number(
    connection: olapdb.Connection,
) -> None:
    columns = "k Int8, d Decimal(4, 2), e Decimal(9, 2)"
    connection.execute(f"CREATE TABLE t ({columns}) ENGINE = SummingMergeTree ORDER BY k")
    for _ in range(2):
        connection.execute("INSERT INTO t VALUES (1, 99.99, 9999999.99)")
    more_digits_of_as_many_bits = (1, Decimal("199.98"), Decimal("19999999.98"))
    assert connection.execute("SELECT * FROM t FINAL").fetchall() == [more_digits_of_as_many_bits]
    connection.execute("INSERT INTO t VALUES (1, 99.99, 9999999.99)")
    with pytest.raises(errors.DecimalOverflow):
        connection.execute("SELECT * FROM t FINAL").fetchall()
    with pytest.raises(errors.DecimalOverflow):
        connection.execute("OPTIMIZE TABLE t FINAL")
    assert connection.execute("SELECT sum(e) FROM t").fetchone()[0] == Decimal("29999999.97")


@pytest.mark.parametrize("key", ["ORDER BY rand()", "ORDER BY k PARTITION BY toYYYYMM(now())"])
def test_a_key_is_computed_from_its_row(connection: olapdb.Connection, key: str) -> None:
    with pytest.raises(errors.BadArguments, match="another value each time"):
        connection.execute(f"CREATE TABLE t (k Int8) ENGINE = MergeTree {key}")
