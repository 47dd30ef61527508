"""What is known of a table's rows without reading them: their number, and bounds of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Protocol

from olapdb.model.part import ColumnBounds, Part
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression
from olapdb.records import dataclass


def _unknown(column: str) -> float | None:
    """Return None: the number of distinct values is not known for any column."""
    return None


@dataclass(frozen=True)
class TableStatistics:
    """The number of a table's rows, and (minimum, maximum, nulls) of columns where all parts have
    them. `distinct(column)` is about how many values a column has, None where it is not known."""

    rows: int
    bounds: Mapping[str, ColumnBounds] = field(default_factory=dict)
    distinct: Callable[[str], float | None] = field(default=_unknown, compare=False)


DistinctCounts = Callable[[Table, str], "float | None"]
"""(table, column) -> about how many distinct values it has; None where that is not known."""

Statistics = Callable[[Table], TableStatistics]


class Samples(Protocol):
    """Some rows of each table, on which expressions can be tried."""

    def kept(self, table: Table, conditions: Sequence[Expression]) -> tuple[int, int] | None:
        """Return how many sampled rows meet all conditions, over the table's names of columns, and
        how many there are; None where the sample says nothing about them."""

    def distinct(
        self, table: Table, expressions: Sequence[Expression], conditions: Sequence[Expression]
    ) -> float | None:
        """Return about how many combinations of values expressions have over the table's rows that meet the
        conditions; None where the sample does not tell it."""


def statistics_of(snapshot: Snapshot, counts: DistinctCounts | None = None) -> Statistics:
    """Return the statistics of the tables of a snapshot; each table's are merged once. `counts`
    knows the distinct values of columns."""

    def of(table: Table) -> TableStatistics:
        """Return the merged statistics of one table, with distinct counts if `counts` is given."""
        known: TableStatistics = snapshot.derived(
            ("statistics", table.id), lambda: merged_statistics(snapshot.parts(table.id))
        )
        return known if counts is None else replace(known, distinct=partial(counts, table))

    return of


def merged_statistics(parts: Sequence[Part]) -> TableStatistics:
    """Return the statistics of all rows of some parts."""
    filled = [part for part in parts if part.rows]
    names = set(filled[0].bounds) if filled else set()
    for part in filled:
        names &= part.bounds.keys()
    bounds = {name: _union([part.bounds[name] for part in filled]) for name in sorted(names)}
    return TableStatistics(sum(part.rows for part in filled), bounds)


def _union(bounds: Sequence[ColumnBounds]) -> ColumnBounds:
    """Return the bounds of all values together: least, greatest, and the sum of the NULLs."""
    lows = [low for low, _, _ in bounds if low is not None]
    highs = [high for _, high, _ in bounds if high is not None]
    nulls = sum(n for _, _, n in bounds)
    return (min(lows), max(highs), nulls) if lows else (None, None, nulls)  # type: ignore[type-var]
