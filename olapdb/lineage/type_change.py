"""Whether a view makes the same of values whose column has another type.

A wider type holds the same values, and still an expression may tell: `ts` in another time zone is
another text and another day, `sumIf(v, c)` of a Nullable `v` is NULL where nothing matched, and
`bitNot(v)` of a UInt16 is not that of a UInt8.
"""

from __future__ import annotations

from olapdb.plan.expressions import Call, walk
from olapdb.plan.nodes import Aggregate, Node
from olapdb.plan.tree import expressions_of, subqueries_of, walk_nodes
from olapdb.storage.column_statistics import bounds_hold
from olapdb.types import DataType, Integer, is_nullable, plain

_TELL_WIDTHS = frozenset(
    {"bitNot", "bitShiftLeft", "bitShiftRight", "hex", "intHash32", "intHash64", "toTypeName"}
)
_TELL_WIDTHS_AGGREGATED = frozenset({"sumWithOverflow"})
"""Functions whose result for one integer depends on how wide its type is."""


def widened_only(before: DataType, after: DataType) -> bool:
    """Return whether the types are integers, the new one wider: same values, but for the few
    functions that `width_tells` looks for."""
    return (
        isinstance(plain(before), Integer)
        and plain(before) != plain(after)
        and same_result(before, after, joined=False)
    )


def same_result(before: DataType, after: DataType, *, joined: bool) -> bool:
    """Return whether an expression over the column gives what it gave before, for existing values;
    widths of integers apart. A column that is `joined` is besides the default of rows without a
    match, which is NULL where the type is Nullable."""
    old, new = plain(before), plain(after)
    if isinstance(old, Integer) and isinstance(new, Integer):
        same = bounds_hold(before, after)
    else:
        same = old == new
    # Rows whose NULL becomes a value are rewritten, and told of one by one (`FillNullsStep`).
    return same and (
        is_nullable(before) == is_nullable(after) or (not joined and is_nullable(before))
    )


def width_tells(root: Node) -> bool:
    """Return whether the plan has a function, in subqueries too, whose result depends on the width
    of an integer."""
    for node in walk_nodes(root):
        if isinstance(node, Aggregate) and any(
            call.name in _TELL_WIDTHS_AGGREGATED for _, call in node.aggregates
        ):
            return True
        for expression in expressions_of(node):
            if any(isinstance(e, Call) and e.name in _TELL_WIDTHS for e in walk(expression)):
                return True
        if any(width_tells(inner) for inner in subqueries_of(node)):
            return True
    return False
