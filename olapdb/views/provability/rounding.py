"""Rounded numbers: sums of floats, whose last bits depend on the order of addition.

Merges change that order. As a stored value such a number is equal within the tolerance of a
comparison. A decision by it is not: a row passes `v > (SELECT avg(price) FROM d)` or does not. So a
rounded number may be stored and calculated with, but no condition, key or conversion to another
type may depend on it, in the query or in the target: `computed` judges what the target computes.

Nor may one be divided by: a sum whose summands cancel is 0 or 1e-17, and 1 / sum anything.

Numbers that are equal may still differ in the sign of a zero, where ORDER BY x LIMIT 1 takes one of
two rows with 0 and -0. Such a number is as good as any other until a function tells the signs
apart: toString, a hash, 1 / x, GROUP BY.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from olapdb.engine.combine import parameter_values, summed_columns
from olapdb.engine.layout import TableLayout
from olapdb.functions import resolve_aggregate
from olapdb.model.schema import Table
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
from olapdb.types import (
    AggregateFunction,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    SimpleAggregateFunction,
    any_part,
    has_floats,
    plain,
)
from olapdb.views.provability.judgement import JudgedItem, unproven_item
from olapdb.views.provability.parts import BoundDefinition

_CALCULATIONS = frozenset(
    (
        "plus",
        "minus",
        "multiply",
        "negate",
        "abs",
        "toFloat64",
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

_CLOSE_AGGREGATES = re.compile(
    r"(sum|avg)(Kahan|WithOverflow)?|min|max|any|(median|quantile)(Exact(Low|High|Inclusive|Exclusive)?)?",
    re.IGNORECASE,
)
"""Aggregates, without their combinators, whose result moves as little as their arguments do. A variance does not: that
of 1e9 + {0, 1} moves as much as itself where its arguments move by 1e-9."""
_COMBINATORS = re.compile(r"(If|OrNull|OrDefault|Merge|State|SimpleState)+(?=$|\()")
"""Combinators that keep it so. -Distinct does not: two numbers may become one."""
_CHOOSES_BY_KEY = ("argmin", "argmax", "any")
"""Aggregates that take the value of one row, which the last argument decides."""

_COMPARISONS = frozenset(
    ("equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals")
)
_BLIND_TO_SIGNS = _COMPARISONS | {"abs", "isNaN", "isFinite", "isInfinite"}
"""Functions that give the same for 0 and -0."""
_KEEPS_SIGNS = _CALCULATIONS | {"round", "floor", "ceil", "trunc", "toFloat32", "least", "greatest"}
"""Functions whose results for 0 and -0 are equal, or zeros of two signs."""


_CLAUSES = {
    nodes.Distinct: "DISTINCT",
    nodes.SetDifference: "EXCEPT or INTERSECT",
    nodes.Limit: "LIMIT",
    nodes.RelativeLimit: "LIMIT",
    nodes.LimitBy: "LIMIT BY",
}


def rounding_items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about conditions and keys that the last bits of a sum of floats decide."""
    for walk in (_Rounding(), _SignsOfZero()):
        walk.rounded_columns(parts.plan.root)
        yield from dict.fromkeys(walk.problems)
    rounded = rounded_outputs(parts.plan)
    for column in parts.target.stored_columns:
        if column.name not in rounded:
            continue
        if parts.merges and column.name in parts.layout.sorting_columns:
            yield rounding_problem(f"ORDER BY of {parts.target_name}")
        elif not holds_rounded(column.type):
            yield rounding_problem(f"column {column.name} {column.type} of {parts.target_name}")


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
        self.problems.append(rounding_problem(what))

    def _doubted_in_table(self, scan: nodes.Scan) -> frozenset[str]:
        """Return the scan's columns in which merges of its table add up floats."""
        floats = merged_floats(scan.table)
        return frozenset(unique for unique, name in scan.columns if name in floats)

    def _doubted_by_limit(self, node: nodes.Node, below: frozenset[str]) -> frozenset[str]:
        """Return the rounded columns of a LIMIT; it is a problem if there are any below it."""
        if below:
            self._add_problem(_CLAUSES[type(node)])
        return frozenset()

    def _adds(self, call: AggregateCall) -> bool:
        """Return whether the aggregate makes a rounded number of exact ones."""
        return _adds_floats(call)

    def _decides_nothing(self, expression: Expression) -> bool:
        """Return whether the expression is exact although an argument is rounded: none is."""
        return False

    def _keeps(self, expression: Expression, below: frozenset[str]) -> bool:
        """Return whether the expression is a number as close to the exact one as its arguments are."""
        if isinstance(expression, Cast):
            return _is_float(expression.type) and holds_rounded(expression.type)
        if not isinstance(expression, Call) or not _is_float(expression.type):
            return False
        if expression.name == "divide":
            return not self._is_rounded(expression.arguments[1], below)
        return expression.name in _CALCULATIONS or expression.name == "finalizeAggregation"

    def rounded_columns(self, node: nodes.Node) -> frozenset[str]:
        """Return the columns of the node that are rounded numbers; add the problems below it."""
        if isinstance(node, nodes.Union):
            return self._rounded_union_columns(node.schema, node.inputs)
        below = frozenset[str]().union(*(self.rounded_columns(child) for child in node.children()))
        match node:
            case nodes.Scan():
                return self._doubted_in_table(node)
            case nodes.Project(expressions=pairs):
                return frozenset(name for name, item in pairs if self._is_rounded(item, below))
            case nodes.Aggregate(keys=keys, aggregates=aggregates):
                for _, key in keys:
                    self._judge_condition("GROUP BY", key, below)
                return frozenset(
                    name for name, call in aggregates if self._is_rounded_aggregate(call, below)
                )
            case nodes.Distinct() | nodes.SetDifference():
                if below:
                    self._add_problem(_CLAUSES[type(node)])
                return frozenset()
            case nodes.Limit() | nodes.RelativeLimit() | nodes.LimitBy():
                return self._doubted_by_limit(node, below)
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
        if self._decides_nothing(expression):
            return False
        if self._keeps(expression, below):
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
        if rounded and not call.name.startswith("count") and not self._is_close(call, below):
            self._add_problem(f"{call.name}(…)")
        if rounded and not _is_float(call.type):
            return isinstance(call.type, AggregateFunction)
        return rounded or self._adds(call)

    def _is_close(self, call: AggregateCall, below: frozenset[str]) -> bool:
        """Return whether the aggregate of rounded numbers is a number, or a state, that is as close to
        the exact one as they are."""
        if not _is_float(call.type) and not isinstance(call.type, AggregateFunction):
            return False
        name = _COMBINATORS.sub("", call.name.partition("(")[0])
        if name.lower() in _CHOOSES_BY_KEY:
            return not self._any_rounded(call.arguments[1:], below)
        return _CLOSE_AGGREGATES.fullmatch(name) is not None


@dataclass
class _SignsOfZero(_Rounding):
    """A walk over a plan that collects the calls and clauses that tell 0 from -0, of numbers of which it
    depends on the order of the rows which of the two they are."""

    def _add_problem(self, what: str) -> None:
        """Add the problem that `what`, a clause or a call, tells 0 from -0."""
        self.problems.append(
            unproven_item(
                what,
                f"{what} tells 0 from -0, and which of these ORDER BY with LIMIT takes depends on where"
                " their rows lie.",
                "Take min, max, argMin or argMax in place of LIMIT, or abs(…) of the number.",
            )
        )

    def _doubted_in_table(self, scan: nodes.Scan) -> frozenset[str]:
        """Return no column: the values of a row are its own."""
        return frozenset()

    def _doubted_by_limit(self, node: nodes.Node, below: frozenset[str]) -> frozenset[str]:
        """Return the columns of a LIMIT that are, or are computed from, floats by which its rows are sorted. A
        LIMIT BY of such columns is a problem. WITH TIES takes the rows of both zeros."""
        if isinstance(node, nodes.LimitBy) and self._any_rounded(node.keys, below):
            self._add_problem(_CLAUSES[type(node)])
        above, keys = list[nodes.Project](), frozenset[str]()
        while node.children() and not getattr(node, "ties", ()):
            (node, *_) = node.children()
            match node:
                case nodes.Sort(keys=sort_keys) if not keys:
                    floats = [
                        key.expression for key in sort_keys if has_floats(key.expression.type)
                    ]
                    keys = frozenset(item.name for item in floats if isinstance(item, ColumnRef))
                case nodes.Project(expressions=pairs):
                    above.append(node)
                    floats = [item for name, item in pairs if name in keys]
                    keys = frozenset(item.name for item in floats if isinstance(item, ColumnRef))
                case nodes.Filter() | nodes.Sort() | nodes.Limit() | nodes.RelativeLimit():
                    pass
                case _:
                    break
        for project in reversed(above):
            pairs = project.expressions
            keys = frozenset(name for name, item in pairs if self._is_rounded(item, keys))
        return below | keys

    def _adds(self, call: AggregateCall) -> bool:
        """Return False: an aggregate depends on the values alone."""
        return False

    def _judge_condition(self, clause: str, expression: Expression, below: frozenset[str]) -> None:
        """Add a problem if the clause compares such numbers by their bytes, as keys are compared."""
        if self._is_rounded(expression, below) and clause != "WHERE":
            self._add_problem(clause)

    def _decides_nothing(self, expression: Expression) -> bool:
        """Return whether the expression is the same for 0 and -0."""
        if isinstance(expression, Cast):
            return isinstance(plain(expression.type), Integer | Decimal | Boolean)
        return isinstance(expression, Call) and expression.name in _BLIND_TO_SIGNS

    def _keeps(self, expression: Expression, below: frozenset[str]) -> bool:
        """Return whether the results for 0 and -0 are equal."""
        if isinstance(expression, Cast):
            return _is_float(expression.type)
        if isinstance(expression, Call) and expression.name in _KEEPS_SIGNS:
            return True
        return super()._keeps(expression, below)


def merged_floats(table: Table) -> frozenset[str]:
    """Return the columns of the table in which merges add up floats."""
    if not table.engine.merges_states:
        return frozenset()
    summed = {column.name for column in summed_columns(TableLayout(table))}
    return frozenset(
        column.name
        for column in table.stored_columns
        if _has_floats(column.type) and (column.name in summed or merges_by_adding(column.type))
    )


def merges_by_adding(data_type: DataType) -> bool:
    """Return whether merges of such values or states add up floats, so that these depend on the
    order of the rows in their last bits. Merges of other states choose or collect values."""
    if isinstance(data_type, SimpleAggregateFunction):
        return data_type.function.startswith("sum")
    if not isinstance(data_type, AggregateFunction):
        return False
    parameters = parameter_values(data_type.parameters)
    aggregate = resolve_aggregate(data_type.function, parameters, data_type.arguments)
    return aggregate.merge_class == "float"


def holds_rounded(data_type: DataType) -> bool:
    """Return whether a column of the type keeps rounded numbers as they are: a Float64, or several. Other types
    make other values of two numbers that differ in their last bits."""
    if isinstance(data_type, SimpleAggregateFunction):
        data_type = data_type.inner
    if isinstance(data_type, AggregateFunction):
        return True
    narrow = any(name in data_type.name for name in ("Float32", "BFloat16"))
    return any_part(data_type, (Float,)) and not narrow


def rounding_problem(what: str) -> JudgedItem:
    """Return the item of `what`, a part of the definition that depends on a rounded number."""
    return unproven_item(
        what,
        f"{what} depends on a sum or mean of floats, whose last bits depend on the order in which rows are"
        " added.",
        "Use Decimals or integers, or min, max and quantiles, in conditions and keys.",
    )


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
    if isinstance(data_type, SimpleAggregateFunction):
        data_type = data_type.inner
    inner = plain(data_type)
    if isinstance(inner, AggregateFunction):
        return any(_has_floats(argument) for argument in inner.arguments)
    return any_part(inner, (Float,))


def _is_float(data_type: DataType) -> bool:
    """Return whether the type is a float, Nullable and LowCardinality aside."""
    if isinstance(data_type, SimpleAggregateFunction):
        data_type = data_type.inner
    return isinstance(plain(data_type), Float)
