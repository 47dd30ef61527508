"""FROM: tables, views, system tables, subqueries, WITH names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb import errors
from olapdb.bind import constants
from olapdb.bind.array_joins import bind_array_join
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.joins import bind_join
from olapdb.bind.names import suggestion
from olapdb.bind.partition_value import partition_value_column
from olapdb.bind.query import BoundQuery, QueryBinder
from olapdb.bind.relation import Qualifier, Relation, RelationColumn
from olapdb.bind.scope import BindContext, CommonTable
from olapdb.bind.table_functions import bind_table_function
from olapdb.bind.virtual import OF_PARTS, with_names
from olapdb.model.schema import Column, MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot, target_of
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Cast, ColumnRef, Expression
from olapdb.sql import nodes as sql
from olapdb.types import UINT8, UINT64, DataType

if TYPE_CHECKING:
    import pyarrow as pa

SYSTEM_DATABASES = frozenset({"system", "information_schema", "INFORMATION_SCHEMA"})


def bind_source(
    queries: QueryBinder,
    source: sql.Relation | None,
    surroundings: BindContext,
    aliases: Mapping[str, sql.Expression] | None = None,
) -> Relation:
    """The relation of a FROM clause; one row without columns where there is none. `aliases` are
    those of the SELECT, which ARRAY JOIN may use."""
    match source:
        case None:
            return Relation((), _one_row)
        case sql.TableReference():
            return _table_reference(queries, source, surroundings)
        case sql.SubqueryRelation():
            bound = queries.subquery(source.query, surroundings)
            bound = _renamed(bound, source.column_aliases, source)
            return _of_query(bound, source.alias, "the subquery")
        case sql.TableFunction():
            return bind_table_function(queries, source, surroundings)
        case sql.Join():
            return bind_join(queries, source, surroundings, bind_source)
        case sql.ArrayJoin():
            inner = bind_source(queries, source.source, surroundings, aliases)
            return bind_array_join(queries, source, inner, surroundings, aliases or {})
        case _:
            raise errors.InternalError(f"The binder does not know {type(source).__name__}.")


def _one_row() -> plan.Node:
    return plan.Values((), empty_rows(1))


def empty_rows(count: int) -> pa.Table:
    """A table of so many rows and no columns."""
    import pyarrow as pa

    return pa.table({"": pa.nulls(count)}).select([])


# --- tables by name


def _table_reference(
    queries: QueryBinder, source: sql.TableReference, surroundings: BindContext
) -> Relation:
    if source.sample is not None:
        raise errors.NotSupportedError("SAMPLE is not supported yet.", position=source.position)
    name = source.table
    if name.database is None and (common := surroundings.tables.get(name.name)) is not None:
        _refuse_final(source, "a WITH query")
        return _common_table(queries, common, source, surroundings)
    database = name.database or surroundings.database
    if database in SYSTEM_DATABASES:
        _refuse_final(source, "a system table")
        relation = _system_table(queries, source, database)
        qualifiers = relation.columns[0].qualifiers
        return with_names(queries, relation, database, name.name, qualifiers)
    found = find_object(queries.scope.snapshot, name, database)
    queries.tables[found.id] = found.revision
    match found:
        case Table():
            relation = table_relation(queries, found, source, surroundings)
        case View():
            _refuse_final(source, "a view")
            relation = _view(queries, found, source, surroundings)
        case MaterializedView():
            relation = _materialized_view(queries, found, source, surroundings)
    return with_names(queries, relation, found.database, found.name, _qualifiers(source, found))


def find_object(known: Snapshot, name: sql.TableName, database: str) -> SchemaObject:
    """UnknownDatabase or UnknownTable with what may have been meant."""
    found = known.find(database, name.name)
    if found is not None:
        return found
    if database not in known.databases:
        raise errors.UnknownDatabase(
            f"There is no database {database!r}.",
            hint=suggestion(database, known.databases),
            position=name.position,
        )
    hint = suggestion(name.name, [o.name for o in known.objects(database)])
    if not hint:
        others = [f"{o.database}.{o.name}" for o in known.objects() if o.name == name.name]
        hint = f"Maybe you meant: {', '.join(others[:3])}." if others else ""
    raise errors.UnknownTable(
        f"There is no table {database}.{name.name}.", hint=hint, position=name.position
    )


def _refuse_final(source: sql.TableReference, what: str) -> None:
    if source.final:
        raise errors.IllegalFinal(f"FINAL has no meaning for {what}.", position=source.position)


def _common_table(
    queries: QueryBinder, common: CommonTable, source: sql.TableReference, around: BindContext
) -> Relation:
    assert common.item.query is not None
    inner = replace(common.surroundings, depth=around.depth)
    bound = queries.subquery(common.item.query, inner)
    bound = _renamed(bound, common.item.column_aliases, source)
    return _of_query(bound, source.alias or common.item.name, common.item.name)


def _view(
    queries: QueryBinder, view: View, source: sql.TableReference, around: BindContext
) -> Relation:
    """The view's query in its own surroundings: no WITH name or alias of ours reaches it."""
    from olapdb.sql.parser import parse_query

    own = BindContext(view.database, queries.scope.settings, depth=around.depth)
    bound = queries.subquery(parse_query(view.query), own)
    if len(view.columns) == len(bound.columns):
        bound = _as_columns(queries, bound, view.columns)
    return _of_query(bound, None, f"{view.database}.{view.name}", _qualifiers(source, view))


def _as_columns(queries: QueryBinder, bound: BoundQuery, columns: tuple[Column, ...]) -> BoundQuery:
    """With the names and types that CREATE VIEW recorded."""
    made: list[tuple[str, Expression]] = []
    outputs = []
    changes = False
    for output, column in zip(bound.columns, columns, strict=True):
        reference: Expression = output.reference
        unique = output.unique
        if output.type != column.type:
            changes = True
            reference, unique = Cast(column.type, reference), queries.names.unique(column.name)
        made.append((unique, reference))
        outputs.append(replace(output, unique=unique, name=column.name, type=column.type))
    node = plan.Project(bound.node, tuple(dict(made).items())) if changes else bound.node
    return BoundQuery(node, tuple(outputs))


def _materialized_view(
    queries: QueryBinder, view: MaterializedView, source: sql.TableReference, around: BindContext
) -> Relation:
    """Its target's rows, under the view's columns."""
    target = target_of(queries.scope.snapshot, view, source.position)
    queries.tables[target.id] = target.revision
    relation = table_relation(queries, target, source, around, _qualifiers(source, view))
    shown = {c.name: c for c in view.columns}
    columns = []
    for column in relation.columns:
        wanted = shown.get(column.name)
        if wanted is not None and wanted.type != column.type:
            columns.append(_cast_column(queries, column, wanted.type))
        elif wanted is not None or not column.starred or not shown:
            columns.append(column)
    return Relation(columns, relation.build, f"{view.database}.{view.name}")


def _cast_column(queries: QueryBinder, column: RelationColumn, target: DataType) -> RelationColumn:
    def make() -> Expression:
        return constants.cast(column.use(), target, queries.scope.environment)

    return RelationColumn(column.name, target, make, column.qualifiers, column.starred)


def _qualifiers(source: sql.TableReference, found: SchemaObject) -> tuple[Qualifier, ...]:
    """The alias first: it is how result columns are called."""
    own: tuple[Qualifier, ...] = ((found.name,), (found.database, found.name))
    return ((source.alias,), *own) if source.alias and source.alias != found.name else own


def table_relation(
    queries: QueryBinder,
    table: Table,
    source: sql.TableReference,
    surroundings: BindContext,
    qualifiers: tuple[Qualifier, ...] | None = None,
) -> Relation:
    """A scan of the columns that get used. ALIAS columns are computed on top of it, below joins."""
    scan = _TableScan(queries, table, _is_final(table, source, surroundings), surroundings)
    qualifiers = _qualifiers(source, table) if qualifiers is None else qualifiers
    columns: list[RelationColumn] = []
    hidden = [
        kind
        for kind, setting in _UNSTARRED
        if not surroundings.flag(f"asterisk_include_{setting}_columns")
    ]
    for column in _shown(table, "ALIAS" not in hidden):
        make = scan.computed(column) if column.default_kind == "ALIAS" else scan.stored(column)
        starred = column.default_kind not in hidden
        columns.append(RelationColumn(column.name, column.type, make, qualifiers, starred))
    named = {c.name for c in columns}
    for virtual in OF_PARTS:
        if virtual.name not in named:
            make = scan.read(virtual.name, virtual.type)
            columns.append(
                RelationColumn(virtual.name, virtual.type, make, qualifiers, starred=False)
            )
    value = partition_value_column(table)
    if value is not None:
        make = scan.computed(value)
        columns.append(RelationColumn(value.name, value.type, make, qualifiers, starred=False))
    return Relation(columns, scan.build, f"{table.database}.{table.name}")


_UNSTARRED = (("MATERIALIZED", "materialized"), ("ALIAS", "alias"))
"""Columns that `*` stands for only where a setting says so."""


def _shown(table: Table, aliases_last: bool) -> list[Column]:
    """The columns that can be read; ALIAS columns stand behind the others in `*`."""
    columns = [c for c in table.columns if c.default_kind != "EPHEMERAL"]
    return sorted(columns, key=lambda c: c.default_kind == "ALIAS") if aliases_last else columns


def _is_final(table: Table, source: sql.TableReference, surroundings: BindContext) -> bool:
    if source.final and not table.engine.combines:
        raise errors.IllegalFinal(
            f"FINAL has no meaning for {table.database}.{table.name}: {table.engine.name} does not "
            "combine rows.",
            hint="Leave FINAL out.",
            position=source.position,
        )
    return source.final or (table.engine.combines and surroundings.flag("final"))


class _TableScan:
    """Collects what is used of a table, then makes its Scan."""

    def __init__(
        self, queries: QueryBinder, table: Table, final: bool, surroundings: BindContext
    ) -> None:
        self.queries, self.table, self.final, self.surroundings = (
            queries,
            table,
            final,
            surroundings,
        )
        self.used: dict[str, ColumnRef] = {}
        self.aliases: list[tuple[str, Expression]] = []

    def stored(self, column: Column) -> Callable[[], Expression]:
        return self.read(column.name, column.type)

    def read(self, name: str, data_type: DataType) -> Callable[[], Expression]:
        def make() -> Expression:
            if name not in self.used:
                self.used[name] = ColumnRef(data_type, self.queries.names.unique(name))
            return self.used[name]

        return make

    def computed(self, column: Column) -> Callable[[], Expression]:
        def make() -> Expression:
            expression = default_expression(
                self.queries, self.table, column, self.surroundings, self._lookup
            )
            unique = self.queries.names.unique(column.name)
            self.aliases.append((unique, expression))
            return ColumnRef(column.type, unique)

        return make

    def _lookup(self, column: Column) -> Expression:
        return self.read(column.name, column.type)()

    def build(self) -> plan.Node:
        order = {c.name: i for i, c in enumerate(self.table.columns)}
        used = sorted(self.used.items(), key=lambda item: order.get(item[0], len(order)))
        node: plan.Node = plan.Scan(
            self.table,
            tuple((reference.name, name) for name, reference in used),
            tuple(reference.type for _, reference in used),
            final=self.final,
        )
        if self.aliases:
            kept = tuple((r.name, r) for _, r in used)
            node = plan.Project(node, (*kept, *self.aliases))
        return node


def default_expression(
    queries: QueryBinder,
    table: Table,
    column: Column,
    surroundings: BindContext,
    lookup: Callable[[Column], Expression],
) -> Expression:
    """A column's default or ALIAS expression over the stored columns; other ALIAS columns in it
    are expanded."""
    from olapdb.sql.parser import parse_expression

    columns = []
    for other in table.columns:
        if other.name == column.name:
            continue
        if other.default_kind == "ALIAS":
            make = _deferred(queries, table, other, surroundings, lookup)
        else:
            make = _looked_up(lookup, other)
        columns.append(RelationColumn(other.name, other.type, make))
    relation = Relation(columns, _one_row, f"{table.database}.{table.name}")
    binder = ExpressionBinder(queries, relation, queries.below(surroundings))
    bound = binder.bind(parse_expression(column.default))
    return constants.cast(bound, column.type, queries.scope.environment)


def _deferred(
    queries: QueryBinder,
    table: Table,
    column: Column,
    surroundings: BindContext,
    lookup: Callable[[Column], Expression],
) -> Callable[[], Expression]:
    inner = queries.below(surroundings)
    return lambda: default_expression(queries, table, column, inner, lookup)


def _looked_up(lookup: Callable[[Column], Expression], column: Column) -> Callable[[], Expression]:
    return lambda: lookup(column)


# --- queries and system tables as relations


def _of_query(
    bound: BoundQuery, alias: str | None, label: str, qualifiers: tuple[Qualifier, ...] = ()
) -> Relation:
    if alias:
        qualifiers = ((alias,),)
    columns = [
        RelationColumn(c.name, c.type, _constantly(c.reference), qualifiers) for c in bound.columns
    ]
    return Relation(columns, lambda: bound.node, alias or label)


def _constantly(expression: Expression) -> Callable[[], Expression]:
    return lambda: expression


def _renamed(bound: BoundQuery, names: tuple[str, ...], source: sql.Relation) -> BoundQuery:
    if not names:
        return bound
    if len(names) != len(bound.columns):
        raise errors.NumberOfColumnsDoesntMatch(
            f"{len(names)} column names for a query of {len(bound.columns)} columns.",
            position=source.position,
        )
    columns = tuple(replace(c, name=n) for c, n in zip(bound.columns, names, strict=True))
    return BoundQuery(bound.node, columns)


def _system_table(queries: QueryBinder, source: sql.TableReference, database: str) -> Relation:
    name = source.table.name
    qualifiers: tuple[Qualifier, ...] = ((name,), (database, name))
    if source.alias:
        qualifiers = ((source.alias,), *qualifiers)
    if database == "system" and name in ("one", "numbers", "numbers_mt", "zeros"):
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
        used = [f for f, c in zip(fields, columns, strict=True) if c.used]
        return plan.SystemScan(
            shown, tuple((unique[f.name], f.name) for f in used), tuple(f.type for f in used)
        )

    return Relation([*columns, *hidden], build, f"{database}.{name}")


SYSTEM_ALIASES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "columns": {"column": ("name", "")},
    "databases": {"database": ("name", "")},
    "parts": {"part_name": ("name", "")},
    "parts_columns": {"part_name": ("name", "")},
    "processes": {
        "Settings.Names": ("Settings", "mapKeys"),
        "Settings.Values": ("Settings", "mapValues"),
    },
    "tables": {"table": ("name", "")},
}
"""Columns that `*` does not show: ALIAS columns of ClickHouse's, which are another column, or a
function of one."""


def _alias(
    queries: QueryBinder, column: RelationColumn, function: str
) -> tuple[DataType, Callable[[], Expression]]:
    """The type of such a column, and what makes it; nothing is read until it is used."""
    if not function:
        return column.type, column.use
    reference = ColumnRef(column.type, column.name)
    data_type = constants.call(function, (reference,), queries.scope.environment).type
    return data_type, lambda: constants.call(function, (column.use(),), queries.scope.environment)


def _builtin(queries: QueryBinder, name: str, qualifiers: tuple[Qualifier, ...]) -> Relation:
    """system.one, system.numbers, system.zeros: no provider is needed."""
    import pyarrow as pa

    shown = {"one": "dummy", "zeros": "zero"}.get(name, "number")
    data_type = UINT64 if shown == "number" else UINT8
    unique = queries.names.unique(shown)
    node: plan.Node
    if name == "one":
        rows = pa.table({unique: pa.array([0], pa.uint8())})
        node = plan.Values((plan.Field(unique, data_type),), rows)
    else:
        node = plan.Numbers(unique, data_type, 0, None, step=1 if shown == "number" else 0)
    column = RelationColumn(shown, data_type, _constantly(ColumnRef(data_type, unique)), qualifiers)
    return Relation([column], lambda: node, f"system.{name}")
