"""The conditions of a scan, moved above it."""

from __future__ import annotations

from dataclasses import replace

from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import Expression, columns_of
from olapdb.plan.nodes import Scan


def scan_without(scan: Scan, above: list[Expression]) -> tuple[Scan, Expression]:
    """Return a scan without some of its conditions, given as the objects that they are, and these as one condition.
    What only they read are columns of the scan behind the others."""
    condition = all_of(above)
    read = columns_of(condition)
    added = tuple(column for column in scan.predicate_columns if column[0] in read)
    below = replace(
        scan,
        columns=(*scan.columns, *((unique, column) for unique, column, _ in added)),
        types=(*scan.types, *(data_type for _, _, data_type in added)),
        prewhere=_without(scan.prewhere, above),
        predicate=_without(scan.predicate, above),
        predicate_columns=tuple(c for c in scan.predicate_columns if c not in added),
    )
    return below, condition


def _without(condition: Expression | None, removed: list[Expression]) -> Expression | None:
    """Return the condition without some of its conjuncts; None if no other is left."""
    kept = [c for c in conjuncts(condition) if not any(c is other for other in removed)]
    return all_of(kept) if kept else None
