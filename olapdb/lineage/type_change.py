"""Type changes of a source column that keep the result of a view.

A wider type holds the same values, but an expression may give another result: `ts` in another time
zone is another text and another day, `sumIf(v, c)` of a Nullable `v` is NULL where no row matched,
and `bitNot(v)` of a UInt16 is not that of a UInt8.
"""

from __future__ import annotations

from olapdb.plan.expressions import Call, walk
from olapdb.plan.nodes import Aggregate, Node
from olapdb.plan.tree import expressions_of, subqueries_of, walk_nodes
from olapdb.storage.column_statistics import bounds_hold
from olapdb.types import DataType, DateTime, DateTime64, Enum, Float, Integer, is_nullable, plain

_WIDTH_FUNCTIONS = frozenset(
    {"bitNot", "bitShiftLeft", "bitShiftRight", "hex", "intHash32", "intHash64", "toTypeName"}
)
_WIDTH_AGGREGATES = frozenset({"sumWithOverflow"})
"""Functions whose result for one integer depends on how wide its type is."""


def widened_only(before: DataType, after: DataType) -> bool:
    """Return whether the change only widens an integer.

    Results are then the same unless the plan has a function that `depends_on_width` finds."""
    return (
        isinstance(plain(before), Integer)
        and plain(before) != plain(after)
        and same_result(before, after, joined=False)
    )


def same_result(before: DataType, after: DataType, *, joined: bool) -> bool:
    """Return whether expressions over the column give the same results for the stored values.

    Widths of integers do not count, see `widened_only`.  A `joined` column also gives rows without
    a match its default, which is NULL where the type is Nullable."""
    old, new = plain(before), plain(after)
    if isinstance(old, Integer) and isinstance(new, Integer):
        same = bounds_hold(before, after)
    elif isinstance(old, Enum) and isinstance(new, Enum) and old.bits == new.bits:
        # The first element is what stands where there is no value: rows without a partner, parts
        # that lack the column, minIf of no row.
        same = bounds_hold(before, after) and old.elements[0] == new.elements[0]
    else:
        same = old == new
    # FillNullsStep rewrites rows whose NULL becomes a value, and invalidates them one by one.
    return same and (
        is_nullable(before) == is_nullable(after) or (not joined and is_nullable(before))
    )


def same_stored(given: DataType, before: DataType, after: DataType) -> bool:
    """Return whether a column of type `after` stores each value of type `given` as one of type
    `before` does, where the ALTER from one to the other changes no stored value.

    A text or a Date is another instant in another zone. A Float64 keeps digits that a Float32 has
    lost."""
    value, old, new = plain(given), plain(before), plain(after)
    if isinstance(new, DateTime | DateTime64):
        return old == new or isinstance(value, DateTime | DateTime64)
    if isinstance(old, Float) and isinstance(new, Float):
        return old.bits == new.bits or (isinstance(value, Float) and value.bits <= old.bits)
    return True


def depends_on_width(root: Node) -> bool:
    """Return whether a function of the plan, in subqueries too, depends on an integer's width."""
    for node in walk_nodes(root):
        if isinstance(node, Aggregate) and any(
            call.name in _WIDTH_AGGREGATES for _, call in node.aggregates
        ):
            return True
        for expression in expressions_of(node):
            if any(isinstance(e, Call) and e.name in _WIDTH_FUNCTIONS for e in walk(expression)):
                return True
        if any(depends_on_width(inner) for inner in subqueries_of(node)):
            return True
    return False
