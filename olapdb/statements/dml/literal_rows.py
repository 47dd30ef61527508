"""The rows of VALUES as columns: by a reader of JSON or CSV, else expression by expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from olapdb import errors
from olapdb.bind import BindScope, bind_constant
from olapdb.bind.parameters import lookup_parameter
from olapdb.functions import default_value
from olapdb.functions.kernels.columns import from_scalars
from olapdb.ingest.block import allows_lossy
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes, trees
from olapdb.sql.values.csv_values import read_values
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.insert_columns import target_columns
from olapdb.statements.dml.json_values import read_small_values
from olapdb.statements.dml.python_values import python_column
from olapdb.types import (
    Array,
    DataType,
    Dynamic,
    Json,
    Map,
    Tuple,
    Variant,
    is_nullable,
    make_nullable,
    plain,
)

Rows: TypeAlias = Sequence[Sequence[nodes.Expression | None]]


def literal_rows(
    values: nodes.ValuesData,
    table: Table,
    columns: Sequence[str] | None,
    context: StatementContext,
    snapshot: Snapshot,
) -> tuple[Any, Sequence[DataType]]:
    """Return the rows of VALUES as columns, and their types.

    Tries the JSON reader for small texts, then the CSV reader, then the grammar for expressions.
    """
    fields = target_columns(table, columns)
    small = read_small_values(values.text, [column.type for column in fields])
    if small is not None:
        return pa.Table.from_arrays(small[0], names=[column.name for column in fields]), small[1]
    parsed = read_values(
        values.text,
        [column.name for column in fields],
        [column.type for column in fields],
        values.position,
    )
    if parsed.columns is not None:
        names = [column.name for column in fields]
        return pa.Table.from_arrays(list(parsed.columns), names=names), parsed.types
    assert parsed.rows is not None
    return _expression_rows(parsed.rows, fields, context, snapshot)


def _expression_rows(
    rows: Rows, fields: Sequence[Column], context: StatementContext, snapshot: Snapshot
) -> tuple[pa.Table, Sequence[DataType]]:
    """Return the rows of VALUES with expressions or parameters as columns, and their types."""
    scope = context.scope(snapshot)
    types = [make_nullable(field.type) for field in fields]
    arrays = [
        _column([row[position] for row in rows], column, context, scope)
        for position, column in enumerate(fields)
    ]
    return pa.Table.from_arrays(arrays, names=[field.name for field in fields]), types


def _column(
    expressions: Sequence[nodes.Expression | None],
    column: Column,
    context: StatementContext,
    scope: BindScope,
) -> pa.Array:
    """Return the column of these expressions, None being DEFAULT. A column of parameters alone is
    cast as a whole; otherwise each expression is bound, folded and cast by itself."""
    if column.default and None in expressions:
        _refuse_default(column, context)
    lossy = allows_lossy(context.settings)
    parameters = [e for e in expressions if isinstance(e, nodes.Parameter) and is_parameter(e)]
    if len(parameters) == len(expressions):
        values = [lookup_parameter(parameter, context.parameters) for parameter in parameters]
        return python_column(column, values, context.environment, lossy=lossy)
    data_type = make_nullable(column.type)
    null_as_default = context.settings.boolean("input_format_null_as_default")
    scalars = []
    for number, expression in enumerate(expressions, 1):
        if expression is None:  # DEFAULT: the INSERT replaces NULL by the column's default
            scalars.append(pa.scalar(None) if column.default else default_value(column.type))
            continue
        if _is_null(expression, context) and null_as_default and not is_nullable(data_type):
            scalars.append(pa.scalar(None))  # an array or a map cannot be Nullable
            continue
        if null_as_default:
            expression = _with_defaults(expression, column.type)
        try:
            scalars.append(bind_constant(expression, data_type, scope, lossy=lossy))
        except errors.DataError as error:
            error.message = f"Column {column.name}, row {number}: {error.message}"
            raise
    return from_scalars(scalars, data_type.arrow)


def _with_defaults(expression: nodes.Expression, data_type: DataType) -> nodes.Expression:
    """Return an array, a tuple or a map of literals with the default of its type in place of each NULL that it cannot
    hold, as ClickHouse reads it; any other expression as it is."""
    kinds = (nodes.ArrayLiteral, nodes.TupleLiteral)
    is_map = isinstance(expression, nodes.Function) and expression.name == "map"
    if not (isinstance(expression, kinds) or is_map) or not all(
        isinstance(node, (nodes.Literal, *kinds))
        or (isinstance(node, nodes.Function) and node.name == "map")
        for node in trees.walk(expression)
    ):
        return expression

    def filled(item: nodes.Expression, inner: DataType) -> nodes.Expression:
        """Return the item, the default of its type if it is a NULL that this does not hold."""
        is_missing = isinstance(item, nodes.Literal) and item.value is None
        if (
            not is_missing
            or is_nullable(inner)
            or isinstance(plain(inner), Variant | Dynamic | Json)
        ):
            return _with_defaults(item, inner)
        return nodes.Function("defaultValueOfTypeName", (nodes.Literal(inner.name),))

    match expression, plain(data_type):
        case nodes.ArrayLiteral(elements=items), Array(inner):
            return replace(expression, elements=tuple(filled(item, inner) for item in items))
        case nodes.TupleLiteral(elements=items), Tuple(elements=parts) if len(items) == len(parts):
            return replace(expression, elements=tuple(map(filled, items, parts)))
        case nodes.Function(arguments=items), Map(key, value):
            pairs = tuple(filled(item, (key, value)[at % 2]) for at, item in enumerate(items))
            return replace(expression, arguments=pairs)
        case _:
            return expression


def _is_null(expression: nodes.Expression, context: StatementContext) -> bool:
    """Return whether the expression is the literal NULL or a parameter with the value None."""
    if isinstance(expression, nodes.Parameter) and is_parameter(expression):
        return lookup_parameter(expression, context.parameters) is None
    return isinstance(expression, nodes.Literal) and expression.value is None


def _refuse_default(column: Column, context: StatementContext) -> None:
    """Raise NotSupportedError for DEFAULT in a column that takes NULL as a value: DEFAULT is
    written as NULL, which the INSERT replaces only elsewhere."""
    if is_nullable(column.type) or not context.settings.boolean("input_format_null_as_default"):
        raise errors.NotSupportedError(
            f"DEFAULT for column {column.name}, which takes NULL as a value, is not supported.",
            hint="Leave the column out of the INSERT's column list to have its default.",
        )


def is_parameter(expression: nodes.Expression | None) -> bool:
    """Return whether the expression is a parameter without a type; `{name:Type}` is cast to its
    type instead."""
    return isinstance(expression, nodes.Parameter) and expression.type is None
