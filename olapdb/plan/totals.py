"""The plan of a query's totals, derived from the query's own plan.

Totals pass through what computes columns, in the outer queries too, and ignore what chooses or orders
rows, as in ClickHouse:

    Limit <- Project <- Filter <- Aggregate (WITH TOTALS)        Project <- TotalsRow
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from olapdb.functions import default_value
from olapdb.plan import nodes
from olapdb.plan.tree import with_inputs
from olapdb.types import is_nullable


def totals_plan(node: nodes.Node) -> nodes.Node | None:
    """Return the plan of the one row of totals of the query `node`, None if it has none.

    Its schema is that of `node`. It reads rows that `node`'s Aggregates leave behind as they run."""
    match node:
        case nodes.Aggregate():
            return None if node.totals is None else nodes.TotalsRow(node)
        case (
            nodes.Filter()
            | nodes.Sort()
            | nodes.Limit()
            | nodes.RelativeLimit()
            | nodes.LimitBy()
            | nodes.Distinct()
            | nodes.Fill()
        ):
            return totals_plan(node.child)
        case nodes.Project() | nodes.Window():
            below = totals_plan(node.child)
            return None if below is None else with_inputs(node, (below,))
        case nodes.ArrayJoin():
            below = totals_plan(node.child)
            return None if below is None else nodes.Limit(replace(node, child=below), 1)
        case nodes.Join():
            return _of_join(node)
        case nodes.Union(inputs=inputs) if inputs:
            branches = (totals_plan(branch) for branch in inputs)
            first = next((branch for branch in branches if branch is not None), None)
            return None if first is None else nodes.Union((first,), node.fields)
        case nodes.SetDifference(left=left):
            below = totals_plan(left)
            return None if below is None else nodes.Union((below,), node.fields)
        case _:
            return None


def _of_join(node: nodes.Join) -> nodes.Node | None:
    """Return the totals of both sides side by side, default values for a side without totals."""
    left, right = totals_plan(node.left), totals_plan(node.right)
    if node.strictness in ("SEMI", "ANTI"):
        return left
    if left is None and right is None:
        return None
    left = left or _default_row(node.left)
    right = right or _default_row(node.right)
    return nodes.Join(left, right, "CROSS", "ALL", (), (), None, node.fields)


def _default_row(node: nodes.Node) -> nodes.Node:
    """Return one row of the node's schema: NULL where the column is Nullable, else the default."""
    columns = [
        pa.nulls(1, f.type.arrow)
        if is_nullable(f.type)
        else pa.repeat(default_value(f.type), 1).cast(f.type.arrow)
        for f in node.schema
    ]
    return nodes.Values(node.schema, pa.table(columns, schema=node.arrow_schema))
