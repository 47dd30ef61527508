"""Facts about expressions that rules decide by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, InValues, walk

_TOTAL = frozenset(
    {
        "and",
        "or",
        "not",
        "equals",
        "notEquals",
        "less",
        "lessOrEquals",
        "greater",
        "greaterOrEquals",
        "isNull",
        "isNotNull",
        "like",
        "notLike",
        "ilike",
        "notILike",
        "startsWith",
        "endsWith",
    }
)


def is_total(expression: Expression) -> bool:
    """Return whether evaluation is cheap and cannot fail: comparisons of columns and constants.

    Such a condition may also be evaluated on rows that another condition would have dropped."""
    return all(
        isinstance(e, ColumnRef | Constant | InValues) or (isinstance(e, Call) and e.name in _TOTAL)
        for e in walk(expression)
    )


def is_cheap(expression: Expression) -> bool:
    """Return whether evaluating the expression twice costs nothing: a column or a constant."""
    return isinstance(expression, ColumnRef | Constant)


def references(expressions: Iterable[Expression]) -> dict[str, int]:
    """Return by name how often the expressions mention each column."""
    counts: dict[str, int] = {}
    for expression in expressions:
        for e in walk(expression):
            if isinstance(e, ColumnRef):
                counts[e.name] = counts.get(e.name, 0) + 1
    return counts


def empty_rows(names: Sequence[str], types: Sequence[pa.DataType]) -> pa.Table:
    """Return a table of these columns without rows."""
    return pa.Table.from_arrays([pa.nulls(0, t) for t in types], names=list(names))
