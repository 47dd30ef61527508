"""`_partition_value`: the items of the partition key as a tuple, computed from the key's columns.

It is one value in each part, and prunes parts as the key does."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.scope import NO_SNAPSHOT, BindScope
from olapdb.errors import InternalError
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_expression
from olapdb.sql.trees import elements_of_tuple
from olapdb.types import DataType

PARTITION_VALUE = "_partition_value"


@lru_cache(maxsize=512)
def has_partition_value(table: Table) -> bool:
    """Return whether a table has the column: not without PARTITION BY, nor with a stored column of that name."""
    if not table.partition_key or table.column(PARTITION_VALUE) is not None:
        return False
    return bool(elements_of_tuple(parse_expression(table.partition_key)))


@lru_cache(maxsize=512)
def partition_value_column(table: Table) -> Column:
    """Return the column, which the table has, as an ALIAS of the partition key."""
    parsed = parse_expression(table.partition_key)
    elements = elements_of_tuple(parsed)
    is_tuple = elements != (parsed,)
    text = table.partition_key if is_tuple else f"tuple({table.partition_key})"
    return Column(
        0, PARTITION_VALUE, _type_of(sql.Function("tuple", elements), table), "ALIAS", text
    )


class _KeyBinder(QueryBinder):
    """A binder for keys, which contain no query."""

    def query(self, query: sql.Query, context: BindContext) -> BoundQuery:
        """Raise InternalError: a key has no subquery."""
        raise InternalError("The key of a table contains no query.")


def _type_of(key: sql.Expression, table: Table) -> DataType:
    """Return the type of a partition key over the table's columns."""
    queries = _KeyBinder(BindScope(NO_SNAPSHOT, table.database))
    columns = [RelationColumn(c.name, c.type, _reference(c)) for c in table.columns]
    relation = Relation(columns, _no_node, f"{table.database}.{table.name}")
    return ExpressionBinder(queries, relation, queries.root_context()).bind(key).type


def _reference(column: Column) -> Callable[[], Expression]:
    """Return a function without arguments that returns a reference to the column."""
    return lambda: ColumnRef(column.type, column.name)


def _no_node() -> plan.Node:
    """Raise InternalError: the relation of a key only resolves names, it has no plan node."""
    raise InternalError("The key of a table reads nothing but its own columns.")
