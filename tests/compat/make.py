"""Makes the warehouse of this release that later releases must open: every engine, every type.

    python -m tests.compat.make [FOLDER]

writes `warehouse.tar.xz` and `expected.json` to tests/compat/<release> (or FOLDER).  A release is made once
and never again: what is opened must be what was written then.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import olapdb
from olapdb.dbapi.connection import Connection
from tests.harness.typed_table import COLUMNS

ARCHIVE, EXPECTED = "warehouse.tar.xz", "expected.json"
MORE_TYPES: Mapping[str, tuple[str, list[str | None]]] = {
    "d32": (
        "Date32",
        ["1900-01-01", "2299-12-31", "2024-02-29", "1970-01-01", "2000-01-01", "1969-12-31"],
    ),
    "us": ("DateTime64(6, 'Europe/Paris')", ["2024-05-06 07:08:09.123456"] * 6),
    "tu": (
        "Tuple(a UInt8, b String)",
        ["(1,'x')", "(2,'')", "(0,'y')", "(255,'z')", "(7,'7')", "(1,'1')"],
    ),
    "m": (
        "Map(String, UInt64)",
        ["{}", "{'a':1}", "{'a':1,'b':2}", "{'':0}", "{'x':9}", "{'y':3}"],
    ),
    "d38": (
        "Decimal(38, 10)",
        ["0", "1.5", "-0.0000000001", "1234567890123456789012345678.0123456789", "2", "3"],
    ),
    "nested.a": ("Array(UInt8)", ["[]", "[1]", "[1,2]", "[3]", "[]", "[4]"]),
    "nested.b": ("Array(String)", ["[]", "['x']", "['y','z']", "['']", "[]", "['w']"]),
    "ln": ("LowCardinality(Nullable(String))", ["x", None, "y", "", None, "x"]),
    "aa": (
        "Array(Array(String))",
        ["[]", "[[]]", "[['a'],['b','c']]", "[['']]", "[['x']]", "[['y'],[]]"],
    ),
}
TYPES = {**COLUMNS, **MORE_TYPES}
PLAIN = "(d Date, k String, n Int64)"
PARTS = "ENGINE = {} PARTITION BY toYYYYMM(d) ORDER BY k"
AGGREGATED = (
    "d, count() AS events, sum(n) AS total, avgState(n) AS mean, uniqExactState(k) AS exact"
)
STATEMENTS: tuple[str, ...] = (
    "SYSTEM STOP MERGES",
    "CREATE DATABASE other COMMENT 'a second one'",
    # Every engine; what merges would join is there twice, in files and in the catalog.
    f"CREATE TABLE plain {PLAIN} {PARTS.format('MergeTree')} SETTINGS inline_bytes_max = 0",
    f"CREATE TABLE other.summing {PLAIN} ENGINE = SummingMergeTree PARTITION BY toYYYYMM(d) ORDER BY (d, k)",
    "CREATE TABLE replacing (k String, n Int64, v UInt32, gone UInt8) ENGINE = ReplacingMergeTree(v, gone)"
    " ORDER BY k",
    "CREATE TABLE collapsing (k String, n Int64, sign Int8) ENGINE = CollapsingMergeTree(sign) ORDER BY k",
    "CREATE TABLE versioned (k String, n Int64, sign Int8, v UInt32)"
    " ENGINE = VersionedCollapsingMergeTree(sign, v) ORDER BY k",
    f"CREATE TABLE memory {PLAIN} ENGINE = Memory",
    f"CREATE TABLE log {PLAIN} ENGINE = Log",
    f"CREATE TABLE tiny {PLAIN} ENGINE = TinyLog",
    f"CREATE TABLE stripe {PLAIN} ENGINE = StripeLog",
    f"CREATE TABLE nothing {PLAIN} ENGINE = Null",
    # Views: states, a chain, a plain one, a gap that is left, a slice that is stale.
    f"CREATE MATERIALIZED VIEW daily ENGINE = AggregatingMergeTree ORDER BY d AS"
    f" SELECT {AGGREGATED.replace('sum(n)', 'sumState(n)').replace('count()', 'countState()')}"
    " FROM plain GROUP BY d",
    "CREATE MATERIALIZED VIEW by_month TO other.summing AS"
    " SELECT toStartOfMonth(d) AS d, k, sum(plain.n) AS n FROM plain GROUP BY d, k",
    "CREATE VIEW read AS SELECT d, countMerge(events) AS events, sumMerge(total) AS total,"
    " avgMerge(mean) AS mean, uniqExactMerge(exact) AS exact FROM daily GROUP BY d",
    *(
        f"INSERT INTO {table} VALUES ('2024-0{month}-01', 'a', {month}), ('2024-0{month}-02', 'b', 2)"
        for table in ("plain", "memory", "log", "tiny", "stripe", "nothing")
        for month in (1, 2, 3)
    ),
    "INSERT INTO plain SETTINGS inline_bytes_max = 262144 VALUES ('2024-01-05', 'inline', 5)",
    "INSERT INTO replacing VALUES ('a', 1, 1, 0), ('b', 2, 1, 0)",
    "INSERT INTO replacing VALUES ('a', 3, 2, 0), ('b', 2, 2, 1)",
    "INSERT INTO collapsing VALUES ('a', 1, 1), ('b', 2, 1)",
    "INSERT INTO collapsing VALUES ('a', 1, -1), ('a', 9, 1)",
    "INSERT INTO versioned VALUES ('a', 1, 1, 1), ('a', 5, 1, 2)",
    "INSERT INTO versioned VALUES ('a', 1, -1, 1)",
    "OPTIMIZE TABLE plain PARTITION 202401 FINAL",
    "CREATE MATERIALIZED VIEW late ENGINE = SummingMergeTree ORDER BY k AS"
    " SELECT k, sum(n) AS n FROM plain GROUP BY k",
    "INSERT INTO plain VALUES ('2024-04-01', 'seen', 4)",
    # Columns that came and went; defaults, codecs, indexes, constraints, TTL.
    "CREATE TABLE columns (a UInt32, gone String, b String DEFAULT toString(a), c UInt64 MATERIALIZED a * 2,"
    " e UInt64 ALIAS a + 1, z Int64 CODEC(ZSTD(3)), INDEX i b TYPE bloom_filter GRANULARITY 1,"
    " CONSTRAINT small CHECK a < 1000000) ENGINE = MergeTree ORDER BY a SETTINGS inline_bytes_max = 0",
    "INSERT INTO columns (a, gone, z) VALUES (1, 'x', -1), (2, 'y', -2)",
    "ALTER TABLE columns DROP COLUMN gone, ADD COLUMN gone UInt8 DEFAULT 7, RENAME COLUMN z TO y",
    "INSERT INTO columns (a, y) VALUES (3, -3)",
    "CREATE TABLE keeping (d Date, n UInt8) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY d"
    " TTL d + INTERVAL 100 YEAR",
    "INSERT INTO keeping VALUES ('2024-01-01', 1)",
    "INSERT INTO keeping VALUES ('2024-02-01', 2)",
    "SYSTEM QUARANTINE PART '202402_2_2_0' ON keeping",
    # Parts beside their table, mutations, deliveries, tuple partitions.
    "ALTER TABLE plain DETACH PARTITION 202403",
    "CREATE TABLE keyed (id UInt64, n Int64) ENGINE = MergeTree ORDER BY id"
    " SETTINGS deduplicate_by = 'id', deduplicate_window = 0",
    "INSERT INTO keyed SETTINGS insert_deduplication_token = 'first' VALUES (1, 1), (2, 2)",
    "INSERT INTO keyed VALUES (2, 2), (3, 3)",
    "CREATE TABLE places (p UInt8, q String, n Int64) ENGINE = MergeTree PARTITION BY (p, q) ORDER BY n",
    "INSERT INTO places VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3)",
)
QUERIES: Mapping[str, str] = {
    "types": "SELECT * FROM types ORDER BY u64",
    "plain": "SELECT * FROM plain ORDER BY d, k",
    "summing": "SELECT * FROM other.summing FINAL ORDER BY d, k",
    "replacing": "SELECT * FROM replacing FINAL ORDER BY k",
    "collapsing": "SELECT * FROM collapsing FINAL ORDER BY k, n",
    "versioned": "SELECT * FROM versioned FINAL ORDER BY k, n",
    **{name: f"SELECT * FROM {name} ORDER BY d, k" for name in ("memory", "log", "tiny", "stripe")},
    "nothing": "SELECT count() FROM nothing",
    "read": "SELECT * FROM read ORDER BY d",
    "late": "SELECT * FROM late FINAL ORDER BY k",
    "columns": "SELECT a, b, c, e, y, gone FROM columns ORDER BY a",
    "keeping": "SELECT * FROM keeping",
    "keyed": "SELECT * FROM keyed ORDER BY id",
    "places": "SELECT * FROM places ORDER BY n",
    "tables": "SELECT database, name, engine, total_rows FROM system.tables"
    " WHERE database IN ('default', 'other') AND name NOT LIKE '.inner%' ORDER BY database, name",
    "types of columns": "SELECT database, table, name, type, default_kind, default_expression"
    " FROM system.columns WHERE database IN ('default', 'other')"
    " AND table NOT LIKE '.inner%' ORDER BY database, table, position",
    "views": "SELECT name, attached, verdict, gap_rows, stale_slices, bypass_rows FROM system.views ORDER BY name",
    "coverage": "SELECT view, partition_id, status, rows FROM system.view_coverage"
    " ORDER BY view, partition_id, status",
    "invalidations": "SELECT view, partition_id, cause FROM system.view_invalidations"
    " ORDER BY view, partition_id",
    "detached": "SELECT table, partition_id, name, rows, reason FROM system.detached_parts ORDER BY table, name",
    "snapshots": "SELECT count(), max(number) FROM system.snapshots",
}


def literal(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text if text[:1] in ("[", "(", "{") else "'" + text.replace("'", "''") + "'"


def typed_statements() -> list[str]:
    columns = ", ".join(f"`{name}` {type_}" for name, (type_, _) in TYPES.items())
    rows = [f"({', '.join(literal(texts[at]) for _, texts in TYPES.values())})" for at in range(6)]
    return [
        f"CREATE TABLE types ({columns}) ENGINE = MergeTree ORDER BY u64 SETTINGS inline_bytes_max = 0",
        f"INSERT INTO types VALUES {', '.join(rows[:3])}",
        f"INSERT INTO types SETTINGS inline_bytes_max = 262144 VALUES {', '.join(rows[3:])}",
    ]


def answers(connection: Connection) -> dict[str, Any]:
    """Return each query's column names and rows, values as text that JSON keeps."""
    found: dict[str, Any] = {}
    for name, query in QUERIES.items():
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        found[name] = {
            "columns": names,
            "rows": [[repr(v) for v in row] for row in cursor.fetchall()],
        }
    return found


def make(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        warehouse = Path(place) / "warehouse"
        with olapdb.connect(str(warehouse)) as connection:
            for text in (*STATEMENTS, *typed_statements()):
                connection.execute(text)
            connection.insert(
                "keyed", {"id": [4], "n": [4]}, token="second", offsets={"orders-0": (0, 1)}
            )
            found = answers(connection)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(folder / ARCHIVE, "w:xz") as archive:
            for path in sorted(warehouse.rglob("*")):
                inside = str(path.relative_to(place))
                if path.is_file() and not inside.endswith((".lock", "-shm", "-wal")):
                    archive.add(path, inside)
    (folder / EXPECTED).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / olapdb.__version__
    make(Path(place))
