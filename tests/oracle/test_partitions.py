"""Statements about partitions and TTL beside ClickHouse: the same rows, the same error codes."""

from __future__ import annotations

import random

import pytest

from olapdb.dbapi.connection import Connection
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError

TABLES = {
    "a": "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY n",
    "b": "(d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY n",
}
MONTHS = (202401, 202402, 202403)


pytestmark = [pytest.mark.warehouse(merges=False), pytest.mark.feature("changes")]


def both(connection: Connection, oracle: Oracle, statement: str) -> int:
    """Run the statement on both, require the same error code, and return it (0 for success)."""
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
    return chance.choice(
        (
            f"INSERT INTO {table} VALUES ('{day}', 'x', {chance.randint(1, 99)})",
            f"INSERT INTO {table} VALUES ('{day}', 'y', 1), ('2024-02-09', 'z', {chance.randint(1, 9)})",
            f"ALTER TABLE {table} DROP PARTITION {name}",
            f"ALTER TABLE {table} DETACH PARTITION {name}",
            f"ALTER TABLE {table} ATTACH PARTITION {name}",
            f"ALTER TABLE {table} ATTACH PARTITION {name} FROM {other}",
            # Without the setting ClickHouse counts empty parts that it has not cleaned up yet.
            f"ALTER TABLE {table} REPLACE PARTITION {name} FROM {other}"
            " SETTINGS allow_replace_partition_from_empty_source = 1",
            f"ALTER TABLE {table} MOVE PARTITION {name} TO TABLE {other}",
            f"ALTER TABLE {table} ATTACH PARTITION ALL",
            f"OPTIMIZE TABLE {table} FINAL",
        )
    )


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
        # ClickHouse also lists the empty parts that it made to cover dropped ones.
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
        connection,
        oracle,
        f"CREATE TABLE p (d Date, s String, n UInt64) ENGINE = MergeTree PARTITION BY {key} ORDER BY n",
    )
    both(connection, oracle, f"INSERT INTO p VALUES {rows}")
    same(
        connection,
        oracle,
        "SELECT partition FROM system.parts WHERE table = 'p' AND active ORDER BY partition",
    )


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
            str(connection.execute(query).fetchall()[0][0]),
            str(oracle.query(query).value),
        )
    ]
    assert shown[0] == shown[1]


NAMED = [
    (
        "UInt32",
        "(5), (7), (9), (4294967293)",
        "5 | 5.0 | 5.5 | -3 | 4294967301 | NULL | (1, 2) |"
        " tuple(7) | '' | '7x' | '-3' | '4294967301' | ' 7' | '7.0' | [7] | true | ID '' | ID 'a/../b' |"
        " ID '9_9' | ID 'é' | ID '4294967302' | ID '9'",
    ),
    (
        "Date",
        "('2024-01-05'), ('2024-10-04'), ('1970-01-01')",
        "'2024-01-05 00:00:00' | '2024-01-99' | 20240105 | 20000 | -1 | 'x' | '' | 2.5 | '2024-1-5' |"
        " '1970-01-01'",
    ),
    ("DateTime", "('2024-01-05 00:00:00'), (5), (9)", "'2024-01-05' | 5 | 'x' | 4294967296"),
    ("String", "('5'), ('5.5'), ('x')", "5 | NULL | 'X' | 5.5"),
    ("Nullable(Int8)", "(5), (NULL), (44), (-5)", "300 | NULL | -5 | '44'"),
    ("Decimal(9, 2)", "(5), (2.5)", "5 | '2.5'"),
]


@pytest.mark.parametrize(("key", "rows", "named"), NAMED)
def test_a_value_that_the_key_cannot_hold_names_no_partition(
    connection: Connection, oracle: Oracle, key: str, rows: str, named: str
) -> None:
    oracle.execute("DROP TABLE IF EXISTS n")
    nullable = " SETTINGS allow_nullable_key = 1" if "Nullable" in key else ""
    both(
        connection,
        oracle,
        f"CREATE TABLE n (k {key}) ENGINE = MergeTree PARTITION BY k ORDER BY k{nullable}",
    )
    both(connection, oracle, f"INSERT INTO n VALUES {rows}")
    for name in named.split(" | "):
        for action in ("DETACH", "ATTACH", "DROP"):
            both(connection, oracle, f"ALTER TABLE n {action} PARTITION {name.strip()}")
        same(connection, oracle, "SELECT toString(k) FROM n ORDER BY k")


@pytest.mark.parametrize(
    "where", ["ALL", "5", "ID ''", "ID 'a_b'", "(9, 9)", "ID 'zz'", "(9, 202401)"]
)
def test_partitions_that_other_actions_name(
    connection: Connection, oracle: Oracle, where: str
) -> None:
    oracle.execute("DROP TABLE IF EXISTS i")
    both(
        connection,
        oracle,
        "CREATE TABLE i (k UInt8, d Date, v UInt8 DEFAULT k, INDEX x v TYPE minmax)"
        " ENGINE = MergeTree PARTITION BY (k, toYYYYMM(d)) ORDER BY k TTL d + INTERVAL 90 YEAR",
    )
    both(connection, oracle, "INSERT INTO i (k, d) VALUES (1, '2024-01-05'), (2, '2024-01-05')")
    for text in (
        "CLEAR INDEX x IN",
        "CLEAR INDEX IF EXISTS none IN",
        "MATERIALIZE INDEX x IN",
        "MATERIALIZE INDEX IF EXISTS none IN",
        "CLEAR COLUMN v IN",
        "MATERIALIZE COLUMN v IN",
        "MATERIALIZE TTL IN",
    ):
        both(connection, oracle, f"ALTER TABLE i {text} PARTITION {where}")
    both(connection, oracle, f"ALTER TABLE i UPDATE v = 3 IN PARTITION {where} WHERE 1")
    both(connection, oracle, f"ALTER TABLE i DELETE IN PARTITION {where} WHERE 1")
    both(connection, oracle, f"DELETE FROM i IN PARTITION {where} WHERE 1")
    both(connection, oracle, f"OPTIMIZE TABLE i PARTITION {where} FINAL")
    same(connection, oracle, "SELECT k, d, v FROM i ORDER BY k")


VALUES = [
    ("(k % 2, toString(k))", "(1, '1')"),
    ("toYYYYMM(d)", "tuple(202402)"),
    ("tuple(d)", "tuple(toDate('2024-02-05'))"),
    ("(toStartOfDay(t), n)", "(toDateTime('2024-02-05 00:00:00'), 5)"),
    ("(k, (d, k))", "(1, (toDate('2024-02-05'), 1))"),
    ("`a b`", "tuple(7)"),
    ("tuple()", "tuple(7)"),
    ("", "tuple(7)"),
]


@pytest.mark.parametrize(("key", "value"), VALUES)
def test_partition_value(connection: Connection, oracle: Oracle, key: str, value: str) -> None:
    partitions = f"PARTITION BY {key}" if key else ""
    oracle.execute("DROP TABLE IF EXISTS v")
    both(
        connection,
        oracle,
        "CREATE TABLE v (k UInt32, d Date, t DateTime, n Nullable(Int8), `a b` Int8) ENGINE ="
        f" MergeTree {partitions} ORDER BY k SETTINGS allow_nullable_key = 1",
    )
    both(
        connection,
        oracle,
        "INSERT INTO v VALUES (1, '2024-02-05', '2024-02-05 10:00:00', 5, 7),"
        " (2, '2024-03-05', '2024-03-05 10:00:00', NULL, 8), (3, '2024-02-05', '2024-02-05 11:00:00', 5, 7)",
    )
    for query in (
        "SELECT toString(_partition_value), toTypeName(_partition_value) FROM v ORDER BY k",
        f"SELECT k FROM v WHERE _partition_value = {value} ORDER BY k",
        f"SELECT k FROM v WHERE _partition_value != {value} ORDER BY k",
        f"SELECT k FROM v WHERE _partition_value IN ({value}, {value}) ORDER BY k",
        f"SELECT k FROM v WHERE _partition_value.1 = ({value}).1 ORDER BY k",
        "SELECT toString(x._partition_value), count() FROM v AS x GROUP BY x._partition_value ORDER BY 1",
        "SELECT x.k, y.k FROM v AS x JOIN v AS y ON x._partition_value = y._partition_value ORDER BY ALL",
        "SELECT k FROM (SELECT * FROM v) ORDER BY k",
    ):
        if both(connection, oracle, query) == 0:
            same(connection, oracle, query)
