"""The binder's entry points."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from olapdb.bind.aggregates import refuse_aggregates
from olapdb.bind.constants import cast_literal, compute
from olapdb.bind.correlations import refuse_correlated
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.query import StatementBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.scope import BindScope
from olapdb.bind.table_scan import default_expression
from olapdb.bind.user_functions import expand
from olapdb.bind.virtual import PART_COLUMNS
from olapdb.errors import BadArguments, InternalError, TooDeepRecursion
from olapdb.functions import cast_column, store_column, store_literals
from olapdb.model.schema import Column, Table
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Constant, Expression
from olapdb.plan.tree import all_expressions
from olapdb.sql import nodes as sql
from olapdb.types import DataType, Decimal, Dynamic, Variant, plain


def bind_query(query: sql.Query, scope: BindScope) -> plan.Plan:
    """Return the typed plan of a query, not yet optimized.

    Raises a ProgrammingError with a position for wrong names, types and arguments, and
    NotSupportedError, naming the clause, for features that are not implemented.
    Raises TooDeepRecursion for a query that nests too deeply.
    """
    queries = StatementBinder(scope)
    try:
        bound = queries.statement(query, queries.root_context())
    except RecursionError:
        raise TooDeepRecursion(
            "The query's expressions are nested too deeply.", hint="Split it with WITH."
        ) from None
    if queries.correlated:
        for expression in all_expressions(bound.node):
            refuse_correlated(expression, "this clause")
    output = tuple((c.unique, c.name) for c in bound.columns)
    tables = tuple(queries.tables.items())
    return plan.Plan(
        bound.node,
        output,
        tables,
        correlated=queries.correlated,
        momentary=queries.momentary,
        keeps_nulls=queries.keeps_nulls,
    )


def bind_expression(expression: sql.Expression, table: Table, scope: BindScope) -> Expression:
    """Bind an expression over a table's columns, virtual ones too, named as in the table.

    ALIAS columns are expanded. Raises IllegalAggregation for an aggregate."""
    queries = StatementBinder(scope)
    context = queries.root_context()

    def lookup(column: Column) -> Expression:
        """Return the reference to a stored column, for ALIAS expressions that read it."""
        return ColumnRef(column.type, column.name)

    columns = []
    for column in table.columns:
        if column.default_kind == "ALIAS":
            columns.append(
                RelationColumn(
                    column.name,
                    column.type,
                    lambda c=column: default_expression(  # type: ignore[misc]
                        queries, table, c, context, lookup
                    ),
                )
            )
        else:
            columns.append(_plain_column(column.name, column.type))
    stored = {c.name for c in table.columns}
    columns += [_plain_column(v.name, v.type, False) for v in PART_COLUMNS if v.name not in stored]
    for relation_column in columns:
        relation_column.qualifiers = ((table.name,), (table.database, table.name))
    return _bind_over(expression, columns, f"{table.database}.{table.name}", queries)


def bind_expression_over(
    expression: sql.Expression, schema: Iterable[plan.Field], scope: BindScope
) -> Expression:
    """Bind an expression over the columns of a schema, by their names there.

    Raises IllegalAggregation for an aggregate."""
    columns = [_plain_column(f.name, f.type) for f in schema]
    return _bind_over(expression, columns, "", StatementBinder(scope))


def _bind_over(
    expression: sql.Expression, columns: list[RelationColumn], label: str, queries: StatementBinder
) -> Expression:
    """Bind an expression over these columns alone. Raises IllegalAggregation for an aggregate.

    `label` names the relation in error messages."""
    relation = Relation(columns, _unbuilt, label)
    binder = ExpressionBinder(queries, relation, queries.root_context())
    bound = refuse_aggregates(binder.bind(expression), "this expression", expression.position)
    if queries.correlated:
        refuse_correlated(bound, "this expression")
    return bound


def _plain_column(name: str, data_type: DataType, starred: bool = True) -> RelationColumn:
    """Return a relation column that reads the plan column of the same name.

    `starred` says whether `*` shows it."""
    reference = ColumnRef(data_type, name)
    return RelationColumn(name, data_type, lambda: reference, starred=starred)


def _unbuilt() -> plan.Node:
    """Raise InternalError: this relation only resolves names, it has no plan node."""
    raise InternalError("An expression's relation is not built.")


def bind_value(expression: sql.Expression, scope: BindScope) -> Constant:
    """Return the value of an expression without columns (a literal, a parameter, now() - 1).

    It keeps the expression's own type. Raises BadArguments for any other expression."""
    queries = StatementBinder(scope)
    expression = expand(expression, scope.snapshot.functions)
    bound = compute(_bind_over(expression, [], "", queries), queries.scope.environment)
    if bound is None:
        raise BadArguments(
            "A constant is expected here.",
            hint="Use INSERT INTO … SELECT for values that have to be computed.",
            position=expression.position,
        )
    return bound


def bind_constant(
    expression: sql.Expression, target: DataType, scope: BindScope, *, lossy: bool = False
) -> pa.Scalar:
    """Return the value of an expression without columns, converted to `target` as for storing.

    Raises BadArguments for any other expression, DataError where the value does not convert, for
    a Nullable target too: a text that does not parse is no NULL. With `lossy`, a value that would
    change is converted as CAST does."""
    bound = bind_value(expression, scope)
    literal = cast_literal(expression, bound) if isinstance(plain(target), Decimal) else bound
    assert isinstance(literal, Constant)
    if isinstance(plain(target), Dynamic | Variant):
        return store_literals(literal.value, literal.type, target, scope.environment)
    if lossy:
        value = cast_column(literal.value, literal.type, target, scope.environment, strict=True)
    else:
        value = store_column(literal.value, literal.type, target, scope.environment)
    return value if isinstance(value, pa.Scalar) else value[0]
