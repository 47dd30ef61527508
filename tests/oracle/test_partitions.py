"""Statements about partitions and TTL beside ClickHouse: the same rows, the same error codes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError

TABLES = {
    "a": "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY n",
    "b": "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY n",
}
MONTHS = (202401, 202402, 202403)


@pytest.fixture
def connection() -> Iterator[Connection]:
    with olapdb.connect() as opened:
        opened.execute("SYSTEM STOP MERGES")
        yield opened


def both(connection: Connection, oracle: Oracle, statement: str) -> int:
    """Runs it on both; the code of the error that both raise, 0 where neither does."""
    codes = []
    try:
        connection.execute(statement)
        codes.append(0)
    except Error as error:
        codes.append(error.code)
    try:
        oracle.execute(statement)
        codes.append(0)
    except OracleError as error:
        codes.append(error.code)
    assert codes[0] == codes[1], (statement, codes)
    return codes[0]


def same(connection: Connection, oracle: Oracle, query: str) -> None:
    here = [tuple(str(v) for v in row) for row in connection.execute(query).fetchall()]
    there = [tuple(str(v) for v in row) for row in oracle.query(query).rows]
    assert here == there, query


def statement(chance: random.Random) -> str:
    month = chance.choice(MONTHS)
    table, other = chance.sample(["a", "b"], 2)
    name = chance.choice([str(month), f"ID '{month}'", f"'{month}'"])
    day = f"2024-0{month % 100}-0{chance.randint(1, 5)}"
    return chance.choice((
        f"INSERT INTO {table} VALUES ('{day}', 'x', {chance.randint(1, 99)})",
        f"INSERT INTO {table} VALUES ('{day}', 'y', 1), ('2024-02-09', 'z', {chance.randint(1, 9)})",
        f"ALTER TABLE {table} DROP PARTITION {name}",
        f"ALTER TABLE {table} DETACH PARTITION {name}",
        f"ALTER TABLE {table} ATTACH PARTITION {name}",
        f"ALTER TABLE {table} ATTACH PARTITION {name} FROM {other}",
        # Without the setting ClickHouse answers by empty parts that it has not cleaned up yet.
        f"ALTER TABLE {table} REPLACE PARTITION {name} FROM {other}"
        " SETTINGS allow_replace_partition_from_empty_source = 1",
        f"ALTER TABLE {table} MOVE PARTITION {name} TO TABLE {other}",
        f"ALTER TABLE {table} ATTACH PARTITION ALL",
        f"OPTIMIZE TABLE {table} FINAL",
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_random_statements(connection: Connection, oracle: Oracle, seed: int) -> None:
    chance = random.Random(seed)
    for name, text in TABLES.items():
        oracle.execute(f"DROP TABLE IF EXISTS {name}")
        both(connection, oracle, f"CREATE TABLE {name} {text}")
    for _ in range(40):
        both(connection, oracle, statement(chance))
        for name in TABLES:
            same(connection, oracle, f"SELECT d, s, n FROM {name} ORDER BY d, s, n")
    parts = "SELECT DISTINCT partition, partition_id FROM system.parts WHERE active AND rows"
    for name in TABLES:
        same(connection, oracle, f"{parts} AND table = '{name}' ORDER BY 1")
        detached = f"SELECT DISTINCT partition_id FROM system.detached_parts WHERE table = '{name}'"
        here = {str(row[0]) for row in connection.execute(detached).fetchall()}
        # ClickHouse lists empty parts there too, which it made to cover dropped ones.
        assert here <= {row[0] for row in oracle.query(detached).rows}


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE a DROP PART 'nope_1_1_0'",
        "ALTER TABLE a DETACH PART '202401_9_9_0'",
        "ALTER TABLE a ATTACH PART 'nope_1_1_0'",
        "ALTER TABLE a DROP DETACHED PARTITION 202401",
        "ALTER TABLE a DROP DETACHED PARTITION 202401 SETTINGS allow_drop_detached = 1",
        "ALTER TABLE a MOVE PARTITION ALL TO TABLE b",
        "ALTER TABLE a REPLACE PARTITION ALL FROM b",
        "ALTER TABLE a REPLACE PARTITION 202405 FROM b",
        "ALTER TABLE a ATTACH PARTITION 202401 FROM keyed",
        "ALTER TABLE a REPLACE PARTITION 202401 FROM parted",
        "ALTER TABLE a MOVE PARTITION 202401 TO TABLE wide",
        "ALTER TABLE a REMOVE TTL",
        "ALTER TABLE a MATERIALIZE TTL",
        "ALTER TABLE a MODIFY TTL n + 1",
        "ALTER TABLE a MODIFY TTL toDate('2020-01-01')",
        "ALTER TABLE a MODIFY TTL d + INTERVAL 1 DAY, d + INTERVAL 2 DAY",
        "ALTER TABLE a MODIFY TTL if(rand() > 3, d, d + 1)",
        "ALTER TABLE a MODIFY TTL zz + INTERVAL 1 DAY",
        "CREATE TABLE c CLONE AS a",
    ],
)
def test_errors(connection: Connection, oracle: Oracle, text: str) -> None:
    other = {
        "keyed": TABLES["a"].replace("ORDER BY n", "ORDER BY s"),
        "parted": TABLES["a"].replace("toYYYYMM(d)", "d"),
        "wide": TABLES["a"].replace("n UInt64", "n UInt32"),
    }
    oracle.execute("DROP TABLE IF EXISTS c")
    for name, definition in {**TABLES, **other}.items():
        oracle.execute(f"DROP TABLE IF EXISTS {name}")
        both(connection, oracle, f"CREATE TABLE {name} {definition}")
        both(connection, oracle, f"INSERT INTO {name} VALUES ('2024-01-01', 'x', 1)")
    both(connection, oracle, text)
    same(connection, oracle, "SELECT count() FROM a")


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("d", "('2024-01-05', 'a', 1), ('2024-01-06', 'a', 1)"),
        ("s", "('2024-01-05', 'a', 1), ('2024-01-06', 'it''s', 1)"),
        ("(s, toYYYYMM(d))", "('2024-01-05', 'a', 1), ('2024-02-06', 'b', 1)"),
        ("(d, n)", "('2024-01-05', 'a', 1), ('2024-01-06', 'a', 7)"),
        ("n % 3", "('2024-01-05', 'a', 1), ('2024-01-06', 'a', 7), ('2024-01-06', 'a', 8)"),
        ("toStartOfHour(toDateTime(d))", "('2024-01-05', 'a', 1)"),
        ("tuple()", "('2024-01-05', 'a', 1)"),
    ],
)
def test_how_partitions_are_shown(
    connection: Connection, oracle: Oracle, key: str, rows: str
) -> None:
    oracle.execute("DROP TABLE IF EXISTS p")
    both(
        connection, oracle,
        f"CREATE TABLE p (d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY {key} ORDER BY n",
    )  # fmt: skip
    both(connection, oracle, f"INSERT INTO p VALUES {rows}")
    same(
        connection, oracle,
        "SELECT partition FROM system.parts WHERE table = 'p' AND active ORDER BY partition",
    )  # fmt: skip


@pytest.mark.parametrize(
    "ttl",
    [
        "d + INTERVAL 1 DAY",
        "d + toIntervalMonth(1)",
        "toStartOfMonth(d) + INTERVAL 1 YEAR",
        "d + INTERVAL 1 DAY WHERE n % 2 = 1",
        "d + INTERVAL 1 DAY WHERE n > 5, d + INTERVAL 10 YEAR",
        "toDateTime(d) + INTERVAL 5 HOUR",
        "if(n < 5, d, d + INTERVAL 50 YEAR)",
    ],
)
def test_what_expires(connection: Connection, oracle: Oracle, ttl: str) -> None:
    oracle.execute("DROP TABLE IF EXISTS e")
    both(
        connection,
        oracle,
        f"CREATE TABLE e (d Date, n UInt64) ENGINE = MergeTree ORDER BY n TTL {ttl}",
    )
    both(connection, oracle, "INSERT INTO e SELECT toDate('1970-01-01'), 100")
    both(
        connection,
        oracle,
        "INSERT INTO e SELECT toDate('2010-01-01') + number * 300, number FROM numbers(20)",
    )
    both(connection, oracle, "INSERT INTO e SELECT toDate('2090-01-01'), number FROM numbers(10)")
    both(connection, oracle, "OPTIMIZE TABLE e FINAL")
    same(connection, oracle, "SELECT d, n FROM e ORDER BY d, n")


@pytest.mark.parametrize("ttl", ["d + INTERVAL 1 DAY WHERE n > 1, d + INTERVAL 2 MONTH", "d"])
def test_how_ttl_is_shown(connection: Connection, oracle: Oracle, ttl: str) -> None:
    oracle.execute("DROP TABLE IF EXISTS w")
    both(
        connection,
        oracle,
        f"CREATE TABLE w (d Date, n UInt64) ENGINE = MergeTree ORDER BY n TTL {ttl}",
    )
    shown = [
        str(asked.split("TTL ")[1].split(" SETTINGS")[0])
        for query in ["SELECT engine_full FROM system.tables WHERE name = 'w'"]
        for asked in (
            str(connection.execute(query).fetchall()[0][0]), str(oracle.query(query).value),
        )
    ]  # fmt: skip
    assert shown[0] == shown[1]
