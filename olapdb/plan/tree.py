"""Walking and rewriting plans: children, expressions, and the subqueries in expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from olapdb.errors import InternalError
from olapdb.plan import expressions, nodes


def with_inputs(node: nodes.Node, inputs: tuple[nodes.Node, ...]) -> nodes.Node:
    """Return the node over other children, given in the order of `children()`."""
    if all(new is old for new, old in zip(inputs, node.children(), strict=True)):
        return node
    match node:
        case (
            nodes.Filter()
            | nodes.Project()
            | nodes.ArrayJoin()
            | nodes.Aggregate()
            | nodes.Sort()
            | nodes.Limit()
            | nodes.RelativeLimit()
            | nodes.LimitBy()
            | nodes.Distinct()
            | nodes.Window()
            | nodes.Fill()
            | nodes.Shared()
            | nodes.Loop()
        ):
            return replace(node, child=inputs[0])
        case nodes.Join() | nodes.SetDifference() | nodes.Paste():
            return replace(node, left=inputs[0], right=inputs[1])
        case nodes.RecursiveUnion():
            return replace(node, first=inputs[0], repeated=inputs[1])
        case nodes.Union():
            return replace(node, inputs=inputs)
        case _:
            raise InternalError(f"{type(node).__name__} has no children to replace.")


def with_columns(node: nodes.Node, schema: nodes.Schema) -> nodes.Node:
    """Return the node with exactly the columns of a schema, in their order."""
    if node.schema == schema:
        return node
    columns = tuple((f.name, expressions.ColumnRef(f.type, f.name)) for f in schema)
    return nodes.Project(node, columns)


def expressions_of(node: nodes.Node) -> tuple[expressions.Expression, ...]:
    """Return the expressions that the node itself evaluates, not those of its children."""
    match node:
        case nodes.Filter(predicate=predicate):
            return (predicate,)
        case nodes.Project(expressions=pairs) | nodes.ArrayJoin(arrays=pairs):
            return tuple(e for _, e in pairs)
        case nodes.Aggregate(keys=keys, aggregates=aggregates):
            arguments = (a for _, call in aggregates for a in call.arguments)
            having = None if node.totals is None else node.totals.having
            return (*(e for _, e in keys), *arguments, *(() if having is None else (having,)))
        case nodes.Join():
            residual = () if node.residual is None else (node.residual,)
            return (*node.left_keys, *node.right_keys, *residual)
        case nodes.Sort(keys=keys):
            return tuple(k.expression for k in keys)
        case nodes.Window(partition_by=partition_by, order_by=order_by, calls=calls):
            read = (a for _, call in calls for a in call.arguments)
            return (*partition_by, *(k.expression for k in order_by), *read)
        case nodes.Fill():
            return (node.key, *node.prefix, *(e for _, e in node.interpolated))
        case nodes.Limit(ties=ties) | nodes.RelativeLimit(ties=ties):
            return tuple(k.expression for k in ties)
        case nodes.LimitBy(keys=keys) | nodes.Distinct(keys=keys):
            return keys
        case nodes.Scan(predicate=predicate, prewhere=prewhere):
            return tuple(e for e in (predicate, prewhere) if e is not None)
        case (
            nodes.Union()
            | nodes.Paste()
            | nodes.SetDifference()
            | nodes.Values()
            | nodes.Numbers()
            | nodes.Primes()
            | nodes.Loop()
            | nodes.SystemScan()
            | nodes.FileScan()
            | nodes.TotalsRow()
            | nodes.RecursiveUnion()
            | nodes.WorkingTable()
            | nodes.Shared()
        ):
            return ()
        case _:
            raise InternalError(f"Unknown plan node {type(node).__name__}.")


Change = Callable[[expressions.Expression], expressions.Expression]


def map_expressions(node: nodes.Node, change: Change) -> nodes.Node:
    """Return the node with `change` applied to each of its expressions; types must stay."""
    match node:
        case nodes.Filter():
            return replace(node, predicate=change(node.predicate))
        case nodes.Project():
            return replace(node, expressions=tuple((n, change(e)) for n, e in node.expressions))
        case nodes.ArrayJoin():
            return replace(node, arrays=tuple((n, change(e)) for n, e in node.arrays))
        case nodes.Aggregate():
            return replace(
                node,
                keys=tuple((n, change(e)) for n, e in node.keys),
                aggregates=tuple((n, _map_call(c, change)) for n, c in node.aggregates),
                totals=_map_totals(node.totals, change),
            )
        case nodes.Join():
            return replace(
                node,
                left_keys=tuple(change(e) for e in node.left_keys),
                right_keys=tuple(change(e) for e in node.right_keys),
                residual=None if node.residual is None else change(node.residual),
            )
        case nodes.Sort():
            return replace(node, keys=_map_keys(node.keys, change))
        case nodes.Window():
            return replace(
                node,
                partition_by=tuple(change(e) for e in node.partition_by),
                order_by=_map_keys(node.order_by, change),
                calls=tuple(
                    (n, replace(c, arguments=tuple(change(a) for a in c.arguments)))
                    for n, c in node.calls
                ),
            )
        case nodes.Fill():
            return replace(node, interpolated=tuple((n, change(e)) for n, e in node.interpolated))
        case nodes.Limit() | nodes.RelativeLimit():
            return replace(node, ties=_map_keys(node.ties, change)) if node.ties else node
        case nodes.LimitBy() | nodes.Distinct():
            return replace(node, keys=tuple(change(e) for e in node.keys))
        case nodes.Scan():
            return replace(
                node,
                predicate=None if node.predicate is None else change(node.predicate),
                prewhere=None if node.prewhere is None else change(node.prewhere),
            )
        case _:
            return node


def _map_keys(keys: tuple[nodes.SortKey, ...], change: Change) -> tuple[nodes.SortKey, ...]:
    """Return sort keys whose expressions are changed by `change`."""
    return tuple(replace(k, expression=change(k.expression)) for k in keys)


def _map_totals(totals: nodes.Totals | None, change: Change) -> nodes.Totals | None:
    """Return WITH TOTALS with its condition changed by `change`."""
    if totals is None or totals.having is None:
        return totals
    return nodes.Totals(change(totals.having))


def _map_call(call: expressions.AggregateCall, change: Change) -> expressions.AggregateCall:
    """Return an aggregate whose arguments are changed by `change`."""
    return replace(call, arguments=tuple(change(a) for a in call.arguments))


def map_subqueries(node: nodes.Node, change: Callable[[nodes.Node], nodes.Node]) -> nodes.Node:
    """Return the node with `change` applied to the plans of subqueries in its own expressions."""

    def in_expression(e: expressions.Expression) -> expressions.Expression | None:
        """Return a subquery with its plan changed, None for any other expression."""
        if isinstance(e, expressions.ScalarSubquery):
            return replace(e, plan=change(e.plan))
        if isinstance(e, expressions.InSubquery):
            arguments = tuple(expressions.transform(a, in_expression) for a in e.arguments)
            changed = expressions.with_children(e, arguments)
            assert isinstance(changed, expressions.InSubquery)
            return replace(changed, plan=change(e.plan))
        if isinstance(e, expressions.DictionaryCall):
            inner = tuple(expressions.transform(c, in_expression) for c in e.children())
            call = expressions.with_children(e, inner)
            assert isinstance(call, expressions.DictionaryCall)
            return replace(call, plan=change(e.plan))
        return None

    if not any(True for _ in subqueries_of(node)):
        return node
    return map_expressions(node, lambda e: expressions.transform(e, in_expression))


def subqueries_of(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the plans of subqueries in the node's own expressions."""
    for expression in expressions_of(node):
        for e in expressions.walk(expression):
            if isinstance(
                e, expressions.ScalarSubquery | expressions.InSubquery | expressions.DictionaryCall
            ):
                yield e.plan


def bottom_up(node: nodes.Node, change: Callable[[nodes.Node], nodes.Node]) -> nodes.Node:
    """Return the plan with `change` applied to every node, children first."""
    inputs = tuple(bottom_up(child, change) for child in node.children())
    return change(with_inputs(node, inputs))


def walk_nodes(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the node and its descendants, without those of subqueries in expressions."""
    yield node
    for child in node.children():
        yield from walk_nodes(child)


def all_nodes(root: nodes.Node) -> Iterator[nodes.Node]:
    """Yield every node of the plan, those of subqueries too."""
    for node in walk_nodes(root):
        yield node
        for subquery in subqueries_of(node):
            yield from all_nodes(subquery)


def all_scans(root: nodes.Node) -> Iterator[nodes.Scan]:
    """Yield every scan of the plan, those of subqueries too."""
    return (node for node in all_nodes(root) if isinstance(node, nodes.Scan))


def all_expressions(root: nodes.Node) -> Iterator[expressions.Expression]:
    """Yield every expression of the plan with its subexpressions, those of subqueries too."""
    for node in all_nodes(root):
        for expression in expressions_of(node):
            yield from expressions.walk(expression)


def all_aggregate_calls(root: nodes.Node) -> Iterator[expressions.AggregateCall]:
    """Yield the calls of every GROUP BY of the plan, those of its subqueries too."""
    for node in all_nodes(root):
        if isinstance(node, nodes.Aggregate):
            yield from (call for _, call in node.aggregates)


def columns_read(root: nodes.Node, table_id: str) -> frozenset[str]:
    """Return the names of the table's columns that the plan reads, in subqueries too."""
    columns: set[str] = set()
    for scan in all_scans(root):
        if scan.table.id == table_id:
            columns.update(column for _, column in scan.columns)
            columns.update(column for _, column, _ in scan.predicate_columns)
    return frozenset(columns)
