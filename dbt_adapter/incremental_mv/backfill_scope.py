"""The partitions of the source that `backfill: {from, to}` of a model names."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from olapdb import types
from olapdb.bind.analysis import source_of
from olapdb.bind.syntax import walk
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression, parse_query

from ..relation import quote, string_literal
from .config import BackfillScope
from .errors import refuse
from .names import ModelNames
from .warehouse import Warehouse


def scope_partitions(
    warehouse: Warehouse, names: ModelNames, trigger: str, scope: BackfillScope
) -> list[str]:
    """Return the ids of the source's partitions within the bounds, in the order of their values.

    A bound is a value of the column that partitions the source. It stands for the partition that has
    it, both bounds included. Raises CompilationError if the source is not partitioned by one column,
    a bound is no value of it, or the first one is after the last."""
    name = source_of(parse_query(trigger))
    source = None if name is None else warehouse.table(name, names.database)
    if source is None:
        return []
    column = _partition_column(source.partition_key)
    table = f"{quote(source.database)}.{quote(source.name)}"
    described = warehouse.describe(f"SELECT {quote(column)}, {source.partition_key} FROM {table}")
    (_, column_type), (_, value_type) = described
    conditions = [
        f"value {operator} {_bound(warehouse, name, bound, column, column_type, source.partition_key)}"
        for name, operator, bound in (("from", ">=", scope.first), ("to", "<=", scope.last))
        if bound
    ]
    if scope.first and scope.last:
        first, last = (
            f"CAST({string_literal(bound)} AS {column_type})" for bound in (scope.first, scope.last)
        )
        if warehouse.rows(f"SELECT {first} > {last} AS reversed")[0]["reversed"]:
            raise CompilationError(
                f"backfill.from {scope.first} is after backfill.to {scope.last}, so that nothing "
                "would be backfilled. Exchange them, or say backfill='none'."
            )
    rows = warehouse.rows(
        f"SELECT id FROM (SELECT DISTINCT partition_id AS id, CAST(partition AS {value_type}) AS "
        f"value FROM system.parts WHERE database = {string_literal(source.database)} "
        f"AND table = {string_literal(source.name)} AND rows > 0) "  # placeholders have no partition
        f"WHERE {' AND '.join(conditions)} ORDER BY value"
    )
    return [str(row["id"]) for row in rows]


def _partition_column(partition_key: str) -> str:
    """Return the one column of the source's partition key. Raises CompilationError."""
    columns: set[str] = set()
    if partition_key:
        expression = parse_expression(partition_key)
        identifiers = [node for node in walk(expression) if isinstance(node, nodes.Identifier)]
        columns = {identifier.parts[-1] for identifier in identifiers}
    if len(columns) != 1:
        raise refuse(
            "config backfill has from or to, which choose partitions of the source,",
            f"and the source is partitioned by {partition_key or 'nothing'}.",
            "Use backfill='auto' or 'none'; from and to need a source that one column partitions.",
        )
    return columns.pop()


def _bound(
    warehouse: Warehouse,
    name: str,
    bound: str,
    column: str,
    column_type: types.DataType,
    partition_key: str,
) -> str:
    """Return the partition's value of a bound as an SQL literal. Raises CompilationError."""
    plain = types.plain(column_type)
    is_time = isinstance(plain, types.Date | types.Date32 | types.DateTime | types.DateTime64)
    if is_time and bound.isdigit():
        raise CompilationError(
            f"backfill.{name} is a value of {column} ({column_type}), such as '2024-01-31', not "
            f"{bound}."
        )
    value = f"CAST({string_literal(bound)} AS {column_type}) AS {quote(column)}"
    try:
        ((text,),) = (
            row.values()
            for row in warehouse.rows(
                f"SELECT toString({partition_key}) AS text FROM (SELECT {value})"
            )
        )
    except DbtDatabaseError as error:
        raise CompilationError(
            f"backfill.{name} is a value of {column} ({column_type}), not {bound!r}: {error.msg}"
        ) from error
    key = f"SELECT {partition_key} AS k FROM (SELECT {value})"
    described = warehouse.describe(key)
    return f"CAST({string_literal(str(text))} AS {described[0][1]})"
