"""What one more view costs an INSERT, beside chDB.

    marginal(n views) = (time of the INSERT with n views - time without a view) / n

The engines take turns, statement by statement, and so do the numbers of views; of each the median
over the rounds counts. Both engines group the same block by the same keys into the same states.
Siblings read the source; a chain of five reads one after the other: source, daily, and so on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cases import CHDB, OLAPDB
from report import progress
from workers import Worker, check

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
    def name(self) -> str:
        views = (
            f"each of {self.chained} in a chain"
            if self.chained
            else (f"each of {self.siblings} views" if self.siblings > 1 else "1 view")
        )
        return f"{views}, {self.rows:,} rows"

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

    def answer(self) -> str:
        """Return the rows of the last view."""
        target = f"{self.table}_t{self.count - 1}"
        return (
            f"SELECT day, name, sum(n), avgMerge(a) FROM {target} GROUP BY day, name"
            " ORDER BY day, name"
        )

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
    """Time for each view, ours over theirs: of the medians, and the spread of the rounds."""

    name: str
    ratio: float
    low: float
    high: float


def measure(
    ours: Worker, theirs: Worker, rounds: int, sizes: Sequence[int], part: str = ""
) -> Iterator[Marginal]:
    """`part`: only the measurements whose names have this text."""
    for rows in sizes:
        none, *wanted = (
            Views(rows),
            *(Views(rows, siblings=n) for n in (1, 5, 10)),
            Views(rows, chained=5),
        )
        wanted = [views for views in wanted if part.lower() in views.name.lower()]
        if wanted:
            yield from _measured(ours, theirs, rounds, none, wanted)


def _measured(
    ours: Worker, theirs: Worker, rounds: int, none: Views, wanted: Sequence[Views]
) -> Iterator[Marginal]:
    cases = [none, *wanted]
    for engine in (ours, theirs):
        engine.seconds([sql for case in cases for sql in case.prepare()])
    times: dict[tuple[Views, bool], list[float]] = {}
    for number in range(rounds + 1):
        progress(f"marginal {none.rows:,} rows: round {number} of {rounds}")
        for case in cases:
            for engine in (ours, theirs) if number % 2 else (theirs, ours):
                spent = engine.seconds(case.insert())
                if number:  # the first round warms up
                    times.setdefault((case, engine is ours), []).append(spent)
        if not number:
            for case in wanted:
                check(
                    case.name,
                    dict.fromkeys((OLAPDB, CHDB), case.answer()),
                    {OLAPDB: ours, CHDB: theirs},
                    1e-9,
                )
    for case in wanted:
        mine, other = (_extra(times, none, case, whose) for whose in (True, False))
        each = [m / o for m, o in zip(mine, other) if o > 0]
        median = statistics.median(other)
        yield Marginal(
            case.name,
            statistics.median(mine) / median if median > 0 else math.nan,
            min(each, default=math.nan),
            max(each, default=math.nan),
        )


def _extra(
    times: dict[tuple[Views, bool], list[float]], none: Views, case: Views, mine: bool
) -> list[float]:
    """Return the time that each round took beyond that without a view."""
    return [w - wo for w, wo in zip(times[case, mine], times[none, mine], strict=True)]
