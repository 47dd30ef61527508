"""INSERT … REPLACE: rows leave and come in one commit, and views are told of exactly these."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb import errors
from olapdb.dbapi.connection import Connection

pytestmark = pytest.mark.feature("insert", "changes")

ROWS = "SELECT * FROM t ORDER BY ALL"
TARGET = "SELECT v, sum(c) FROM target GROUP BY v HAVING sum(c) != 0 ORDER BY v"


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("CREATE TABLE t (k Nullable(Int64), v String) ENGINE = MergeTree ORDER BY v")
        opened.execute(
            "CREATE TABLE target (v String, c UInt64) ENGINE = SummingMergeTree ORDER BY v"
        )
        opened.execute(
            "CREATE MATERIALIZED VIEW mv TO target AS SELECT v, count() AS c FROM t GROUP BY v"
        )
        opened.execute(
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'b'), (NULL, 'n'), (NULL, 'n')"
        )
        yield opened


def read(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in connection.execute(query).fetchall()]


def stale_keys(connection: Connection) -> list[object]:
    query = "SELECT arrayJoin(keys) FROM system.view_invalidations ORDER BY 1"
    return [key for (key,) in read(connection, query)]


def commits(connection: Connection) -> int:
    return int(read(connection, "SELECT max(number) FROM system.snapshots")[0][0])  # type: ignore[call-overload]


def test_equal_rows_stay_and_views_are_told_of_the_others(connection: Connection) -> None:
    before = commits(connection)
    inserted = connection.execute(
        "INSERT INTO t REPLACE USING (k) SELECT arrayJoin([2, 3, 4]), 'b'"
    )
    assert inserted.rowcount == 1
    assert read(connection, ROWS) == [(1, "a"), (2, "b"), (3, "b"), (4, "b"), *[(None, "n")] * 2]
    assert read(connection, TARGET) == [("a", 1), ("b", 3), ("n", 2)]
    assert stale_keys(connection) == []

    connection.execute("INSERT INTO t REPLACE USING (k) VALUES (1, 'b')")
    assert stale_keys(connection) == ["a"]
    assert commits(connection) == before + 2
    connection.execute("INSERT INTO t REPLACE WHERE 1 SELECT * FROM t")
    assert commits(connection) == before + 2
    connection.execute("SYSTEM REPLAY VIEW mv STALE")
    assert read(connection, TARGET) == [("b", 4), ("n", 2)]


def test_null_is_a_key_and_where_restricts_what_leaves(connection: Connection) -> None:
    connection.execute("INSERT INTO t REPLACE USING (k) WHERE v = 'x' VALUES (NULL, 'm')")
    assert read(connection, ROWS)[-3:] == [(None, "m"), (None, "n"), (None, "n")]
    connection.execute("INSERT INTO t REPLACE USING (k) VALUES (NULL, 'o')")
    assert read(connection, ROWS)[-1:] == [(None, "o")]
    assert len(read(connection, ROWS)) == 4


def test_keys_may_be_expressions_and_the_query_reads_the_rows_before(
    connection: Connection,
) -> None:
    connection.execute(
        "INSERT INTO t (v, k) REPLACE USING (k % 2, v = 'b')"
        " WITH x AS (SELECT max(k) + 2 AS k FROM t) SELECT 'z', k FROM x"
    )
    assert read(connection, ROWS) == [
        (1, "a"), (2, "b"), (3, "b"), (5, "z"), (None, "n"), (None, "n"),
    ][1:]  # fmt: skip
    connection.execute("INSERT INTO t REPLACE WHERE k > (SELECT avg(k) FROM t) SELECT 9, 'w'")
    assert read(connection, ROWS)[:3] == [(2, "b"), (3, "b"), (9, "w")]
    connection.execute("INSERT INTO t REPLACE WHERE k IS NULL SELECT 1, 'x' WHERE 0")
    assert read(connection, ROWS) == [(2, "b"), (3, "b"), (9, "w")]


def test_arrow_data_replace_rows(connection: Connection) -> None:
    data = pa.table({"k": [1, 7], "v": ["a", "w"]})
    assert connection.insert("t", data, replace="REPLACE USING (k, v)") == 1
    assert connection.insert("t", data, replace="REPLACE WHERE 1") == 0
    assert read(connection, ROWS) == [(1, "a"), (7, "w")]
    with pytest.raises(errors.BadArguments, match="token"):
        connection.insert("t", data, replace="REPLACE WHERE 1", token="once")


def test_each_set_of_parameters_replaces(connection: Connection) -> None:
    text = "INSERT INTO t REPLACE USING (k) VALUES (?, ?)"
    connection.cursor().executemany(text, [(1, "x"), (1, "y")])
    assert read(connection, ROWS)[0] == (1, "y")
    assert len(read(connection, ROWS)) == 5


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("INSERT INTO t REPLACE SELECT 1, 'a'", errors.SyntaxError, "USING or WHERE"),
        ("INSERT INTO target REPLACE USING (v) SELECT 'a', 1", errors.HaveDependentObjects, "mv"),
        ("INSERT INTO t REPLACE USING (max(k)) SELECT 1, 'a'", errors.IllegalAggregation, "max"),
        ("INSERT INTO t REPLACE USING (k IN (SELECT 1)) SELECT 1, 'a'", errors.BadArguments, "sub"),
        ("INSERT INTO t REPLACE USING (k) FORMAT Arrow", errors.BadArguments, "connection.insert"),
        (
            "INSERT INTO t SETTINGS insert_deduplication_token = 'x' REPLACE WHERE 1 SELECT 1, 'a'",
            errors.BadArguments,
            "insert_deduplication_token",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    connection: Connection, text: str, error: type[Exception], words: str
) -> None:
    before = read(connection, ROWS)
    with pytest.raises(error, match=words):
        connection.execute(text)
    assert read(connection, ROWS) == before


def test_a_table_that_deduplicates_is_refused(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE d (k Int64) ENGINE = MergeTree ORDER BY k SETTINGS deduplicate_by = 'k'"
    )
    with pytest.raises(errors.NotSupportedError, match="deduplicate_by"):
        connection.execute("INSERT INTO d REPLACE WHERE 1 SELECT 1")


def test_random_replacements_agree_with_a_model(connection: Connection) -> None:
    connection.execute("TRUNCATE TABLE t")
    chance = random.Random(7)
    expected: list[tuple[object, ...]] = []
    for _ in range(60):
        new: list[tuple[object, ...]] = [
            (chance.choice([None, *range(6)]), chance.choice("abc"))
            for _ in range(chance.randrange(5))
        ]
        data = pa.table(
            {
                "k": pa.array([k for k, _ in new], pa.int64()),
                "v": pa.array([v for _, v in new], pa.string()),
            }
        )
        letter = chance.choice("abc")
        clause = chance.choice(
            [
                "USING (k)",
                "USING (k, v)",
                f"WHERE v = '{letter}'",
                f"USING (k) WHERE v = '{letter}'",
            ]
        )
        connection.insert("t", data, replace=f"REPLACE {clause}")
        keys = {row if "(k, v)" in clause else row[:1] for row in new}
        expected = [
            row
            for row in expected
            if not (
                ("USING" not in clause or bool(keys & {row, row[:1]}))
                and ("WHERE" not in clause or row[1] == letter)
            )
        ] + new
        assert Counter(read(connection, "SELECT * FROM t")) == Counter(expected)
        if chance.random() < 0.3:
            connection.execute("OPTIMIZE TABLE t FINAL")
        if chance.random() < 0.3:
            connection.execute("SYSTEM REPLAY VIEW mv STALE")
            counts = Counter(v for _, v in expected)
            assert read(connection, TARGET) == sorted(counts.items())


def test_two_statements_with_one_key_leave_one_row(tmp_path: Path) -> None:
    folder = str(tmp_path / "warehouse")
    with olapdb.connect(folder) as opened:
        opened.execute("CREATE TABLE t (k Int64, v Int64) ENGINE = MergeTree ORDER BY k")
        gate = threading.Barrier(4)

        def write(number: int) -> None:
            with olapdb.connect(folder) as own:
                gate.wait()
                for round_number in range(3):
                    own.execute(
                        f"INSERT INTO t REPLACE USING (k) VALUES ({round_number}, {number})"
                    )

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read(opened, "SELECT k, count() FROM t GROUP BY k ORDER BY k") == [
            (0, 1), (1, 1), (2, 1),
        ]  # fmt: skip
