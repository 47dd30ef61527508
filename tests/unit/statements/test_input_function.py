"""INSERT … SELECT … FROM input(structure) FORMAT name data: the data go through a query."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("formats", "insert")


@pytest.fixture
def connection() -> olapdb.Connection:
    connection = olapdb.connect()
    connection.execute("CREATE TABLE t (a UInt8, b String) ENGINE = Memory")
    return connection


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "INSERT INTO t SELECT x + 1, upper(y) FROM input('x UInt8, y String') FORMAT CSV\n1,ab\n2,cd\n",
            [(2, "AB"), (3, "CD")],
        ),
        (
            "INSERT INTO t SELECT * FROM input('a UInt8, b String') FORMAT Values (7, 'z;')",
            [(7, "z;")],
        ),
        (
            "INSERT INTO t (a) SELECT i.x FROM input('x UInt8') AS i WHERE x > 1 FORMAT JSONEachRow {\"x\": 1}"
            ' {"x": 5}',
            [(5, "")],
        ),
        (
            "INSERT INTO t WITH 2 AS f SELECT x * f, s FROM (SELECT x, toString(x) AS s FROM"
            " INPUT('x UInt8') WHERE x IN (SELECT 3)) FORMAT TSV 3\n4\n",
            [(6, "3")],
        ),
    ],
)
def test_data_go_through_the_query(
    sql: str, expected: list[tuple[int, str]], connection: olapdb.Connection
) -> None:
    connection.execute(sql)
    rows = connection.execute("SELECT * FROM t ORDER BY a").fetchall()
    assert [tuple(row) for row in rows] == expected


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM input('x UInt8')", "INSERT INTO t SELECT x, 'q' FROM input('x UInt8')"]
)
def test_input_without_data_is_refused(sql: str, connection: olapdb.Connection) -> None:
    with pytest.raises(olapdb.Error) as refused:
        connection.execute(sql)
    assert refused.value.name == "INVALID_USAGE_OF_INPUT"


def test_queries_without_input_keep_their_format(connection: olapdb.Connection) -> None:
    connection.execute("INSERT INTO t SELECT 1, 'input(' FROM numbers(1) ; ")
    assert connection.execute("SELECT count() FROM t").fetchone()[0] == 1
