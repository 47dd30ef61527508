"""EXPLAIN json = 1: a plan as one JSON document, with ClickHouse's keys where there are any."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count

from olapdb.plan import nodes
from olapdb.plan.explain import Annotate, facts, title
from olapdb.plan.tree import subqueries_of


def explain_json(
    plan: nodes.Plan, annotate: Annotate | None = None, *, header: bool = False
) -> str:
    """Return the document: each node has "Node Type", "Node Id", "Description", the lines of
    EXPLAIN as "Details", and its inputs as "Plans"; with `header` the columns that it gives.

    `annotate(node)` returns more lines for a node, such as those of the executor about indexes."""
    tree = _tree(plan.root, annotate or (lambda node: ()), header, count())
    return json.dumps([{"Plan": tree}], indent=2, ensure_ascii=False)


def _tree(
    node: nodes.Node, annotate: Annotate, header: bool, numbers: Iterator[int]
) -> dict[str, object]:
    """Return a node, its subqueries and its inputs as nested objects of JSON; `numbers` gives each node its number."""
    kind, _, rest = title(node).partition(" (")
    tree: dict[str, object] = {"Node Type": kind, "Node Id": f"{kind}_{next(numbers)}"}
    if rest:
        tree["Description"] = rest.removesuffix(")")
    details: Iterable[str] = [*facts(node), *annotate(node)]
    if header:
        tree["Header"] = [{"Name": f.name, "Type": str(f.type)} for f in node.schema]
    if details:
        tree["Details"] = details
    subqueries = [_tree(plan, annotate, header, numbers) for plan in subqueries_of(node)]
    if subqueries:
        tree["Subqueries"] = subqueries
    inputs = [_tree(child, annotate, header, numbers) for child in node.children()]
    if inputs:
        tree["Plans"] = inputs
    return tree
