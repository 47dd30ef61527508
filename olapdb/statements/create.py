"""CREATE DATABASE, TABLE and VIEW."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from olapdb.config import SettingValue, is_deduplication, table_settings
from olapdb.errors import (
    BadArguments,
    CommitUnknown,
    DatabaseAlreadyExists,
    DataTypeCannotBeUsedInKey,
    IllegalColumn,
    IncorrectQuery,
    NotSupportedError,
    TableAlreadyExists,
)
from olapdb.ingest.attach import cloned_parts, with_columns_of
from olapdb.ingest.deduplicate import Admission
from olapdb.ingest.key_rules import check_deduplication
from olapdb.ingest.read import Pin, discard
from olapdb.ingest.stage import StagedInsert, join_staged, stage_insert
from olapdb.model.changes import (
    Change,
    Commit,
    CreateDatabase,
    DatabaseExists,
    DropObject,
    NameIsFree,
    NoDependents,
    PutObject,
    Requirement,
    RevisionIs,
    SchemaIs,
)
from olapdb.model.columns import fresh_columns
from olapdb.model.schema import Column, Database, Engine, KeyItem, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import Call, ColumnRef, Expression, walk
from olapdb.result import Result
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.statements import select
from olapdb.statements.attempts import attempted
from olapdb.statements.column_checks import check_columns, constraint_of
from olapdb.statements.context import StatementContext, refuse_dependents
from olapdb.statements.engines import check_engine, engine_of, with_version
from olapdb.statements.insert import query_blocks
from olapdb.statements.replace import is_dimension_only, publish_successor, successor
from olapdb.statements.show import require_own_database
from olapdb.system.registry import SYSTEM_DATABASES
from olapdb.types import (
    AggregateFunction,
    DataType,
    Float,
    LowCardinality,
    Map,
    Nothing,
    SimpleAggregateFunction,
    is_nullable,
    make_nullable,
    plain,
)


def commit(
    context: StatementContext, kind: str, requirements: Sequence[Requirement],
    changes: Sequence[Change],
) -> None:  # fmt: skip
    """Publishes a change of the schema."""
    context.services.catalog.apply(
        Commit(tuple(requirements), tuple(changes), kind, context.query_id, context.text[:65_536])
    )


def create_database(statement: nodes.CreateDatabase, context: StatementContext) -> Result:
    if statement.engine is not None and statement.engine.name not in ("Atomic", "Ordinary"):
        raise NotSupportedError(
            f"Database engine {statement.engine.name} is not supported.",
            hint="Leave ENGINE out, or say Atomic.",
            position=statement.position,
        )
    return attempted(context, partial(_create_database, statement, context))


def _create_database(
    statement: nodes.CreateDatabase, context: StatementContext, snapshot: Snapshot
) -> Result:
    if statement.name in snapshot.databases or statement.name in SYSTEM_DATABASES:
        if statement.if_not_exists:
            return Result()
        raise DatabaseAlreadyExists(
            f"Database {statement.name} exists.", hint="Say IF NOT EXISTS.",
            position=statement.position,
        )  # fmt: skip
    made = Database(str(uuid.uuid4()), statement.name, statement.comment)
    commit(context, "CREATE DATABASE", (), [CreateDatabase(made)])
    return Result()


def create_table(statement: nodes.CreateTable, context: StatementContext) -> Result:
    """The table, and with AS SELECT its rows; both are there or neither is."""
    if statement.temporary:
        raise NotSupportedError(
            "Temporary tables are not supported.",
            hint="Make a table in a database of your own, and drop it.",
            position=statement.position,
        )
    return attempted(context, partial(_create_table, statement, context))


def _create_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Result:
    existing = _existing(statement.table, statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return Result()
    table = build_table(statement, context, snapshot)
    if statement.clone:
        table = with_columns_of(table, _like(statement, context, snapshot))
    if isinstance(existing, Table) and is_dimension_only(snapshot, existing):
        table = successor(table, existing, snapshot)
    if statement.query is not None and not statement.empty:
        return _create_filled(statement, table, existing, context, snapshot)
    if statement.clone:
        return _create_clone(statement, table, existing, context, snapshot)
    _publish(table, existing, context, snapshot)
    return Result()


def build_table(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Table:
    """The table that the statement describes, with fresh ids; nothing is published."""
    database, name = context.locate(statement.table)
    require_own_database(database, snapshot, statement.table.position)
    for what, clause in (
        ("PROJECTION", statement.projections),
        ("SAMPLE BY", statement.storage.sample_by),
    ):  # fmt: skip
        if clause:
            raise NotSupportedError(
                f"{what} in CREATE TABLE is not supported yet.", hint="Leave the clause out.",
                position=statement.position,
            )  # fmt: skip
    like = _like(statement, context, snapshot)
    columns = _columns(statement, like, context, snapshot)
    storage = statement.storage
    engine = engine_of(storage, like)
    sorting_key, primary_key, partition_key = _keys(storage, like, engine)
    given: dict[str, SettingValue | None] = {s.name: s.value for s in storage.settings}
    settings = table_settings(given) if storage.settings else (like.settings if like else ())
    if not engine.is_merge_tree:
        settings = tuple(s for s in settings if engine.name == "Null" and is_deduplication(s[0]))
    table = Table(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        engine=engine,
        columns=columns,
        sorting_key=sorting_key,
        primary_key=primary_key,
        partition_key=partition_key,
        settings=settings,
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
        constraints=_constraints(statement, like),
    )
    check_table(table, context, snapshot)
    table = replace(table, ttl=_ttl(statement, like, table, context, snapshot))
    if statement.indexes:
        from olapdb.statements.indexes import add_indexes

        return add_indexes(statement.indexes, table, context, snapshot)
    return table


def _ttl(
    statement: nodes.CreateTable, like: Table | None, table: Table, context: StatementContext,
    snapshot: Snapshot,
) -> str:  # fmt: skip
    from olapdb.statements.ttl import ttl_text

    items = statement.storage.ttl
    if not items and like is not None and table.engine.is_merge_tree:
        return like.ttl if statement.storage.engine is None else ""
    return ttl_text(items, table, context.scope(snapshot))


def check_table(table: Table, context: StatementContext, snapshot: Snapshot) -> None:
    """Keys and defaults bind over the columns; key types can be keys; engine columns exist."""
    from olapdb.bind import bind_expression
    from olapdb.sql.parser import parse_expression

    check_engine(table)
    check_deduplication(table, snapshot)
    scope = context.scope(snapshot)
    nullable_ok = bool(dict(table.settings).get("allow_nullable_key", False))
    for item in table.sorting_key:
        written = parse_expression(item.expression)
        bound = bind_expression(written, table, scope)
        _check_key(item.expression, bound, "sorting key", nullable_ok)
        reads = isinstance(written, nodes.Identifier)  # an ALIAS may stand for a constant
        if not reads and not any(isinstance(e, ColumnRef) for e in walk(bound)):
            raise IllegalColumn(
                f"The sorting key cannot contain a constant, {item.expression}.",
                hint="Leave it out; ORDER BY tuple() sorts by nothing.",
            )
    _check_distinct([item.expression for item in table.sorting_key])
    if table.partition_key:
        bound = bind_expression(parse_expression(table.partition_key), table, scope)
        _check_key(table.partition_key, bound, "partition key", nullable_ok)
        if isinstance(plain(bound.type), Float):
            raise BadArguments(f"Partition key {table.partition_key} is a floating-point number.")
    check_columns(table, scope)


def _check_distinct(expressions: Sequence[str]) -> None:
    for at, text in enumerate(expressions):
        if text in expressions[:at]:
            raise BadArguments(f"The sorting key has {text} twice.", hint="Leave one out.")


def _check_key(text: str, bound: Expression, what: str, nullable_ok: bool) -> None:
    data_type = bound.type
    volatile = next(
        (e.name for e in walk(bound) if isinstance(e, Call) and e.function.volatility != "pure"),
        None,
    )
    if volatile is not None:
        raise BadArguments(
            f"The {what} contains {volatile}(), which gives another value each time.",
            hint="A key is computed from the row's columns alone; store the value in one.",
        )
    if is_nullable(data_type) and not nullable_ok:
        raise IllegalColumn(
            f"The {what} contains {text}, which is Nullable.",
            hint="Use assumeNotNull or a default, or SETTINGS allow_nullable_key = 1.",
        )
    if isinstance(data_type, AggregateFunction | SimpleAggregateFunction | Map | Nothing):
        raise DataTypeCannotBeUsedInKey(f"{text} of type {data_type} cannot be in the {what}.")


def _like(
    statement: nodes.CreateTable, context: StatementContext, snapshot: Snapshot
) -> Table | None:
    if statement.like is None:
        return None
    return context.require_table(snapshot, statement.like, "CREATE TABLE AS")


def _columns(
    statement: nodes.CreateTable, like: Table | None, context: StatementContext, snapshot: Snapshot
) -> tuple[Column, ...]:
    if statement.columns:
        made = columns_of(statement.columns, context, snapshot)
    elif like is not None:
        return fresh_columns(like.columns)
    elif statement.query is not None:
        plan = select.plan_query(statement.query, context, snapshot)
        made = tuple(
            Column(i, n, _storable(t)) for i, (n, t) in enumerate(zip(plan.names, plan.types), 1)
        )
    else:
        raise IncorrectQuery(
            f"CREATE TABLE {statement.table} names no columns.",
            hint="Give a column list, AS SELECT, or AS another table.",
            position=statement.position,
        )
    seen: set[str] = set()
    for column in made:
        if column.name in seen:
            raise IllegalColumn(f"Column {column.name} appears twice.", position=statement.position)
        seen.add(column.name)
    return made


def _constraints(statement: nodes.CreateTable, like: Table | None) -> tuple[tuple[str, str], ...]:
    if statement.constraints or like is None or statement.columns:
        return tuple(constraint_of(one) for one in statement.constraints)
    return like.constraints


def _storable(data_type: DataType) -> DataType:
    if isinstance(plain(data_type), Nothing):
        raise BadArguments(
            "A column of the SELECT is NULL only and has no type.", hint="CAST it to one."
        )
    return data_type


def columns_of(
    definitions: Sequence[nodes.ColumnDefinition], context: StatementContext, snapshot: Snapshot
) -> tuple[Column, ...]:
    """Columns as CREATE TABLE lists them; a missing type is that of the default expression."""
    nullable = context.settings.boolean("data_type_default_nullable")
    made: list[Column] = []
    for number, definition in enumerate(definitions, 1):
        if definition.ttl is not None:
            raise NotSupportedError(
                f"Column {definition.name}: a column's TTL is not supported.",
                position=definition.position,
            )
        data_type = definition.type
        if data_type is None:
            data_type = _default_type(definition, made, context, snapshot)
        elif nullable and not isinstance(data_type, LowCardinality):
            data_type = make_nullable(data_type)
        made.append(
            Column(
                number,
                definition.name,
                data_type,
                definition.default_kind,
                to_sql(definition.default) if definition.default is not None else "",
                definition.comment,
                ", ".join(to_sql(c) for c in definition.codec),
            )
        )
    return tuple(made)


def _default_type(
    definition: nodes.ColumnDefinition, before: Sequence[Column], context: StatementContext,
    snapshot: Snapshot,
) -> DataType:  # fmt: skip
    from olapdb.bind import bind_expression

    if definition.default is None:
        raise BadArguments(
            f"Column {definition.name} has no type.", hint="Give a type or a DEFAULT expression.",
            position=definition.position,
        )  # fmt: skip
    shell = Table("", context.database, "", Engine("Null"), tuple(before))
    return bind_expression(definition.default, shell, context.scope(snapshot)).type


def _keys(
    storage: nodes.StorageClause, like: Table | None, engine: Engine
) -> tuple[tuple[KeyItem, ...], int, str]:
    given = storage.order_by is not None or storage.primary_key is not None
    if not engine.is_merge_tree:
        return (), 0, ""
    if not given and storage.partition_by is None and like is not None:
        return like.sorting_key, like.primary_key, like.partition_key
    primary = tuple(to_sql(e) for e in _flat(storage.primary_key or ()))
    if storage.order_by is None:
        sorting = tuple(KeyItem(text) for text in primary)
    else:
        sorting = tuple(key_items(storage.order_by))
    if primary and primary != tuple(i.expression for i in sorting[: len(primary)]):
        raise BadArguments("The primary key must be a prefix of ORDER BY.")
    partition = "" if storage.partition_by is None else to_sql(storage.partition_by)
    if partition in ("tuple()", "()"):
        partition = ""
    return with_version(engine, sorting), len(primary) or len(sorting), partition


def _flat(expressions: Sequence[nodes.Expression]) -> list[nodes.Expression]:
    """`(a, b)` and `a, b` alike; `tuple()` is nothing."""
    flat: list[nodes.Expression] = []
    for e in expressions:
        if isinstance(e, nodes.TupleLiteral):
            flat.extend(e.elements)
        elif not (isinstance(e, nodes.Function) and e.name == "tuple" and not e.arguments):
            flat.append(e)
    return flat


def key_items(items: Sequence[nodes.OrderItem]) -> list[KeyItem]:
    made: list[KeyItem] = []
    for item in items:
        if item.nulls_first is not None or item.collate is not None:
            raise BadArguments("NULLS FIRST and COLLATE have no place in a table's ORDER BY.")
        made.extend(KeyItem(to_sql(e), item.descending) for e in _flat([item.expression]))
    return made


def _existing(
    name: nodes.TableName, statement: nodes.CreateTable | nodes.CreateView,
    context: StatementContext, snapshot: Snapshot,
) -> SchemaObject | None:  # fmt: skip
    existing = context.find(snapshot, name)
    if existing is None or statement.if_not_exists:
        return existing
    if not statement.or_replace:
        raise TableAlreadyExists(
            f"{existing.database}.{existing.name} exists.",
            hint="Say IF NOT EXISTS or CREATE OR REPLACE, or DROP it first.",
            position=name.position,
        )
    if isinstance(statement, nodes.CreateTable) and not is_dimension_only(snapshot, existing):
        refuse_dependents(snapshot, existing, "replace")
    return existing


def _publish(
    made: Table | View, existing: SchemaObject | None, context: StatementContext,
    snapshot: Snapshot, staged: Sequence[StagedInsert] = (), reads: Sequence[tuple[str, int]] = (),
    keys: Sequence[Change] = (),
) -> None:  # fmt: skip
    """One commit: what had the name goes, the object comes, with its first rows and their keys.
    `reads` are ids and revisions of what its text names."""
    requirements: list[Requirement] = [DatabaseExists(made.database)]
    requirements += [RevisionIs(*one) for one in reads]
    changes: list[Change] = []
    if isinstance(existing, Table) and isinstance(made, Table) and made.id == existing.id:
        rows = join_staged(staged) if staged else None
        publish_successor(
            made, existing, context, snapshot, rows.requirements if rows else (),
            [*rows.changes, *keys] if rows else (),
        )  # fmt: skip
        return
    if existing is None:
        requirements.append(NameIsFree(made.database, made.name))
    else:
        requirements.append(RevisionIs(existing.id, existing.revision))
        requirements.append(NoDependents(existing.id))
        changes.append(DropObject(existing.id))
    changes.append(PutObject(made))
    if staged:
        rows = join_staged(staged)
        own = SchemaIs(made.id, made.version)  # true only once this commit is made
        requirements += [r for r in rows.requirements if r != own]
        changes += [*rows.changes, *keys]
    commit(context, f"CREATE {type(made).__name__.upper()}", requirements, changes)


def _create_clone(
    statement: nodes.CreateTable, table: Table, existing: SchemaObject | None,
    context: StatementContext, snapshot: Snapshot,
) -> Result:  # fmt: skip
    """CLONE AS: the table and the other one's rows, by reference, in one commit."""
    source = _like(statement, context, snapshot)
    assert source is not None
    services = context.services
    with Pin(services, snapshot.number):
        staged, written = cloned_parts(
            services, snapshot, source, table, context.text, context.query_id
        )
        try:
            _publish(table, existing, context, snapshot, [staged] if staged.rows else [])
        except CommitUnknown:
            raise
        except BaseException:
            discard(services, written)
            raise
    services.notify_written(table.id)
    return Result(affected_rows=staged.rows)


def _create_filled(
    statement: nodes.CreateTable, table: Table, existing: SchemaObject | None,
    context: StatementContext, snapshot: Snapshot,
) -> Result:  # fmt: skip
    """AS SELECT: the rows are staged for a table that does not exist yet, and one commit makes the
    table and all of them visible; a SELECT that fails leaves nothing."""
    assert statement.query is not None
    services = context.services
    staged: list[StagedInsert] = []
    admission = Admission.of(services, table)
    try:
        for rows in query_blocks(table, None, statement.query, context, snapshot):
            block = rows if admission is None else admission.admit(rows)
            staged.append(
                stage_insert(
                    table, block, snapshot, services.store, services.lease_id,
                    settings=context.settings, environment=context.environment,
                    cache=services.cache, cancelled=context.cancelled,
                )
            )  # fmt: skip
        keys = admission.changes() if admission else ()
        _publish(table, existing, context, snapshot, staged, keys=keys)
    except CommitUnknown:
        raise
    except BaseException:
        discard(services, [path for one in staged for path in one.paths])
        raise
    services.notify_written(table.id)
    return Result(affected_rows=sum(one.rows for one in staged))


def create_view(statement: nodes.CreateView, context: StatementContext) -> Result:
    """A plain view: its SELECT is bound once to learn its columns, and frozen with full names."""
    return attempted(context, partial(_create_view, statement, context))


def _create_view(
    statement: nodes.CreateView, context: StatementContext, snapshot: Snapshot
) -> Result:
    from olapdb.bind.analysis import qualify

    database, name = context.locate(statement.name)
    require_own_database(database, snapshot, statement.name.position)
    existing = _existing(statement.name, statement, context, snapshot)
    if existing is not None and statement.if_not_exists:
        return Result()
    if existing is not None and not isinstance(existing, View):
        raise TableAlreadyExists(
            f"{existing.database}.{existing.name} is not a view.", hint="DROP it first.",
            position=statement.name.position,
        )  # fmt: skip
    plan = select.plan_query(statement.query, context, snapshot)
    columns = tuple(Column(i, n, t) for i, (n, t) in enumerate(zip(plan.names, plan.types), 1))
    if statement.columns:
        columns = _named_columns(statement, columns)
    made = View(
        id=str(uuid.uuid4()),
        database=database,
        name=name,
        columns=columns,
        query=to_sql(qualify(statement.query, context.scope(snapshot))),
        comment=statement.comment,
        created_ms=context.services.clock_ms(),
    )
    if existing is not None and (existing.query, existing.columns) == (made.query, made.columns):
        # The same view: what reads it needs not know, whoever makes its views anew every day.
        same = replace(existing, comment=made.comment)
        needed = [RevisionIs(existing.id, existing.revision)]
        commit(context, "CREATE VIEW", needed, [PutObject(same)])
        return Result()
    if existing is not None:
        refuse_dependents(snapshot, existing, "replace")
    _publish(made, existing, context, snapshot, reads=plan.tables)
    return Result()


def _named_columns(statement: nodes.CreateView, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    if len(statement.columns) != len(columns):
        raise BadArguments(
            f"The view lists {len(statement.columns)} columns, its SELECT has {len(columns)}.",
            position=statement.position,
        )
    named = []
    for definition, column in zip(statement.columns, columns, strict=True):
        if definition.name != column.name:
            raise BadArguments(
                f"The view's column {definition.name} is called {column.name} in its SELECT.",
                hint="Use AS to give it that name.",
                position=definition.position,
            )
        named.append(replace(column, comment=definition.comment))
    return tuple(named)
