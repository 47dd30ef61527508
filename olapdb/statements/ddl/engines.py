"""Table engines in CREATE TABLE: the ENGINE clause, its arguments, and checks of the columns.

ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY key
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from olapdb import errors, types
from olapdb.config import MEMORY_SETTINGS, is_deduplication
from olapdb.lazy import lazy_modules
from olapdb.model.schema import ENGINE_ROLES, Column, Engine, KeyItem, Table
from olapdb.sql import nodes
from olapdb.statements.ddl.column_checks import column_names_in

if TYPE_CHECKING:
    from olapdb.formats import registry
else:
    (registry,) = lazy_modules("olapdb.formats", "registry")

LOG_ENGINES = ("Memory", "Log", "TinyLog", "StripeLog", "Set", "Join", "File")
"""Names of one storage, which keeps rows in the order of insertion; `x IN t` reads a Set.
A Join says which joins may read it: see `olapdb.bind.join_tables`."""
ENGINES = (
    "MergeTree",
    "SummingMergeTree",
    "AggregatingMergeTree",
    "ReplacingMergeTree",
    "CoalescingMergeTree",
    "CollapsingMergeTree",
    "VersionedCollapsingMergeTree",
    *LOG_ENGINES,
    "Null",
)
_EXTERNAL = (
    "Distributed",
    "Kafka",
    "RabbitMQ",
    "NATS",
    "S3",
    "S3Queue",
    "URL",
    "MySQL",
    "PostgreSQL",
    "MaterializedPostgreSQL",
    "SQLite",
    "MongoDB",
    "Redis",
    "ODBC",
    "JDBC",
    "HDFS",
    "Hive",
    "AzureBlobStorage",
    "AzureQueue",
    "Iceberg",
    "IcebergS3",
    "IcebergLocal",
    "DeltaLake",
    "Hudi",
    "YTsaurus",
    "ArrowFlight",
    "Executable",
    "ExecutablePool",
    "EmbeddedRocksDB",
    "KeeperMap",
    "FileLog",
    "TimeSeries",
    "FuzzJSON",
    "FuzzQuery",
    "ExternalDistributed",
)
"""ClickHouse's engines over other systems, and others that are not here."""

_INSTEAD: Mapping[str, str] = {
    "Distributed": "What outgrows one machine runs on Spark: SETTINGS engine = 'spark'."
}
"""What to use for an engine that is not supported."""
_USES: Mapping[str, str] = {
    "ReplacingMergeTree": "ReplacingMergeTree([version[, is_deleted]])",
    "CollapsingMergeTree": "CollapsingMergeTree(sign)",
    "VersionedCollapsingMergeTree": "VersionedCollapsingMergeTree(sign, version)",
    "SummingMergeTree": "SummingMergeTree([column | (column, …)])",
    "CoalescingMergeTree": "CoalescingMergeTree([column | (column, …)])",
}
_OF_COLUMNS = ("SummingMergeTree", "CoalescingMergeTree")
"""Engines whose argument is a column, or several in parentheses."""
_VERSION_TYPES = (
    types.Integer,
    types.Float,
    types.Boolean,
    types.Date,
    types.Date32,
    types.DateTime,
    types.DateTime64,
    types.Time,
    types.Time64,
    types.WideNumber,
)


def engine_of(
    storage: nodes.StorageClause, like: Table | None, default: str = "MergeTree"
) -> Engine:
    """Return the engine that the clause names; without a clause that of `like`, else the default.

    Raises EngineRequired for the default "None". Also raises UnknownStorage, NotSupportedError for
    other engines of ClickHouse, NumberOfArgumentsDoesntMatch, and BadArguments for clauses that the
    engine does not take."""
    clause = storage.engine
    if clause is None:
        if like is None and default == "None":
            raise errors.EngineRequired(
                "Table engine is not specified in CREATE query.",
                hint="Say ENGINE = …, or SET default_table_engine = 'MergeTree'.",
            )
        engine = like.engine if like is not None else Engine(default)
    else:
        name = _supported_name(clause)
        engine = Engine(name, _arguments(name, clause))
    if not engine.is_merge_tree:
        refuse_clauses(engine.name, storage)
    elif clause is not None and engine.arguments and not _has_key(storage):
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{engine} needs ORDER BY: it tells which rows it joins.",
            hint=f"Say ENGINE = {engine} ORDER BY (…); ORDER BY tuple() joins all rows to one.",
            position=clause.position,
        )
    return engine


def with_version(engine: Engine, sorting: tuple[KeyItem, ...]) -> tuple[KeyItem, ...]:
    """Return the sorting key of the table. VersionedCollapsingMergeTree appends its version column
    if it is not in the key."""
    version = engine.version if engine.sign is not None else None
    if version is None or any(item.expression.strip("`") == version for item in sorting):
        return sorting
    return (*sorting, KeyItem(types.quote_identifier(version)))


def check_engine(table: Table) -> None:
    """Raise NoSuchColumn, BadTypeOfField or BadArguments if the engine's columns do not exist or
    have the wrong type."""
    if table.engine.name == "SummingMergeTree":
        _check_summing(table)
    elif table.engine.name == "CoalescingMergeTree":
        _check_coalescing(table)
    elif table.engine.name == "AggregatingMergeTree":
        _check_aggregating(table)
    elif table.engine.name == "Join":
        _check_join(table)
    elif table.engine.name in ENGINE_ROLES:
        _check_role_columns(table)


# --- the clause


def _supported_name(clause: nodes.EngineClause) -> str:
    """Return the engine's name without Replicated. Raise NotSupportedError, NoElementsInConfig
    or UnknownStorage."""
    name = clause.name
    if name.startswith("Replicated") and name.endswith("MergeTree"):
        name = name.removeprefix("Replicated")
    if name in ENGINES:
        return name
    hint = f"There are {', '.join(ENGINES)}."
    if name == "GraphiteMergeTree":
        raise errors.NoElementsInConfig(
            "GraphiteMergeTree takes its rules from the configuration of a server, and there is none.",
            hint="Aggregate by a view into an AggregatingMergeTree, or by TTL … GROUP BY.",
            position=clause.position,
        )
    if name in _EXTERNAL:
        hint = _INSTEAD.get(name, hint)
        kind = errors.ClusterDoesntExist if name == "Distributed" else errors.NotSupportedError
        raise kind(f"Engine {clause.name} is not supported.", hint=hint, position=clause.position)
    if name in ("View", "MaterializedView"):
        raise errors.IncorrectQuery(
            f"Tables of ENGINE {name} are not created directly.",
            hint="Use CREATE VIEW or CREATE MATERIALIZED VIEW.",
            position=clause.position,
        )
    raise errors.UnknownStorage(
        f"Unknown table engine {clause.name}.", hint=hint, position=clause.position
    )


def _arguments(name: str, clause: nodes.EngineClause) -> tuple[str, ...]:
    """Return the column names between the parentheses. Raise NumberOfArgumentsDoesntMatch,
    BadArguments for other expressions."""
    if name == "Join":
        return _join_arguments(clause)
    if name == "File":
        return _file_arguments(clause)
    arguments = list(clause.arguments)
    if clause.name != name:  # ReplicatedX('/path', 'replica', …): these two are ignored
        while arguments and isinstance(arguments[0], nodes.Literal):
            arguments.pop(0)
    if name == "MergeTree" and len(arguments) > 2:
        raise errors.BadArguments(
            "MergeTree takes no arguments.",
            hint="Say ENGINE = MergeTree PARTITION BY … ORDER BY ….",
            position=clause.position,
        )
    required, allowed = _argument_counts(name)
    if not required <= len(arguments) <= allowed:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"Engine {name} has {len(arguments)} arguments.",
            hint=f"Say {_USES[name]}." if name in _USES else f"{name} takes none.",
            position=clause.position,
        )
    if name in _OF_COLUMNS and arguments and isinstance(arguments[0], nodes.TupleLiteral):
        arguments = list(arguments[0].elements)
    for argument in arguments:
        if not isinstance(argument, nodes.Identifier) or len(argument.parts) != 1:
            raise errors.BadArguments(
                f"Engine {name} takes names of columns.",
                hint=f"Say {_USES[name]}.",
                position=clause.position,
            )
    return tuple(
        identifier.parts[0] for identifier in arguments if isinstance(identifier, nodes.Identifier)
    )


def _file_arguments(clause: nodes.EngineClause) -> tuple[str, ...]:
    """Return the format of File(format), whose rows are stored as those of a Log.

    Raises NumberOfArgumentsDoesntMatch, UnknownFormat, NotSupportedError for a path, and BadArguments
    unless the format is a name or a text."""
    if not clause.arguments:
        raise errors.NumberOfArgumentsDoesntMatch(
            "Storage File requires from 1 to 3 arguments: name of used format, source, compression.",
            position=clause.position,
        )
    if len(clause.arguments) > 1:
        raise errors.NotSupportedError(
            "Engine File over a file of its own is not supported.",
            hint="CREATE VIEW v AS SELECT * FROM file('path', …) reads it, and INSERT INTO FUNCTION"
            " file('path', …) writes it. Without a path a File table keeps its rows as Log does.",
            position=clause.position,
        )
    match clause.arguments[0]:
        case nodes.Identifier(parts=(name,)) | nodes.Literal(value=str() as name):
            return (registry.find_format(name).name,)
        case _:
            raise errors.BadArguments(
                "The first argument of File is a format.", position=clause.position
            )


def _join_arguments(clause: nodes.EngineClause) -> tuple[str, ...]:
    """Return strictness, kind and key columns of Join(…), the first two in capitals.

    Raises NumberOfArgumentsDoesntMatch, NotSupportedError for ANY FULL, and BadArguments for other words and for SEMI
    or ANTI without a side."""
    uses = "Join(ANY|ALL|SEMI|ANTI, LEFT|INNER|RIGHT|FULL, keys…)"
    if len(clause.arguments) < 3:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"Storage Join requires at least 3 parameters: {uses}.", position=clause.position
        )
    names = [
        argument.parts[0]
        if isinstance(argument, nodes.Identifier) and not argument.parts[1:]
        else ""
        for argument in clause.arguments
    ]
    strictness, kind = names[0].upper(), names[1].upper()
    allowed = (("ANY", "ALL", "SEMI", "ANTI"), ("LEFT", "INNER", "RIGHT", "FULL"))
    for at, (word, words) in enumerate(zip((strictness, kind), allowed, strict=True)):
        if word not in words:
            raise errors.BadArguments(
                f"Parameter {at + 1} of storage Join must be {' or '.join(words)} (without quotes).",
                hint=f"Say {uses}.",
                position=clause.position,
            )
    if "" in names:
        raise errors.BadArguments(
            f"Parameter {names.index('') + 1} of storage Join don't look like column name.",
            hint=f"Say {uses}.",
            position=clause.position,
        )
    if strictness in ("SEMI", "ANTI") and kind not in ("LEFT", "RIGHT"):
        raise errors.BadArguments(
            "SEMI|ANTI JOIN should be LEFT or RIGHT.",
            hint=f"Say Join({strictness}, LEFT, keys…).",
            position=clause.position,
        )
    if kind == "FULL" and strictness != "ALL":
        raise errors.NotSupportedError(
            f"{strictness} FULL JOINs are not implemented.", position=clause.position
        )
    return (strictness, kind, *names[2:])


def _argument_counts(name: str) -> tuple[int, int]:
    """Return the smallest and the largest number of arguments that the engine `name` takes."""
    if name in _OF_COLUMNS:
        return 0, 1
    argument_count = len(ENGINE_ROLES.get(name, ()))
    return (0 if name == "ReplacingMergeTree" else argument_count), argument_count


def _has_key(storage: nodes.StorageClause) -> bool:
    """Return whether the clauses include ORDER BY or PRIMARY KEY."""
    return storage.order_by is not None or storage.primary_key is not None


def refuse_clauses(engine: str, storage: nodes.StorageClause) -> None:
    """Raise BadArguments for clauses that an engine outside the MergeTree family does not take."""
    if engine == "Memory":
        _check_memory_settings(storage)
    for clause, is_given in (
        ("ORDER BY", storage.order_by is not None),
        ("PRIMARY KEY", storage.primary_key is not None),
        ("PARTITION BY", storage.partition_by is not None),
        ("SAMPLE BY", storage.sample_by is not None),
        ("TTL", bool(storage.ttl)),
        ("SETTINGS", bool(storage.settings) and not _has_neutral_settings(engine, storage)),
    ):
        if is_given:
            position = storage.engine.position if storage.engine is not None else None
            raise errors.BadArguments(
                f"Engine {engine} has no {clause}.",
                hint="Leave the clause out, or use MergeTree.",
                position=position,
            )


def _check_memory_settings(storage: nodes.StorageClause) -> None:
    """Raise UnknownSetting for a setting that Memory does not have, SettingConstraintViolation for a minimum
    above its maximum."""
    values = {setting.name: setting.value for setting in storage.settings}
    for setting in storage.settings:
        if setting.name not in MEMORY_SETTINGS:
            raise errors.UnknownSetting(
                f"Unknown setting '{setting.name}': for storage Memory.",
                hint=f"There are {', '.join(MEMORY_SETTINGS)}.",
                position=setting.position,
            )
    check_memory_limits(values)


def check_memory_limits(values: Mapping[str, object]) -> None:
    """Raise SettingConstraintViolation for a minimum of rows or bytes to keep that is above its maximum, or
    stands without one."""
    for what in ("rows", "bytes"):
        least, most = (values.get(f"{end}_{what}_to_keep") or 0 for end in ("min", "max"))
        if isinstance(least, int) and isinstance(most, int) and least > most >= 0:
            raise errors.SettingConstraintViolation(
                f"Setting min_{what}_to_keep = {least} is above max_{what}_to_keep = {most}."
            )


def _has_neutral_settings(engine: str, storage: nodes.StorageClause) -> bool:
    """Return whether the settings may stand beside the engine: those of a Null table are about
    deduplication only (it stores nothing, but drops redelivered rows before its views read them),
    those of a Set, a Join or a Memory table say what holds anyway."""
    if engine == "Memory":
        return True
    if engine in ("Set", "Join"):
        return all(_AS_IT_IS.get(s.name, None) == s.value for s in storage.settings)
    return engine == "Null" and all(is_deduplication(setting.name) for setting in storage.settings)


_AS_IT_IS: Mapping[str, object] = {
    "persistent": 1,
    "join_use_nulls": 0,
    "join_any_take_last_row": 0,
}
"""The settings of Set and Join tables, and the one value that each may have."""


# --- columns


def _check_role_columns(table: Table) -> None:
    """Check that the columns named as version, sign and is_deleted exist, differ and have the right
    types."""
    engine = table.engine
    titles = {"version": "Version", "sign": "Sign", "is_deleted": "is_deleted"}
    roles = list(zip(ENGINE_ROLES[engine.name], engine.arguments, strict=False))
    for role, name in roles:
        column = _stored_column(table, name)
        if column is None:
            raise errors.NoSuchColumn(
                f"{titles[role]} column {name} of {engine} is no stored column of the table.",
                hint=f"The table has {', '.join(stored_column.name for stored_column in table.stored_columns)}.",
            )
    if len(set(engine.arguments)) < len(engine.arguments):
        (first_role, _), (second_role, name) = roles
        raise errors.BadArguments(
            f"{name} cannot be both the {first_role} and the {second_role} of {engine.name}."
        )
    for role, name in roles:
        column = _stored_column(table, name)
        assert column is not None
        _check_role_type(engine, role, column.name, column.type)


def _check_role_type(engine: Engine, role: str, name: str, data_type: types.DataType) -> None:
    """Raise BadTypeOfField if the type does not fit the role "version", "sign" or "is_deleted"."""
    if role == "sign":
        fits, required_type = data_type == types.INT8, "Int8"
    elif role == "is_deleted":
        fits, required_type = (
            data_type == types.UINT8 or isinstance(data_type, types.Boolean),
            "UInt8",
        )
    else:
        fits = isinstance(data_type, _VERSION_TYPES)
        required_type = "an integer, a Date, DateTime or DateTime64, not Nullable"
    if not fits:
        raise errors.BadTypeOfField(
            f"The {role} column {name} of {engine.name} is of type {data_type}.",
            hint=f"Make it {required_type}.",
        )


def _stored_column(table: Table, name: str) -> Column | None:
    """Return the column if it exists and is stored, else None."""
    column = table.column(name)
    return column if column is not None and column.stored else None


def _check_join(table: Table) -> None:
    """Raise NoSuchColumn for a key of a Join table that is no stored column."""
    for name in table.engine.arguments[2:]:
        if _stored_column(table, name) is None:
            raise errors.NoSuchColumn(
                f"Key column ({name}) does not exist in table declaration.",
                hint=f"Stored columns are {', '.join(c.name for c in table.columns if c.stored)}.",
            )


def _check_summing(table: Table) -> None:
    """Raise NoSuchColumn or BadArguments for an argument of SummingMergeTree that cannot be
    summed."""
    sorting, partition = _columns_of_keys(table)
    for name in table.engine.arguments:
        column = _stored_column(table, name)
        if column is None and _is_nested(table, name):
            continue  # a nested map, which is summed whether it is named or not
        if column is None:
            raise errors.NoSuchColumn(f"SummingMergeTree sums {name}, which is no stored column.")
        if name in sorting:
            raise errors.BadArguments(f"{name} is both a column to sum and in the sorting key.")
        if name in partition:
            raise errors.BadArguments(f"{name} is both a column to sum and in the partition key.")
        if not isinstance(
            types.plain(column.type),
            types.Integer | types.Float | types.Decimal | types.AggregateFunction,
        ):
            raise errors.BadArguments(
                f"SummingMergeTree cannot sum {name} of type {column.type}.",
                hint="Leave it out: of other columns the first value is kept.",
            )


def _check_coalescing(table: Table) -> None:
    """Raise NoSuchColumn or BadArguments for an argument of CoalescingMergeTree that is no stored
    column, or is in a key."""
    sorting, partition = _columns_of_keys(table)
    for name in table.engine.arguments:
        if _stored_column(table, name) is None:
            raise errors.NoSuchColumn(
                f"CoalescingMergeTree keeps the last value of {name}, which is no stored column."
            )
        if name in sorting | partition:
            key = "sorting" if name in sorting else "partition"
            raise errors.BadArguments(f"{name} is both a column to coalesce and in the {key} key.")


def _columns_of_keys(table: Table) -> tuple[set[str], set[str]]:
    """Return the columns that the expressions of the sorting key name, and those of the partition key."""
    sorting: set[str] = set()
    for item in table.sorting_key:
        sorting |= column_names_in(item.expression, table)
    partition = column_names_in(table.partition_key, table) if table.partition_key else set()
    return sorting, partition


def _is_nested(table: Table, name: str) -> bool:
    """Return whether the name is that of a nested structure."""
    return any(column.name.startswith(f"{name}.") for column in table.stored_columns)


def _check_aggregating(table: Table) -> None:
    """Raise BadArguments for an AggregatingMergeTree with aggregates where another column is in no
    key: a merge would keep an arbitrary value of it."""
    keys = [item.expression for item in table.sorting_key]
    measures = _aggregate_columns(table.columns)
    key_text = " ".join((*keys, table.partition_key))
    unassigned = [
        column.name
        for column in table.stored_columns
        if column not in measures and column.name not in keys and column.name not in key_text
    ]
    if measures and unassigned:
        raise errors.BadArguments(
            f"Columns {', '.join(unassigned)} of the AggregatingMergeTree table are neither part of "
            "the sorting key nor aggregates, so a merge would keep an arbitrary value of them.",
            hint="Add them to ORDER BY, or make them SimpleAggregateFunction(any, T).",
        )


def _aggregate_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns with aggregate states."""
    return [
        column
        for column in columns
        if isinstance(column.type, types.AggregateFunction | types.SimpleAggregateFunction)
    ]
