"""The shape of a view's bound query: what it does to its source's rows, read from the plan.

The plan is not optimized here: it still has the clauses in the order of the query.

    Project(k, n) <- Aggregate(keys k, aggregates count() n) <- Filter <- Scan(source)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from olapdb.functions.casts.lossless import keeps_all
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import Table
from olapdb.plan import nodes
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    columns_of,
)
from olapdb.plan.tree import all_scans, subqueries_of
from olapdb.records import dataclass
from olapdb.types import DataType, Float, Integer, has_floats, plain

_ROWS_ONLY = nodes.Filter | nodes.Limit | nodes.RelativeLimit | nodes.LimitBy | nodes.Sort
"""Nodes that choose or order rows and compute no column."""

Source = tuple[str, str]
"""(table id, column) of the stored column that a plan's column copies."""


@dataclass(frozen=True)
class TargetColumn:
    """One column of the query: a group key, an aggregate (maybe cast), or computed from columns.

    `key` is the group key's name in the plan; `aggregate` is the call. Both are None in row-wise
    queries and for expressions over keys and aggregates.
    """

    name: str
    key: str | None = None
    aggregate: AggregateCall | None = None


@dataclass(frozen=True)
class QueryShape:
    """A summary of the path from the source to the result.

    `aggregations` counts its Aggregate nodes. `above` names its clauses that look at several rows
    (HAVING, LIMIT, …). `joins` are the kinds of its joins. `selective`: it may drop rows before the
    aggregate.
    """

    outputs: tuple[TargetColumn, ...]
    aggregate: nodes.Aggregate | None
    aggregations: int
    above: tuple[str, ...]
    joins: tuple[str, ...]
    selective: bool


def shape_of(plan: nodes.Plan) -> QueryShape:
    """Return the shape along the path to the left-most table.

    For a UNION ALL at the top that is the shape of its first branch; `branches` gives each branch.
    """
    types = {column.name: column.type for column in plan.root.schema}
    walker = _Walker(
        [(name, unique) for unique, name in plan.output],
        {name: types[unique] for unique, name in plan.output},
    )
    walker.visit(plan.root)
    return walker.shape()


def branches(plan: nodes.Plan) -> tuple[nodes.Plan, ...]:
    """Return the inputs of a top-level UNION ALL, each as a plan of its own, or the plan itself."""
    node = plan.root
    projections: list[nodes.Project] = []
    while isinstance(node, nodes.Project) and not isinstance(node.child, nodes.Scan):
        projections.append(node)
        node = node.child
    if not isinstance(node, nodes.Union):
        return (plan,)
    plans: list[nodes.Plan] = []
    for branch in node.inputs:
        renamed = tuple(
            (field.name, ColumnRef(field.type, input_field.name))
            for field, input_field in zip(node.fields, branch.schema, strict=True)
        )
        root: nodes.Node = nodes.Project(branch, renamed)
        for projection in reversed(projections):
            root = nodes.Project(root, projection.expressions)
        plans += branches(nodes.Plan(root, plan.output, plan.tables))
    return tuple(plans)


def constants_of(plan: nodes.Plan) -> Iterator[tuple[str, Constant]]:
    """Yield (name, literal) of output columns that are one literal, branch by branch."""
    for branch in branches(plan):
        followed, node = dict(branch.output), branch.root
        while followed and len(node.children()) == 1:
            if isinstance(node, nodes.Project):
                outputs = [
                    (name, dict(node.expressions)[unique]) for unique, name in followed.items()
                ]
                yield from (
                    (name, expression)
                    for name, expression in outputs
                    if isinstance(expression, Constant)
                )
                followed = {
                    expression.name: name
                    for name, expression in outputs
                    if isinstance(expression, ColumnRef)
                }
            elif not isinstance(node, _ROWS_ONLY):
                break
            node = node.children()[0]


@dataclass
class _Walker:
    """A walk down the source's path that follows each output column to the aggregate that makes it.

    `at` has the name of each output column at the current node, None if it is not followed further.
    """

    outputs_to_follow: list[tuple[str, str]]
    output_types: dict[str, DataType]
    aggregate: nodes.Aggregate | None = None
    aggregations: int = 0
    above: list[str] = field(default_factory=list)
    joins: list[str] = field(default_factory=list)
    selective: bool = False
    outputs: list[TargetColumn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.at: dict[str, str | None] = dict(self.outputs_to_follow)

    def shape(self) -> QueryShape:
        """Return the shape of the path walked so far."""
        outputs = self.outputs or [TargetColumn(name) for name, _ in self.outputs_to_follow]
        return QueryShape(
            tuple(outputs),
            self.aggregate,
            self.aggregations,
            tuple(self.above),
            tuple(self.joins),
            self.selective,
        )

    def visit(self, node: nodes.Node) -> None:
        """Visit the node and the nodes below it on the source's path."""
        match node:
            case nodes.Project(child=child, expressions=expressions):
                if self.aggregate is None:
                    self._follow_projection(dict(expressions))
                self.visit(child)
            case nodes.Aggregate(child=child):
                self.aggregations += 1
                if node.sets:
                    self.above.append("GROUPING SETS (ROLLUP, CUBE)")
                if self.aggregate is None:
                    self._take_aggregate(node)
                self.visit(child)
            case nodes.Filter(child=child):
                if self._path_aggregates(child) and self.aggregate is None:
                    self.above.append("HAVING")
                else:
                    self.selective = True
                self.visit(child)
            case nodes.Limit(child=child) | nodes.RelativeLimit(child=child):
                self.above.append("LIMIT")
                self.visit(child)
            case nodes.LimitBy(child=child):
                self.above.append("LIMIT BY")
                self.visit(child)
            case nodes.Distinct(child=child):
                self.above.append("DISTINCT")
                self.visit(child)
            case nodes.Paste(left=left):
                self.above.append("PASTE JOIN")
                self.selective = True
                self.visit(left)
            case nodes.Sort(child=child):
                self.visit(child)
            case nodes.RecursiveUnion(first=first):
                self.above.append("WITH RECURSIVE")
                self._renamed(node.schema, first.schema)
                self.visit(first)
            case nodes.Fill(child=child):
                self.above.append("WITH FILL")
                self.visit(child)
            case nodes.Window(child=child):
                self.above.append("a window function")
                self._keep_only({column.name for column in child.schema})  # its results end here
                self.visit(child)
            case nodes.Join(left=left, kind=kind, strictness=strictness):
                self.joins.append(f"{strictness} {kind}" if strictness != "ALL" else kind)
                self.selective = self.selective or kind != "LEFT" or strictness != "ALL"
                self._keep_only(
                    {column.name for column in left.schema}
                )  # the other side's end here
                self.visit(left)
            case nodes.ArrayJoin(child=child, kept=kept, left=left):
                if self._path_aggregates(child) and self.aggregate is None:
                    self.above.append("arrayJoin of a group")
                self._keep_only({column.name for column in kept})
                self.selective = self.selective or not left
                self.visit(child)
            case nodes.Union(inputs=inputs):
                self.above.append("UNION ALL in a subquery")
                self._renamed(node.schema, inputs[0].schema)
                self.visit(inputs[0])
            case nodes.SetDifference(left=left, operator=operator):
                self.above.append(operator)
                self._renamed(node.schema, left.schema)
                self.visit(left)
            case nodes.Scan(predicate=predicate, final=final):
                self.selective = self.selective or predicate is not None
                if final:
                    self.above.append("FINAL")
            case _:
                for child in node.children():
                    self.visit(child)

    def _keep_only(self, names: set[str]) -> None:
        """Stop following columns that do not come from the path below."""
        self.at = {name: unique if unique in names else None for name, unique in self.at.items()}

    def _renamed(self, names: nodes.Schema, input_names: nodes.Schema) -> None:
        """Follow the columns through a set operation, whose inputs give its columns by position."""
        inner_names = {
            column.name: input_column.name
            for column, input_column in zip(names, input_names, strict=True)
        }
        self.at = {
            name: None if unique is None else inner_names.get(unique)
            for name, unique in self.at.items()
        }

    def _follow_projection(self, expressions: dict[str, Expression]) -> None:
        """Follow the columns through a projection; stop at computed ones."""
        for name, unique in self.at.items():
            if unique is None:
                continue
            expression = _without_casts(expressions[unique])
            self.at[name] = expression.name if isinstance(expression, ColumnRef) else None

    def _take_aggregate(self, node: nodes.Aggregate) -> None:
        """Record the node as the view's aggregate, and add an entry to `outputs` for each column.

        The entry names the key or the aggregate call that the column is; neither for a column that
        is computed from them."""
        self.aggregate = node
        keys, calls = dict(node.keys), dict(node.aggregates)
        for name, _ in self.outputs_to_follow:
            unique = self.at[name]
            if unique is not None and unique in keys:
                self.outputs.append(TargetColumn(name, key=unique))
            elif unique is not None and _stays_aggregate(calls, unique, self.output_types[name]):
                self.outputs.append(TargetColumn(name, aggregate=calls[unique]))
            else:
                self.outputs.append(TargetColumn(name))

    def _path_aggregates(self, node: nodes.Node) -> bool:
        """Return whether an Aggregate is below, with at most Project, Filter and Sort between."""
        while isinstance(node, nodes.Project | nodes.Filter | nodes.Sort):
            node = node.child
        return isinstance(node, nodes.Aggregate)


def _stays_aggregate(calls: dict[str, AggregateCall], unique: str, given: DataType) -> bool:
    """Return whether the column is one of the calls, whose values still merge as type `given`."""
    call = calls.get(unique)
    if call is None:
        return False
    return cast_commutes(call.aggregate.merge_function, call.type, given)


def cast_commutes(merge_function: str, source: DataType, target: DataType) -> bool:
    """Return whether casting values that `merge_function` joined is joining cast values. The cast is
    one that `_without_casts` strips: of integers it keeps the lowest 64 bits.

    Sums of 64 bits wrap alike, signed or not. Of minima and maxima the cast must keep the order:
    2^63 is less than 5 as an Int64."""
    plain_source, plain_target = plain(source), plain(target)
    if plain_source == plain_target:
        return True
    if merge_function in ("sum", "sumWithOverflow"):
        same_kind = type(plain_source) is type(plain_target)
        return same_kind and _bits(plain_source) == _bits(plain_target)
    if merge_function.startswith("groupBit"):
        return True
    return keeps_all(plain_source, plain_target)


def _bits(data_type: DataType) -> int:
    """Return the number of bits of an integer or a float, 0 of other types."""
    return data_type.bits if isinstance(data_type, Integer | Float) else 0


def _without_casts(expression: Expression) -> Expression:
    """Strip outer conversions that keep distinct values. `cast_commutes` tells whether they keep
    what an aggregate makes of them."""
    while True:
        match expression:
            case Cast(type=to, argument=argument) if _cast_keeps_distinct(argument.type, to):
                expression = argument
            case Call(name=name, type=to, arguments=(argument,)) if name in (
                "toInt64",
                "toUInt64",
                "toFloat64",
            ) and _cast_keeps_distinct(argument.type, to):
                expression = argument
            case _:
                return expression


def _cast_keeps_distinct(source: DataType, target: DataType) -> bool:
    """Return whether a cast keeps values distinct: same type, to 64-bit integers or to Float64."""
    plain_source, plain_target = plain(source), plain(target)
    if plain_source == plain_target:
        return True
    if isinstance(plain_source, Integer) and isinstance(plain_target, Integer):
        return plain_target.bits == 64
    return isinstance(plain_source, Float) and plain_target == Float(64)


# --- tables --------------------------------------------------------------------------------------


def occurrences(node: nodes.Node, table_id: str) -> int:
    """Return how often a table is read in one branch: the inputs of a UNION ALL count apart."""
    if isinstance(node, nodes.Union):
        return max((occurrences(branch, table_id) for branch in node.inputs), default=0)
    subqueries = (scan for root in subqueries_of(node) for scan in all_scans(root))
    count = sum(scan.table.id == table_id for scan in subqueries)
    if isinstance(node, nodes.Scan):
        return count + (node.table.id == table_id)
    return count + sum(occurrences(child, table_id) for child in node.children())


def leftmost(node: nodes.Node) -> nodes.Node:
    """Return the left-most, deepest leaf: the table whose INSERTs fire the view."""
    while node.children():
        node = node.children()[0]
    return node


def stored_column_of(node: nodes.Node, column: str) -> Source | None:
    """Return the stored column that the node's column copies unchanged (casts apart), or None."""
    match node:
        case nodes.Scan(table=table, columns=columns):
            names = dict(columns)
            return (table.id, names[column]) if column in names else None
        case nodes.Project(child=child, expressions=expressions):
            projected = dict(expressions).get(column)
            expression = None if projected is None else _without_casts(projected)
            return (
                stored_column_of(child, expression.name)
                if isinstance(expression, ColumnRef)
                else None
            )
        case nodes.Filter(child=child) | nodes.Sort(child=child):
            return stored_column_of(child, column)
        case nodes.ArrayJoin(child=child, kept=kept):
            return (
                stored_column_of(child, column)
                if any(field.name == column for field in kept)
                else None
            )
        case nodes.Join(left=left, right=right):
            side = left if any(field.name == column for field in left.schema) else right
            return stored_column_of(side, column)
        case _:
            return None


def source_columns_of(node: nodes.Node, expression: Expression) -> set[Source | None]:
    """Return the stored columns that the expression reads, with None if it reads a computed one."""
    return {stored_column_of(node, name) for name in columns_of(expression)}


def is_key_column(table: Table, column: str) -> bool:
    """Return whether the column is an item of the table's sorting key, and equal values of it are one
    value: a merge keeps it. Of the floats 0 and -0 it keeps one."""
    key = table.column(column)
    return key is not None and column in key_columns(table) and not has_floats(key.type)
