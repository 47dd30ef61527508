"""The frozen query of a view: every table has its database, every `*` is a list of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from olapdb.bind.aliases import aliases_of
from olapdb.bind.called_views import called_view
from olapdb.bind.contracts import BindContext, in_reading_order
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.names import name_of_set, with_set
from olapdb.bind.query import StatementBinder
from olapdb.bind.relation import Relation
from olapdb.bind.result_names import result_name
from olapdb.bind.scope import BindScope
from olapdb.bind.select import with_clause
from olapdb.bind.sources import bind_source
from olapdb.bind.stars import expand_arguments, star_column_name, star_syntax, starred_columns
from olapdb.bind.syntax import rewrite, rewrite_children, walk
from olapdb.errors import Error, InternalError, NotSupportedError
from olapdb.functions.kernels.constants import default_value
from olapdb.plan.expressions import Constant
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import dictionary_name, dictionary_table, with_dictionary
from olapdb.sql.merge_tables import merged_tables
from olapdb.sql.view_parameters import called_name, parameters_of

_Change = Callable[[sql.Node], sql.Node | None]
_IsColumn = Callable[[sql.In | sql.Function, sql.Identifier], bool]
"""Whether a name right of IN is a column, an alias or a lambda's argument of the SELECT, and not a table."""


def qualify(query: sql.Query, scope: BindScope, *, stars: bool = True) -> sql.Query:
    """Return the query with full table names and, with `stars`, explicit columns.

    Its meaning no longer depends on the current database or on columns added later. Raises as
    `bind_query` does, for names in FROM. Without `stars`, `*` stays, and nothing is bound but a FROM where that tells
    a column from a table right of IN; parameters have the default of their type there."""
    queries = StatementBinder(scope)
    context = queries.root_context()
    if not stars:
        defaults = {
            name: Constant(data_type, default_value(data_type))
            for name, data_type in parameters_of(query).items()
        }
        context = replace(context, arguments=defaults)
    return _Qualifier(queries, stars).query(query, context)


class _Qualifier:
    """A rewriter of queries that writes out databases and stars."""

    def __init__(self, queries: StatementBinder, stars: bool) -> None:
        self.queries, self.stars = queries, stars

    def query(self, query: sql.Query, context: BindContext) -> sql.Query:
        """Return the query rewritten, with its WITH items and all subqueries."""
        context = context.nested()
        match query:
            case sql.SetOperation():
                items, _ = self._with_items(query, context, lambda node, name: False)
                inner = with_clause(self.queries, query, context)
                return replace(
                    query,
                    with_items=items,
                    left=self.query(query.left, inner),
                    right=self.query(query.right, inner),
                )
            case sql.Select():
                return self._select(query, context)
            case _:
                raise InternalError(f"The binder does not know {type(query).__name__}.")

    def _with_items(
        self, query: sql.Select | sql.SetOperation, context: BindContext, is_column: _IsColumn
    ) -> tuple[tuple[sql.WithItem, ...], BindContext]:
        """Return the WITH items of the query rewritten, and the context in which all are known."""
        items, recursive = query.with_items, query.recursive
        qualified: dict[int, sql.WithItem] = {}
        for item in in_reading_order(items):
            if item.query is not None:
                known = context.with_tables((item,), recursive=True) if recursive else context
                qualified[id(item)] = replace(item, query=self.query(item.query, known))
            else:
                qualified[id(item)] = rewrite(item, self._changes(None, context, is_column))
            context = context.with_tables((item,), recursive=recursive)
        return tuple(qualified[id(item)] for item in items), context

    def _select(self, select: sql.Select, context: BindContext) -> sql.Select:
        """Return the SELECT rewritten; stars are expanded over its FROM."""
        is_column = self._columns_of(select, context)
        items, _ = self._with_items(select, context, is_column)
        inner = with_clause(self.queries, select, context)
        binder = None
        has_star = any(isinstance(n, sql.Star) for n in walk(select))
        if self.stars and (has_star or any(map(_loses_name, select.columns))):
            relation: Relation = bind_source(self.queries, select.source, inner)
            binder = ExpressionBinder(self.queries, relation, inner, aliases_of(select))
        change = self._changes(binder, inner, is_column, _replaced_names(select))
        columns: list[sql.Expression] = []
        for column in select.columns:
            columns += self._column(column, binder, change)
        rest = replace(select, with_items=(), columns=())
        return replace(rewrite_children(rest, change), with_items=items, columns=tuple(columns))

    def _column(
        self, column: sql.Expression, binder: ExpressionBinder | None, change: _Change
    ) -> list[sql.Expression]:
        """Return a column rewritten, a star as one column for each that it shows.

        `binder` resolves the star, and names columns; None if the SELECT has no star, and no column loses its name."""
        if binder is None:
            return [rewrite(column, change)]
        if not isinstance(column, sql.Star):
            rewritten = rewrite(expand_arguments(binder, column), change)
            if _loses_name(column):
                name = result_name(binder, column)
                return [sql.Alias(rewritten, name, position=column.position)]
            return [rewritten]
        return [rewrite(c, change) for c in _columns_of_star(binder, column)]

    def _changes(
        self,
        binder: ExpressionBinder | None,
        context: BindContext,
        is_column: _IsColumn,
        replaced: frozenset[str] = frozenset(),
    ) -> _Change:
        """Return the rewriting of one SELECT's nodes; nested queries are qualified on their own.

        Columns named by REPLACE (`replaced`) get their table: the alias would hide them."""

        def change(node: sql.Node) -> sql.Node | None:
            """Return the node with its names written out, None to rewrite its children."""
            match node:
                case sql.Identifier(parts=(name,)) if name in replaced and binder is not None:
                    return _with_table(binder, node)
                case sql.Query():
                    return self.query(node, context)
                case sql.TableReference():
                    return self._table(node, context)
                case sql.In() | sql.Function() if (
                    table := self._table_of_set(node, context, is_column)
                ) is not None:
                    return with_set(node, table, change)
                case sql.TableFunction() if (reference := dictionary_table(node)) is not None:
                    database = reference.table.database or context.database
                    named_table = replace(reference.table, database=database)
                    return replace(reference, table=named_table)
                case sql.TableFunction(name=name) if name.lower() == "merge":
                    merged = merged_tables(node.arguments, context.database, node.position)
                    return replace(node, arguments=merged.arguments)
                case sql.TableFunction() if called_name(node) is None and (
                    view := called_view(self.queries.scope.snapshot, node, context.database)
                ):
                    name = f"{view.database}.{view.name}"
                    return rewrite_children(replace(node, name=name), change)
                case sql.Function() if (dictionary := dictionary_name(node)) is not None:
                    database = dictionary.database or context.database
                    return rewrite_children(
                        with_dictionary(node, database, dictionary.name), change
                    )
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

    def _columns_of(self, select: sql.Select, context: BindContext) -> _IsColumn:
        """Return the function that tells columns of a SELECT from tables, which binds the FROM when it is first called.

        Without `stars`, names without parentheses are taken for tables. The function raises NotSupportedError for another
        one if the FROM does not bind without the values of parameters."""
        arguments = {
            name for n in walk(select) if isinstance(n, sql.Lambda) for name in n.arguments
        }

        @cache
        def binder() -> ExpressionBinder:
            """Return a binder of the expressions of the SELECT."""
            inner = with_clause(self.queries, select, context)
            relation: Relation = bind_source(self.queries, select.source, inner)
            return ExpressionBinder(self.queries, relation, inner, aliases_of(select))

        def is_column(node: sql.In | sql.Function, name: sql.Identifier) -> bool:
            """Return whether the name right of IN means something else than a table in this SELECT."""
            if name.parts[0] in arguments:
                return True
            if self.stars:
                return binder().lookup(name.parts, name) is not None
            if name_of_set(node, bare=True) is not None:
                return False
            try:
                return binder().lookup(name.parts, name) is not None
            except Error as error:
                written = ".".join(name.parts)
                raise NotSupportedError(
                    f"Whether {written} is a table or a column is not known before the parameters have values:"
                    f" {error.message}",
                    hint=f"Write IN (SELECT * FROM {written}), or IN [{written}] for a column.",
                    position=name.position,
                ) from error

        return is_column

    def _table_of_set(
        self, node: sql.In | sql.Function, context: BindContext, is_column: _IsColumn
    ) -> sql.Identifier | None:
        """Return the name of the stored table or view that is all that stands right of IN, with its database; None
        for another set, as a WITH name or a column."""
        right = name_of_set(node)
        if right is None or len(right.parts) > 2:
            return None
        if right.parts[0] in context.tables or right.parts[0] in self.queries.scope.temporary:
            return None
        name = right.parts if len(right.parts) == 2 else (context.database, *right.parts)
        if self.queries.scope.snapshot.find(*name) is None or is_column(node, right):
            return None
        return replace(right, parts=name)

    def _table(self, node: sql.TableReference, context: BindContext) -> sql.TableReference:
        """Return a table of FROM with its database, unchanged if it is a WITH name or a temporary
        table, which is in none."""
        name = node.table
        if name.database is not None or name.name in context.tables:
            return node
        if name.name in self.queries.scope.temporary:
            return node
        return replace(node, table=replace(name, database=context.database))


def _loses_name(column: sql.Expression) -> bool:
    """Return whether a column without an alias has another name once its text is stored, which has the types' own
    names: `CAST(x, 'int')` is stored as `CAST(x, 'Int32')`."""
    if isinstance(column, sql.Alias | sql.Star):
        return False
    casts = (node for node in walk(column) if isinstance(node, sql.Cast))
    return any(cast.literal or cast.written not in ("", str(cast.type)) for cast in casts)


def _columns_of_star(binder: ExpressionBinder, star: sql.Star) -> list[sql.Expression]:
    """Return each column of the star, with an alias where its result name is not its own."""
    columns: list[sql.Expression] = []
    for column in starred_columns(binder, star):
        syntax = star_syntax(binder, star, column)
        name = result_name(binder, syntax) if star.applied else star_column_name(binder, column)
        plain = isinstance(syntax, sql.Identifier) and ".".join(syntax.parts) == name
        columns.append(syntax if plain else sql.Alias(syntax, name, position=star.position))
    return columns


def _replaced_names(select: sql.Select) -> frozenset[str]:
    """Return the names of columns that `* REPLACE (…)` defines in the SELECT."""
    stars = (c for c in select.columns if isinstance(c, sql.Star))
    return frozenset(alias.name for star in stars for alias in star.replaced)


def _with_table(binder: ExpressionBinder, node: sql.Identifier) -> sql.Identifier:
    """Return a column name with its table before it, so that it cannot mean a REPLACE alias.

    Raises NotSupportedError if the column's source has no name."""
    column = binder.relation.find(node.parts)
    if column is None or not column.qualifiers:
        raise NotSupportedError(
            f"The column {node.parts[0]!r} is used beside a REPLACE of its name.",
            hint="Give the subquery in FROM an alias.",
            position=node.position,
        )
    return replace(node, parts=(*column.qualifiers[0], *node.parts))


def _unaliased(expression: sql.Expression) -> sql.Expression:
    """Return the expression without its alias."""
    return expression.expression if isinstance(expression, sql.Alias) else expression
