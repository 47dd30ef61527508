"""The column list of CREATE VIEW: other names for what the SELECT gives, or other types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from olapdb.errors import BadArguments
from olapdb.sql import nodes
from olapdb.types import DataType


def listed_query(statement: nodes.CreateView, given: Mapping[str, DataType]) -> nodes.Query:
    """Return the query whose columns are those of the list; `given` are those of the SELECT.

    A list of names gives the columns of the SELECT these names, in order. A list with types takes
    the columns of these names, and converts them. Raises BadArguments for another number of names,
    and for a name with a type that the SELECT does not give."""
    listed = {column.name: column.type for column in statement.columns}
    if list(listed) == list(given) and all(
        wanted in (None, given[name]) for name, wanted in listed.items()
    ):
        return statement.query
    if all(wanted is None for wanted in listed.values()):
        return _named(statement.query, tuple(c.name for c in statement.columns), statement)
    return _converted(statement, given)


def _named(query: nodes.Query, names: tuple[str, ...], statement: nodes.CreateView) -> nodes.Query:
    """Return the query with these names for its columns; those of a set operation are its first
    branch's."""
    if isinstance(query, nodes.SetOperation):
        return replace(query, left=_named(query.left, names, statement))
    expressions = query.columns if isinstance(query, nodes.Select) else ()
    if len(expressions) != len(names) or any(isinstance(e, nodes.Star) for e in expressions):
        raise BadArguments(
            f"The view lists {len(names)} names, its SELECT has {len(expressions)} expressions.",
            hint="Give each expression a name; * cannot have one.",
            position=statement.position,
        )
    assert isinstance(query, nodes.Select)
    columns = tuple(
        nodes.Alias(e.expression if isinstance(e, nodes.Alias) else e, name)
        for e, name in zip(expressions, names, strict=True)
    )
    return replace(query, columns=columns)


def _converted(statement: nodes.CreateView, given: Mapping[str, DataType]) -> nodes.Query:
    """Return a SELECT of the listed columns from the query, converted to the types of the list."""
    columns: list[nodes.Expression] = []
    for column in statement.columns:
        if column.name not in given:
            raise BadArguments(
                f"The view's column {column.name} is not in its SELECT.",
                hint=f"It has {', '.join(given)}. A list without types names these anew.",
                position=column.position,
            )
        name = nodes.Identifier((column.name,))
        if column.type is None or column.type == given[column.name]:
            columns.append(name)
        else:
            columns.append(nodes.Alias(nodes.Cast(name, column.type), column.name))
    return nodes.Select(tuple(columns), source=nodes.SubqueryRelation(statement.query))
