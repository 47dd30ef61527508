"""The settings additional_table_filters and additional_result_filter: conditions beside the query's.

SELECT * FROM t SETTINGS additional_table_filters = {'t': 'x != 2'}
"""

from __future__ import annotations

from dataclasses import replace

from olapdb import errors
from olapdb.bind.aggregates import refuse_aggregates
from olapdb.bind.contracts import BindContext, BoundQuery, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.config import Settings
from olapdb.errors import InternalError
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql
from olapdb.sql import trees
from olapdb.sql.parser import parse_expression

_NONE = "{}"


def filtered_table(
    queries: QueryBinder,
    source: sql.TableReference,
    relation: Relation,
    database: str,
    context: BindContext,
) -> Relation:
    """Return the relation of a table, filtered by the condition that additional_table_filters has for it; unchanged
    without one. The setting names the table by its alias, by its name in the current database, or as
    `database.name`."""
    text = context.text("additional_table_filters")
    if text == _NONE:
        return relation
    names = {f"{database}.{source.table.name}", source.alias}
    if database in (context.database, TEMPORARY_DATABASE):
        names.add(source.table.name)
    condition = next((c for name, c in _filters(text) if name in names), None)
    if condition is None:
        return relation
    # The condition itself reads no table with a filter.
    inner = replace(context.nested(), settings=_without_filters(context))
    binder = ExpressionBinder(queries, relation, inner)
    bound = binder.bind(parse_expression(condition))
    bound = refuse_aggregates(bound, "additional_table_filters", source.position)

    def build() -> plan.Node:
        """Return the table's plan under a Filter of the condition."""
        return plan.Filter(relation.build(), bound)

    return replace(relation, build=build)


def filtered_result(
    queries: QueryBinder, query: sql.Query, bound: BoundQuery, context: BindContext
) -> BoundQuery:
    """Return the statement's query, filtered by the condition of the setting additional_result_filter over its columns;
    unchanged without one. Raises NotSupportedError for a set operation, where ClickHouse filters each branch."""
    text = context.text("additional_result_filter")
    if not text:
        return bound
    if isinstance(query, sql.SetOperation):
        raise errors.NotSupportedError(
            "additional_result_filter is not supported for UNION, EXCEPT and INTERSECT.",
            hint="Write the query as SELECT * FROM (…).",
            position=query.position,
        )
    columns = [_column(column.name, column.reference) for column in bound.columns]
    relation = Relation(columns, _unbuilt, "the result")
    inner = replace(context.nested(), settings=_without_filters(context))
    condition = ExpressionBinder(queries, relation, inner).bind(parse_expression(text))
    condition = refuse_aggregates(condition, "additional_result_filter", None)
    return replace(bound, node=plan.Filter(bound.node, condition))


def refuse_added_filters(query: sql.Query) -> None:
    """Raise NotSupportedError if the query of a view sets additional_table_filters or additional_result_filter, which
    the view would not keep, or if it or any query inside it sets `limit` or `offset`."""
    for setting in getattr(query, "settings", ()):
        if setting.name in ("additional_table_filters", "additional_result_filter"):
            raise errors.NotSupportedError(
                f"A view does not keep the setting {setting.name}.",
                hint="Write the condition into its WHERE.",
                position=setting.position or query.position,
            )
    for node in trees.walk(query):
        for setting in getattr(node, "settings", ()) if isinstance(node, sql.Query) else ():
            if setting.name in ("limit", "offset"):
                raise errors.NotSupportedError(
                    f"The setting {setting.name} is not supported in the query of a view.",
                    hint=f"Write {setting.name.upper()} as a clause, or set it where the view is read.",
                    position=setting.position or query.position,
                )


def _without_filters(context: BindContext) -> Settings:
    """Return the settings of the context with additional_table_filters and additional_result_filter empty."""
    changes = {"additional_table_filters": _NONE, "additional_result_filter": ""}
    return Settings.of(context.settings).with_changes(changes)


def _column(name: str, reference: Expression) -> RelationColumn:
    """Return a relation column that reads a column of the result."""
    return RelationColumn(name, reference.type, lambda: reference)


def _unbuilt() -> plan.Node:
    """Raise InternalError: the relation of a result only resolves names."""
    raise InternalError("The relation of a result is not built.")


def _filters(text: str) -> list[tuple[str, str]]:
    """Return (table, condition) of each entry of additional_table_filters. Raise BadArguments for a
    text that is no map of texts."""
    parsed = parse_expression(text)
    arguments = parsed.arguments if isinstance(parsed, sql.Function) else ()
    texts = [a.value for a in arguments if isinstance(a, sql.Literal) and isinstance(a.value, str)]
    if not isinstance(parsed, sql.Function) or parsed.name != "map" or len(texts) != len(arguments):
        raise errors.BadArguments(
            "The setting additional_table_filters takes a map of tables and conditions.",
            hint="For example {'t': 'x > 1'}.",
        )
    return list(zip(texts[::2], texts[1::2], strict=True))
