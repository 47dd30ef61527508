"""Tables of `system` and `information_schema` as relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.contracts import QueryBinder
from olapdb.bind.relation import Qualifier, Relation, RelationColumn
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.sql import nodes as sql
from olapdb.types import UINT8, UINT64, DataType

SYSTEM_DATABASES = ("system", "information_schema", "INFORMATION_SCHEMA")
BUILTIN = {
    "one": "dummy",
    "numbers": "number",
    "numbers_mt": "number",
    "zeros": "zero",
    "zeros_mt": "zero",
    "primes": "prime",
}
"""Tables of `system` that are computed, and the name of the one column of each."""


def system_relation(queries: QueryBinder, source: sql.TableReference, database: str) -> Relation:
    """Return the relation of a table of `system` or `information_schema`.

    Raises UnknownTable where there is no such table."""
    name = source.table.name
    qualifiers: tuple[Qualifier, ...] = ((name,), (database, name))
    if source.alias:
        qualifiers = ((source.alias,), *qualifiers)
    if database == "system" and name in BUILTIN:
        return _builtin(queries, name, qualifiers)
    fields = queries.scope.system_tables(database, name)
    if fields is None:
        raise errors.UnknownTable(
            f"There is no table {database}.{name}.",
            hint=f"SELECT name FROM system.tables WHERE database = '{database.lower()}' lists them.",
            position=source.table.position,
        )
    shown = name if database == "system" else f"information_schema.{name.lower()}"
    unique = {f.name: queries.names.unique(f.name) for f in fields}
    columns = [
        RelationColumn(f.name, f.type, _constantly(ColumnRef(f.type, unique[f.name])), qualifiers)
        for f in fields
    ]

    by_name = {c.name: c for c in columns}
    hidden = [
        RelationColumn(n, *_alias(queries, by_name[of], function), qualifiers, starred=False)
        for n, (of, function) in SYSTEM_ALIASES.get(shown, {}).items()
    ]

    def build() -> plan.Node:
        """Return the scan of the columns that the query reads."""
        used = [f for f, c in zip(fields, columns, strict=True) if c.used]
        return plan.SystemScan(
            shown, tuple((unique[f.name], f.name) for f in used), tuple(f.type for f in used)
        )

    return Relation([*columns, *hidden], build, f"{database}.{name}")


_PART_ALIASES = {
    "bytes": ("bytes_on_disk", ""),
    "marks_size": ("marks_bytes", ""),
    "part_name": ("name", ""),
}
SYSTEM_ALIASES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "columns": {"column": ("name", "")},
    "clusters": {"name": ("cluster", "")},
    "events": {"name": ("event", "")},
    "metrics": {"name": ("metric", "")},
    "databases": {"database": ("name", "")},
    "parts": _PART_ALIASES,
    "parts_columns": _PART_ALIASES,
    "projection_parts": _PART_ALIASES,
    "processes": {
        "ProfileEvents.Names": ("ProfileEvents", "mapKeys"),
        "ProfileEvents.Values": ("ProfileEvents", "mapValues"),
        "Settings.Names": ("Settings", "mapKeys"),
        "Settings.Values": ("Settings", "mapValues"),
    },
    "tables": {"table": ("name", "")},
}
"""ALIAS columns of ClickHouse's system tables, which `*` does not show: (column, function of it, "" for
the column itself)."""


def _alias(
    queries: QueryBinder, column: RelationColumn, function: str
) -> tuple[DataType, Callable[[], Expression]]:
    """Return an ALIAS column as (type, function that makes its expression).

    The expression is `function` of `column`; for "" it is the column itself."""
    if not function:
        return column.type, column.use
    reference = ColumnRef(column.type, column.name)
    data_type = constants.call(function, (reference,), queries.scope.environment).type
    return data_type, lambda: constants.call(function, (column.use(),), queries.scope.environment)


def _builtin(queries: QueryBinder, name: str, qualifiers: tuple[Qualifier, ...]) -> Relation:
    """Return a table of `BUILTIN` as a relation."""
    shown = BUILTIN[name]
    data_type = UINT64 if shown in ("number", "prime") else UINT8
    unique = queries.names.unique(shown)
    node: plan.Node
    if name == "one":
        rows = pa.table({unique: pa.array([0], pa.uint8())})
        node = plan.Values((plan.Field(unique, data_type),), rows)
    elif name == "primes":
        node = plan.Primes(unique, data_type)
    else:
        node = plan.Numbers(unique, data_type, 0, None, step=1 if shown == "number" else 0)
    column = RelationColumn(shown, data_type, _constantly(ColumnRef(data_type, unique)), qualifiers)
    return Relation([column], lambda: node, f"system.{name}")


def _constantly(expression: Expression) -> Callable[[], Expression]:
    """Return a function that always returns this expression."""
    return lambda: expression
