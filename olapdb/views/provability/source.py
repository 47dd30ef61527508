"""Sources whose engine joins rows: the view must give the same for merged and unmerged rows.

A trigger sees the rows of an INSERT; a recomputation sees what merges left of them. A view over
such a source is provable if both give the same: it groups by columns of the source's ORDER BY, and
each aggregate commutes with a merge (see `merging`).

A SummingMergeTree also drops rows whose sums are zero. They add nothing to a sum, but their group
is in the target and not in a recomputation. The two are equal only if the target drops its own rows
of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.plan import nodes
from olapdb.views.definition.query_shape import QueryShape
from olapdb.views.provability.judgement import JudgedItem, provable_item, unproven_item
from olapdb.views.provability.merging import commutes, drops_rows_of_zero, is_key, over_keys
from olapdb.views.provability.parts import BoundDefinition
from olapdb.views.provability.query import path

_ENGINES = ("MergeTree", "Memory", "Log", "TinyLog", "StripeLog", "Set", "Null")
"""Engines that never change stored rows."""


def source_items(
    parts: BoundDefinition, branch: nodes.Plan, shape: QueryShape
) -> Iterator[JudgedItem]:
    """Yield items about the rows that come from the source."""
    engine = parts.source.engine
    name = f"source {parts.source_name}"
    if not engine.combines:
        if engine.name in _ENGINES:
            yield provable_item(
                name, "Each of its rows comes with a block and leaves with a commit."
            )
        else:
            yield unproven_item(name, f"{engine.name} is not known to keep rows as they came.")
        return
    reason = _merge_dependence(parts, shape)
    if reason:
        yield unproven_item(name, reason, "Select from a MergeTree table that holds the same rows.")
    else:
        yield provable_item(
            name, f"What the view makes of its rows is the same after a merge ({engine})."
        )


def _merge_dependence(parts: BoundDefinition, shape: QueryShape) -> str:
    """Return the reason why the view's result depends on merges of its source, or ""."""
    source, name = parts.source, parts.source_name
    if shape.aggregate is None:
        return f"{name} merges its rows, and a row-wise view shows which it has merged."
    child = shape.aggregate.child
    for _, key in shape.aggregate.keys:
        if not (over_keys(child, key, source) or is_key(child, key, source)):
            return f"It groups by columns outside the ORDER BY of {name}, which merges rows."
    for _, call in shape.aggregate.aggregates:
        if not commutes(child, call, source):
            return f"{call.name} counts the unmerged rows of {name}, which merges them."
    for node in path(child):
        reason = _merge_dependent_node(parts, node)
        if reason:
            return reason
    if source.engine.sign is not None:
        return f"{name} drops rows that cancel each other, and what the view made of them stays."
    if source.engine.drops_keys and not drops_rows_of_zero(parts.target):
        return (
            f"{name} drops rows whose sums are zero, and {parts.target_name} keeps the groups that"
            " the view made of them."
        )
    return ""


def _merge_dependent_node(parts: BoundDefinition, node: nodes.Node) -> str:
    """Return the reason why a node between the source and the GROUP BY depends on merges, or ""."""
    source, name = parts.source, parts.source_name
    match node:
        case nodes.Filter(child=child, predicate=predicate):
            if not over_keys(child, predicate, source):
                return f"It filters by columns outside the ORDER BY of {name}, which merges rows."
        case nodes.ArrayJoin(child=child, arrays=arrays):
            if not all(over_keys(child, array, source) for _, array in arrays):
                return f"It joins arrays outside the ORDER BY of {name}, which merges rows."
        case nodes.Join(left=left, left_keys=left_keys, residual=residual):
            conditions = [over_keys(left, key, source) for key in left_keys]
            if residual is not None:
                conditions.append(over_keys(node, residual, source))
            if not all(conditions):
                return f"It joins by columns outside the ORDER BY of {name}, which merges rows."
    return ""
