"""What each size of `olapdb/config/tuning.py` is worth: the CPU time of the same work under several values.

    python tests/benchmarks/thresholds.py [NAME …]

A case is a statement over tables of several sizes. Each (size, value) has a database of its own and one thread, and
is run once to fill caches. Then the values take turns, and the least of the times of `--rounds` runs counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import olapdb
from olapdb.config import tuning
from olapdb.native.library import without_kernels

NEVER = 1 << 62
Values = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """`setup` and `statement` may name the size as {n}; `insert`: the statement adds rows each time.

    `values` are what is compared, by a label. `numpy`: the path is taken without compiled kernels."""

    values: Mapping[str, Values]
    sizes: Sequence[int]
    setup: Sequence[str]
    statement: str
    numpy: bool = False
    threads: int = 1


def _on_off(name: str, on: int = 0, off: int = NEVER) -> Mapping[str, Values]:
    """Return the two values that take and leave the fast path."""
    return {"fast": {name: on}, "slow": {name: off}}


def _each(name: str, *values: int) -> Mapping[str, Values]:
    """Return some values of one size."""
    return {f"{value:,}": {name: value} for value in values}


def _table(columns: str, select: str, order: str = "tuple()", more: str = "") -> list[str]:
    """Return what creates and fills the table t."""
    return [
        f"CREATE TABLE t ({columns}) ENGINE = MergeTree ORDER BY {order} {more}",
        f"INSERT INTO t {select}",
    ]


NUMBERS = _table(
    "k UInt64, v UInt64", "SELECT cityHash64(number) AS k, number AS v FROM numbers({n})"
)
WIDE = _table(
    "k UInt64, " + ", ".join(f"c{i} String" for i in range(8)),
    "SELECT cityHash64(number), "
    + ", ".join(f"'text ' || toString(number * {i})" for i in range(1, 9))
    + " FROM numbers({n})",
)
STATES = [
    "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY k",
    *(
        f"CREATE MATERIALIZED VIEW v{i} ENGINE = AggregatingMergeTree ORDER BY name AS "
        f"SELECT name, sumState(v + {i}) AS s, countState() AS n FROM t GROUP BY name"
        for i in range(2)
    ),
    "SYSTEM STOP MERGES",
]
ADD_ROWS = "INSERT INTO t SELECT number, toString(number % 20), number / 7 FROM numbers({n})"
FAR_GROUPS = "SELECT k, count() AS c FROM t GROUP BY k ORDER BY c DESC, k LIMIT 10"


def _join(right: str, condition: str = "t.k = r.k") -> str:
    """Return a join of t with a table r of numbers."""
    return f"SELECT count(), sum(t.v) FROM t JOIN r ON {condition} {right}"


def _two(left: str, right: str) -> list[str]:
    """Return what creates t and r with keys of these expressions of `number`."""
    return [
        "CREATE TABLE t (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY tuple()",
        "CREATE TABLE r (k UInt64, w UInt64) ENGINE = MergeTree ORDER BY tuple()",
        f"INSERT INTO t SELECT {left}",
        f"INSERT INTO r SELECT {right}",
    ]


CASES: Mapping[str, Case] = {
    "DENSE_RADIX_MIN": Case(
        _each("DENSE_RADIX_MIN", 0, 1 << 12, 1 << 16),
        (200, 2_000),
        _table("k UInt64", "SELECT number * 4_001 % {n} * 4_000 / {n} FROM numbers({n})"),
        "SELECT k, count() FROM t GROUP BY k",
    ),
    "SLICED_ROWS_MIN": Case(
        _on_off("SLICED_ROWS_MIN"),
        (1 << 18, 1 << 20),
        NUMBERS,
        "SELECT count() FROM (SELECT k FROM t GROUP BY k) SETTINGS max_block_size = 4194304",
        numpy=True,
    ),
    "INDEXED_VALUES_MIN": Case(
        _on_off("INDEXED_VALUES_MIN", 1),
        (1 << 10, 1 << 14, 1 << 18),
        _two(
            "cityHash64(number % {n}), number FROM numbers(200000)",
            "cityHash64(number), number FROM numbers({n})",
        ),
        _join(""),
    ),
    "HASHED_ROWS": Case(
        _each("HASHED_ROWS", 1 << 12, 1 << 15, 1 << 18),
        (1 << 20,),
        _two(
            "cityHash64(number), number FROM numbers({n})",
            "cityHash64(number), number FROM numbers({n})",
        ),
        _join(""),
    ),
    "MERGE_ROWS_MIN": Case(
        _each("MERGE_ROWS_MIN", 100_000, 1_000_000, 8_000_000),
        (2_000_000,),
        NUMBERS,
        "SELECT count() FROM (SELECT k % 1000000 AS g, sum(v) FROM t GROUP BY g)",
    ),
    "DIVISION_ROWS": Case(
        _each("DIVISION_ROWS", 1 << 16, 1 << 18, 1 << 20), (3_000_000,), NUMBERS, FAR_GROUPS
    ),
    "TABLE_ROWS": Case(
        _each("TABLE_ROWS", 1 << 12, 1 << 15, 1 << 18), (3_000_000,), NUMBERS, FAR_GROUPS
    ),
    "DIVIDED_GROUPS_MIN": Case(
        _on_off("DIVIDED_GROUPS_MIN"),
        (3_000_000,),
        NUMBERS,
        "SELECT count() FROM (SELECT k % 1000000 AS g, sum(v) FROM t GROUP BY g)",
    ),
    "SHARED_CODES_ROWS_MIN": Case(
        _on_off("SHARED_CODES_ROWS_MIN"), (256, 1_024, 8_192), STATES, ADD_ROWS
    ),
    "TOP_ROWS_MIN": Case(
        _each("TOP_ROWS_MIN", 1_024, 16_384, 262_144),
        (1 << 20,),
        NUMBERS,
        "SELECT k + 1 AS x FROM t ORDER BY x LIMIT 100",
    ),
    "TOP_SAMPLE_PER_ROW": Case(
        _each("TOP_SAMPLE_PER_ROW", 50, 400, 3_200),
        (1 << 20,),
        NUMBERS,
        "SELECT * FROM t ORDER BY k LIMIT 100",
    ),
    "BEST_ROWS_MAX": Case(
        _each("BEST_ROWS_MAX", 0, 1_024),
        (1 << 20,),
        NUMBERS,
        "SELECT k FROM t ORDER BY k LIMIT 1000",
    ),
    "TOP_TASK_ROWS": Case(
        _each("TOP_TASK_ROWS", 32_768, 524_288, 1_048_576),
        (1 << 21,),
        NUMBERS,
        "SELECT * FROM t ORDER BY k LIMIT 10",
    ),
    "JOIN_ORDER_ROWS_MIN": Case(
        _on_off("JOIN_ORDER_ROWS_MIN"),
        (2_000, 20_000, 200_000),
        [
            *_two(
                "number % 1000, number FROM numbers({n})",
                "number % 1000, number FROM numbers({n} / 10)",
            ),
            "CREATE TABLE s (k UInt64) ENGINE = MergeTree ORDER BY k",
            "INSERT INTO s SELECT number FROM numbers(10)",
        ],
        "SELECT count() FROM t JOIN r ON t.k = r.k JOIN s ON r.k = s.k",
    ),
    "CODED_JOIN_ROWS_MAX": Case(
        _on_off("CODED_JOIN_ROWS_MAX", NEVER, -1),
        (1 << 16, 1 << 20),
        [
            "CREATE TABLE t (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY tuple()",
            "CREATE TABLE r (k UInt64, name String) ENGINE = MergeTree ORDER BY tuple()",
            "INSERT INTO t SELECT number % {n}, number FROM numbers(1000000)",
            "INSERT INTO r SELECT number, 'name ' || toString(number % 1000) FROM numbers({n})",
        ],
        "SELECT name, sum(v) FROM t JOIN r ON t.k = r.k GROUP BY name",
    ),
    "CODE_TABLE_ROWS_MIN": Case(
        _on_off("CODE_TABLE_ROWS_MIN", 1),
        (512, 4_096, 65_536),
        _two("number % 5000, number FROM numbers({n})", "number, number FROM numbers(5000)"),
        _join(""),
    ),
    "JOIN_FILTER_ROWS_MIN": Case(
        _on_off("JOIN_FILTER_ROWS_MIN"),
        (2_048, 16_384, 131_072),
        _two("number % 1000, number FROM numbers({n})", "number, number FROM numbers(1000)"),
        _join("WHERE r.w % 100 = 0"),
    ),
    "JOIN_FILTER_PASS_PERCENT_MAX": Case(
        _on_off("JOIN_FILTER_PASS_PERCENT_MAX", 100, 0),
        (5, 20, 60),
        _two(
            "cityHash64(number) % 100000, number FROM numbers(1000000)",
            "number, number FROM numbers(100000)",
        ),
        _join("WHERE r.w % 100 < {n}"),
    ),
    "JOINED_CHUNK_ROWS_MIN": Case(
        _each("JOINED_CHUNK_ROWS_MIN", 0, 1_024, 16_384),
        (1 << 21,),
        _two(
            "cityHash64(number), number FROM numbers({n})",
            "cityHash64(number * 7), number FROM numbers(50000)",
        ),
        _join("WHERE t.v % 5000 = 0 SETTINGS max_block_size = 8192"),
    ),
    "LEFT_FIRST_FACTOR": Case(
        _on_off("LEFT_FIRST_FACTOR", 0),
        (20_000, 80_000, 1_000_000),
        _two(
            "cityHash64(number), number FROM numbers(20000)",
            "cityHash64(number), number FROM numbers({n})",
        ),
        "SELECT count(), sum(w) FROM t LEFT JOIN r ON t.k = r.k WHERE t.v < 5000",
    ),
    "READ_AT_ONCE_ROWS_MAX": Case(
        {"fast": {"READ_AT_ONCE_ROWS_MAX": NEVER}, "slow": {"READ_AT_ONCE_ROWS_MAX": 0}},
        (1_024, 8_192, 65_536),
        WIDE,
        "SELECT * FROM t WHERE k % 1000 = 1 SETTINGS use_uncompressed_cache = 0",
    ),
    "TASK_ROWS": Case(
        _each("TASK_ROWS", 8_192, 65_536, 1_048_576),
        (1 << 20,),
        WIDE,
        "SELECT * FROM t WHERE k % 7 = 1 LIMIT 10",
    ),
    "JOINED_TASK_ROWS_MAX": Case(
        _each("JOINED_TASK_ROWS_MAX", 1, 16_384, NEVER),
        (4_096, 16_384, 131_072),
        [
            "CREATE TABLE t (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY tuple()",
            "SYSTEM STOP MERGES",
            *["INSERT INTO t SELECT cityHash64(number), number FROM numbers({n})"] * 16,
        ],
        "SELECT sum(v), max(k) FROM t WHERE v % 3 = 0",
    ),
    "LATE_ROWS_MAX": Case(
        _on_off("LATE_ROWS_MAX", NEVER, -1),
        (1_000, 65_536, 500_000),
        [s.replace("{n}", "1000000") for s in WIDE],
        "SELECT * FROM t ORDER BY k LIMIT {n}",
    ),
    "ROWS_PER_LATE_ROW_MIN": Case(
        _on_off("ROWS_PER_LATE_ROW_MIN", 1),
        (2, 16, 128),
        [s.replace("{n}", "300000") for s in WIDE],
        "SELECT * FROM t WHERE k % {n} = 1",
    ),
    "SHARED_DICTIONARY_ROWS_MIN": Case(
        _on_off("SHARED_DICTIONARY_ROWS_MIN"),
        (8_192, 65_536, 524_288),
        _table(
            "name String, v UInt64",
            "SELECT 'name ' || toString(number % 1000), number FROM numbers({n})",
        ),
        "SELECT name, sum(v) FROM t GROUP BY name",
    ),
    "SHARED_DICTIONARY_ROWS_PER_TEXT_MIN": Case(
        _on_off("SHARED_DICTIONARY_ROWS_PER_TEXT_MIN", 0),
        (1, 3, 10),
        _table(
            "name String, v UInt64",
            "SELECT 'name ' || toString(cityHash64(number) % (500000 / {n})), number FROM numbers(500000)",
        ),
        "SELECT name, sum(v) FROM t GROUP BY name",
    ),
    "LISTED_VALUES_MAX": Case(
        _on_off("LISTED_VALUES_MAX", NEVER, 0),
        (1_000, 65_536, 500_000),
        [
            *_two("number, number FROM numbers(2000000)", "number * 4, number FROM numbers({n})"),
            "OPTIMIZE TABLE t FINAL",
        ],
        "SELECT sum(v) FROM t WHERE k IN (SELECT k FROM r)",
    ),
    "MONOTONIC_ROWS_MIN": Case(
        _on_off("MONOTONIC_ROWS_MIN", 1),
        (250, 1_000, 8_000),
        [
            "CREATE TABLE t (d DateTime, v UInt64) ENGINE = MergeTree ORDER BY v PARTITION BY toYYYYMM(d)",
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT toDateTime(1700000000) + number % 90, number FROM numbers({n})",
    ),
    "MIN_MAX_ROWS_MIN": Case(
        _on_off("MIN_MAX_ROWS_MIN"),
        (1_024, 4_096, 65_536),
        ["CREATE TABLE t (name String) ENGINE = MergeTree ORDER BY tuple()", "SYSTEM STOP MERGES"],
        "INSERT INTO t SELECT toString(cityHash64(number)) FROM numbers({n})",
    ),
    "SKETCH_ROWS_MIN": Case(
        _on_off("SKETCH_ROWS_MIN", 1),
        (250, 1_000, 65_536),
        [
            "CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY tuple()",
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT number, toString(number) FROM numbers({n})",
    ),
    "CALENDAR_ROWS_MIN": Case(
        _on_off("CALENDAR_ROWS_MIN"),
        (250, 1_000, 65_536),
        _table("d Date32", "SELECT toDate32('1950-01-01') + number % 200 FROM numbers({n})"),
        "SELECT sum(toYear(d)), sum(toMonth(d)) FROM t",
    ),
    "PARALLEL_COLUMNS_ROWS_MIN": Case(
        _on_off("PARALLEL_COLUMNS_ROWS_MIN"),
        (1 << 16, 1 << 18, 1 << 20),
        [
            "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY tuple()",
            "SYSTEM STOP MERGES",
        ],
        ADD_ROWS,
        threads=2,
    ),
    "BESIDE_ROWS_MIN": Case(
        _on_off("BESIDE_ROWS_MIN"), (1 << 14, 1 << 17, 1 << 20), STATES, ADD_ROWS, threads=2
    ),
    "PLAIN_ROWS_MAX": Case(
        {
            "fast": {"PLAIN_ROWS_MAX": NEVER, "SMALL_BLOCK_ROWS_MAX": -1},
            "slow": {"PLAIN_ROWS_MAX": -1, "SMALL_BLOCK_ROWS_MAX": -1},
        },
        (1_000, 65_536, 524_288),
        STATES,
        ADD_ROWS,
    ),
    "SMALL_BLOCK_ROWS_MAX": Case(
        {"fast": {"SMALL_BLOCK_ROWS_MAX": NEVER}, "slow": {"SMALL_BLOCK_ROWS_MAX": -1}},
        (100, 1_000, 16_384),
        STATES,
        ADD_ROWS,
    ),
    "SORTED_WHOLE_ROWS_MAX": Case(
        {"fast": {"SORTED_WHOLE_ROWS_MAX": NEVER}, "slow": {"SORTED_WHOLE_ROWS_MAX": -1}},
        (1 << 14, 1 << 18, 1 << 20),
        [
            "CREATE TABLE t (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY k PARTITION BY v % 50",
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT cityHash64(number), number FROM numbers({n})",
    ),
    "STRETCH_ROWS": Case(
        _each("STRETCH_ROWS", 1 << 14, 1 << 17, 1 << 20),
        (1 << 20,),
        [
            "CREATE TABLE t (k UInt64, v UInt64) ENGINE = MergeTree ORDER BY tuple()",
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT cityHash64(number), number FROM numbers({n})",
        threads=2,
    ),
    "RANGE_ROWS_MIN": Case(
        _on_off("RANGE_ROWS_MIN", 1),
        (512, 4_096, 262_144),
        NUMBERS,
        "SELECT sum(v) FROM t WHERE v > 100 AND v < 400 AND k > 1000",
    ),
    "LARGE_TASK_BYTES": Case(
        _each("LARGE_TASK_BYTES", 1 << 22, 1 << 25, 1 << 28),
        (1 << 21,),
        NUMBERS,
        "SELECT sum(v) FROM t WHERE k % 3 = 0",
    ),
    "ORDERED_ROWS_TRIED": Case(
        _each("ORDERED_ROWS_TRIED", 16, 1_024, 1 << 20),
        (1 << 20,),
        NUMBERS,
        "SELECT max(k) FROM (SELECT k FROM t ORDER BY k)",
    ),
    "JOINED_PIECE_ROWS_MIN": Case(
        _each("JOINED_PIECE_ROWS_MIN", 0, 16_384, NEVER),
        (1_000, 16_000, 130_000),
        [
            "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY k",
            STATES[1],
            STATES[2],
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT number, toString(number % 20), number / 7 FROM numbers(500000) SETTINGS max_block_size = {n}",
    ),
    "BLOCK_BATCH_ROWS": Case(
        _each("BLOCK_BATCH_ROWS", 0, 1 << 18, 1 << 20),
        (350_000, 1_000_000),
        [
            "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY k",
            STATES[1],
            STATES[2],
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT number, toString(number % 20), number / 7 FROM numbers({n})",
    ),
    "ROWS_PER_JOINED_VALUE_MIN": Case(
        _each("ROWS_PER_JOINED_VALUE_MIN", 0, 16, NEVER),
        (4, 100, 10_000),
        [
            "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY k",
            STATES[1],
            STATES[2],
            "SYSTEM STOP MERGES",
        ],
        "INSERT INTO t SELECT number, toString(number % {n}), number / 7 FROM numbers(500000) SETTINGS max_block_size = 65536",
    ),
    "JSON_TEXT_MAX": Case(
        {"fast": {"JSON_TEXT_MAX": NEVER}, "slow": {"JSON_TEXT_MAX": -1}},
        (100, 1_000, 4_000, 40_000),
        [
            "CREATE TABLE t (k UInt32, name String, v Float64) ENGINE = MergeTree ORDER BY k",
            "SYSTEM STOP MERGES",
        ],
        "VALUES",
    ),
}


def main() -> None:
    """Print a line for each case and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    for name in arguments.names:
        for line in measured(name, CASES[name], arguments.rounds):
            print(line, flush=True)


def measured(name: str, case: Case, rounds: int) -> Iterator[str]:
    """Yield the line of each size: the milliseconds of CPU under each value."""
    for size in case.sizes:
        with ExitStack() as opened:
            runs = {
                label: _opened(case, values, size, opened) for label, values in case.values.items()
            }
            times: dict[str, list[float]] = {label: [] for label in runs}
            for _ in range(rounds):
                for label, run in runs.items():
                    with patch.multiple(tuning, **case.values[label]), _kernels(case):
                        times[label].append(_cpu_ms(run))
        texts = ", ".join(f"{label} {min(taken):.2f} ms" for label, taken in times.items())
        yield f"{name:36} at {size:>9,}: {texts}"


def _opened(case: Case, values: Values, size: int, opened: ExitStack) -> Callable[[], object]:
    """Return a function that runs the statement in a new database, after a first run that fills caches."""
    statement = case.statement.replace("{n}", str(size))
    if statement == "VALUES":
        rows = (f"({i}, 'name {i}', {i}.5)" for i in range(size))
        statement = f"INSERT INTO t VALUES {', '.join(rows)}"
    folder = opened.enter_context(tempfile.TemporaryDirectory())
    connection = opened.enter_context(olapdb.connect(folder))

    def run() -> object:
        """Run the statement and read its rows."""
        cursor = connection.execute(statement)
        return cursor.fetchall() if statement.startswith("SELECT") else None

    with patch.multiple(tuning, **values), _kernels(case):
        connection.execute(f"SET max_threads = {case.threads}")
        for sql in case.setup:
            connection.execute(sql.replace("{n}", str(size)))
        run()
    return run


@contextmanager
def _kernels(case: Case) -> Iterator[None]:
    """Turn the compiled kernels off for a case that needs it."""
    if not case.numpy:
        yield
        return
    with without_kernels():
        yield


def _cpu_ms(work: Callable[[], Any]) -> float:
    """Return the CPU time that the process needs for the work, in ms."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1_000


if __name__ == "__main__":
    main()
