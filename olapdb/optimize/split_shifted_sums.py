"""Sums of a column plus a constant, as the column's sum plus the constant times its count.

sum(x + 1), sum(x + 2)      s + n, s + 2 * n, of s = sum(x) and n = count(x)
sum(5 - x)                  5 * n - s

Integers are summed modulo 2^64, so both forms are equal for all values. Floats and Decimals are
left alone: one rounds, the other may overflow.
"""

from __future__ import annotations

from dataclasses import field, replace

from olapdb import functions
from olapdb.plan.conditions import scalar_call
from olapdb.plan.expressions import AggregateCall, Call, ColumnRef, Constant, Expression
from olapdb.plan.nodes import Aggregate, Node, Project
from olapdb.plan.tree import bottom_up
from olapdb.records import dataclass
from olapdb.types import INT64, DataType, Integer, is_nullable, plain
from olapdb.types.arrow_values import scalar_of

_LARGEST_CONSTANT = 2**63


def split_shifted_sums(root: Node) -> Node:
    """Compute one sum and one count for all sums of the same integers plus or minus constants."""
    return bottom_up(root, _split)


def _split(node: Node) -> Node:
    """Return an Aggregate without shifted sums under a Project that computes them."""
    if not isinstance(node, Aggregate) or node.sets or node.totals is not None:
        return node
    shifted = {name: s for name, call in node.aggregates if (s := _shifted(call)) is not None}
    if not shifted:
        return node
    wanted = _Wanted([pair for pair in node.aggregates if pair[0] not in shifted])
    columns = tuple(
        (
            name,
            _computed(shifted[name], wanted, data_type)
            if name in shifted
            else ColumnRef(data_type, name),
        )
        for name, data_type in ((f.name, f.type) for f in node.schema)
    )
    return Project(replace(node, aggregates=tuple(wanted.aggregates)), columns)


@dataclass(frozen=True)
class _Shift:
    """The sum of `value + constant`, of `value - constant`, or with `reversed` of
    `constant - value`."""

    value: Expression
    constant: Constant
    operator: str
    reversed: bool


def _shifted(call: AggregateCall) -> _Shift | None:
    """Return the parts of sum(x + c), sum(c + x), sum(x - c) or sum(c - x) over integers.

    None for any other aggregate."""
    if call.name != "sum" or len(call.arguments) != 1:
        return None
    argument = call.arguments[0]
    if not isinstance(argument, Call) or argument.name not in ("plus", "minus"):
        return None
    left, right = argument.arguments
    if isinstance(left, Constant) == isinstance(right, Constant):
        return None
    value, constant = (left, right) if isinstance(right, Constant) else (right, left)
    assert isinstance(constant, Constant)
    if not _is_integer(value.type) or not _is_small(constant):
        return None
    if not isinstance(plain(argument.type), Integer) or not isinstance(plain(call.type), Integer):
        return None
    reverse = argument.name == "minus" and value is right
    return _Shift(value, constant, argument.name, reverse)


def _is_integer(data_type: DataType) -> bool:
    """Return whether values are integers, Nullable or not, that are summed in 64 bits."""
    return isinstance(plain(data_type), Integer)


def _is_small(constant: Constant) -> bool:
    """Return whether the constant is an integer that Int64 holds; NULL is not."""
    if not isinstance(constant.type, Integer) or not constant.value.is_valid:
        return False
    value = constant.value.as_py()
    return isinstance(value, int) and -_LARGEST_CONSTANT <= value < _LARGEST_CONSTANT


@dataclass
class _Wanted:
    """The aggregates of the new node; those that a sum needs are added once."""

    aggregates: list[tuple[str, AggregateCall]]
    made: int = field(default=0)
    converted: dict[tuple[str, Expression, DataType], Expression] = field(default_factory=dict)

    def number(self, name: str, value: Expression, target: DataType) -> Expression:
        """Return the aggregate `name` (sum, count) of a value as Int64 or UInt64; it is computed once."""
        key = name, value, target
        known = self.converted.get(key)
        if known is None:
            known = self.converted[key] = _converted(self.column(name, value), target)
        return known

    def column(self, name: str, value: Expression) -> ColumnRef:
        """Return a reference to the column that holds the aggregate `name` (sum, count) of a value; add the
        aggregate to those that are computed if it is new."""
        arguments = () if name == "count" and not is_nullable(value.type) else (value,)
        aggregate = functions.resolve_aggregate(name, (), [a.type for a in arguments])
        call = AggregateCall(aggregate, name, arguments)
        for known, other in self.aggregates:
            if other == call:
                return ColumnRef(call.type, known)
        self.made += 1
        column = f"__shifted_{self.made}"
        self.aggregates.append((column, call))
        return ColumnRef(call.type, column)


def _computed(shift: _Shift, wanted: _Wanted, result: DataType) -> Expression:
    """Return the shifted sum, of the type that the aggregate had, from one sum and one count."""
    target = plain(result)
    total = wanted.number("sum", shift.value, target)
    count = wanted.number("count", shift.value, target)
    moved = scalar_call("multiply", [count, _constant(shift.constant, target)])
    parts = [moved, total] if shift.reversed else [total, moved]
    return _converted(scalar_call(shift.operator, parts), target)


def _converted(value: Expression, target: DataType) -> Expression:
    """Return an integer as Int64 or UInt64, modulo 2^64; unchanged if it is of that type."""
    if plain(value.type) == target:
        return value
    return scalar_call("toInt64" if target == INT64 else "toUInt64", [value])


def _constant(constant: Constant, target: DataType) -> Constant:
    """Return a constant as Int64 or UInt64, modulo 2^64."""
    value = constant.value.as_py() % 2**64
    if target == INT64 and value >= 2**63:
        value -= 2**64
    return Constant(target, scalar_of(value, target.arrow))
