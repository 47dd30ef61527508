"""The clauses of CREATE TABLE that a table model's config gives: storage, skip indexes, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from olapdb.errors import Error
from olapdb.sql.parser import parse_one
from olapdb.statements.ddl.engines import ENGINES

from .config_reader import ConfigReader, config_error, maybe
from .relation import quote, string_literal

_KEYWORDS: Mapping[str, str] = {
    "order_by": "ORDER BY",
    "partition_by": "PARTITION BY",
    "primary_key": "PRIMARY KEY",
    "ttl": "TTL",
}
"""The clauses of configs that are SQL."""
_INDEX_KEYS = ("name", "definition", "expression", "type", "granularity")


@dataclass(frozen=True)
class _Storage:
    """The storage of a table; expressions are SQL, "" if not set."""

    engine: str
    order_by: str
    partition_by: str
    primary_key: str
    ttl: str
    settings: Mapping[str, object]
    indexes: tuple[str, ...]
    projections: tuple[str, ...]


def storage_clause(config: Mapping[str, Any]) -> str:
    """Return the clauses of CREATE TABLE that follow the columns, from a model's config.

    The default is an unsorted MergeTree. Raises one CompilationError for all values of a wrong type,
    and for keys of an engine that has none."""
    storage = _storage_of(config)
    clauses = [f"ENGINE = {storage.engine}"]
    if not _is_merge_tree(storage.engine):
        return clauses[0]
    if storage.partition_by:
        clauses.append(f"PARTITION BY {storage.partition_by}")
    if storage.primary_key:
        clauses.append(f"PRIMARY KEY {storage.primary_key}")
    clauses.append(f"ORDER BY {storage.order_by or storage.primary_key or 'tuple()'}")
    if storage.ttl:
        clauses.append(f"TTL {storage.ttl}")
    if storage.settings:
        clauses.append(settings_clause(storage.settings))
    return " ".join(clauses)


def with_indexes(columns: str, config: Mapping[str, Any]) -> str:
    """Return the column list of CREATE TABLE with skip indexes and projections of a model's config
    added.

    `columns` is the list in parentheses, or "" where the query gives the columns."""
    storage = _storage_of(config)
    indexes = ", ".join((*storage.indexes, *storage.projections))
    if not indexes:
        return columns
    listed = columns.strip()
    if not listed:
        return f"({indexes})"
    return f"{listed.removesuffix(')').rstrip()}, {indexes})"


def query_settings(config: Mapping[str, Any]) -> str:
    """Return the SETTINGS clause of config query_settings, "" without any.

    It ends the statement that fills the table."""
    reader = ConfigReader(config)
    settings = reader.mapping("query_settings")
    if reader.problems:
        raise config_error(reader.problems)
    return settings_clause(settings)


def storage_mistakes(config: Mapping[str, Any]) -> list[str]:
    """Return the mistakes in the values of a table model's config."""
    reader = ConfigReader(config)
    _read(reader)
    reader.mapping("query_settings")
    return reader.problems


def _storage_of(config: Mapping[str, Any]) -> _Storage:
    """Return the storage of a config; raise one CompilationError for all its mistakes."""
    reader = ConfigReader(config)
    storage = _read(reader)
    if reader.problems:
        raise config_error(reader.problems)
    return storage


def _read(reader: ConfigReader) -> _Storage:
    """Return the storage of a config, and add its mistakes to the reader's."""
    engine = reader.value("engine") or "MergeTree"
    if not isinstance(engine, str):
        reader.refuse(f"engine is the name of a table engine, not {engine!r}.")
        engine = "MergeTree"
    storage = _Storage(
        engine=engine,
        order_by=reader.expression("order_by"),
        partition_by=reader.expression("partition_by"),
        primary_key=reader.expression("primary_key"),
        ttl=ttl_expression(reader),
        settings=table_settings(reader),
        indexes=_indexes(reader),
        projections=_projections(reader),
    )
    for name in _KEYWORDS:
        check_syntax(reader, name, getattr(storage, name))
    if is_misspelt(reader, engine):
        return storage
    if not _is_merge_tree(engine):
        for name in ("order_by", "partition_by", "primary_key", "ttl", "indexes", "projections"):
            if getattr(storage, name):
                reader.refuse(
                    f"{name} means nothing for the engine {engine}; remove it, or use a MergeTree."
                )
        if storage.settings:
            reader.refuse(f"The engine {engine} has no settings; remove them, or use a MergeTree.")
    return storage


def _is_merge_tree(engine: str) -> bool:
    """Return whether an engine is of the MergeTree family."""
    return engine.split("(")[0].strip().endswith("MergeTree")


def is_misspelt(reader: ConfigReader, engine: str) -> bool:
    """Return whether the name of the engine is a misspelt one; add the mistake if so."""
    name = engine.split("(")[0].strip()
    plain = name.removeprefix("Replicated").removeprefix("Shared")
    likely = "" if plain in ENGINES else maybe(name, ENGINES)
    if likely:
        reader.refuse(f"There is no engine {name}.{likely}")
    return bool(likely)


def check_syntax(reader: ConfigReader, name: str, text: str) -> None:
    """Add a mistake if the SQL of config `name` does not parse; names of columns are not looked up.

    `text` is the expression, "" if the config is not set."""
    if not text:
        return
    try:
        parse_one(f"CREATE TABLE t (x UInt8) ENGINE = MergeTree {_KEYWORDS[name]} {text}")
    except Error as error:
        reader.refuse(f"{name} is {text!r}, which is no SQL of that clause: {error.message}")


def ttl_expression(reader: ConfigReader) -> str:
    """Return the expressions of config ttl, "" for none; a list is joined by commas."""
    value = reader.value("ttl")
    if value is None or value == "" or value == []:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return ", ".join(value)
    reader.refuse(f"ttl is an expression or a list of expressions, not {value!r}.")
    return ""


def table_settings(reader: ConfigReader) -> dict[str, object]:
    """Return the settings of the table; `settings` is another spelling of `table_settings`."""
    ours, other = reader.mapping("table_settings"), reader.mapping("settings")
    for name in sorted(ours.keys() & other.keys()):
        if ours[name] != other[name]:
            reader.refuse(f"{name} has two values, in table_settings and in settings; give one.")
    return {**other, **ours}


def _indexes(reader: ConfigReader) -> tuple[str, ...]:
    """Return the INDEX clauses of config indexes.

    Each entry has `name`, and `definition` (as in dbt-clickhouse: `expression TYPE type …`) or
    `expression`, `type` and perhaps `granularity`."""
    value = reader.value("indexes")
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(e, Mapping) for e in value):
        reader.refuse(f"indexes is a list of {{name, definition}}, not {value!r}.")
        return ()
    return tuple(clause for entry in value if (clause := _index(reader, entry)))


def _index(reader: ConfigReader, entry: Mapping[str, object]) -> str:
    """Return the INDEX clause of an entry; "" and a mistake if it is incomplete."""
    unknown = [key for key in entry if key not in _INDEX_KEYS]
    name, definition = entry.get("name"), entry.get("definition")
    if definition is None and entry.get("expression") and entry.get("type"):
        definition = f"{entry['expression']} TYPE {entry['type']}"
        if entry.get("granularity"):
            definition += f" GRANULARITY {entry['granularity']}"
    if unknown or not isinstance(name, str) or not isinstance(definition, str):
        reader.refuse(
            f"An entry of indexes has name and definition, such as {{name: by_user, definition: "
            f"'user TYPE bloom_filter GRANULARITY 4'}}, not {dict(entry)!r}."
        )
        return ""
    return _parsed_element(reader, "indexes", name, f"INDEX {quote(name)} {definition}")


def _parsed_element(reader: ConfigReader, config: str, name: str, clause: str) -> str:
    """Return a clause of the column list; "" and a mistake if it does not parse."""
    try:
        parse_one(f"CREATE TABLE t (x UInt8, {clause}) ENGINE = MergeTree ORDER BY x")
    except Error as error:
        reader.refuse(f"The entry {name} of {config} does not parse: {error.message}")
        return ""
    return clause


def _projections(reader: ConfigReader) -> tuple[str, ...]:
    """Return the PROJECTION clauses of config projections: entries with `name` and `query`, a SELECT
    without FROM."""
    value = reader.value("projections")
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        reader.refuse(f"projections is a list of {{name, query}}, not {value!r}.")
        return ()
    clauses = []
    for entry in value:
        given = entry if isinstance(entry, Mapping) else {}
        name, query = given.get("name"), given.get("query")
        if (
            set(given) != {"name", "query"}
            or not isinstance(name, str)
            or not isinstance(query, str)
        ):
            reader.refuse(
                "An entry of projections has name and query, such as {name: by_user, query: "
                f"'SELECT * ORDER BY user'}}, not {entry!r}."
            )
            continue
        clause = f"PROJECTION {quote(name)} ({query.strip()})"
        clauses.append(_parsed_element(reader, "projections", name, clause))
    return tuple(clause for clause in clauses if clause)


def key_expression(value: object, name: str) -> str:
    """Return the config `name` as one SQL expression, "" if it is not set.

    `value` is an expression or a list of them."""
    reader = ConfigReader({name: value})
    expression = reader.expression(name)
    if reader.problems:
        raise config_error(reader.problems)
    return expression


def settings_clause(settings: object) -> str:
    """Return the clause `SETTINGS a = 1, b = 'x'`, or "" without settings.

    Raises CompilationError."""
    if not settings:
        return ""
    if not isinstance(settings, Mapping):
        raise CompilationError(f"table_settings is a mapping of names to values, not {settings!r}.")
    return "SETTINGS " + ", ".join(f"{n} = {setting_value(v)}" for n, v in settings.items())


def setting_value(value: object) -> str:
    """Return a setting's value as SQL: a bool as 0 or 1, a number bare, any other as a string."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else string_literal(str(value))
