"""Rounded numbers: sums of floats, whose last bits depend on the order of addition.

Merges change that order. As a stored value such a number is equal within the tolerance of a
comparison. A decision by it is not: a row passes `v > (SELECT avg(price) FROM d)` or does not. So a
rounded number may be stored and calculated with, but no condition, key or conversion to another
type may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from olapdb.plan import nodes
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    DictionaryCall,
    Expression,
    InSubquery,
    ScalarSubquery,
)
from olapdb.plan.tree import expressions_of
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, DataType, Float, plain
from olapdb.views.provability.judgement import JudgedItem, unproven_item
from olapdb.views.provability.parts import BoundDefinition

_CALCULATIONS = frozenset(
    (
        "plus",
        "minus",
        "multiply",
        "divide",
        "negate",
        "abs",
        "toFloat64",
        "toFloat32",
        "if",
        "multiIf",
        "ifNull",
        "coalesce",
        "assumeNotNull",
        "toNullable",
        "identity",
        "materialize",
    )
)
"""Functions whose result moves as little as their argument does."""


_CLAUSES = {
    nodes.Distinct: "DISTINCT",
    nodes.SetDifference: "EXCEPT or INTERSECT",
    nodes.Limit: "LIMIT",
    nodes.RelativeLimit: "LIMIT",
    nodes.LimitBy: "LIMIT BY",
}


def rounding_items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about conditions and keys that the last bits of a sum of floats decide."""
    rounding = _Rounding()
    rounding.rounded_columns(parts.plan.root)
    yield from dict.fromkeys(rounding.problems)


def rounded_outputs(plan: nodes.Plan) -> frozenset[str]:
    """Return the output columns of a bound plan that are computed from sums or means of floats."""
    rounded = _Rounding().rounded_columns(plan.root)
    return frozenset(name for unique, name in plan.output if unique in rounded)


@dataclass
class _Rounding:
    """A walk over a plan that collects, in `problems`, the clauses and calls whose result depends
    on a rounded number."""

    problems: list[JudgedItem] = field(default_factory=list)

    def _add_problem(self, what: str) -> None:
        """Add the problem that `what`, a clause or a call, depends on a rounded number."""
        self.problems.append(
            unproven_item(
                what,
                f"{what} depends on a sum or mean of floats, whose last bits depend on the order in"
                " which rows are added.",
                "Use Decimals or integers, or min, max and quantiles, in conditions and keys.",
            )
        )

    def rounded_columns(self, node: nodes.Node) -> frozenset[str]:
        """Return the columns of the node that are rounded numbers; add the problems below it."""
        if isinstance(node, nodes.Union):
            return self._rounded_union_columns(node.schema, node.inputs)
        below = frozenset[str]().union(*(self.rounded_columns(child) for child in node.children()))
        match node:
            case nodes.Project(expressions=pairs):
                return frozenset(name for name, item in pairs if self._is_rounded(item, below))
            case nodes.Aggregate(keys=keys, aggregates=aggregates):
                for _, key in keys:
                    self._judge_condition("GROUP BY", key, below)
                return frozenset(
                    name for name, call in aggregates if self._is_rounded_aggregate(call, below)
                )
            case (
                nodes.Distinct()
                | nodes.SetDifference()
                | nodes.Limit()
                | nodes.RelativeLimit()
                | nodes.LimitBy()
            ):
                if below:
                    self._add_problem(_CLAUSES[type(node)])
                return frozenset()
            case nodes.Filter() | nodes.Join():
                clause = "WHERE" if isinstance(node, nodes.Filter) else "JOIN"
                for item in expressions_of(node):
                    self._judge_condition(clause, item, below)
            case _:
                pass
        return below & {item.name for item in node.schema}

    def _rounded_union_columns(
        self, schema: nodes.Schema, inputs: tuple[nodes.Node, ...]
    ) -> frozenset[str]:
        """Return the rounded columns of a UNION, whose inputs give its columns by position."""
        names: set[str] = set()
        for branch in inputs:
            rounded = self.rounded_columns(branch)
            names |= {
                column.name
                for column, input_column in zip(schema, branch.schema, strict=True)
                if input_column.name in rounded
            }
        return frozenset(names)

    def _judge_condition(self, clause: str, expression: Expression, below: frozenset[str]) -> None:
        """Add a problem if the expression, on which the clause depends, is a rounded number."""
        if self._is_rounded(expression, below):
            self._add_problem(clause)

    def _is_rounded(self, expression: Expression, below: frozenset[str]) -> bool:
        """Return whether the expression is a rounded number; add the problems inside it."""
        match expression:
            case ColumnRef(name=name):
                return name in below
            case ScalarSubquery(plan=plan):
                return bool(self.rounded_columns(plan))
            case InSubquery(arguments=arguments, plan=plan):
                if self.rounded_columns(plan) or self._any_rounded(arguments, below):
                    self._add_problem("IN")
                return False
            case DictionaryCall():
                return self._is_rounded_lookup(expression, below)
        if not self._any_rounded(expression.children(), below):
            return False
        if _is_float(expression.type) and (
            isinstance(expression, Cast)
            or (isinstance(expression, Call) and expression.name in _CALCULATIONS)
        ):
            return True
        name = expression.name if isinstance(expression, Call) else expression.type.name
        self._add_problem(f"{name}(…)")
        return False

    def _is_rounded_lookup(self, call: DictionaryCall, below: frozenset[str]) -> bool:
        """Return whether a lookup gives a rounded number; add the problem if rounded numbers decide
        which row of the dictionary it finds."""
        rounded = self.rounded_columns(call.plan)
        own = call.plan.schema[call.attribute].name if call.kind == "get" else ""
        if self._any_rounded(call.arguments, below) or rounded - {own}:
            self._add_problem("dictGet")
        default = () if call.default is None else (call.default,)
        return self._any_rounded(default, below) or own in rounded

    def _any_rounded(self, expressions: tuple[Expression, ...], below: frozenset[str]) -> bool:
        """Return whether any expression is rounded; record the problems of all of them."""
        # A list, not a generator: each call adds its problems.
        rounded = [self._is_rounded(expression, below) for expression in expressions]
        return any(rounded)

    def _is_rounded_aggregate(self, call: AggregateCall, below: frozenset[str]) -> bool:
        """Return whether the aggregate is a rounded number, or a state of rounded numbers; add the
        problems of its arguments."""
        rounded = self._any_rounded(call.arguments, below)
        if rounded and not _is_float(call.type):
            if not call.name.startswith("count") and not isinstance(call.type, AggregateFunction):
                self._add_problem(f"{call.name}(…)")
            return isinstance(call.type, AggregateFunction)
        return rounded or _adds_floats(call)


def _adds_floats(call: AggregateCall) -> bool:
    """Return whether the aggregate adds up floats."""
    if call.aggregate.merge_class != "float":
        return False
    name = call.name.lower()
    if name.startswith("avg") and not name.startswith("avgweighted"):
        return any(_has_floats(argument_type) for argument_type in call.aggregate.argument_types)
    return True


def _has_floats(data_type: DataType) -> bool:
    """Return whether values of the type are floats, or states over floats."""
    inner = plain(data_type)
    if isinstance(inner, AggregateFunction):
        return any(_has_floats(argument) for argument in inner.arguments)
    return _is_float(inner)


def _is_float(data_type: DataType) -> bool:
    """Return whether the type is a float, Nullable and LowCardinality aside."""
    return isinstance(plain(data_type), Float)
