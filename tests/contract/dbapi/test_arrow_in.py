"""Arrow data and frames as rows to insert: what a result gives can be inserted again."""

from __future__ import annotations

import uuid

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import olapdb
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("python", "insert")


def test_a_result_can_be_inserted_again(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (u UUID, i IPv6, n Nullable(UUID), s String, w UInt256, e Enum('a' = 1),"
        " tu Tuple(a Int8, b String), t Time64(3), d DateTime64(9)) ENGINE = MergeTree ORDER BY u"
    )
    connection.execute(
        "INSERT INTO t SELECT '00000000-0000-0000-0000-000000000001', '::1', NULL, unhex('ff00'),"
        " pow(2, 200)::UInt256, 'a', (1, 'x'), '01:02:03.004', '2024-01-01 00:00:00.123456789'"
    )
    assert connection.insert("t", connection.execute("SELECT * FROM t")) == 1
    assert connection.insert("t", connection.execute("SELECT * FROM t").fetch_arrow_table()) == 2
    groups = connection.execute("SELECT count() FROM t GROUP BY ALL").fetchall()
    assert connection.execute("SELECT count() FROM (SELECT DISTINCT * FROM t)").fetchone() == (1,)
    assert groups == [(4,)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_need_not_be_utf_8(connection: Connection, kind: pa.DataType) -> None:
    connection.execute("CREATE TABLE t (s Nullable(String)) ENGINE = MergeTree ORDER BY tuple()")
    connection.insert("t", pa.table({"s": pa.array([b"\xff", None, b"a"], kind)}))
    rows = connection.execute("SELECT s FROM t ORDER BY s NULLS LAST").fetchall()
    assert rows == [("a",), (b"\xff",), (None,)]


PAIR = [{"b": 1, "a": 2}]


def test_elements_of_tuples_go_by_name(connection: Connection) -> None:
    """As in ClickHouse, whose CAST takes names; without names they go by place."""
    connection.execute(
        "CREATE TABLE t (x Tuple(a Int32, b Int32), y Array(Tuple(a Int32, b Int32)))"
        " ENGINE = MergeTree ORDER BY tuple()"
    )
    connection.insert("t", pa.table({"x": PAIR, "y": [PAIR]}))
    connection.insert("t", {"x": PAIR, "y": [PAIR]})
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(PAIR[0], PAIR)])
    query = "SELECT (1, 2)::Tuple(b Int32, a Int32) AS x, [x] AS y"
    connection.execute(f"INSERT INTO t {query}")
    connection.execute("INSERT INTO t SELECT (2, 1), [(2, 1)]")
    assert connection.execute("SELECT DISTINCT * FROM t").fetchall() == [((2, 1), [(2, 1)])]
    for other in ("Tuple(b Int32, c Int32)", "Tuple(b Int32)", "Tuple(a Int32, b Int32, c Int32)"):
        values = other.count("Int32")
        row = f"({', '.join('12345'[:values])},)" if values > 1 else "tuple(1)"
        with pytest.raises(olapdb.DataError, match="names of"):
            connection.execute(f"INSERT INTO t (x) SELECT {row}::{other}")


def test_a_view_writes_tuples_by_name(connection: Connection) -> None:
    connection.execute("CREATE TABLE s (n Int32) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE TABLE t (x Tuple(a Int32, b Int32)) ENGINE = MergeTree ORDER BY tuple()"
    )
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO t AS SELECT (n, n + 1)::Tuple(b Int32, a Int32) AS x FROM s"
    )
    connection.execute("INSERT INTO s VALUES (1)")
    assert connection.execute("SELECT x.a, x.b FROM t").fetchall() == [(2, 1)]
    connection.views["v"].reconcile()
    assert connection.views["v"].status().verdict == "proven"
    with pytest.raises(olapdb.Error):
        connection.execute(
            "CREATE MATERIALIZED VIEW w TO t AS SELECT (n, n)::Tuple(b Int32, c Int32) AS x FROM s"
        )


def test_a_frame_with_two_columns_of_one_name_is_refused(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a Int32) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(olapdb.ProgrammingError, match="Duplicate column"):
        connection.insert("t", pd.DataFrame([[1, 2]], columns=["a", "a"]))


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()]


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@pytest.mark.parametrize("index", [pa.int8(), pa.uint32(), pa.int64()], ids=str)
def test_dictionaries_of_any_layout(
    connection: Connection, kind: pa.DataType, index: pa.DataType
) -> None:
    connection.execute("CREATE TABLE t (s Nullable(String)) ENGINE = MergeTree ORDER BY tuple()")
    values = pa.array([b"a", b"b"], pa.binary()).cast(kind)
    codes = pa.array([1, None, 0], index)
    connection.insert("t", pa.table({"s": pa.DictionaryArray.from_arrays(codes, values)}))
    assert connection.execute("SELECT s FROM t").fetchall() == [("b",), (None,), ("a",)]


def test_runs_are_written_out(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (s Nullable(String)) ENGINE = MergeTree ORDER BY tuple()")
    runs = pc.run_end_encode(pa.array(["a", "a", None, "b"]))
    connection.insert("t", pa.table({"s": runs}))
    assert connection.execute("SELECT s FROM t").fetchall() == [("a",), ("a",), (None,), ("b",)]


@pytest.mark.parametrize("text", [pa.large_string(), pa.string_view()], ids=str)
def test_texts_of_any_layout_inside_structs_and_maps(
    connection: Connection, text: pa.DataType
) -> None:
    connection.execute(
        "CREATE TABLE t (p Tuple(a Nullable(String), b Array(String)), m Map(String, String))"
        " ENGINE = MergeTree ORDER BY tuple()"
    )
    pair = pa.struct([("a", text), ("b", pa.large_list(text))])
    rows = pa.table(
        {
            "p": pa.array([{"a": "x", "b": ["y"]}, {"a": None, "b": []}], pair),
            "m": pa.array([[("k", "v")], []], pa.map_(text, pa.dictionary(pa.int8(), pa.string()))),
        }
    )
    connection.insert("t", rows)
    stored = connection.execute("SELECT p, m FROM t").fetchall()
    assert stored == [(("x", ["y"]), {"k": "v"}), ((None, []), {})]


def test_extension_types_of_arrow(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE t (u Nullable(UUID), j String, b Bool) ENGINE = MergeTree ORDER BY tuple()"
    )
    given = uuid.UUID(int=5)
    rows = pa.table(
        {
            "u": pa.array([given, None], pa.uuid()),
            "j": pa.array(["{}", "[1]"], pa.json_()),
            "b": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 2], pa.int8())),
        }
    )
    connection.insert("t", rows)
    connection.insert("t", pd.DataFrame({"u": [given], "j": ["null"], "b": [True]}))
    stored = connection.execute("SELECT u, j, b FROM t ORDER BY j").fetchall()
    assert stored == [(None, "[1]", True), (given, "null", True), (given, "{}", False)]
