"""What one more view costs an INSERT: marginal milliseconds per view, beside chDB's.

    marginal(n views) = (time of the INSERT with n views - time without a view) / n

The engines take turns, statement by statement, and so do the numbers of views; of each the median
over the rounds counts. Both engines group the same block by the same keys into the same states.
Siblings read the source; a chain of five reads one after the other: source, daily, and so on.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

SOURCE = (
    "(k UInt64, day Date, name String, v Float64) ENGINE = MergeTree PARTITION BY toYYYYMM(day) "
    "ORDER BY k"
)
TARGET = (
    "(day Date, name String, n SimpleAggregateFunction(sum, UInt64), "
    "a AggregateFunction(avg, Float64)) ENGINE = AggregatingMergeTree ORDER BY (day, name)"
)
FIRST = "SELECT day, name, count() AS n, avgState(v) AS a FROM {source} GROUP BY day, name"
NEXT = "SELECT day, name, sum(n) AS n, avgMergeState(a) AS a FROM {source} GROUP BY day, name"
ROWS = (
    "SELECT number AS k, toDate('2024-01-01') + toUInt16(number % 28) AS day, "
    "toString(number % 10) AS name, number / 7 AS v FROM numbers({count})"
)


class Engine(Protocol):
    def seconds(self, statements: Sequence[str]) -> float: ...


@dataclass(frozen=True)
class Views:
    """`repeats`: how often the INSERT is run for one time."""

    rows: int
    siblings: int = 0
    chained: int = 0

    @property
    def count(self) -> int:
        return self.siblings + self.chained

    @property
    def repeats(self) -> int:
        return 20 if self.rows <= 100 else 5 if self.rows <= 10_000 else 1

    @property
    def table(self) -> str:
        return f"m{self.rows}_{self.siblings}_{self.chained}"

    @property
    def label(self) -> str:
        return f"{self.siblings} sibling" if self.siblings else f"{self.chained} chained"

    def prepare(self) -> list[str]:
        made = [f"CREATE TABLE {self.table} {SOURCE}"]
        source, query = self.table, FIRST
        for number in range(self.count):
            target = f"{self.table}_t{number}"
            made.append(f"CREATE TABLE {target} {TARGET}")
            made.append(
                f"CREATE MATERIALIZED VIEW {self.table}_v{number} TO {target} AS "
                + query.format(source=source)
            )
            if self.chained:
                source, query = target, NEXT
        return made

    def insert(self) -> list[str]:
        if self.rows > 100:
            one = f"INSERT INTO {self.table} {ROWS.format(count=self.rows)}"
        else:
            values = ", ".join(
                f"({i}, '2024-01-{1 + i % 28:02}', '{i % 10}', {i / 7})" for i in range(self.rows)
            )
            one = f"INSERT INTO {self.table} VALUES {values}"
        return [one] * self.repeats


@dataclass(frozen=True)
class Marginal:
    """Milliseconds for each view, ours and theirs."""

    rows: int
    label: str
    ours_ms: float
    theirs_ms: float

    @property
    def ratio(self) -> float:
        return self.ours_ms / self.theirs_ms if self.theirs_ms > 0 else float("nan")

    def __str__(self) -> str:
        name = f"a view, {self.rows:,} rows, {self.label}"
        return f"{name:<36} {self.ratio:8.2f}   ({self.ours_ms:.2f} ms to {self.theirs_ms:.2f} ms)"


def measure(
    ours: Engine, theirs: Engine, rounds: int, sizes: Sequence[int] = (100, 10_000, 1_000_000)
) -> Iterator[Marginal]:
    for rows in sizes:
        cases = [
            Views(rows),
            *(Views(rows, siblings=n) for n in (1, 5, 10)),
            Views(rows, chained=5),
        ]
        for engine in (ours, theirs):
            engine.seconds([sql for case in cases for sql in case.prepare()])
        times: dict[tuple[Views, bool], list[float]] = {}
        for number in range(rounds + 1):
            for case in cases:
                for engine in (ours, theirs):
                    spent = engine.seconds(case.insert()) * 1000 / case.repeats
                    if number:  # the first round warms up
                        times.setdefault((case, engine is ours), []).append(spent)
        for case in cases[1:]:
            yield Marginal(
                rows,
                case.label,
                *(_marginal(times, cases[0], case, mine) for mine in (True, False)),
            )


def _marginal(
    times: dict[tuple[Views, bool], list[float]], none: Views, case: Views, mine: bool
) -> float:
    """The median of the rounds' differences."""
    pairs = zip(times[case, mine], times[none, mine], strict=True)
    return statistics.median((with_views - without) / case.count for with_views, without in pairs)
