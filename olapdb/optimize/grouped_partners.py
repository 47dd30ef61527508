"""SEMI and ANTI joins that ask for a partner with another value look at the least and the greatest one.

    l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w <> l.w)

Of the rows of one key some w is not l.w if the least or the greatest is not; some is above l.w if the greatest
is. So the right side is grouped by the keys, and no pairs are made of the rows that share a key.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.config import tuning
from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.partial_aggregates import aggregate_of
from olapdb.plan import nodes
from olapdb.plan.conditions import any_of, scalar_call
from olapdb.plan.expressions import Call, ColumnRef
from olapdb.types import Date, Date32, DateTime, DateTime64, Integer, plain

_ORDERED = (Integer, Date, Date32, DateTime, DateTime64)
_DECIDING = {
    "notEquals": ("min", "max"),
    "less": ("max",),
    "lessOrEquals": ("max",),
    "greater": ("min",),
    "greaterOrEquals": ("min",),
}
"""The aggregates of the right values that decide a comparison of the left value with any of them."""
_FLIPPED = {"less": "greater", "lessOrEquals": "greaterOrEquals"}
_FLIPPED |= {after: before for before, after in _FLIPPED.items()} | {"notEquals": "notEquals"}


def with_grouped_partners(join: nodes.Join, estimator: Estimator) -> nodes.Join:
    """Return a SEMI or ANTI join over the groups of its right side where that makes fewer pairs; else the
    same join."""
    compared = _compared(join)
    if compared is None or not all(isinstance(key, ColumnRef) for key in join.right_keys):
        return join
    rows = estimator.rows(join.right)
    keys = tuple((key.name, key) for key in join.right_keys if isinstance(key, ColumnRef))
    groups = estimator.rows(nodes.Aggregate(join.right, keys, ()))
    if rows < tuning.GROUPED_PARTNERS_ROWS_MIN or rows < tuning.GROUPED_PARTNERS_FACTOR * groups:
        return join
    name, left, right = compared
    calls = {
        f"__{extreme}_{right.name}": aggregate_of(extreme, right) for extreme in _DECIDING[name]
    }
    grouped = nodes.Aggregate(join.right, keys, tuple(calls.items()), limited=False)
    ways = [scalar_call(name, (left, ColumnRef(call.type, of))) for of, call in calls.items()]
    return replace(join, right=grouped, residual=any_of(ways))


def _compared(join: nodes.Join) -> tuple[str, ColumnRef, ColumnRef] | None:
    """Return the comparison, the left column and the right column of a residual that is nothing else."""
    condition = join.residual
    if not isinstance(condition, Call) or condition.name not in _DECIDING:
        return None
    name, (of_left, of_right) = condition.name, condition.arguments
    if not isinstance(of_left, ColumnRef) or not isinstance(of_right, ColumnRef):
        return None
    left = {field.name for field in join.left.schema}
    if of_left.name not in left:
        name, of_left, of_right = _FLIPPED[name], of_right, of_left
    right = {field.name for field in join.right.schema}
    if of_left.name not in left or of_right.name not in right:
        return None
    return (name, of_left, of_right) if isinstance(plain(of_right.type), _ORDERED) else None
