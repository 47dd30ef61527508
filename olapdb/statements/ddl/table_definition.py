"""The table that a CREATE TABLE describes: columns, engine, keys, settings, and their checks."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from olapdb import types
from olapdb.bind import BindScope, bind_expression
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.config import SettingValue, is_deduplication, table_settings
from olapdb.errors import (
    BadArguments,
    CannotGetCreateTableQuery,
    DataTypeCannotBeUsedInKey,
    IllegalColumn,
    IllegalTypeOfArgument,
    IncorrectQuery,
    Position,
    TypeNotForTables,
    UnknownDatabase,
    UnknownIdentifier,
    UnknownPolicy,
    in_clause,
)
from olapdb.ingest.deduplication_key import check_deduplication
from olapdb.model.columns import fresh_columns
from olapdb.model.schema import Column, Engine, KeyItem, Table
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import ColumnRef, Expression, impure_calls, walk
from olapdb.sql import nodes, trees
from olapdb.sql.format import to_sql
from olapdb.sql.formatter.definitions import declared_key
from olapdb.sql.parser import parse_expression
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.context import StatementContext
from olapdb.statements.databases import require_own_database
from olapdb.statements.ddl import deprecated_engines
from olapdb.statements.ddl.column_checks import check_columns, constraint_from
from olapdb.statements.ddl.engines import check_engine, engine_of, with_version
from olapdb.statements.ddl.indexes import add_indexes
from olapdb.statements.ddl.projections import add_projections, check_projections_of_engine
from olapdb.statements.ddl.sampling import check_sampling, sampling_key_of
from olapdb.statements.ddl.statistics import with_statistics
from olapdb.statements.ddl.ttl import check_column_ttls, column_ttl_text, ttl_text
from olapdb.statements.query import select
from olapdb.statements.temporary_routing import for_table
from olapdb.system.ddl import key_list

_ONLY_POLICY = "default"


def build_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Table:
    """Return the table that the statement describes, with a fresh id; nothing is published.

    Raises the errors of ClickHouse for definitions that are not possible.
    """
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    like = template_table(statement, context, snapshot)
    columns = _columns(statement, like, context, snapshot)
    is_old_allowed = context.settings.boolean(deprecated_engines.SETTING)
    storage = deprecated_engines.with_clauses(statement.storage, columns, allowed=is_old_allowed)
    engine = engine_of(storage, like, context.settings.text("default_table_engine"))
    if like is not None and not statement.columns and not engine.is_merge_tree:
        columns = tuple(replace(column, ttl="") for column in columns)  # rows of it do not expire
    sorting_key, primary_key, partition_key = _keys(storage, like, engine)
    table = Table(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        engine=engine,
        columns=columns,
        sorting_key=sorting_key,
        primary_key=primary_key,
        partition_key=partition_key,
        settings=_settings(storage, like, engine),
        comment=statement.comment or (like.comment if like else ""),
        created_ms=context.services.clock_ms(),
        constraints=constraints_of(statement, like),
        assumed=_assumed(statement, like),
        sampling_key=sampling_key_of(storage, like, inherits=_inherits_keys(storage, engine)),
        declared_keys=_declared_keys(storage, like, engine, sorting_key),
    )
    check_table(table, context, snapshot)
    table = replace(table, ttl=_ttl(statement, like, table, context, snapshot))
    if statement.indexes or statement.projections:
        table = add_indexes(statement.indexes, table, context, snapshot)
        return add_projections(statement.projections, table)
    if like is not None and not statement.columns and engine.is_merge_tree:
        table = replace(table, indexes=like.indexes, projections=like.projections)
        check_projections_of_engine(table)
    return table


def _settings(
    storage: nodes.StorageClause, like: Table | None, engine: Engine
) -> tuple[tuple[str, SettingValue], ...]:
    """Return the settings that the table keeps: those of the statement, else those of `like` unless the
    statement names an engine.

    Engines without a MergeTree's parts keep none, but for those of deduplication in Null. Raises
    UnknownPolicy."""
    is_memory = engine.name == "Memory"
    settings = like.settings if like and storage.engine is None else ()
    if storage.settings:
        changes: dict[str, SettingValue | None] = {
            setting.name: setting.value
            for setting in storage.settings
            if engine.name not in ("Set", "Join")  # theirs say what holds anyway
        }
        settings = table_settings(changes, memory=is_memory)
        if dict(settings).get("storage_policy", _ONLY_POLICY) != _ONLY_POLICY:
            raise UnknownPolicy(
                f"Unknown storage policy {dict(settings)['storage_policy']}.",
                hint="There is one, default: a warehouse is one folder, on one disk.",
            )
    if engine.is_merge_tree or is_memory:
        return settings
    if engine.name != "Null":
        return ()
    return tuple(setting for setting in settings if is_deduplication(setting[0]))


def _ttl(
    statement: nodes.CreateTable,
    like: Table | None,
    table: Table,
    context: StatementContext,
    snapshot: Snapshot,
) -> str:
    """Return the table's TTL text; without a TTL clause that of AS `like`, unless the statement
    names an engine."""
    items = statement.storage.ttl
    if not items and like is not None and table.engine.is_merge_tree:
        return like.ttl if statement.storage.engine is None else ""
    return ttl_text(items, table, context.scope(snapshot))


def check_table(table: Table, context: StatementContext, snapshot: Snapshot) -> None:
    """Check engine, deduplication, keys and columns of the table: their expressions bind, and their
    types are allowed. Raise the errors of ClickHouse."""
    check_engine(table)
    check_deduplication(table, snapshot)
    scope = context.scope(snapshot)
    nullable_ok = bool(dict(table.settings).get("allow_nullable_key", False))
    for item in table.sorting_key:
        with in_clause(f"ORDER BY {item.expression}"):
            _check_sorting_item(item.expression, table, scope, nullable_ok)
    _check_distinct([item.expression for item in table.sorting_key])
    if table.partition_key:
        with in_clause(f"PARTITION BY {table.partition_key}"):
            _check_partition_key(table, scope, nullable_ok)
    check_sampling(table, scope)
    check_columns(table, scope)
    check_column_ttls(table, scope)


def _check_sorting_item(text: str, table: Table, scope: BindScope, nullable_ok: bool) -> None:
    """Raise an error for an expression of ORDER BY that cannot be in a sorting key."""
    parsed = parse_expression(text)
    refuse_outside_values(parsed, "a sorting key")
    _refuse_subqueries(parsed, "sorting key")
    bound = bind_expression(parsed, table, scope)
    _check_key(text, bound, "sorting key", nullable_ok)
    is_column = isinstance(parsed, nodes.Identifier)  # an ALIAS may be a constant
    if not is_column and not any(isinstance(node, ColumnRef) for node in walk(bound)):
        raise IllegalColumn(
            f"The sorting key cannot contain a constant, {text}.",
            hint="Leave it out; ORDER BY tuple() sorts by nothing.",
        )


def _check_partition_key(table: Table, scope: BindScope, nullable_ok: bool) -> None:
    """Raise an error for a partition key that cannot be one."""
    parsed = parse_expression(table.partition_key)
    refuse_outside_values(parsed, "a partition key")
    _refuse_subqueries(parsed, "partition key")
    bound = bind_expression(parsed, table, scope)
    _check_key(table.partition_key, bound, "partition key", nullable_ok)
    if isinstance(types.plain(bound.type), types.Float):
        raise BadArguments(f"Partition key {table.partition_key} is a floating-point number.")


def _refuse_subqueries(expression: nodes.Expression, what: str) -> None:
    """Raise BadArguments if a key expression reads a query."""
    if any(isinstance(node, nodes.Select | nodes.SetOperation) for node in trees.walk(expression)):
        raise BadArguments(
            f"The {what} contains a subquery.",
            hint="A key is computed from the row's columns alone.",
            position=expression.position,
        )


def _check_distinct(expressions: Sequence[str]) -> None:
    """Raise BadArguments if the sorting key repeats an expression."""
    for position, text in enumerate(expressions):
        if text in expressions[:position]:
            raise BadArguments(f"The sorting key has {text} twice.", hint="Leave one out.")


def _check_key(text: str, bound: Expression, what: str, nullable_ok: bool) -> None:
    """Raise an error for a key expression that is not pure, that is Nullable without
    allow_nullable_key, or whose type keys cannot have."""
    data_type = bound.type
    for call in impure_calls(bound):
        raise BadArguments(
            f"The {what} contains {call.name}(), which gives another value each time.",
            hint="A key is computed from the row's columns alone; store the value in one.",
        )
    if types.has_types_by_row(data_type):
        raise DataTypeCannotBeUsedInKey(
            f"{text} of type {data_type} cannot be in the {what}.",
            hint="Take one type of it, such as v.String, or cast it.",
        )
    if types.is_nullable(data_type) and not nullable_ok:
        raise IllegalColumn(
            f"The {what} contains {text}, which is Nullable.",
            hint="Use assumeNotNull or a default, or SETTINGS allow_nullable_key = 1.",
        )
    if isinstance(
        data_type,
        types.AggregateFunction | types.SimpleAggregateFunction | types.Map | types.Nothing,
    ):
        raise DataTypeCannotBeUsedInKey(f"{text} of type {data_type} cannot be in the {what}.")


def template_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Table | None:
    """Return the table of AS or CLONE AS; None without one."""
    if statement.like is None or statement.like.database in SYSTEM_DATABASES:
        return None
    database, _ = context.locate(statement.like)
    if database not in snapshot.databases and database != TEMPORARY_DATABASE:
        raise UnknownDatabase(
            f"Database {database} does not exist.", position=statement.like.position
        )
    readable = context.with_temporary(snapshot)
    named = for_table(statement.like, replace(context, on_temporary=False))
    if named.find(readable, statement.like) is None:
        raise CannotGetCreateTableQuery(
            f"Table {statement.like} does not exist.", position=statement.like.position
        )
    return named.require_table(readable, statement.like, "CREATE TABLE AS")


def _columns(
    statement: nodes.CreateTable, like: Table | None, context: StatementContext, snapshot: Snapshot
) -> tuple[Column, ...]:
    """Return the columns of the column list, else of the AS table, else of the SELECT. Raise
    IncorrectQuery without any, IllegalColumn for repeated names."""
    if statement.columns:
        columns = columns_from(statement.columns, context, snapshot)
    elif like is not None:
        return fresh_columns(like.columns)
    elif (query := _described(statement)) is not None:
        plan = select.plan_query(query, context, snapshot)
        columns = tuple(
            Column(number, name, _require_storable(data_type))
            for number, (name, data_type) in enumerate(zip(plan.names, plan.types), 1)
        )
    else:
        raise IncorrectQuery(
            f"CREATE TABLE {statement.table} names no columns.",
            hint="Give a column list, AS SELECT, or AS another table.",
            position=statement.position,
        )
    refuse_repeated_columns(columns, statement.position)
    return columns


def refuse_repeated_columns(columns: Sequence[Column], position: Position | None) -> None:
    """Raise IllegalColumn if two columns have one name; the error is at the position."""
    seen_names: set[str] = set()
    for column in columns:
        if column.name in seen_names:
            raise IllegalColumn(f"Column {column.name} appears twice.", position=position)
        seen_names.add(column.name)


def _described(statement: nodes.CreateTable) -> nodes.Query | None:
    """Return the query whose columns the table has: that of AS SELECT, or SELECT * of the system
    table behind AS; None without either."""
    if statement.like is None:
        return statement.query
    return nodes.Select((nodes.Star(),), source=nodes.TableReference(statement.like))


def constraints_of(statement: nodes.CreateTable, like: Table | None) -> tuple[tuple[str, str], ...]:
    """Return the (name, condition) of each constraint; without columns and constraints those of
    `like`."""
    if statement.constraints or like is None or statement.columns:
        return tuple(constraint_from(definition) for definition in statement.constraints)
    return like.constraints


def _assumed(statement: nodes.CreateTable, like: Table | None) -> tuple[str, ...]:
    """Return the names of the constraints of `constraints_of` that are ASSUME."""
    if statement.constraints or like is None or statement.columns:
        return tuple(
            constraint.name for constraint in statement.constraints if constraint.kind == "ASSUME"
        )
    return like.assumed


def _require_storable(data_type: types.DataType) -> types.DataType:
    """Return the type; raise TypeNotForTables for a column that is only NULL."""
    if isinstance(types.plain(data_type), types.Nothing):
        raise TypeNotForTables(
            "A column of the SELECT is NULL only and has no type.", hint="CAST it to one."
        )
    return data_type


def columns_from(
    definitions: Sequence[nodes.ColumnDefinition], context: StatementContext, snapshot: Snapshot
) -> tuple[Column, ...]:
    """Return the columns of a CREATE TABLE list, numbered from 1. A column without a type has that
    of its default."""
    columns: list[Column] = []
    column_types = _column_types(definitions, context, snapshot)
    for number, definition in enumerate(definitions, 1):
        column = Column(
            number,
            definition.name,
            column_types[number],
            definition.default_kind,
            to_sql(definition.default) if definition.default is not None else "",
            definition.comment,
            ", ".join(to_sql(codec) for codec in definition.codec),
            ttl=column_ttl_text(definition.ttl),
        )
        columns.append(with_statistics(column, definition))
    return tuple(columns)


def _column_types(
    definitions: Sequence[nodes.ColumnDefinition], context: StatementContext, snapshot: Snapshot
) -> dict[int, types.DataType]:
    """Return the types of the columns by their numbers, from 1. The default of a column without a type may name columns
    behind it. Raises UnknownIdentifier, and BadArguments for a column without a type and a default."""
    nullable = context.settings.boolean("data_type_default_nullable")
    known: dict[int, types.DataType] = {}
    untyped: dict[int, nodes.ColumnDefinition] = {}
    for number, definition in enumerate(definitions, 1):
        if definition.type is None:
            untyped[number] = definition
        else:
            known[number] = _declared_type(definition, definition.type, nullable)
    while untyped:
        columns = [Column(n, definitions[n - 1].name, t) for n, t in known.items()]
        unknown = None
        for number, definition in untyped.items():
            try:
                data_type = _default_type(definition, columns, context, snapshot)
            except UnknownIdentifier as error:
                unknown = unknown or error
                continue
            is_null = definition.modifier == "NULL"
            known[number] = types.make_nullable(data_type) if is_null else data_type
        if unknown is not None and not untyped.keys() & known.keys():
            raise unknown
        untyped = {n: definition for n, definition in untyped.items() if n not in known}
    return known


def _declared_type(
    definition: nodes.ColumnDefinition, data_type: types.DataType, nullable: bool
) -> types.DataType:
    """Return the declared type of a column as it is stored: Nullable for DEFAULT NULL and, with `nullable`, unless NOT
    NULL is said."""
    if definition.modifier == "NOT NULL":
        return data_type
    if _is_null_by_default(definition):
        return _nullable(data_type, definition)
    if nullable and not isinstance(data_type, types.LowCardinality):
        return types.make_nullable(data_type)
    return data_type


def _is_null_by_default(definition: nodes.ColumnDefinition) -> bool:
    """Return whether a column is declared with DEFAULT NULL."""
    default = definition.default
    return (
        definition.default_kind == "DEFAULT"
        and isinstance(default, nodes.Literal)
        and default.value is None
    )


def _nullable(data_type: types.DataType, definition: nodes.ColumnDefinition) -> types.DataType:
    """Return the Nullable form of a column's type; raise IllegalTypeOfArgument for an array or map."""
    if isinstance(data_type, types.Array | types.Map):
        raise IllegalTypeOfArgument(
            f"Column {definition.name} is {data_type}, which cannot be NULL.",
            hint="Leave DEFAULT NULL out: the default is empty.",
            position=definition.position,
        )
    return types.make_nullable(data_type)


def _default_type(
    definition: nodes.ColumnDefinition,
    others: Sequence[Column],
    context: StatementContext,
    snapshot: Snapshot,
) -> types.DataType:
    """Return the type of the default expression over the `others`. Raises UnknownIdentifier and BadArguments."""
    if definition.default is None:
        raise BadArguments(
            f"Column {definition.name} has no type.",
            hint="Give a type or a DEFAULT expression.",
            position=definition.position,
        )
    refuse_outside_values(definition.default, f"the default of column {definition.name}")
    shell = Table("", context.database, "", Engine("Null"), tuple(others))
    return bind_expression(definition.default, shell, context.scope(snapshot)).type


def _keys(
    storage: nodes.StorageClause, like: Table | None, engine: Engine
) -> tuple[tuple[KeyItem, ...], int, str]:
    """Return (sorting key, number of its items in the primary key, partition key); without clauses
    those of `like`. Raise BadArguments if PRIMARY KEY is not a prefix of ORDER BY."""
    if not engine.is_merge_tree:
        return (), 0, ""
    if like is not None and _inherits_keys(storage, engine):
        return like.sorting_key, like.primary_key, like.partition_key
    primary = tuple(to_sql(expression) for expression in _flatten_key(storage.primary_key or ()))
    if storage.order_by is None:
        sorting = tuple(KeyItem(text) for text in primary)
    else:
        sorting = tuple(key_items(storage.order_by))
    if primary and primary != tuple(item.expression for item in sorting[: len(primary)]):
        raise BadArguments("The primary key must be a prefix of ORDER BY.")
    partition = "" if storage.partition_by is None else to_sql(storage.partition_by)
    if partition in ("tuple()", "()"):
        partition = ""
    return with_version(engine, sorting), len(primary) or len(sorting), partition


def _declared_keys(
    storage: nodes.StorageClause, like: Table | None, engine: Engine, sorting: tuple[KeyItem, ...]
) -> tuple[str, ...]:
    """Return the texts of PRIMARY KEY and ORDER BY as they were written ("" for one left out), and
    the text of the sorting key that they gave. Return () for engines without keys, and the texts of
    `like` for a table that inherits its keys."""
    if not engine.is_merge_tree:
        return ()
    if like is not None and _inherits_keys(storage, engine):
        return like.declared_keys
    return (*declared_key(storage), key_list(sorting))


def _inherits_keys(storage: nodes.StorageClause, engine: Engine) -> bool:
    """Return whether a table without clauses of its own has the keys of the AS table."""
    own = (storage.order_by, storage.primary_key, storage.partition_by)
    return engine.is_merge_tree and all(clause is None for clause in own)


def _flatten_key(expressions: Sequence[nodes.Expression]) -> list[nodes.Expression]:
    """Return the key expressions one by one: `(a, b)` is `a, b`, and `tuple()` is empty."""
    flattened: list[nodes.Expression] = []
    for expression in expressions:
        if isinstance(expression, nodes.TupleLiteral):
            flattened.extend(expression.elements)
        elif not (
            isinstance(expression, nodes.Function)
            and expression.name == "tuple"
            and not expression.arguments
        ):
            flattened.append(expression)
    return flattened


def key_items(items: Sequence[nodes.OrderItem]) -> list[KeyItem]:
    """Return ORDER BY as key items. Raise BadArguments for NULLS FIRST and COLLATE."""
    result: list[KeyItem] = []
    for item in items:
        if item.nulls_first is not None or item.collate is not None:
            raise BadArguments("NULLS FIRST and COLLATE have no place in a table's ORDER BY.")
        result.extend(
            KeyItem(to_sql(expression), item.descending)
            for expression in _flatten_key([item.expression])
        )
    return result
