"""Side by side with chDB (ClickHouse in process): prints ratios, olapdb's time over chDB's.

    python tests/benchmarks/run.py [--rounds 5]

The engines take turns, statement by statement, so that a noisy machine harms both alike; a ratio
is the median over the rounds. Below 1 olapdb is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from marginal import measure

SOURCE = "(k UInt64, day Date, name String, v Float64) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY k"
TARGET = (
    "(day Date, name String, n SimpleAggregateFunction(sum, UInt64), "
    "a AggregateFunction(avg, Float64)) ENGINE = AggregatingMergeTree ORDER BY (day, name)"
)
VIEW = "AS SELECT day, name, count() AS n, avgState(v) AS a FROM {source} GROUP BY day, name"
ROWS = (
    "SELECT number AS k, toDate('2024-01-01') + toUInt16(number % {days}) AS day, "
    "toString(number % 10) AS name, number / 7 AS v FROM numbers({start}, {count})"
)


class Worker:
    """A process with one engine; `clock`: "wall", or "cpu" for processor seconds."""

    def __init__(self, engine: str, clock: str = "wall") -> None:
        script = Path(__file__).with_name("worker.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), engine, clock],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def seconds(self, statements: Sequence[str]) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(list(statements)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"The engine ended at: {statements[0][:200]}")
        return float(answer)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass(frozen=True)
class Case:
    """What is timed, per engine; `prepare` runs once, `before` in each round, neither is timed.
    `{round}` in a statement is the round's number."""

    name: str
    olapdb: tuple[str, ...]
    chdb: tuple[str, ...]
    prepare: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def both(name: str, *statements: str, prepare: Sequence[str] = ()) -> Case:
    return Case(name, statements, statements, tuple(prepare))


def values(count: int) -> str:
    return ", ".join(
        f"({i}, '2024-01-{1 + i % 28:02}', 'name {i % 10}', {i / 7})" for i in range(count)
    )


def insert_cases() -> list[Case]:
    cases = []
    for suffix, has_view in (("", False), (" + view", True)):
        for rows in (100, 10_000, 1_000_000):
            table = f"s{rows}{'v' if has_view else ''}"
            prepare = [f"CREATE TABLE {table} {SOURCE}"]
            if has_view:
                prepare.append(f"CREATE TABLE {table}_t {TARGET}")
                prepare.append(
                    f"CREATE MATERIALIZED VIEW {table}_m TO {table}_t {VIEW.format(source=table)}"
                )
            if rows == 100:
                timed = tuple(f"INSERT INTO {table} VALUES {values(100)}" for _ in range(10))
                label = f"insert 100 rows, 10 times{suffix}"
            else:
                timed = (f"INSERT INTO {table} {ROWS.format(days=28, start=0, count=rows)}",)
                label = f"insert {rows:,} rows{suffix}"
            cases.append(Case(label, timed, timed, tuple(prepare)))
    return cases


def insert_from_python_cases() -> list[Case]:
    """An Arrow table of the process: `connection.insert` here, `Python(…)` there."""
    cases = []
    for rows, times in ((100, 10), (10_000, 10), (1_000_000, 1)):
        timed = (f"INSERT FROM PYTHON a{rows} {rows}",) * times
        label = f"insert {rows:,} rows of Python" + (f", {times} times" if times > 1 else "")
        cases.append(Case(label, timed, timed, (f"CREATE TABLE a{rows} {SOURCE}",)))
    return cases


def read_cases() -> list[Case]:
    prepare = [f"CREATE TABLE r {SOURCE}", f"INSERT INTO r {ROWS.format(days=250, start=0, count=3_000_000)}",
               f"CREATE TABLE r_t {TARGET}",
               f"INSERT INTO r_t {VIEW.format(source='r').removeprefix('AS ')}"]  # fmt: skip
    return [
        both("raw scan: group 3,000,000 rows", "SELECT name, count(), sum(k), avg(v) FROM r GROUP BY name", prepare=prepare),
        both("raw scan: one month", "SELECT name, count(), sum(k) FROM r WHERE day >= '2024-03-01' AND day < '2024-04-01' GROUP BY name"),
        both("rollup read", "SELECT name, sum(n), avgMerge(a) FROM r_t GROUP BY name"),
        both("count()", "SELECT count() FROM r"),
    ]  # fmt: skip


def merge_cases() -> list[Case]:
    """A hundred parts, together half a million rows: read FINAL, then joined by OPTIMIZE FINAL."""
    columns = "(k UInt64, name String, v UInt64) ENGINE = ReplacingMergeTree(v) ORDER BY k"

    def filled(table: str) -> tuple[str, ...]:
        inserts = (
            f"INSERT INTO {table} SELECT number * 3 % 50000 AS k, toString(number % 10), {part}"
            f" FROM numbers({part * 200}, 5000)"
            for part in range(100)
        )
        # In ClickHouse the stop is for the tables that are there.
        return (f"CREATE TABLE {table} {columns}", "SYSTEM STOP MERGES", *inserts)

    read = "SELECT count(), sum(v), uniqExact(name) FROM f FINAL"
    return [
        both("FINAL read of 100 parts", read, prepare=filled("f")),
        Case(
            "OPTIMIZE FINAL of 100 parts",
            ("OPTIMIZE TABLE o{round} FINAL",),
            ("SYSTEM START MERGES", "OPTIMIZE TABLE o{round} FINAL"),
            before=filled("o{round}"),
        ),
        both("SELECT 1", "SELECT 1", prepare=("SYSTEM START MERGES",)),
    ]


def backfill_case() -> Case:
    """A view over rows that were there before: SYSTEM BACKFILL here, INSERT SELECT there."""
    prepare = (
        f"CREATE TABLE b {SOURCE}",
        f"INSERT INTO b {ROWS.format(days=250, start=0, count=3_000_000)}",
    )
    made = ("CREATE TABLE b_t{round} " + TARGET,
            "CREATE MATERIALIZED VIEW b_m{round} TO b_t{round} " + VIEW.format(source="b"))  # fmt: skip
    return Case(
        "backfill 3,000,000 rows",
        (*made, "SYSTEM BACKFILL VIEW b_m{round}"),
        (*made, "INSERT INTO b_t{round} " + VIEW.format(source="b").removeprefix("AS ")),
        prepare,
    )


def run(cases: Sequence[Case], rounds: int) -> list[tuple[str, float, float, float]]:
    """(name, median, smallest, largest ratio) for each case."""
    ours, theirs = Worker("olapdb"), Worker("chdb")
    outcome = []
    try:
        for case in cases:
            for worker in (ours, theirs):
                worker.seconds(case.prepare)
            ratios = []
            for number in range(rounds + 1):
                for worker in (ours, theirs):
                    worker.seconds([s.replace("{round}", str(number)) for s in case.before])
                mine = ours.seconds([s.replace("{round}", str(number)) for s in case.olapdb])
                other = theirs.seconds([s.replace("{round}", str(number)) for s in case.chdb])
                if number:  # the first round warms up
                    ratios.append(mine / other)
            outcome.append((case.name, statistics.median(ratios), min(ratios), max(ratios)))
            name, median, low, high = outcome[-1]
            print(f"{name:<36} {median:8.2f}   ({low:.2f} to {high:.2f})", flush=True)
    finally:
        ours.close()
        theirs.close()
    return outcome


def run_views(rounds: int, clock: str) -> None:
    """What one more view costs an INSERT, see `marginal`."""
    ours, theirs = Worker("olapdb", clock), Worker("chdb", clock)
    try:
        for one in measure(ours, theirs, rounds):
            print(one, flush=True)
    finally:
        ours.close()
        theirs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("views", "statements"), help="part of it")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="for the views")
    arguments = parser.parse_args()
    print(f"{'olapdb / chDB, median of ' + str(arguments.rounds):<36} {'ratio':>8}")
    if arguments.only != "statements":
        run_views(arguments.rounds, arguments.clock)
    if arguments.only == "views":
        return
    cases = (*insert_cases(), *insert_from_python_cases(), *read_cases(), backfill_case())
    run([*cases, *merge_cases()], arguments.rounds)


if __name__ == "__main__":
    main()
