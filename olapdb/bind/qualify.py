"""The frozen text of a view: every table with its database, every `*` as its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.query import QueryBinder
from olapdb.bind.relation import Relation
from olapdb.bind.scope import BindContext, BindScope
from olapdb.bind.select import with_clause
from olapdb.bind.sources import bind_source
from olapdb.bind.stars import identifier_of, starred_columns
from olapdb.bind.syntax import rewrite, rewrite_children, walk
from olapdb.errors import InternalError, NotSupportedError
from olapdb.sql import nodes as sql

_Change = Callable[[sql.Node], sql.Node | None]


def qualify(query: sql.Query, scope: BindScope) -> sql.Query:
    """The same query, meaning the same whatever the current database is and whatever columns are
    added later. Raises as `bind_query` does, for what FROM names."""
    queries = QueryBinder(scope)
    return _Qualifying(queries).query(query, queries.surroundings())


class _Qualifying:
    def __init__(self, queries: QueryBinder) -> None:
        self.queries = queries

    def query(self, query: sql.Query, surroundings: BindContext) -> sql.Query:
        surroundings = self.queries.below(surroundings)
        match query:
            case sql.SetOperation():
                items, inner = self._with_items(query.with_items, surroundings)
                return replace(
                    query,
                    with_items=items,
                    left=self.query(query.left, inner),
                    right=self.query(query.right, inner),
                )
            case sql.Select():
                return self._select(query, surroundings)
            case _:
                raise InternalError(f"The binder does not know {type(query).__name__}.")

    def _with_items(
        self, items: Sequence[sql.WithItem], surroundings: BindContext
    ) -> tuple[tuple[sql.WithItem, ...], BindContext]:
        made: list[sql.WithItem] = []
        for item in items:
            if item.query is not None:
                made.append(replace(item, query=self.query(item.query, surroundings)))
            else:
                made.append(rewrite(item, self._changes(None, surroundings)))
            surroundings = self.queries.with_tables((item,), surroundings)
        return tuple(made), surroundings

    def _select(self, select: sql.Select, around: BindContext) -> sql.Select:
        items, _ = self._with_items(select.with_items, around)
        inner = with_clause(self.queries, select, around)
        binder = None
        if any(isinstance(n, sql.Star) for n in walk(select)):
            relation: Relation = bind_source(self.queries, select.source, inner)
            binder = ExpressionBinder(self.queries, relation, inner)
        change = self._changes(binder, inner, _replaced_names(select))
        columns: list[sql.Expression] = []
        for column in select.columns:
            columns += self._column(column, binder, change)
        rest = replace(select, with_items=(), columns=())
        return replace(rewrite_children(rest, change), with_items=items, columns=tuple(columns))

    def _column(
        self, column: sql.Expression, binder: ExpressionBinder | None, change: _Change
    ) -> list[sql.Expression]:
        if not isinstance(column, sql.Star) or binder is None:
            return [rewrite(column, change)]
        return [rewrite(c, change) for c in _spelt_out(binder, column)]

    def _changes(
        self,
        binder: ExpressionBinder | None,
        around: BindContext,
        replaced: frozenset[str] = frozenset(),
    ) -> _Change:
        """How nodes of one SELECT change; nested queries change by themselves. Columns that
        REPLACE gives another meaning in the star only are written with their table."""

        def change(node: sql.Node) -> sql.Node | None:
            match node:
                case sql.Identifier(parts=(name,)) if name in replaced and binder is not None:
                    return _with_table(binder, node)
                case sql.Query():
                    return self.query(node, around)
                case sql.TableReference():
                    return self._table(node, around)
                case sql.In(right=sql.Identifier(parts=(name,)) as right) if self._is_table(
                    name, around
                ):
                    named = replace(right, parts=(around.database, name))
                    return replace(node, left=rewrite(node.left, change), right=named)
                case sql.Function() if binder is not None and any(
                    isinstance(a, sql.Star) for a in node.arguments
                ):
                    arguments: list[sql.Expression] = []
                    for argument in node.arguments:
                        arguments += self._column(argument, binder, change)
                    return replace(node, arguments=tuple(_unaliased(a) for a in arguments))
                case _:
                    return None

        return change

    def _is_table(self, name: str, around: BindContext) -> bool:
        return (
            name not in around.tables
            and self.queries.scope.snapshot.find(around.database, name) is not None
        )

    def _table(self, node: sql.TableReference, around: BindContext) -> sql.TableReference:
        name = node.table
        if name.database is not None or name.name in around.tables:
            return node
        return replace(node, table=replace(name, database=around.database))


def _spelt_out(binder: ExpressionBinder, star: sql.Star) -> list[sql.Expression]:
    """Each column of the star, with an alias where its result name is not its own."""
    replaced = {alias.name: alias.expression for alias in star.replaced}
    made: list[sql.Expression] = []
    for column in starred_columns(binder, star):
        shown = binder.relation.display(column)
        if column.name in replaced:
            made.append(sql.Alias(replaced[column.name], shown, position=star.position))
            continue
        identifier = identifier_of(binder, column, star)
        plain = ".".join(identifier.parts) == shown
        made.append(identifier if plain else sql.Alias(identifier, shown, position=star.position))
    return made


def _replaced_names(select: sql.Select) -> frozenset[str]:
    stars = (c for c in select.columns if isinstance(c, sql.Star))
    return frozenset(alias.name for star in stars for alias in star.replaced)


def _with_table(binder: ExpressionBinder, node: sql.Identifier) -> sql.Identifier:
    column = binder.relation.find(node.parts)
    if column is None or not column.qualifiers:
        raise NotSupportedError(
            f"The column {node.parts[0]!r} is used beside a REPLACE of its name.",
            hint="Give the subquery in FROM an alias.",
            position=node.position,
        )
    return replace(node, parts=(*column.qualifiers[0], *node.parts))


def _unaliased(expression: sql.Expression) -> sql.Expression:
    return expression.expression if isinstance(expression, sql.Alias) else expression
