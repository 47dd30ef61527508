"""Fingerprints: what a plan computes, whatever names its columns have.

The binder gives new names to the columns of each use of a CTE, so that two uses are never equal plans.
A fingerprint has the position at which a name first occurred instead. A plan that may give other rows
when it runs again (rand(), a system table, the step of a recursion) has none.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass

import pyarrow as pa

from olapdb.functions.base import Aggregate
from olapdb.plan import nodes
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Constant,
    DictionaryCall,
    Expression,
    LambdaFunction,
    NameConstant,
    WindowCall,
)
from olapdb.types import DataType

_ROWS_MAX = 1_000
"""Constant rows of larger plans are not compared."""
_NAMED = frozenset(
    (
        *((kind, "columns") for kind in (nodes.Scan, nodes.FileScan)),
        *((kind, "expressions") for kind in (nodes.Project,)),
        (nodes.Scan, "predicate_columns"),
        (nodes.ArrayJoin, "arrays"),
        (nodes.Aggregate, "keys"),
        (nodes.Aggregate, "aggregates"),
        (nodes.Window, "calls"),
        (nodes.Window, "ranks_max"),
        (nodes.Fill, "interpolated"),
    )
)
"""The fields with tuples whose first element is a unique name."""
_REFUSED = (nodes.SystemScan, nodes.TotalsRow, nodes.WorkingTable, nodes.RecursiveUnion)


class _NoFingerprint(Exception):
    """The plan may give other rows when it runs again."""


def fingerprint(node: nodes.Node) -> Hashable | None:
    """Return a value that is equal for plans that compute the same rows; names of columns do not
    count. None for a plan that may give other rows when it runs again."""
    try:
        key = _Names().of(node)
        hash(key)
    except (_NoFingerprint, TypeError, UnicodeDecodeError):
        return None
    return key


class _Names:
    """The unique names that occurred so far, by their position."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def _name(self, name: str) -> int:
        """Return the position of a unique name."""
        return self._positions.setdefault(name, len(self._positions))

    def of(self, value: object) -> Hashable:
        """Return the fingerprint of a node, an expression, or a part of one."""
        match value:
            case nodes.Node():
                return self._node(value)
            case Expression() | AggregateCall() | WindowCall():
                return self._expression(value)
            case nodes.Field(name=name, type=data_type):
                return self._name(name), data_type
            case Aggregate():
                return value.name, str(value.parameters), value.argument_types, value.result_type
            case tuple():
                return tuple(self.of(item) for item in value)
            case DataType():
                return value
            case _ if is_dataclass(value) and not isinstance(value, type):
                return type(value), *(self.of(getattr(value, f.name)) for f in fields(value))
            case _:
                assert isinstance(value, Hashable)
                return type(value), value

    def _node(self, node: nodes.Node) -> Hashable:
        """Return the fingerprint of a node and all below."""
        if isinstance(node, _REFUSED) or (
            isinstance(node, nodes.Aggregate) and node.totals is not None
        ):
            raise _NoFingerprint
        match node:
            case nodes.Values():
                return nodes.Values, self.of(node.fields), _rows(node.rows)
            case nodes.Numbers():
                name = self._name(node.name)
                return nodes.Numbers, name, node.type, node.start, node.count, node.step
            case nodes.Primes():
                name = self._name(node.name)
                bounds = (node.start, node.count, node.step, node.ranges)
                return nodes.Primes, name, node.type, bounds
        parts = (self._field(node, f.name) for f in fields(node))
        return type(node), *parts

    def _field(self, node: nodes.Node, name: str) -> Hashable:
        """Return the fingerprint of one field of a node."""
        value = getattr(node, name)
        if (type(node), name) in _NAMED:
            return tuple((self._name(first), *map(self.of, rest)) for first, *rest in value)
        if isinstance(node, nodes.Scan) and name == "table":
            return node.table.id
        if isinstance(node, nodes.Aggregate) and name == "sets":
            return tuple(tuple(map(self._name, names)) for names in value)
        if isinstance(node, nodes.Aggregate) and name == "set_name":
            return self._name(value)
        return self.of(value)

    def _expression(self, expression: Expression | AggregateCall | WindowCall) -> Hashable:
        """Return the fingerprint of an expression, of an aggregate or of a window function.

        Raises _NoFingerprint for one whose value may differ when it runs again."""
        match expression:
            case ColumnRef(type=data_type, name=name):
                return ColumnRef, data_type, self._name(name)
            case Constant(type=data_type, value=value):
                column = expression.column if isinstance(expression, NameConstant) else ""
                return type(expression), data_type, str(value.type), repr(value.as_py()), column
            case DictionaryCall():
                raise _NoFingerprint
            case Call() if expression.function.volatility == "row":
                raise _NoFingerprint
            case AggregateCall(aggregate=aggregate, name=name, arguments=arguments):
                return AggregateCall, self.of(aggregate), name, self.of(arguments)
            case LambdaFunction(type=data_type, name=name, parameters=parameters):
                names = tuple((p.type, p.name) for p in parameters)
                return LambdaFunction, data_type, name, names, self.of(expression.children())
        compared = (getattr(expression, f.name) for f in fields(expression) if f.compare)
        return type(expression), *map(self.of, compared)


def _rows(rows: pa.Table) -> Hashable:
    """Return constant rows as a value to compare."""
    if rows.num_rows > _ROWS_MAX:
        raise _NoFingerprint
    columns = (repr(column.to_pylist()) for column in rows.columns)
    return rows.num_rows, *map(str, rows.schema.types), *columns
