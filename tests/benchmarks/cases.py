"""What is timed: statements for each engine, in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

OLAPDB, CHDB, DUCKDB = "olapdb", "chdb", "duckdb"
ENGINES = (OLAPDB, CHDB, DUCKDB)

Statements = Mapping[str, Sequence[str]]
"""For each engine that takes part."""

COLUMNS = "(k UInt64, day Date, name String, v Float64)"
SOURCE = f"{COLUMNS} ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY k"
DUCKDB_COLUMNS = "(k UBIGINT, day DATE, name VARCHAR, v DOUBLE)"
TARGET = (
    "(day Date, name String, n SimpleAggregateFunction(sum, UInt64), "
    "a AggregateFunction(avg, Float64)) ENGINE = AggregatingMergeTree ORDER BY (day, name)"
)
VIEW = "SELECT day, name, count() AS n, avgState(v) AS a FROM {source} GROUP BY day, name"
ROWS = (
    "SELECT number AS k, toDate('2024-01-01') + toUInt16(number % {days}) AS day, "
    "toString(number % 10) AS name, number / 7 AS v FROM numbers({count})"
)
DUCKDB_ROWS = (
    "SELECT range AS k, DATE '2024-01-01' + (range % {days})::INTEGER AS day, "
    "(range % 10)::VARCHAR AS name, range / 7 AS v FROM range({count})"
)
FROM_PYTHON = "INSERT FROM PYTHON {table} {rows}"
"""Not SQL: `worker` inserts an Arrow table of its process, made before."""


@dataclass(frozen=True)
class Case:
    """One measurement. `prepare` runs once, `before` in each round, and neither is timed;
    `{round}` in a statement is the round's number. `check` are queries whose answers must be the
    same; `tolerance` is the relative difference that floats may have there.

    `repeats`: whether the timed statements change nothing, so that they may run often enough for
    the clock. `cold`: whether each time is that of a new process.
    """

    name: str
    timed: Statements
    prepare: Statements = field(default_factory=dict)
    before: Statements = field(default_factory=dict)
    check: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-9
    repeats: bool = False
    cold: bool = False

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(engine for engine in ENGINES if engine in self.timed)


@dataclass(frozen=True)
class Group:
    """`about` says how each side does it; `shared` runs once before all cases, untimed."""

    name: str
    about: str
    cases: Sequence[Case]
    shared: Statements = field(default_factory=dict)


def clickhouse(*statements: str) -> dict[str, Sequence[str]]:
    return {OLAPDB: statements, CHDB: statements}


SIZES = (100, 10_000, 1_000_000)


def sizes(rows: int) -> list[int]:
    """Return those of SIZES that are no more than `rows`, and the first."""
    return [size for size in SIZES if size <= max(rows, SIZES[0])]


def inserts(rows: int) -> Group:
    """Return the INSERTs of 100, 10,000 and 1,000,000 rows, if those are no more than `rows`."""
    wanted = sizes(rows)
    cases = [
        _insert_values(count, 10 if count == 100 else 1) for count in wanted if count < 100_000
    ]
    cases += [_insert_select(count) for count in wanted if count > 100]
    cases += [_insert_arrow(count, _times(count)) for count in wanted]
    return Group(
        "inserts",
        "One statement a commit. olapdb is durable: files and commit are fsynced. chDB as it comes "
        "syncs nothing. DuckDB is durable: a database file, its log fsynced by each commit, "
        "checkpoints when it decides to.",
        cases,
    )


def _insert(
    name: str, table: str, here: Sequence[str], there: Sequence[str], by: str = SOURCE
) -> Case:
    check = f"SELECT count(), count(DISTINCT k), sum(k), min(day), max(day), sum(v) FROM {table}"
    return Case(
        name,
        {**clickhouse(*here), DUCKDB: there},
        prepare={
            **clickhouse(f"CREATE TABLE {table} {by}"),
            DUCKDB: (f"CREATE TABLE {table} {DUCKDB_COLUMNS}",),
        },
        check=dict.fromkeys(ENGINES, check),
    )


def _insert_values(rows: int, times: int) -> Case:
    table = f"values{rows}"
    statements = (f"INSERT INTO {table} VALUES {values(rows)}",) * times
    return _insert(f"VALUES of {rows:,} rows{_often(times)}", table, statements, statements)


def _insert_select(rows: int) -> Case:
    table, times = f"select{rows}", _times(rows)
    return _insert(
        f"SELECT of {rows:,} rows{_often(times)}",
        table,
        (f"INSERT INTO {table} {ROWS.format(days=28, count=rows)}",) * times,
        (f"INSERT INTO {table} {DUCKDB_ROWS.format(days=28, count=rows)}",) * times,
    )


def _insert_arrow(rows: int, times: int) -> Case:
    table = f"arrow{rows}"
    timed = (FROM_PYTHON.format(table=table, rows=rows),) * times
    return _insert(f"Arrow table of {rows:,} rows{_often(times)}", table, timed, timed)


def values(rows: int) -> str:
    return ", ".join(
        f"({i}, '2024-01-{1 + i % 28:02}', 'name {i % 10}', {i / 7})" for i in range(rows)
    )


def views(rows: int) -> Group:
    """Return an INSERT with one view, a backfill, and reads of what they keep."""
    cases = []
    for count in sizes(rows):
        table = f"fired{count}"
        timed = (
            (f"INSERT INTO {table} VALUES {values(count)}",) * _times(count)
            if count == 100
            else (f"INSERT INTO {table} {ROWS.format(days=28, count=count)}",) * _times(count)
        )
        prepare = (
            f"CREATE TABLE {table} {SOURCE}",
            f"CREATE TABLE {table}_t {TARGET}",
            f"CREATE MATERIALIZED VIEW {table}_m TO {table}_t AS {VIEW.format(source=table)}",
        )
        cases.append(
            Case(
                f"INSERT of {count:,} rows{_often(len(timed))}, a view",
                clickhouse(*timed),
                prepare=clickhouse(*prepare),
                check=dict.fromkeys((OLAPDB, CHDB), _rollup(f"{table}_t")),
            )
        )
    filled = (f"CREATE TABLE b {SOURCE}", f"INSERT INTO b {ROWS.format(days=250, count=rows)}")
    made = (
        f"CREATE TABLE b_t{{round}} {TARGET}",
        f"CREATE MATERIALIZED VIEW b_m{{round}} TO b_t{{round}} AS {VIEW.format(source='b')}",
    )
    backfill = Case(
        f"backfill of {rows:,} rows",
        {
            OLAPDB: (*made, "SYSTEM BACKFILL VIEW b_m{round}"),
            CHDB: (*made, f"INSERT INTO b_t{{round}} {VIEW.format(source='b')}"),
        },
        prepare=clickhouse(*filled),
        check=dict.fromkeys((OLAPDB, CHDB), _rollup("b_t0")),
    )
    rollup = Case(
        "read of the rollup",
        clickhouse(_rollup("b_t0")),
        check=dict.fromkeys((OLAPDB, CHDB), _rollup("b_t0")),
        repeats=True,
    )
    return Group(
        "views",
        "A view counts and averages by day and name; INSERTs as above. A backfill is SYSTEM "
        "BACKFILL here and INSERT SELECT there. DuckDB has no such views.",
        [*cases, backfill, rollup],
    )


def _rollup(target: str) -> str:
    return f"SELECT name, sum(n), avgMerge(a) FROM {target} GROUP BY name ORDER BY name"


def merges(rows: int) -> Group:
    """Return the cases of a hundred parts of together half a million rows: read FINAL, then joined by OPTIMIZE."""
    part_rows = max(10, min(5000, rows // 100))
    keys = part_rows * 10
    columns = "(k UInt64, name String, v UInt64) ENGINE = ReplacingMergeTree(v) ORDER BY k"

    def filled(table: str) -> dict[str, Sequence[str]]:
        parts = (
            f"INSERT INTO {table} SELECT number * 3 % {keys} AS k, toString(number % 10), {part}"
            f" FROM numbers({part * 200}, {part_rows})"
            for part in range(100)
        )
        # In ClickHouse the stop is for the tables that are there.
        return clickhouse(f"CREATE TABLE {table} {columns}", "SYSTEM STOP MERGES", *parts)

    def answer(table: str) -> str:
        return f"SELECT count(), sum(k), sum(v), uniqExact(name) FROM {table} FINAL"

    return Group(
        "merges",
        f"ReplacingMergeTree of 100 parts, {part_rows:,} rows each; olapdb durable, chDB as it "
        "comes. DuckDB has no such tables.",
        [
            Case(
                "FINAL read of 100 parts",
                clickhouse(answer("f")),
                prepare=filled("f"),
                check=dict.fromkeys((OLAPDB, CHDB), answer("f")),
                repeats=True,
            ),
            Case(
                "OPTIMIZE FINAL of 100 parts",
                {
                    OLAPDB: ("OPTIMIZE TABLE o{round} FINAL",),
                    CHDB: ("SYSTEM START MERGES", "OPTIMIZE TABLE o{round} FINAL"),
                },
                before=filled("o{round}"),
                check=dict.fromkeys((OLAPDB, CHDB), answer("o0").replace(" FINAL", "")),
            ),
        ],
    )


def _times(rows: int) -> int:
    """Return how often a short case runs for one measured time."""
    return 10 if rows <= 10_000 else 1


def _often(times: int) -> str:
    return f", {times} times" if times > 1 else ""
