"""Conditions move down to where rows are read: through projections, grouping keys, joins, unions,
sorts, into the Scan, which prunes parts and row groups by them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from olapdb.functions.window_definitions import RANKING
from olapdb.plan import nodes
from olapdb.plan.conditions import MIRRORED, all_of, conjuncts
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    columns_of,
    is_repeatable,
    substitute,
)
from olapdb.plan.tree import with_inputs


def push_predicates(root: nodes.Node) -> nodes.Node:
    """Move each condition down as far as it keeps its meaning, from the root on."""
    return _push(root, [])


def _push(node: nodes.Node, conditions: list[Expression]) -> nodes.Node:
    """Apply the conditions, which are over the node's schema, at or below the node."""
    match node:
        case nodes.Filter():
            parts = conjuncts(node.predicate)
            if any(not is_repeatable(p) for p in parts):
                child = _push(node.child, [])
                return _filtered(replace(node, child=child), conditions)
            # Its own conditions come first: they may guard those above from errors.
            return _push(node.child, [*parts, *conditions])
        case nodes.Project():
            return _through_project(node, conditions)
        case nodes.ArrayJoin():
            return _through_array_join(node, conditions)
        case nodes.Aggregate():
            return _through_aggregate(node, conditions)
        case nodes.Join():
            return _through_join(node, conditions)
        case nodes.Union():
            return _through_union(node, conditions)
        case nodes.Window():
            return _through_window(node, conditions)
        case nodes.Sort(limit=None):
            return replace(node, child=_push(node.child, conditions))
        case nodes.Distinct(keys=()):
            return replace(node, child=_push(node.child, conditions))
        case nodes.Scan():
            return _into_scan(node, conditions)
        case _:
            inputs = tuple(_push(child, []) for child in node.children())
            return _filtered(with_inputs(node, inputs), conditions)


def _filtered(node: nodes.Node, conditions: list[Expression]) -> nodes.Node:
    """Return the node under a Filter of the conditions, unchanged if there are none."""
    return nodes.Filter(node, all_of(conditions)) if conditions else node


def _through_project(node: nodes.Project, conditions: list[Expression]) -> nodes.Node:
    """Move conditions below a Project, except those that read rand() or the like."""
    by_name = dict(node.expressions)
    down: list[Expression] = []
    stay: list[Expression] = []
    for condition in conditions:
        needed = [by_name[name] for name in columns_of(condition)]
        movable = is_repeatable(condition) and all(is_repeatable(e) for e in needed)
        (down if movable else stay).append(condition)
    child = _push(node.child, [substitute(c, by_name) for c in down])
    return _filtered(replace(node, child=child), stay)


def _through_array_join(node: nodes.ArrayJoin, conditions: list[Expression]) -> nodes.Node:
    """Move conditions below an ArrayJoin if they read no element: they keep or drop whole rows."""
    kept = {f.name for f in node.kept}
    down: list[Expression] = []
    stay: list[Expression] = []
    for condition in conditions:
        movable = is_repeatable(condition) and columns_of(condition) <= kept
        (down if movable else stay).append(condition)
    return _filtered(replace(node, child=_push(node.child, down)), stay)


def _through_aggregate(node: nodes.Aggregate, conditions: list[Expression]) -> nodes.Node:
    """Move conditions below an Aggregate if they read only keys: they drop whole groups.

    Nothing moves without keys, where no rows still make a group, nor with grouping sets, where a
    key is NULL or its default in the other sets, nor WITH TOTALS, which a later WHERE does not
    change."""
    keys = {} if node.sets or node.totals is not None else dict(node.keys)
    down: list[Expression] = []
    stay: list[Expression] = []
    for condition in conditions:
        used = columns_of(condition)
        movable = bool(used) and used <= keys.keys() and is_repeatable(condition)
        movable = movable and all(is_repeatable(keys[name]) for name in used)
        (down if movable else stay).append(condition)
    child = _push(node.child, [substitute(c, keys) for c in down])
    return _filtered(replace(node, child=child), stay)


def _through_window(node: nodes.Window, conditions: list[Expression]) -> nodes.Node:
    """Move conditions below a Window if they read only its PARTITION BY columns.

    They then keep or drop whole partitions. The Window is told of upper bounds of ranks: it may drop rows that have greater
    ones before it sorts them."""
    partition = {e.name for e in node.partition_by if isinstance(e, ColumnRef)}
    down: list[Expression] = []
    stay: list[Expression] = []
    for condition in conditions:
        used = columns_of(condition)
        movable = bool(used) and used <= partition and is_repeatable(condition)
        (down if movable else stay).append(condition)
    ranks = [rank for condition in stay if (rank := _rank_max(node, condition)) is not None]
    child = _push(node.child, down)
    return _filtered(replace(node, child=child, ranks_max=tuple(ranks)), stay)


def _rank_max(node: nodes.Window, condition: Expression) -> tuple[str, int] | None:
    """Return the name of a ranking call and the greatest result of it that a condition keeps; None if the condition is
    not an upper bound of one."""
    match condition:
        case Call(name=name, arguments=(ColumnRef(name=column), Constant(value=bound))):
            pass
        case Call(name=name, arguments=(Constant(value=bound), ColumnRef(name=column))):
            name = MIRRORED.get(name, name)
        case _:
            return None
    call = dict(node.calls).get(column)
    limit = bound.as_py() if pa.types.is_integer(bound.type) else None
    if call is None or call.function.name not in RANKING or limit is None:
        return None
    if name in ("lessOrEquals", "equals"):
        return column, limit
    return (column, limit - 1) if name == "less" else None


def _through_join(node: nodes.Join, conditions: list[Expression]) -> nodes.Node:
    """Move each condition to the side whose columns it reads.

    It stays above where the join fills in that side's missing rows."""
    left_names = {f.name for f in node.left.schema}
    right_names = {f.name for f in node.right.schema}
    to_left = node.kind in ("INNER", "LEFT", "CROSS") and not _picks_rows(node)
    to_right = node.kind in ("INNER", "RIGHT", "CROSS") and not _picks_rows(node)
    to_right = to_right and node.strictness != "ASOF"  # another row would be the nearest
    left: list[Expression] = []
    right: list[Expression] = []
    stay: list[Expression] = []
    for condition in conditions:
        used = columns_of(condition)
        if not used or not is_repeatable(condition):
            stay.append(condition)
        elif to_left and used <= left_names:
            left.append(condition)
        elif to_right and used <= right_names:
            right.append(condition)
        else:
            stay.append(condition)
    joined = replace(node, left=_push(node.left, left), right=_push(node.right, right))
    return _filtered(joined, stay)


def _picks_rows(node: nodes.Join) -> bool:
    """Return whether the join is INNER ANY: a condition below could change which rows it picks."""
    return node.kind == "INNER" and node.strictness == "ANY"


def _through_union(node: nodes.Union, conditions: list[Expression]) -> nodes.Node:
    """Move repeatable conditions into each input of a Union, over the input's own columns.

    Other conditions, such as those with rand(), stay in a Filter above the Union.
    """
    down = [c for c in conditions if is_repeatable(c)]
    stay = [c for c in conditions if not is_repeatable(c)]
    inputs = []
    for branch in node.inputs:
        by_name: dict[str, Expression] = {
            f.name: ColumnRef(own.type, own.name)
            for f, own in zip(node.fields, branch.schema, strict=True)
        }
        inputs.append(_push(branch, [substitute(c, by_name) for c in down]))
    return _filtered(replace(node, inputs=tuple(inputs)), stay)


def _into_scan(node: nodes.Scan, conditions: list[Expression]) -> nodes.Node:
    """Add conditions to the predicate of a Scan; those with rand() stay in a Filter on top."""
    down = [c for c in conditions if is_repeatable(c)]
    stay = [c for c in conditions if not is_repeatable(c)]
    if not down:
        return _filtered(node, stay)
    predicate = all_of([*conjuncts(node.predicate), *down])
    return _filtered(replace(node, predicate=predicate), stay)
