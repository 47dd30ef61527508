"""Checks of a table's columns at CREATE and after every ALTER: names, types, defaults, codecs,
constraints."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb import errors
from olapdb.bind import BindScope, bind_expression
from olapdb.bind.syntax import children, walk
from olapdb.compute.evaluate import evaluate_array
from olapdb.functions import store_column
from olapdb.model.schema import Column, Table
from olapdb.plan.expressions import (
    CorrelatedSubquery,
    Expression,
    InSubquery,
    ScalarSubquery,
    WindowExpression,
    columns_of,
    is_pure,
)
from olapdb.plan.expressions import walk as walk_expression
from olapdb.sql import nodes
from olapdb.sql.dictionary_functions import refuse_dictionaries
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.ddl.type_checks import check_type
from olapdb.storage.codec import check_codec
from olapdb.types import Boolean, Integer, Nothing, plain


def check_columns(table: Table, scope: BindScope) -> None:
    """Check names, types, codecs, keys, defaults and constraints of the table; raise the errors
    that ClickHouse raises."""
    _check_names(table)
    for column in table.columns:
        check_type(column.type, column.name)
        if isinstance(plain(column.type), Nothing):
            raise errors.TypeNotForTables(
                f"Data type {column.type} of column {column.name} cannot be stored."
            )
        if column.stored:
            check_codec(column)
    _check_keys(table)
    _check_cyclic_defaults(table)
    for column in table.columns:
        if column.default:
            _check_default(table, column, scope)
    for name, text in table.constraints:
        with errors.in_clause(f"CONSTRAINT {name}"):
            _check_constraint(table, name, text, scope)


def column_names_in(text: str, table: Table) -> set[str]:
    """Return the columns of the table that the expression names; a lambda's arguments hide columns
    of the same name."""
    column_names = {column.name for column in table.columns}
    found: set[str] = set()
    for parts in _identifiers(parse_expression(text), frozenset()):
        found.add(".".join(parts))
        found.add(parts[0])
        if parts[0] not in column_names:  # `t.a` of the table t; else `a` is an element or a path
            found.add(parts[-1])
    return found & column_names


def _identifiers(node: nodes.Node, hidden: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the parts of every identifier. `hidden` are arguments of enclosing lambdas."""
    match node:
        case nodes.Identifier(parts=parts):
            if len(parts) > 1 or parts[0] not in hidden:
                yield tuple(parts)
        case nodes.Lambda(arguments=arguments, body=body):
            yield from _identifiers(body, hidden | set(arguments))
        case _:
            for child in children(node):
                yield from _identifiers(child, hidden)


def _check_names(table: Table) -> None:
    """Raise DuplicateColumn for a repeated column, IllegalColumn for a repeated constraint,
    EmptyListOfColumns if no column is stored or none can be inserted."""
    seen_names: set[str] = set()
    for column in table.columns:
        if column.name in seen_names:
            raise errors.DuplicateColumn(f"Column {column.name} appears twice.")
        seen_names.add(column.name)
    names = [name for name, _ in table.constraints]
    repeated_name = next((name for name in names if names.count(name) > 1), None)
    if repeated_name is not None:
        raise errors.IllegalColumn(f"There are two constraints called {repeated_name}.")
    if not table.stored_columns:
        raise errors.EmptyListOfColumns(
            f"{table.database}.{table.name} would have no column that is stored.",
            hint="Give it one that is neither ALIAS nor EPHEMERAL.",
        )
    if all(
        table_column.default_kind in ("ALIAS", "MATERIALIZED") for table_column in table.columns
    ):
        raise errors.EmptyListOfColumns(
            f"{table.database}.{table.name} would have no column that can be inserted.",
            hint="Give it one that is neither ALIAS nor MATERIALIZED.",
        )


def _check_keys(table: Table) -> None:
    """Raise UnknownIdentifier if a key names a column that is not stored."""
    texts = [item.expression for item in table.sorting_key]
    for text in (*texts, *((table.partition_key,) if table.partition_key else ())):
        for name in sorted(column_names_in(text, table)):
            column = table.column(name)
            if column is not None and not column.stored:
                raise errors.UnknownIdentifier(
                    f"The key {text} of {table.database}.{table.name} names {name}, which is"
                    f" {column.default_kind} and not stored.",
                    hint="Make the column MATERIALIZED, or write its expression into the key.",
                )


def _check_cyclic_defaults(table: Table) -> None:
    """Raise CyclicAliases if default expressions use each other in a circle."""
    inputs_of = {
        column.name: column_names_in(column.default, table)
        for column in table.columns
        if column.default
    }
    pending = dict(inputs_of)
    while pending:
        resolvable = [
            column_name for column_name, inputs in pending.items() if not inputs & pending.keys()
        ]
        if not resolvable:
            names = ", ".join(sorted(pending))
            raise errors.CyclicAliases(
                f"The default expressions of these columns need each other: {names}."
            )
        for name in resolvable:
            del pending[name]


def _check_default(table: Table, column: Column, scope: BindScope) -> None:
    """Raise NoDefaultValue for a default with a subquery, NotSupportedError for one with a window
    function, and the binder's and converter's errors."""
    parsed = parse_expression(column.default)
    clause = f"the {column.default_kind} of column {column.name}"
    if column.default_kind == "ALIAS":
        refuse_dictionaries(parsed, clause)  # each query computes it, with its own settings
    else:
        refuse_outside_values(parsed, clause)
        refuse_aliases_of_settings(table, column.default, clause)
    bound = None if _has_query(parsed) else bind_expression(parsed, table, scope)
    if bound is None or reads_a_table(bound):
        raise errors.NoDefaultValue(
            f"The {column.default_kind} of column {column.name} has a subquery.",
            hint="A default is an expression over the row's own columns.",
        )
    if any(isinstance(node, WindowExpression) for node in walk_expression(bound)):
        raise errors.NotSupportedError(
            f"The {column.default_kind} of column {column.name} has a window function.",
            hint="A default is an expression over the row's own columns. rowNumberInAllBlocks()"
            " is one too; rowNumberInBlock() is not.",
        )
    try:
        _check_storable(bound, column, scope)
    except errors.DataError as error:
        raise type(error)(
            f"The {column.default_kind} of column {column.name} is no {column.type}:"
            f" {error.message}",
            hint=error.hint,
        ) from error


def refuse_aliases_of_settings(table: Table, text: str, clause: str) -> None:
    """Raise NotSupportedError if the expression, which stands in `clause`, reads an ALIAS column that reads a setting
    of the session."""
    waiting, seen = [text], set[str]()
    while waiting:
        for name in column_names_in(waiting.pop(), table) - seen:
            seen.add(name)
            column = table.column(name)
            if column is not None and column.default_kind == "ALIAS":
                refuse_outside_values(
                    parse_expression(column.default), f"{clause}, which reads {name},"
                )
                waiting.append(column.default)


def _has_query(parsed: nodes.Expression) -> bool:
    """Return whether the text of the expression has a query in it."""
    return any(isinstance(node, nodes.Query) for node in walk(parsed))


def reads_a_table(bound: Expression) -> bool:
    """Return whether the expression needs the rows of a table, as `x IN t` does."""
    return any(
        isinstance(node, InSubquery | ScalarSubquery | CorrelatedSubquery)
        for node in walk_expression(bound)
    )


def _check_storable(bound: Expression, column: Column, scope: BindScope) -> None:
    """Raise DataError if the default cannot be stored in the column. A constant is converted; for
    other expressions a conversion between the types must exist."""
    environment = scope.environment
    value: pa.Array = pa.nulls(0, bound.type.arrow)
    if not columns_of(bound) and is_pure(bound):
        row = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["-"])
        value = evaluate_array(bound, row, environment)
    store_column(value, bound.type, column.type, environment)


def _check_constraint(table: Table, name: str, text: str, scope: BindScope) -> None:
    """Raise BadArguments for a constraint with a subquery, IllegalTypeOfArgument for one that is
    not Boolean or UInt8."""
    parsed = parse_expression(text)
    refuse_outside_values(parsed, f"constraint {name}")
    refuse_aliases_of_settings(table, text, f"constraint {name}")
    bound = None if _has_query(parsed) else bind_expression(parsed, table, scope)
    if bound is None or reads_a_table(bound):
        raise errors.BadArguments(
            f"Constraint {name} has a subquery.",
            hint="A constraint is a condition over the row's own columns.",
        )
    kind = plain(bound.type)
    if not isinstance(kind, Boolean) and kind != Integer(8, False):
        raise errors.IllegalTypeOfArgument(
            f"Constraint {name} is of type {bound.type}, not UInt8: {text}.",
            hint="Write a comparison.",
        )


def constraint_from(definition: nodes.ConstraintDefinition) -> tuple[str, str]:
    """Return the name of a constraint, and its condition as SQL text."""
    return definition.name, to_sql(definition.expression)
