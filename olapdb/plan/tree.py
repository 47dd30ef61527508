"""Walking and rebuilding plans: children, expressions, and the subqueries inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from olapdb.errors import InternalError
from olapdb.plan.expressions import (
    AggregateCall,
    Expression,
    InSubquery,
    ScalarSubquery,
    transform,
    walk,
    with_children,
)
from olapdb.plan.nodes import (
    Aggregate,
    ArrayJoin,
    Distinct,
    Filter,
    Join,
    Limit,
    LimitBy,
    Node,
    Numbers,
    Project,
    Scan,
    SetDifference,
    Sort,
    SortKey,
    SystemScan,
    Union,
    Values,
    Window,
)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other children, in the order of `children()`."""
    if all(new is old for new, old in zip(inputs, node.children(), strict=True)):
        return node
    match node:
        case (
            Filter()
            | Project()
            | ArrayJoin()
            | Aggregate()
            | Sort()
            | Limit()
            | LimitBy()
            | Distinct()
            | Window()
        ):
            return replace(node, child=inputs[0])
        case Join() | SetDifference():
            return replace(node, left=inputs[0], right=inputs[1])
        case Union():
            return replace(node, inputs=inputs)
        case _:
            raise InternalError(f"{type(node).__name__} has no children to replace.")


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """The expressions that the node itself evaluates."""
    match node:
        case Filter(predicate=predicate):
            return (predicate,)
        case Project(expressions=pairs) | ArrayJoin(arrays=pairs):
            return tuple(e for _, e in pairs)
        case Aggregate(keys=keys, aggregates=aggregates):
            arguments = (a for _, call in aggregates for a in call.arguments)
            return (*(e for _, e in keys), *arguments)
        case Join():
            residual = () if node.residual is None else (node.residual,)
            return (*node.left_keys, *node.right_keys, *residual)
        case Sort(keys=keys):
            return tuple(k.expression for k in keys)
        case Window(partition_by=partition_by, order_by=order_by, calls=calls):
            read = (a for _, call in calls for a in call.arguments)
            return (*partition_by, *(k.expression for k in order_by), *read)
        case Limit(ties=ties):
            return tuple(k.expression for k in ties)
        case LimitBy(keys=keys) | Distinct(keys=keys):
            return keys
        case Scan(predicate=predicate, prewhere=prewhere):
            return tuple(e for e in (predicate, prewhere) if e is not None)
        case Union() | SetDifference() | Values() | Numbers() | SystemScan():
            return ()
        case _:
            raise InternalError(f"Unknown plan node {type(node).__name__}.")


Change = Callable[[Expression], Expression]


def map_expressions(node: Node, change: Change) -> Node:
    """The node with each of its expressions changed; types must stay."""
    match node:
        case Filter():
            return replace(node, predicate=change(node.predicate))
        case Project():
            return replace(node, expressions=tuple((n, change(e)) for n, e in node.expressions))
        case ArrayJoin():
            return replace(node, arrays=tuple((n, change(e)) for n, e in node.arrays))
        case Aggregate():
            return replace(
                node,
                keys=tuple((n, change(e)) for n, e in node.keys),
                aggregates=tuple((n, _map_call(c, change)) for n, c in node.aggregates),
            )
        case Join():
            return replace(
                node,
                left_keys=tuple(change(e) for e in node.left_keys),
                right_keys=tuple(change(e) for e in node.right_keys),
                residual=None if node.residual is None else change(node.residual),
            )
        case Sort():
            return replace(node, keys=_map_keys(node.keys, change))
        case Window():
            return replace(
                node,
                partition_by=tuple(change(e) for e in node.partition_by),
                order_by=_map_keys(node.order_by, change),
                calls=tuple(
                    (n, replace(c, arguments=tuple(change(a) for a in c.arguments)))
                    for n, c in node.calls
                ),
            )
        case Limit():
            return replace(node, ties=_map_keys(node.ties, change)) if node.ties else node
        case LimitBy() | Distinct():
            return replace(node, keys=tuple(change(e) for e in node.keys))
        case Scan():
            return replace(
                node,
                predicate=None if node.predicate is None else change(node.predicate),
                prewhere=None if node.prewhere is None else change(node.prewhere),
            )
        case _:
            return node


def _map_keys(keys: tuple[SortKey, ...], change: Change) -> tuple[SortKey, ...]:
    return tuple(replace(k, expression=change(k.expression)) for k in keys)


def _map_call(call: AggregateCall, change: Change) -> AggregateCall:
    return replace(call, arguments=tuple(change(a) for a in call.arguments))


def map_subqueries(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with the plans inside its own expressions changed."""

    def in_expression(e: Expression) -> Expression | None:
        if isinstance(e, ScalarSubquery):
            return replace(e, plan=change(e.plan))
        if isinstance(e, InSubquery):
            arguments = tuple(transform(a, in_expression) for a in e.arguments)
            changed = with_children(e, arguments)
            assert isinstance(changed, InSubquery)
            return replace(changed, plan=change(e.plan))
        return None

    if not any(True for _ in subqueries_of(node)):
        return node
    return map_expressions(node, lambda e: transform(e, in_expression))


def subqueries_of(node: Node) -> Iterator[Node]:
    """The plans inside the node's own expressions."""
    for expression in expressions_of(node):
        for e in walk(expression):
            if isinstance(e, ScalarSubquery | InSubquery):
                yield e.plan


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """`change` on every node, children first."""
    inputs = tuple(bottom_up(child, change) for child in node.children())
    return change(with_inputs(node, inputs))


def walk_nodes(node: Node) -> Iterator[Node]:
    """The node and all below it; subqueries in expressions are not entered."""
    yield node
    for child in node.children():
        yield from walk_nodes(child)


def all_nodes(root: Node) -> Iterator[Node]:
    """Every node of the plan, those of its subqueries too."""
    for node in walk_nodes(root):
        yield node
        for subquery in subqueries_of(node):
            yield from all_nodes(subquery)


def all_scans(root: Node) -> Iterator[Scan]:
    """Every scan of the plan, those of its subqueries too."""
    return (node for node in all_nodes(root) if isinstance(node, Scan))


def columns_read(root: Node, table_id: str) -> frozenset[str]:
    """The columns of the table that the plan reads, in subqueries too."""
    found: set[str] = set()
    for scan in all_scans(root):
        if scan.table.id == table_id:
            found.update(column for _, column in scan.columns)
            found.update(column for _, column, _ in scan.predicate_columns)
    return frozenset(found)
