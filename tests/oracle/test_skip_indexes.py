"""Skip indexes: which granules they skip, and that they never skip a row of the answer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import (
    BadArguments,
    CorruptedData,
    IllegalColumn,
    IllegalIndex,
    IncorrectQuery,
    UnknownIdentifier,
)

pytestmark = pytest.mark.feature("engines")

COLUMNS = (
    "a UInt32, b Int32, n Nullable(Int64), f Float64, s String, l LowCardinality(String),"
    " d Date, tags Array(UInt16)"
)
INDEXES = (
    "INDEX ib b TYPE minmax",
    "INDEX ib2 b * 2 TYPE minmax GRANULARITY 3",
    "INDEX inn n TYPE set(20)",
    "INDEX iset s TYPE set(40) GRANULARITY 2",
    "INDEX ifl f TYPE minmax",
    "INDEX ifs f TYPE set(0)",
    "INDEX ibloom s TYPE bloom_filter(0.1)",
    "INDEX ilow lower(l) TYPE bloom_filter",
    "INDEX idate toMonth(d) TYPE set(12)",
    "INDEX itags tags TYPE bloom_filter GRANULARITY 2",
    "INDEX inb n TYPE bloom_filter",
)
CONDITIONS = (
    "b = {i}",
    "b * 2 > {i}",
    "b * 2 = {i}",
    "n = {i}",
    "n IS NULL",
    "n IN ({i}, {j})",
    "n != {i}",
    "s = 'v{i}'",
    "s IN ('v{i}', 'v{j}')",
    "s LIKE 'v{i}%'",
    "s > 'v{i}'",
    "s != 'v{i}'",
    "lower(l) = 'x{i}'",
    "lower(l) IN ('x{i}', 'nothing')",
    "toMonth(d) = {m}",
    "toMonth(d) IN ({m}, 1)",
    "has(tags, {i})",
    "f > {i}",
    "f = {i}",
    "isNaN(f)",
    "s = 'v{i}' OR b = {j}",
    "NOT (n = {i})",
    "intDiv(10, b) = 1",
    "b = {i} AND s = 'v{i}' AND has(tags, {j})",
    "n = {i} OR n IS NULL",
)


def ask(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def tables() -> Iterator[Connection]:
    """Create two tables with the same rows in three parts; `plain` has no indexes."""
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        ending = "ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 50"
        connection.execute(f"CREATE TABLE plain ({COLUMNS}) {ending}")
        connection.execute(f"CREATE TABLE indexed ({COLUMNS}, {', '.join(INDEXES)}) {ending}")
        for start in (0, 700, 1500):
            connection.execute(
                "INSERT INTO plain SELECT number, intDiv(number, 90) * 3 - 20,"
                " if(number % 11 = 0, NULL, intDiv(number, 60)),"
                " if(number % 97 = 0, nan, toFloat64(intDiv(number, 40))), concat('v', toString(intDiv(number, 30))),"
                " concat('X', toString(intDiv(number, 100))), toDate('2024-01-01') + intDiv(number, 20),"
                " if(number % 5 = 0, [], [intDiv(number, 70), number % 3])"
                f" FROM numbers({start}, 650)"
            )
        connection.execute("INSERT INTO indexed SELECT * FROM plain")
        yield connection


@pytest.mark.parametrize("condition", CONDITIONS)
def test_no_row_is_lost(tables: Connection, condition: str) -> None:
    draw = random.Random(condition)
    for _ in range(6):
        i, j, m = draw.randint(-5, 60), draw.randint(-5, 60), draw.randint(1, 12)
        where = condition.format(i=i, j=j, m=m)
        answer = (
            "SELECT count(), sum(a), groupArray(a) FROM (SELECT a FROM {t} WHERE {w} ORDER BY a)"
        )
        answers = []
        for table in ("plain", "indexed"):
            try:
                answers.append(ask(tables, answer.format(t=table, w=where)))
            except olapdb.Error as error:
                answers.append([(type(error),)])
        assert answers[0] == answers[1], where


@pytest.mark.parametrize(
    ("condition", "index", "granules"),
    [
        ("b * 2 = 14", "ib2", 3),
        ("s = 'v7'", "iset", 2),
        ("lower(l) = 'x7'", "ilow", 4),
        ("toMonth(d) = 12", "idate", 14),
        ("has(tags, 20)", "itags", 5),
        ("s = 'nothing'", "iset", 0),
    ],
)
def test_granules_are_skipped(
    tables: Connection, condition: str, index: str, granules: int
) -> None:
    lines = [
        str(row[0]).strip()
        for row in ask(tables, f"EXPLAIN indexes = 1 SELECT count() FROM indexed WHERE {condition}")
    ]
    assert f"Name: {index}" in lines
    head = next(line for line in lines if line.startswith("Parts: ") and "|" in line)
    assert int(head.rpartition(" ")[2]) <= granules
    off = f"EXPLAIN indexes = 1 SELECT count() FROM indexed WHERE {condition} SETTINGS use_skip_indexes = 0"
    assert not any("Skip" in str(row[0]) for row in ask(tables, off))


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect(":memory:", settings={"inline_bytes_max": 0}) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (a UInt32, s String, INDEX i s TYPE set(0))"
            " ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 10"
        )
        connection.execute(
            "INSERT INTO t SELECT number, toString(intDiv(number, 10)) FROM numbers(100)"
        )
        yield connection


def granules(connection: Connection, where: str) -> int:
    cursor = connection.execute(f"SELECT count() FROM t WHERE {where}")
    cursor.fetchall()
    return cursor.statistics.granules_read


def test_a_column_that_comes_again_is_not_found_in_the_old_index(connection: Connection) -> None:
    where = "s = 'new'"
    connection.execute("ALTER TABLE t DROP INDEX i")
    connection.execute("ALTER TABLE t DROP COLUMN s")
    connection.execute("ALTER TABLE t ADD COLUMN s String DEFAULT 'new'")
    connection.execute("ALTER TABLE t ADD INDEX i s TYPE set(0)")
    assert ask(connection, f"SELECT count() FROM t WHERE {where}") == [(100,)]
    connection.execute("INSERT INTO t (a) VALUES (1)")
    assert ask(connection, f"SELECT count() FROM t WHERE {where}") == [(101,)]


def test_columns_that_change(connection: Connection) -> None:
    with pytest.raises(UnknownIdentifier, match="index i"):
        connection.execute("ALTER TABLE t DROP COLUMN s")
    connection.execute("ALTER TABLE t RENAME COLUMN s TO r")
    assert ask(connection, "SELECT count() FROM t WHERE r = '7'") == [(10,)]
    assert ask(connection, "SELECT expr FROM system.data_skipping_indices") == [("r",)]
    connection.execute("ALTER TABLE t MODIFY COLUMN r UInt64")
    assert ask(connection, "SELECT count() FROM t WHERE r = 7") == [(10,)]
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert ask(connection, "SELECT count() FROM t WHERE r = 7") == [(10,)]


def test_an_index_added_later_serves_what_is_written_then(connection: Connection) -> None:
    connection.execute("ALTER TABLE t ADD INDEX late a % 10 TYPE minmax")
    connection.execute("INSERT INTO t SELECT 1000 + number * 10, 'x' FROM numbers(50)")
    assert granules(connection, "a % 10 = 3") == 10
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert granules(connection, "a % 10 = 3") == 10
    assert ask(connection, "SELECT count() FROM t WHERE a % 10 = 3") == [(10,)]


def test_updates_and_deletes_write_the_index_anew(connection: Connection) -> None:
    connection.execute("ALTER TABLE t UPDATE s = 'moved' WHERE a = 5")
    assert ask(connection, "SELECT a FROM t WHERE s = 'moved'") == [(5,)]
    connection.execute("DELETE FROM t WHERE a = 5")
    assert ask(connection, "SELECT a FROM t WHERE s = 'moved'") == []
    assert granules(connection, "s = 'nowhere'") == 0, "the rewritten part has its index"


def test_a_damaged_index_is_found(tmp_path: Path) -> None:
    with olapdb.connect(str(tmp_path), settings={"inline_bytes_max": 0}) as connection:
        connection.execute(
            "CREATE TABLE t (a UInt32, s String, INDEX i s TYPE bloom_filter) ENGINE = MergeTree"
            " ORDER BY a SETTINGS index_granularity = 100000"
        )
        connection.execute(
            "INSERT INTO t SELECT number, toString(number * 7919) FROM numbers(200000)"
        )
        path = ask(connection, "SELECT path FROM system.parts WHERE rows > 0")[0][0]
    file = tmp_path / str(path)
    place = pq.read_metadata(file).metadata[b"olapdb.index.i"]
    data = bytearray(file.read_bytes())
    data[json.loads(place)["offset"] + 5_000] ^= 0xFF
    file.write_bytes(bytes(data))
    with olapdb.connect(str(tmp_path)) as connection:
        with pytest.raises(CorruptedData, match="index"):
            connection.execute("SELECT count() FROM t WHERE s = '7919'")
        assert ask(connection, "SELECT count() FROM t WHERE a = 1") == [(1,)]
        assert [row[1] for row in ask(connection, "CHECK TABLE t")] == [0]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ("INDEX i s TYPE ngrambf_v1(3, 256)", BadArguments),
        ("INDEX i s TYPE full_text", IncorrectQuery),
        ("INDEX i s TYPE set", IncorrectQuery),
        ("INDEX i s TYPE minmax(3)", IncorrectQuery),
        ("INDEX i s TYPE bloom_filter(2)", BadArguments),
        ("INDEX i 1 TYPE minmax", IncorrectQuery),
        ("INDEX i rand() + a TYPE minmax", BadArguments),
        ("INDEX i [s] TYPE set(3)", IllegalColumn),
        ("INDEX i a / 2 TYPE bloom_filter", IllegalColumn),
        ("INDEX i s TYPE set(3), INDEX i a TYPE minmax", IllegalIndex),
    ],
)
def test_what_is_refused(connection: Connection, index: str, error: type[olapdb.Error]) -> None:
    with pytest.raises(error):
        connection.execute(
            f"CREATE TABLE u (a UInt32, s String, {index}) ENGINE = MergeTree ORDER BY a"
        )
