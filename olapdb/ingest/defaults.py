"""Columns that an INSERT did not give: DEFAULT and MATERIALIZED expressions, else the type's default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from olapdb.bind import BindScope, bind_expression
from olapdb.errors import DataError, IncorrectQuery
from olapdb.execute.evaluate import evaluate_array
from olapdb.functions import cast_column, default_value
from olapdb.functions.base import Environment
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Expression, columns_of
from olapdb.sql.parser import parse_expression
from olapdb.transaction.cache import Cache
from olapdb.types import DataType


@dataclass(frozen=True)
class DefaultColumn:
    """`expression` None: the type's own default."""

    name: str
    type: DataType
    stored: bool
    expression: Expression | None

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.expression is None else columns_of(self.expression)


@dataclass(frozen=True)
class DefaultColumns:
    """How each column of a table is made where it was not given, in the table's order."""

    columns: tuple[DefaultColumn, ...]

    @staticmethod
    def of(
        table: Table, snapshot: Snapshot, environment: Environment, cache: Cache
    ) -> DefaultColumns:
        """Bound once for each version of the table."""
        key = ("defaults", table.id, table.version, environment.zone)
        return cache.get_or_make(key, lambda: _bind(table, snapshot, environment))

    def complete(
        self, given: Mapping[str, pa.Array], rows: int, environment: Environment
    ) -> dict[str, pa.Array]:
        """The given columns and all missing ones, of the columns' Arrow types.

        An expression may use given columns and other defaults, in any order; a circle raises
        IncorrectQuery, a failing expression a DataError that names the column.
        """
        full = dict(given)
        missing = [c for c in self.columns if c.name not in full]
        while missing:
            ready = [c for c in missing if c.needs <= full.keys()]
            if not ready:
                names = ", ".join(c.name for c in missing)
                raise IncorrectQuery(f"The defaults of these columns need each other: {names}.")
            for column in ready:
                full[column.name] = _value(column, full, rows, environment)
            missing = [c for c in missing if c.name not in full]
        return full


def _bind(table: Table, snapshot: Snapshot, environment: Environment) -> DefaultColumns:
    scope = BindScope(snapshot=snapshot, database=table.database, environment=environment)
    made = []
    for column in table.columns:
        if column.default_kind == "ALIAS":
            continue
        expression = None
        if column.default:
            expression = bind_expression(parse_expression(column.default), table, scope)
        made.append(DefaultColumn(column.name, column.type, column.stored, expression))
    return DefaultColumns(tuple(made))


def _value(
    column: DefaultColumn, full: Mapping[str, pa.Array], rows: int, environment: Environment
) -> pa.Array:
    if column.expression is None:
        return pa.repeat(default_value(column.type), rows)
    names = sorted(column.needs)
    if names:
        batch = pa.RecordBatch.from_arrays([full[n] for n in names], names=names)
    else:
        batch = pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["_rows"])
    try:
        value = evaluate_array(column.expression, batch, environment)
        cast = cast_column(value, column.expression.type, column.type, environment, strict=True)
    except DataError as error:
        named = type(error)(f"Default of column {column.name}: {error.message}", hint=error.hint)
        raise named from error
    assert isinstance(cast, pa.Array)
    return cast
