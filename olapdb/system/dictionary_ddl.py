"""CREATE DICTIONARY of existing dictionaries, after what RENAME changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from olapdb import types
from olapdb.bind.dictionary_definition import DictionaryDefinition, open_end, text_of
from olapdb.model.schema import View
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression, parse_query


def current_statement(view: View, definition: DictionaryDefinition) -> nodes.CreateDictionary:
    """Return the CREATE DICTIONARY of a dictionary as it is now: RENAME of its table, of a column
    and of itself changed what was written."""
    query = parse_query(view.query)
    statement = definition.statement
    source = statement.source
    assert isinstance(query, nodes.Select)
    assert source is not None
    attributes = statement.attributes
    if source.kind == "CLICKHOUSE":
        attributes, source = _current_source(view, query, definition, source)
    return replace(
        statement,
        name=nodes.TableName(view.name, view.database),
        attributes=attributes,
        source=source,
        comment=view.comment,
    )


def _current_source(
    view: View,
    query: nodes.Select,
    definition: DictionaryDefinition,
    source: nodes.DictionaryClause,
) -> tuple[tuple[nodes.DictionaryAttribute, ...], nodes.DictionaryClause]:
    """Return the attributes and the source that give the view's query."""
    attributes = definition.statement.attributes
    changed: dict[str, nodes.Expression] = {}
    if isinstance(query.source, nodes.TableReference):
        table = query.source.table
        changed["TABLE"] = nodes.Literal(table.name)
        if source.parameter("DB") is not None or table.database != view.database:
            changed["DB"] = nodes.Literal(table.database)
        if query.where is not None:
            written = parse_expression(text_of(source.parameter("WHERE")) or "1")
            if written != query.where:
                changed["WHERE"] = nodes.Literal(to_sql(query.where))
        computed = {column.name: item for (column, _), item in _pairs(definition, query)}
        attributes = tuple(_current_attribute(a, computed[a.name], definition) for a in attributes)
    elif isinstance(query.source, nodes.SubqueryRelation) and query.source.column_aliases:
        changed["QUERY"] = nodes.Literal(to_sql(query.source.query))
    else:
        changed["QUERY"] = nodes.Literal(to_sql(query))
        attributes = tuple(replace(a, expression=None) for a in attributes)
        source = replace(source, parameters=_without_table(source))
    names = [name for name, _ in source.parameters]
    parameters = [(name, changed.get(name, value)) for name, value in source.parameters]
    parameters += [(name, value) for name, value in changed.items() if name not in names]
    return attributes, replace(source, parameters=tuple(parameters))


def _pairs(
    definition: DictionaryDefinition, query: nodes.Select
) -> Iterator[tuple[tuple[nodes.DictionaryAttribute, types.DataType], nodes.Expression]]:
    """Yield each column of the dictionary and its expression in the query."""
    return zip(definition.columns, query.columns, strict=True)


def _without_table(source: nodes.DictionaryClause) -> tuple[tuple[str, nodes.Expression], ...]:
    """Return the parameters of a source that QUERY does not replace."""
    replaced = ("TABLE", "DB", "DATABASE", "WHERE", "QUERY")
    return tuple(pair for pair in source.parameters if pair[0] not in replaced)


def _current_attribute(
    attribute: nodes.DictionaryAttribute, item: nodes.Expression, definition: DictionaryDefinition
) -> nodes.DictionaryAttribute:
    """Return the attribute with the expression that gives it now, None for a column of its name."""
    if not isinstance(item, nodes.Alias):
        return replace(attribute, expression=None)
    value = item.expression
    if isinstance(value, nodes.Function) and value.name == "ifNull":
        ends = [
            to_sql(open_end(types.plain(bound.type), highest=at > 0))
            for at, bound in enumerate(definition.bounds)
            if bound.name == attribute.name
        ]
        if to_sql(value.arguments[1]) in ends:  # what leaves the range open at NULL
            value = value.arguments[0]
    named = isinstance(value, nodes.Identifier) and value.parts == (attribute.name,)
    return replace(attribute, expression=None if named else value)
