"""Every node offers just the columns that are needed above it; a Scan reads no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.plan import nodes
from olapdb.plan.expressions import ColumnRef, Expression, columns_of
from olapdb.plan.tree import with_columns

Names = frozenset[str]


def prune_columns(root: nodes.Node) -> nodes.Node:
    """Remove from each node the columns that no node above needs; the root keeps its schema."""
    return with_columns(_prune(root, frozenset(f.name for f in root.schema)), root.schema)


def _prune(node: nodes.Node, needed: Names) -> nodes.Node:
    """Return the node with at least the columns in `needed`, in their order.

    A column that only a key or condition of the node reads may stay too."""
    match node:
        case nodes.Scan():
            return _scan(node, needed)
        case nodes.SystemScan() | nodes.FileScan():
            kept = [(c, t) for c, t in zip(node.columns, node.types, strict=True) if c[0] in needed]
            return replace(node, columns=tuple(c for c, _ in kept), types=tuple(t for _, t in kept))
        case nodes.Values():
            return _values(node, needed)
        case nodes.Numbers() | nodes.Primes():
            return node
        case nodes.Loop():
            return replace(node, child=_prune(node.child, needed))
        case nodes.Filter():
            child = _prune(node.child, needed | columns_of(node.predicate))
            return replace(node, child=child)
        case nodes.Project():
            return _project(node, needed)
        case nodes.ArrayJoin():
            beside = tuple(f for f in node.kept if f.name in needed)
            used = frozenset(f.name for f in beside) | _used(e for _, e in node.arrays)
            return replace(node, child=_prune(node.child, used), kept=beside)
        case nodes.Aggregate():
            if node.totals is not None and node.totals.having is not None:
                needed |= columns_of(node.totals.having)
            aggregates = tuple((n, a) for n, a in node.aggregates if n in needed)
            arguments = (e for _, call in aggregates for e in call.arguments)
            used = _used([*(e for _, e in node.keys), *arguments])
            return replace(node, child=_prune(node.child, used), aggregates=aggregates)
        case nodes.Window():
            return _window(node, needed)
        case nodes.Join():
            return _join(node, needed)
        case nodes.Paste():
            return _paste(node, needed)
        case nodes.Sort() | nodes.Limit() | nodes.RelativeLimit():
            keys = node.keys if isinstance(node, nodes.Sort) else node.ties
            used = needed | _used(k.expression for k in keys)
            return replace(node, child=_prune(node.child, used))
        case nodes.Fill():
            read = _used((node.key, *node.prefix, *(e for _, e in node.interpolated)))
            used = needed | read | {name for name, _ in node.interpolated}
            return replace(node, child=_prune(node.child, used))
        case nodes.LimitBy():
            return replace(node, child=_prune(node.child, needed | _used(node.keys)))
        case nodes.Distinct():
            if node.keys:
                return replace(node, child=_prune(node.child, needed | _used(node.keys)))
            return replace(node, child=_all(node.child))
        case nodes.RecursiveUnion():
            return replace(node, first=_all(node.first), repeated=_all(node.repeated))
        case nodes.WorkingTable():
            return node
        case nodes.Union():
            return _union(node, needed)
        case nodes.SetDifference():
            return replace(node, left=_all(node.left), right=_all(node.right))
        case _:
            raise InternalError(f"Unknown plan node {type(node).__name__}.")


def _paste(node: nodes.Paste, needed: Names) -> nodes.Paste:
    """Return a PASTE JOIN of the needed columns of both sides."""
    sides = []
    for side in (node.left, node.right):
        kept = tuple(field for field in side.schema if field.name in needed)
        sides.append(with_columns(_prune(side, frozenset(f.name for f in kept)), kept))
    return replace(node, left=sides[0], right=sides[1])


def _used(expressions: Iterable[Expression]) -> Names:
    """Return the columns that the expressions read."""
    return frozenset().union(*(columns_of(e) for e in expressions))


def _all(node: nodes.Node) -> nodes.Node:
    """Return a node all of whose columns count, as those of DISTINCT do, with the nodes below it pruned."""
    return with_columns(_prune(node, frozenset(f.name for f in node.schema)), node.schema)


def _scan(node: nodes.Scan, needed: Names) -> nodes.Scan:
    """Return the scan of the needed columns, others that conditions read in `predicate_columns`."""
    columns = {unique: (name, t) for unique, name, t in node.predicate_columns}
    columns |= {u: (name, t) for (u, name), t in zip(node.columns, node.types, strict=True)}
    conditions = [e for e in (node.predicate, node.prewhere) if e is not None]
    only_read = sorted(_used(conditions) - needed)
    kept = [(c, t) for c, t in zip(node.columns, node.types, strict=True) if c[0] in needed]
    return replace(
        node,
        columns=tuple(c for c, _ in kept),
        types=tuple(t for _, t in kept),
        predicate_columns=tuple((u, *columns[u]) for u in only_read),
    )


def _project(node: nodes.Project, needed: Names) -> nodes.Node:
    """Return the Project of the needed columns; its pruned child alone if the Project would only reorder the child's
    columns."""
    kept = tuple((n, e) for n, e in node.expressions if n in needed)
    child = _prune(node.child, _used(e for _, e in kept))
    renames = any(not isinstance(e, ColumnRef) or e.name != name for name, e in kept)
    names = {name for name, _ in kept}
    if not renames and (not names or names == {f.name for f in child.schema}):
        return child
    return nodes.Project(child, kept)


def _values(node: nodes.Values, needed: Names) -> nodes.Values:
    """Return constant rows with the needed columns only; the number of rows stays."""
    kept = [f for f in node.fields if f.name in needed]
    if len(kept) == len(node.fields):
        return node
    if not kept:
        # A table without columns does not know its number of rows unless it was cut from one.
        rows = pa.table({"": pa.nulls(node.rows.num_rows)}).select([])
        return nodes.Values((), rows)
    return nodes.Values(tuple(kept), node.rows.select([f.name for f in kept]))


def _window(node: nodes.Window, needed: Names) -> nodes.Node:
    """Return the Window with the needed calls; its pruned child if none is needed."""
    calls = tuple((n, c) for n, c in node.calls if n in needed)
    below = needed - {n for n, _ in node.calls}
    if not calls:
        return _prune(node.child, below)
    arguments = (a for _, call in calls for a in call.arguments)
    order = (k.expression for k in node.order_by)
    used = _used([*node.partition_by, *order, *arguments])
    return replace(node, child=_prune(node.child, below | used), calls=calls)


def _join(node: nodes.Join, needed: Names) -> nodes.Join:
    """Return the join with pruned inputs; both keep the columns of keys and residual."""
    residual = columns_of(node.residual) if node.residual is not None else frozenset()
    left = _prune(node.left, _of(node.left, needed | residual | _used(node.left_keys)))
    right = _prune(node.right, _of(node.right, needed | residual | _used(node.right_keys)))
    types = {f.name: f.type for f in node.fields}
    offered = left.schema if node.strictness in ("SEMI", "ANTI") else (*left.schema, *right.schema)
    fields = tuple(nodes.Field(f.name, types.get(f.name, f.type)) for f in offered)
    return replace(node, left=left, right=right, fields=fields)


def _of(node: nodes.Node, names: Names) -> Names:
    """Return those of the names that are columns of the node, as a set."""
    return names & frozenset(f.name for f in node.schema)


def _union(node: nodes.Union, needed: Names) -> nodes.Union:
    """Return the UNION with each input pruned to the same positions."""
    positions = [i for i, f in enumerate(node.fields) if f.name in needed]
    inputs = []
    for branch in node.inputs:
        schema = tuple(branch.schema[i] for i in positions)
        inputs.append(with_columns(_prune(branch, frozenset(f.name for f in schema)), schema))
    return replace(node, inputs=tuple(inputs), fields=tuple(node.fields[i] for i in positions))
