"""Behaviour of connection and cursor on which users rely beyond the PEP's letter."""

import datetime
import decimal
import os
import threading
import uuid

import pyarrow as pa
import pytest

import olapdb
from olapdb import threads
from olapdb.native.library import library

pytestmark = pytest.mark.feature("python")


def test_five_lines(connection):
    connection.execute("CREATE TABLE t (k UInt32, v String) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert connection.execute("SELECT k, v FROM t ORDER BY k").fetchall() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ? + ?", [1, 2]),
        ("SELECT :a + :b", {"a": 1, "b": 2}),
        ("SELECT %(a)s + %(b)s", {"a": 1, "b": 2}),
        ("SELECT {a:UInt8} + {b:UInt8}", {"a": 1, "b": 2}),
    ],
)
def test_parameter_styles(connection, sql, parameters):
    assert connection.execute(sql, parameters).fetchone() == (3,)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -3,
        1.5,
        "it's",
        "",
        "\\ and \n",
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 1),
        decimal.Decimal("12.340"),
        uuid.UUID("12345678-1234-5678-1234-567812345678"),
        [1, 2, 3],
    ],
)
def test_values_survive_the_round_trip(connection, value):
    assert connection.execute("SELECT ? AS v", [value]).fetchone() == (value,)


def test_a_missing_parameter_is_named(connection):
    with pytest.raises(olapdb.Error, match="b"):
        connection.execute("SELECT :a + :b", {"a": 1})


def test_description_has_types(connection):
    cursor = connection.execute(
        "SELECT toUInt8(1) AS n, 'x' AS s, toDate('2024-01-01') AS d, NULL AS z"
    )
    n, s, d, z = cursor.description
    assert (n[0], str(n[1]), n[6]) == ("n", "UInt8", False)
    assert n[1] == olapdb.NUMBER
    assert s[1] == olapdb.STRING
    assert d[1] == olapdb.DATETIME
    assert z[6] is True
    assert connection.execute("CREATE DATABASE other").description is None


def test_arrow_results_carry_clickhouse_types(connection):
    table = connection.execute("SELECT number AS n FROM numbers(3)").fetch_arrow_table()
    assert table.column("n").to_pylist() == [0, 1, 2]
    assert table.schema.field("n").metadata == {b"olapdb.type": b"UInt64"}


def test_results_are_streamed(connection):
    reader = connection.execute("SELECT number FROM numbers(1000000)").fetch_record_batch()
    first = reader.read_next_batch()
    assert first.num_rows < 1_000_000
    assert first.num_rows + sum(b.num_rows for b in reader) == 1_000_000


@pytest.mark.parametrize("drawn", [0, 1, 5, 65_409, 65_410, 199_999, 200_000])
def test_what_was_not_drawn_as_rows_is_there_as_arrow(connection, drawn):
    query = "SELECT number AS n, toString(number) AS s FROM numbers(200000)"
    cursor = connection.execute(query)
    assert len(cursor.fetchmany(drawn)) == drawn
    table = cursor.fetch_arrow_table()
    assert table.column("n").to_pylist() == list(range(drawn, 200_000))
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []
    assert cursor.fetch_arrow_table().num_rows == 0
    assert cursor.fetch_arrow_table().schema == table.schema
    cursor = connection.execute(query)
    for row in cursor:
        assert row == (0, "0")
        break
    reader = cursor.fetch_record_batch()
    assert cursor.fetchall() == []
    assert reader.read_all().column("n").to_pylist() == list(range(1, 200_000))


def test_insert_takes_arrow_by_name(connection):
    connection.execute(
        "CREATE TABLE t (k UInt32, v String DEFAULT 'none') ENGINE = MergeTree ORDER BY k"
    )
    assert connection.insert("t", pa.table({"k": [1, 2]})) == 2
    assert connection.insert("t", {"v": ["x"], "k": [3]}) == 1
    assert connection.execute("SELECT * FROM t ORDER BY k").fetchall() == [
        (1, "none"),
        (2, "none"),
        (3, "x"),
    ]
    with pytest.raises(olapdb.ProgrammingError, match="nonsense"):
        connection.insert("t", {"k": [4], "nonsense": [1]})


def test_a_bad_value_names_column_row_and_value_and_changes_nothing(connection):
    connection.execute("CREATE TABLE t (k UInt32, v UInt8) ENGINE = MergeTree ORDER BY k")
    with pytest.raises(olapdb.DataError) as caught:
        connection.insert("t", {"k": ["1", "2"], "v": ["3", "many"]})
    message = str(caught.value)
    assert "v" in message
    assert "2" in message
    assert "many" in message
    assert connection.execute("SELECT count() FROM t").fetchone() == (0,)


def test_executemany_is_one_insert(connection):
    connection.execute(
        "CREATE TABLE t (k UInt32, v Nullable(String)) ENGINE = MergeTree ORDER BY k"
    )
    cursor = connection.executemany(
        "INSERT INTO t (k, v) VALUES (?, ?)", [(i, None) for i in range(500)]
    )
    assert cursor.rowcount == 500
    assert connection.execute("SELECT count(), count(v) FROM t").fetchone() == (500, 0)
    blocks = connection.execute(
        "SELECT uniqExact(max_block_number) FROM system.parts WHERE table = 't'"
    )
    assert blocks.fetchone() == (1,)


def test_a_token_makes_an_insert_once(connection):
    connection.execute("CREATE TABLE t (k UInt32) ENGINE = MergeTree ORDER BY k")
    connection.insert("t", {"k": [1]}, token="batch-1")
    connection.insert("t", {"k": [1]}, token="batch-1")
    assert connection.execute("SELECT count() FROM t").fetchone() == (1,)


def test_an_unknown_setting_is_an_error():
    with pytest.raises(olapdb.ProgrammingError, match="max_threads"):
        olapdb.connect(settings={"max_thread": 1})


def test_a_syntax_error_has_line_and_column(connection):
    with pytest.raises(olapdb.ProgrammingError) as caught:
        connection.execute("SELECT 1,\n  FROM FROM t")
    assert caught.value.position is not None
    assert caught.value.position.line == 2


def test_threads_share_a_connection(connection):
    connection.execute("CREATE TABLE t (k UInt32) ENGINE = MergeTree ORDER BY k")
    failures = []

    def work(number: int) -> None:
        try:
            for i in range(25):
                connection.execute("INSERT INTO t VALUES (?)", [number * 100 + i])
                connection.execute("SELECT count() FROM t").fetchone()
        except BaseException as error:  # noqa: BLE001  (shown by the assertion)
            failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert connection.execute("SELECT count(), uniqExact(k) FROM t").fetchone() == (100, 100)


def test_a_reopened_warehouse_has_everything(tmp_path):
    with olapdb.connect(tmp_path / "w") as connection:
        connection.execute("CREATE TABLE t (k UInt32) ENGINE = MergeTree ORDER BY k")
        connection.execute("INSERT INTO t SELECT number FROM numbers(1000)")
    with olapdb.connect(tmp_path / "w", read_only=True) as connection:
        assert connection.execute("SELECT sum(k) FROM t").fetchone() == (499_500,)
        with pytest.raises(olapdb.OperationalError, match="READONLY"):
            connection.execute("INSERT INTO t VALUES (1)")


def test_a_folder_that_is_no_warehouse_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(olapdb.OperationalError, match="no warehouse"):
        olapdb.connect(tmp_path)


def test_a_cursor_is_an_arrow_stream_of_what_is_left() -> None:
    with olapdb.connect() as connection:
        cursor = connection.execute("SELECT number AS n FROM numbers(5)")
        assert cursor.fetchone() == (0,)
        assert pa.table(cursor).to_pydict() == {"n": [1, 2, 3, 4]}
        connection.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
        assert connection.insert("t", connection.execute("SELECT number AS n FROM numbers(3)")) == 3
        with pytest.raises(olapdb.ProgrammingError):
            pa.table(connection.execute("DROP TABLE t"))


def test_max_threads_is_heeded_by_inserts_and_groups(connection, monkeypatch):
    started = []
    hire_worker = threads._Process.hire

    def told(process, hire):
        started.append(hire.name)
        hire_worker(process, hire)

    monkeypatch.setattr(threads._Process, "hire", told)
    connection.execute("CREATE TABLE t (k UInt64, s String) ENGINE = MergeTree ORDER BY k")
    connection.execute("SYSTEM STOP MERGES")
    rows = "SELECT intHash64(number), toString(number % 7) FROM numbers(1200000)"
    groups = "SELECT count() FROM (SELECT intHash64(number) AS k FROM numbers(1200000) GROUP BY k)"
    for limit in ("", " SETTINGS max_threads = 1"):
        started.clear()
        connection.execute(f"INSERT INTO t {rows}{limit}")
        assert connection.execute(groups + limit).fetchall() == [(1_200_000,)]
        kinds = {name.rstrip("0123456789_") for name in started}
        wanted = {"olapdb-parquet", "olapdb-block", "olapdb-query"}
        if library() is None:  # compiled kernels number so many groups on one thread
            wanted.add("olapdb-group")
        assert kinds & wanted == (set() if limit or os.cpu_count() == 1 else wanted), kinds


def test_a_group_by_counts_what_it_holds_while_it_merges(connection):
    """Keys and counts of 1,200,000 groups take 19 MB; joined and sorted they take a multiple."""
    groups = "SELECT count() FROM (SELECT intHash64(number) AS k FROM numbers(1200000) GROUP BY k)"
    with pytest.raises(olapdb.OperationalError, match=r"GROUP BY.*max_memory_usage"):
        connection.execute(
            f"{groups} SETTINGS max_memory_usage = 60000000,"
            " max_bytes_ratio_before_external_group_by = 0"
        ).fetchall()
    limit = "SETTINGS max_memory_usage = 250000000"
    assert connection.execute(f"{groups} {limit}").fetchall() == [(1_200_000,)]


@pytest.mark.parametrize(
    "statement",
    ["SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "ROLLBACK WORK TO a", "RELEASE SAVEPOINT a"],
)
def test_savepoints_are_refused_with_the_reason(statement: str) -> None:
    with (
        olapdb.connect() as connection,
        pytest.raises(olapdb.NotSupportedError, match="atomic commit"),
    ):
        connection.execute(statement)


@pytest.mark.parametrize("name", ["a\0b", "a" * 300, "file/under"])
def test_a_path_that_no_folder_can_have(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(olapdb.OperationalError, match="can be no folder"):
        olapdb.connect(tmp_path / name)


def test_autocommit_is_all_there_is(connection):
    assert connection.autocommit is True
    connection.autocommit = True
    with pytest.raises(olapdb.NotSupportedError, match="one commit"):
        connection.autocommit = False
