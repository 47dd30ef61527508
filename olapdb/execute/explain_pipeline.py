"""EXPLAIN PIPELINE: the operator of each node of a plan, and in how many threads it works."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.compute.context import ExecutionContext
from olapdb.errors import InternalError
from olapdb.plan import nodes
from olapdb.plan.explain import title
from olapdb.plan.tree import subqueries_of

_OPERATORS: dict[type[nodes.Node], tuple[str, bool]] = {
    nodes.Scan: ("scan", True),
    nodes.SystemScan: ("system", False),
    nodes.Values: ("values", False),
    nodes.FileScan: ("file", False),
    nodes.Numbers: ("numbers", False),
    nodes.Primes: ("primes", False),
    nodes.Loop: ("loop", False),
    nodes.Filter: ("filter", True),
    nodes.Project: ("project", True),
    nodes.ArrayJoin: ("array_join", False),
    nodes.Aggregate: ("aggregate", True),
    nodes.TotalsRow: ("totals", False),
    nodes.Join: ("join", True),
    nodes.Paste: ("paste", False),
    nodes.Sort: ("sort", False),
    nodes.Fill: ("fill", False),
    nodes.Window: ("window", False),
    nodes.Limit: ("limit", False),
    nodes.RelativeLimit: ("relative_limit", False),
    nodes.LimitBy: ("limit_by", False),
    nodes.Distinct: ("distinct", False),
    nodes.RecursiveUnion: ("recursive", False),
    nodes.WorkingTable: ("working", False),
    nodes.Shared: ("shared", False),
    nodes.Union: ("union", False),
    nodes.SetDifference: ("set_difference", False),
}
"""The operator of each node, and whether it works on several batches at a time."""


def pipeline_lines(plan: nodes.Plan, context: ExecutionContext) -> list[str]:
    """Return the lines of EXPLAIN PIPELINE, two for each node: its step in parentheses, then its operator with the
    number of its threads."""
    return list(_lines(plan.root, 0, context.threads))


def _lines(node: nodes.Node, depth: int, threads: int) -> Sequence[str]:
    """Return the lines of a node, its subqueries and its inputs."""
    if type(node) not in _OPERATORS:
        raise InternalError(f"EXPLAIN PIPELINE does not know {type(node).__name__}.")
    name, is_parallel = _OPERATORS[type(node)]
    indent = "  " * depth
    lines = [f"{indent}({title(node).partition(' (')[0]})"]
    lines.append(f"{indent}{name}{f' × {threads}' if is_parallel and threads > 1 else ''}")
    for plan in subqueries_of(node):
        lines.append(f"{indent}  (Subquery)")
        lines += _lines(plan, depth + 2, threads)
    for child in node.children():
        lines += _lines(child, depth + 1, threads)
    return lines
