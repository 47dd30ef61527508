"""Rows of format(Values, …) that hold expressions, which the format's reader of literals does not read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from olapdb import errors
from olapdb.bind.constants import cast_literal, compute
from olapdb.bind.contracts import QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.config import Settings
from olapdb.functions import default_value, store_column, store_literals
from olapdb.functions.kernels.columns import from_scalars
from olapdb.plan.expressions import Constant, is_pure
from olapdb.sql import nodes as sql
from olapdb.sql.values.csv_values import parse_value_rows
from olapdb.types import (
    DataType,
    Decimal,
    Dynamic,
    Tuple,
    Variant,
    any_part,
    is_nullable,
    make_nullable,
    plain,
)

_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_LITERAL = re.compile(
    r"(?<![\w.])[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf|infinity|nan|null|true|false)"
    r"(?=[\s,;()\[\]{}:]|\Z)|[\s,;\[\]{}:()']",
    re.IGNORECASE,
)
"""A number or a word that stands for itself, or what stands between values."""
_APART = re.compile(r"[^\s,:(\[{]\s+[^\s,:;()\]}]|[^\s,(\[{:]\s*\[")
"""Two values with no comma between them, or a value with an index behind it."""


def value_columns(
    queries: QueryBinder,
    binder: ExpressionBinder,
    text: str,
    structure: Sequence[tuple[str, DataType]],
) -> list[pa.Array] | None:
    """Return the columns of rows of Values of which some value is an expression; None if all are literals.

    Each expression is bound and computed by itself, and stored as INSERT stores it. Raises SyntaxError for
    text that is no expression or a row of another width, BadArguments for an expression that is no
    constant, and a DataError that names column and row."""
    if not _has_expressions(text, [kind for _, kind in structure]):
        return None
    rows = parse_value_rows(text)
    for number, row in enumerate(rows, 1):
        if len(row) != len(structure):
            raise errors.SyntaxError(
                f"Row {number} of Values has {len(row)} values for {len(structure)} columns."
            )
    return [
        _column(queries, binder, [row[at] for row in rows], name, kind)
        for at, (name, kind) in enumerate(structure)
    ]


def _has_expressions(text: str, kinds: Sequence[DataType]) -> bool:
    """Return whether a value of the rows is more than a literal, an array, a tuple or a map of some."""
    bare = _STRING.sub("''", text)
    if _LITERAL.sub("", bare) or _APART.search(bare):
        return True
    is_nested = re.search(r"\(\s*\(", bare) is not None
    return is_nested and not any(any_part(kind, (Tuple,)) for kind in kinds)


def _column(
    queries: QueryBinder,
    binder: ExpressionBinder,
    expressions: Sequence[sql.Expression | None],
    name: str,
    kind: DataType,
) -> pa.Array:
    """Return the values of a column; None is DEFAULT, and NULL the type's default where it is no value."""
    fills = Settings.of(queries.scope.settings).boolean("input_format_null_as_default")
    scalars = []
    for number, expression in enumerate(expressions, 1):
        try:
            value = None if expression is None else _value(queries, binder, expression, kind)
            if value is not None and not value.is_valid and not is_nullable(kind):
                if not fills:
                    raise errors.CannotInsertNull(f"NULL is no value of {kind}.")
                value = None
        except errors.DataError as error:
            error.message = f"Column {name}, row {number}: {error.message}"
            raise
        scalars.append(default_value(kind) if value is None else value)
    return from_scalars(scalars, kind.arrow)


def _value(
    queries: QueryBinder, binder: ExpressionBinder, expression: sql.Expression, kind: DataType
) -> pa.Scalar:
    """Return the value of an expression, as one of the column's type or NULL. Raises BadArguments."""
    environment = queries.scope.environment
    written = binder.bind(expression)
    if not is_pure(written):
        queries.momentary = "values of format() that are computed anew each time"
    bound = compute(written, environment)
    if bound is None:
        raise errors.BadArguments(
            "A value of Values is a constant expression, with no subquery and no aggregate.",
            hint="SELECT … UNION ALL SELECT … computes rows of any expressions.",
            position=expression.position,
        )
    if not bound.value.is_valid:
        return pa.scalar(None)
    literal = cast_literal(expression, bound) if isinstance(plain(kind), Decimal) else bound
    assert isinstance(literal, Constant)
    if isinstance(plain(kind), Dynamic | Variant):
        return store_literals(literal.value, literal.type, kind, environment)
    value = store_column(literal.value, literal.type, make_nullable(kind), environment)
    return value if isinstance(value, pa.Scalar) else value[0]
