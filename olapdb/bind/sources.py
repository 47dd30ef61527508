"""FROM: tables, views, subqueries and WITH names as relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.added_filters import filtered_table
from olapdb.bind.array_joins import bind_array_join
from olapdb.bind.called_views import bind_called_view, called_view, refuse_uncalled
from olapdb.bind.contracts import BindContext, BoundQuery, CommonTable, QueryBinder
from olapdb.bind.finished_states import FinishedStates
from olapdb.bind.names import located, suggestion
from olapdb.bind.partition_value import PARTITION_VALUE, has_partition_value, partition_value_column
from olapdb.bind.relation import DeferredColumn, Qualifier, Relation, RelationColumn
from olapdb.bind.sampling import SAMPLE_FACTOR, SampleShare, sample_of, sampling_refused
from olapdb.bind.system_tables import SYSTEM_DATABASES, system_relation
from olapdb.bind.table_scan import TableScan
from olapdb.bind.view_columns import as_columns
from olapdb.bind.virtual import PART_COLUMNS, with_names
from olapdb.lazy import lazy_modules
from olapdb.model.schema import Column, MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Expression
from olapdb.sql import nodes as sql
from olapdb.sql.dictionary_functions import dictionary_table
from olapdb.sql.merge_tables import merged_tables
from olapdb.sql.parser import parse_query
from olapdb.types import FLOAT64, DataType

if TYPE_CHECKING:
    from olapdb.bind import (
        dictionary_rows,
        join_tables,
        joins,
        merge_tables,
        random_rows,
        recursive,
        table_functions,
    )
else:
    (dictionary_rows, join_tables, joins, merge_tables, random_rows, recursive, table_functions) = (
        lazy_modules(
            "olapdb.bind",
            "dictionary_rows",
            "join_tables",
            "joins",
            "merge_tables",
            "random_rows",
            "recursive",
            "table_functions",
        )
    )


def bind_source(
    queries: QueryBinder,
    source: sql.Relation | None,
    context: BindContext,
    aliases: Mapping[str, sql.Expression] | None = None,
) -> Relation:
    """Return the relation of a FROM clause; without FROM it is one row without columns.

    `aliases` are those of the SELECT, which ARRAY JOIN may use."""
    match source:
        case None:
            return Relation((), _one_row)
        case sql.TableReference():
            return _table_reference(queries, source, context)
        case sql.SubqueryRelation():
            bound = queries.subquery(source.query, context)
            if source.otherwise is not None:
                _refuse_other_columns(queries, bound, source.otherwise, context)
            bound = _renamed(bound, source.column_aliases, source)
            return _query_relation(queries, bound, source.alias, "the subquery")
        case sql.TableFunction() if (named := dictionary_table(source)) is not None:
            database = named.table.database or context.database
            dictionary_rows.find_dictionary(queries.scope.snapshot, database, named.table.name)
            return _table_reference(queries, named, replace(context, tables={}))
        case sql.TableFunction(name=name) if name.lower() == "merge":
            merged = merged_tables(source.arguments, context.database, source.position)
            return _merged_relation(
                queries,
                merge_tables.bind_merged(queries, merged, None, context),
                ((source.alias or name,),),
            )
        case sql.TableFunction(name=name) if name.lower() == "loop":
            return _loop(queries, source, context)
        case sql.TableFunction(name=name) if name.lower() == "generaterandom":
            with located(source.position):
                query = random_rows.random_query(queries, source, context)
            bound = queries.subquery(query, context)
            return _query_relation(queries, bound, source.alias, name, ((name,),))
        case sql.TableFunction():
            view = called_view(queries.scope.snapshot, source, context.database)
            if view is None:
                return table_functions.bind_table_function(queries, source, context)
            bound = bind_called_view(queries, view, source, context)
            label = f"{view.database}.{view.name}"
            return _query_relation(queries, bound, source.alias, label, ((view.name,),))
        case sql.Join():
            return joins.bind_join(queries, source, context, bind_source, aliases or {})
        case sql.ExplainRelation():
            raise errors.NotSupportedError(
                "An EXPLAIN in FROM is read by a SELECT alone.",
                hint="Run that SELECT, and insert what it gives.",
                position=source.position,
            )
        case sql.ArrayJoin():
            inner = bind_source(queries, source.source, context, aliases)
            return bind_array_join(queries, source, inner, context, aliases or {})
        case _:
            raise errors.InternalError(f"The binder does not know {type(source).__name__}.")


def _refuse_other_columns(
    queries: QueryBinder, bound: BoundQuery, otherwise: sql.TableFunction, context: BindContext
) -> None:
    """Raise BadArguments unless `otherwise` of viewIfPermitted has the columns of its query.

    Its rows are never read: the one user may read everything."""
    query = sql.Select((sql.Star(),), source=otherwise, position=otherwise.position)
    other = queries.subquery(query, context)
    given, needed = ([f"{c.name} {c.type}" for c in q.columns] for q in (bound, other))
    if given != needed:
        raise errors.BadArguments(
            "viewIfPermitted needs a query and a table function of the same columns: the query has"
            f" {', '.join(given)}, {otherwise.name} has {', '.join(needed)}.",
            position=otherwise.position,
        )


def _one_row() -> plan.Node:
    """Return the plan of a SELECT without FROM: one row without columns."""
    return plan.Values((), empty_rows(1))


def empty_rows(count: int) -> pa.Table:
    """Return an Arrow table of `count` rows without columns."""
    return pa.table({"": pa.nulls(count)}).select([])


# --- tables by name


def _table_reference(
    queries: QueryBinder, source: sql.TableReference, context: BindContext
) -> Relation:
    """Return the relation of a name in FROM: WITH query, system table, table or view.

    Records each stored object and its revision in `queries.tables`. Raises SamplingNotSupported
    for SAMPLE of a source without a sampling key, IllegalFinal for FINAL where nothing is
    combined."""
    name = source.table
    if name.database is None and (common := context.tables.get(name.name)) is not None:
        _refuse_final(source, "a WITH query")
        return _common_table(queries, common, source, context)
    database = _database_of(queries, name, context)
    if database in SYSTEM_DATABASES:
        _refuse_final(source, "a system table")
        relation = system_relation(queries, source, database)
        qualifiers = relation.columns[0].qualifiers
        relation = with_names(queries, relation, database, name.name, qualifiers)
        return filtered_table(queries, source, relation, database, context)
    table = find_object(queries.scope.snapshot, name, database)
    queries.tables[table.id] = table.revision
    if isinstance(table, View) and table.alias_of:
        return _aliased(queries, table, source, context)
    match table:
        case Table():
            relation = table_relation(queries, table, source, context)
            if table.engine.name == "Join":
                relation = join_tables.join_rows(table, relation)
        case View() if table.engine_name == "Merge" and not table.called_function:
            merged = merged_tables(_merge_arguments(table), context.database, source.position)
            bound = merge_tables.bind_merged(queries, merged, source, context, table)
            relation = _merged_relation(queries, bound, _qualifiers(source, table))
        case View():
            _refuse_final(source, "a view")
            refuse_uncalled(table, source)
            relation = _view(queries, table, source, context)
        case MaterializedView() | RefreshableView():
            relation = _materialized_view(queries, table, source, context)
    relation = with_names(queries, relation, table.database, table.name, _qualifiers(source, table))
    return filtered_table(queries, source, relation, database, context)


def _aliased(
    queries: QueryBinder, table: View, source: sql.TableReference, context: BindContext
) -> Relation:
    """Return the relation of the table that has the name an Alias stores, in this snapshot.

    Marks the queries as momentary, so that no view reads them and their plan is not kept."""
    queries.momentary = "an Alias, which stands for whatever has its table's name"
    database, name = table.alias_of
    aliased = sql.TableName(name, database, position=source.table.position)
    return _table_reference(
        queries, replace(source, table=aliased, alias=source.alias or table.name), context
    )


def _database_of(queries: QueryBinder, name: sql.TableName, context: BindContext) -> str:
    """Return the database of a name: that of temporary tables if it is one's, else the current one."""
    if name.database is not None:
        return name.database
    return TEMPORARY_DATABASE if name.name in queries.scope.temporary else context.database


def find_object(snapshot: Snapshot, name: sql.TableName, database: str) -> SchemaObject:
    """Return the table or view of this name.

    Raises UnknownDatabase or UnknownTable, with similar names as a hint."""
    named = snapshot.find(database, name.name)
    if named is not None:
        return named
    if database not in snapshot.databases:
        raise errors.UnknownDatabase(
            f"There is no database {database!r}.",
            hint=suggestion(database, snapshot.databases),
            position=name.position,
        )
    hint = suggestion(name.name, [o.name for o in snapshot.objects(database)])
    if not hint:
        others = [f"{o.database}.{o.name}" for o in snapshot.objects() if o.name == name.name]
        hint = f"Maybe you meant: {', '.join(others[:3])}." if others else ""
    raise errors.UnknownTable(
        f"There is no table {database}.{name.name}.", hint=hint, position=name.position
    )


def _refuse_final(source: sql.TableReference, what: str) -> None:
    """Raise IllegalFinal for FINAL, SamplingNotSupported for SAMPLE; `what` is the source's kind."""
    if source.sample is not None:
        raise sampling_refused(f"{source.table} is {what}", source)
    if source.final:
        raise errors.IllegalFinal(f"FINAL has no meaning for {what}.", position=source.position)


def _common_table(
    queries: QueryBinder, common: CommonTable, source: sql.TableReference, context: BindContext
) -> Relation:
    """Return the relation of a WITH query, bound anew in the context of its definition.

    A recursive query gives the rows of all its steps. Within its own repeated branches it gives the
    rows of the step before. Raises UnsupportedRecursion if it is no set operation."""
    assert common.item.query is not None
    label = common.item.name
    shown, names = source.alias or label, _both_names(source, label)
    if common.working is not None:
        rows = recursive.working_table(queries, common.working)
        return _query_relation(queries, rows, None, shown, names)
    if common.recursive:
        if not isinstance(common.item.query, sql.SetOperation):
            raise errors.UnsupportedRecursion(
                f"WITH RECURSIVE {label} has no first step.",
                hint="Write SELECT … UNION ALL SELECT … FROM it.",
                position=common.item.position,
            )
        recursion = recursive.bind_recursive(queries, common, context)
        return _query_relation(queries, recursion, None, shown, names)
    inner = replace(common.context, depth=context.depth)
    bound = queries.subquery(common.item.query, inner)
    bound = _renamed(bound, common.item.column_aliases, source)
    return _query_relation(queries, bound, None, shown, names)


def _both_names(source: sql.TableReference, name: str) -> tuple[Qualifier, ...]:
    """Return the qualifiers of a WITH query: its alias, by which result columns are named, and its name."""
    return ((source.alias,), (name,)) if source.alias and source.alias != name else ((name,),)


def _view(
    queries: QueryBinder, view: View, source: sql.TableReference, context: BindContext
) -> Relation:
    """Bind the view's query in a context of its own: it sees no WITH name or alias of the reader.

    A dictionary gives one row for each key."""
    if view.dictionary:
        rows = dictionary_rows.distinct_rows(
            queries, view, dictionary_rows.bind_dictionary_rows(queries, view, context)
        )
        label = f"{view.database}.{view.name}"
        return _query_relation(queries, rows, None, label, _qualifiers(source, view))
    own = BindContext(view.database, queries.scope.settings, depth=context.depth)
    bound = queries.subquery(parse_query(view.query), own)
    if len(view.columns) == len(bound.columns):
        bound = as_columns(queries, bound, view.columns)
    return _query_relation(
        queries, bound, None, f"{view.database}.{view.name}", _qualifiers(source, view)
    )


def _merge_arguments(table: View) -> tuple[sql.Expression, ...]:
    """Return the database and the regular expression of a Merge table."""
    query = parse_query(table.query)
    assert isinstance(query, sql.Select)
    assert isinstance(query.source, sql.TableFunction)
    return query.source.arguments


def _merged_relation(
    queries: QueryBinder, bound: BoundQuery, qualifiers: tuple[Qualifier, ...]
) -> Relation:
    """Return the rows of several tables, whose names no star shows."""
    relation = _query_relation(queries, bound, None, "Merge", qualifiers)
    for column in relation.columns[-len(merge_tables.NAMES) :]:
        column.starred = False
    return relation


def _materialized_view(
    queries: QueryBinder,
    view: MaterializedView | RefreshableView,
    source: sql.TableReference,
    context: BindContext,
) -> Relation:
    """Return the view's target as a relation with the view's columns and types.

    Target columns that the view does not have are hidden, except virtual ones."""
    target = target_of(queries.scope.snapshot, view, source.position)
    queries.tables[target.id] = target.revision
    relation = table_relation(queries, target, source, context, _qualifiers(source, view))
    shown = {c.name: c for c in view.columns}
    columns = []
    for column in relation.columns:
        view_column = shown.get(column.name)
        if view_column is not None and view_column.type != column.type:
            columns.append(_cast_column(queries, column, view_column.type))
        elif view_column is not None or not column.starred or not shown:
            columns.append(column)
    return Relation(columns, relation.build, f"{view.database}.{view.name}")


def _cast_column(queries: QueryBinder, column: RelationColumn, target: DataType) -> RelationColumn:
    """Return the column cast to another type; the cast is made when the column is read."""

    def make() -> Expression:
        """Return the column's expression, cast."""
        return constants.cast(column.use(), target, queries.scope.environment)

    return RelationColumn(column.name, target, make, column.qualifiers, column.starred)


def _qualifiers(source: sql.TableReference, table: SchemaObject) -> tuple[Qualifier, ...]:
    """Return the qualifiers of a table, the alias first: result columns are named by it."""
    own: tuple[Qualifier, ...] = ((table.name,), (table.database, table.name))
    return ((source.alias,), *own) if source.alias and source.alias != table.name else own


def table_relation(
    queries: QueryBinder,
    table: Table,
    source: sql.TableReference,
    context: BindContext,
    qualifiers: tuple[Qualifier, ...] | None = None,
) -> Relation:
    """Return a table's relation: a scan of the columns that are read, ALIAS columns above it.

    `qualifiers` replace the table's own names, None keeps these."""
    scan = TableScan(queries, table, _is_final(table, source, context), context)
    sample = sample_of(source, table, queries.scope.snapshot)
    if sample is not None:
        scan.take(sample)
    qualifiers = _qualifiers(source, table) if qualifiers is None else qualifiers
    columns: list[RelationColumn] = []
    hidden = [
        kind
        for kind, setting in _UNSTARRED
        if not context.flag(f"asterisk_include_{setting}_columns")
    ]
    for column in _readable_columns(table, "ALIAS" not in hidden):
        make = scan.computed(column) if column.default_kind == "ALIAS" else scan.stored(column)
        starred = column.default_kind not in hidden
        columns.append(RelationColumn(column.name, column.type, make, qualifiers, starred))
    own_names = {c.name for c in columns}
    for virtual in PART_COLUMNS:
        if virtual.name not in own_names:
            make = scan.read(virtual.name, virtual.type)
            columns.append(
                RelationColumn(virtual.name, virtual.type, make, qualifiers, starred=False)
            )
    if has_partition_value(table):
        columns.append(
            DeferredColumn(
                PARTITION_VALUE,
                lambda: partition_value_column(table).type,
                lambda: scan.computed(partition_value_column(table))(),
                qualifiers,
            )
        )
    if table.engine.is_merge_tree and SAMPLE_FACTOR not in own_names:
        make = scan.constant(
            SAMPLE_FACTOR, (sample or SampleShare(Fraction(0), Fraction(0))).factor
        )
        columns.append(RelationColumn(SAMPLE_FACTOR, FLOAT64, make, qualifiers, starred=False))
    columns.extend(
        RelationColumn(c.name, c.type, partial(_unreadable, c, table), qualifiers, starred=False)
        for c in table.columns
        if c.default_kind == "EPHEMERAL"
    )
    return Relation(columns, scan.build, f"{table.database}.{table.name}")


_UNSTARRED = (("MATERIALIZED", "materialized"), ("ALIAS", "alias"))
"""Kinds of columns that `*` shows only under a setting."""


def _readable_columns(table: Table, aliases_last: bool) -> list[Column]:
    """Return all columns but EPHEMERAL ones; with `aliases_last`, ALIAS columns at the end."""
    columns = [c for c in table.columns if c.default_kind != "EPHEMERAL"]
    return sorted(columns, key=lambda c: c.default_kind == "ALIAS") if aliases_last else columns


def _unreadable(column: Column, table: Table) -> Expression:
    """Raise NoSuchColumn: an EPHEMERAL column has no values once its row is written."""
    raise errors.NoSuchColumn(
        f"There is no column {column.name} in table {table.database}.{table.name}: it is EPHEMERAL.",
        hint="An INSERT may name it; store what is computed from it in a column with DEFAULT.",
    )


def _is_final(table: Table, source: sql.TableReference, context: BindContext) -> bool:
    """Return whether a scan combines rows: FINAL, or the setting `final` if the engine combines.

    Raises IllegalFinal for FINAL on an engine that does not combine."""
    if source.final and not table.engine.combines:
        raise errors.IllegalFinal(
            f"FINAL has no meaning for {table.database}.{table.name}: {table.engine.name} does not "
            "combine rows.",
            hint="Leave FINAL out.",
            position=source.position,
        )
    return source.final or (table.engine.combines and context.flag("final"))


# --- queries as relations


def _query_relation(
    queries: QueryBinder,
    bound: BoundQuery,
    alias: str | None,
    label: str,
    qualifiers: tuple[Qualifier, ...] = (),
) -> Relation:
    """Return a query's columns as a relation; an alias replaces the qualifiers."""
    if alias:
        qualifiers = ((alias,),)
    states = FinishedStates(bound, queries.names)
    columns = [
        RelationColumn(
            c.name,
            c.type,
            partial(_identity, c.reference),
            qualifiers,
            state=partial(states.of, c.reference),
        )
        for c in bound.columns
    ]
    return Relation(columns, lambda: states.node, alias or label)


def _loop(queries: QueryBinder, source: sql.TableFunction, context: BindContext) -> Relation:
    """Return the rows of `loop([database,] table)` or `loop(function(…))` again and again.

    Raises IllegalTypeOfArgument for other arguments, NumberOfArgumentsDoesntMatch for more."""
    queries.momentary = "loop(), whose rows have no end"
    looped = looped_source(source)
    query = sql.Select((sql.Star(),), source=looped, position=source.position)
    bound = queries.subquery(query, context)
    return _query_relation(
        queries, replace(bound, node=plan.Loop(bound.node)), source.alias, source.name
    )


def looped_source(
    source: sql.TableFunction,
) -> sql.TableReference | sql.TableFunction | sql.SubqueryRelation:
    """Return the table, table function or subquery that `loop(…)` repeats. Raises IllegalTypeOfArgument for other
    arguments, NumberOfArgumentsDoesntMatch for more."""
    match source.arguments:
        case (sql.Function(name="view", arguments=(sql.Subquery(query=query),)),):
            return sql.SubqueryRelation(query, position=source.position)
        case (sql.Function(name=name, arguments=arguments),):
            return sql.TableFunction(name, arguments, position=source.position)
        case (sql.Identifier(parts=parts),) if len(parts) <= _PARTS_MAX:
            return _named(parts, source)
        case (first, second) if (database := _plain_name(first)) and (table := _plain_name(second)):
            return _named((database, table), source)
        case arguments:
            several = len(arguments) > _PARTS_MAX
            kind = errors.NumberOfArgumentsDoesntMatch if several else errors.IllegalTypeOfArgument
            raise kind(
                "loop takes a table, or a table function.",
                hint="loop(table), loop(database, table) or loop(numbers(3)).",
                position=source.position,
            )


_PARTS_MAX = 2
"""A database and a table."""


def _plain_name(argument: sql.Expression) -> str | None:
    """Return a name that is written as one, or as a text; None for anything else."""
    match argument:
        case sql.Identifier(parts=(name,)) | sql.Literal(value=str(name)):
            return name
        case _:
            return None


def _named(parts: tuple[str, ...], source: sql.TableFunction) -> sql.TableReference:
    """Return the table of this name."""
    database = parts[0] if len(parts) > 1 else None
    table = sql.TableName(parts[-1], database, position=source.position)
    return sql.TableReference(table, position=source.position)


def _identity(expression: Expression) -> Expression:
    """Return the expression. With `partial` it makes a relation column's expression."""
    return expression


def _renamed(bound: BoundQuery, names: tuple[str, ...], source: sql.Relation) -> BoundQuery:
    """Return the query with these result names; () keeps the names.

    Raises NumberOfColumnsDoesntMatch if the numbers differ."""
    if not names:
        return bound
    if len(names) != len(bound.columns):
        raise errors.NumberOfColumnsDoesntMatch(
            f"{len(names)} column names for a query of {len(bound.columns)} columns.",
            position=source.position,
        )
    columns = tuple(replace(c, name=n) for c, n in zip(bound.columns, names, strict=True))
    return BoundQuery(bound.node, columns)
