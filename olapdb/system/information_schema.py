"""information_schema: the SQL standard's names for what the system tables have, as ClickHouse
answers them to BI tools. Each column has its name in lower and in upper case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from olapdb.system.registry import Row, SystemContext, SystemTable, tables
from olapdb.types import DATETIME, INT32, INT64, STRING, UINT32, UINT64, DataType, Nullable

DATABASE = "information_schema"
_COLLATION = "utf8mb4_0900_ai_ci"
_TEXT, _COUNT = Nullable(STRING), Nullable(UINT64)
_TIME, _NUMBER = Nullable(DATETIME), Nullable(INT64)

Entry = Mapping[str, object]
Fields = tuple[tuple[str, DataType], ...]


def information_tables() -> Mapping[str, SystemTable]:
    """By name in lower case, without the database."""
    return {
        name: SystemTable(
            name, (*fields, *((n.upper(), t) for n, t in fields)), partial(_twice, fields, entries)
        )
        for name, (fields, entries) in _DEFINITIONS.items()
    }


def _twice(
    fields: Fields, entries: Callable[[SystemContext], Iterator[Entry]], context: SystemContext
) -> Iterator[Row]:
    """Rows of the named values, NULL for those without, once for each spelling of the names."""
    for entry in entries(context):
        row = tuple(entry.get(name) for name, _ in fields)
        yield (*row, *row)


def _system(name: str, context: SystemContext) -> Iterator[dict[str, object]]:
    table = tables()[name]
    names = [field for field, _ in table.fields]
    return (dict(zip(names, row, strict=True)) for row in table.rows(context))


def _schemata(context: SystemContext) -> Iterator[Entry]:
    for one in _system("databases", context):
        yield {
            "catalog_name": one["name"],
            "schema_name": one["name"],
            "schema_owner": "default",
            "default_collation_name": _COLLATION,
            "default_encryption": "NO",
        }


def _table_type(engine: str, has_own_data: object) -> str:
    if engine.endswith("View"):
        return "VIEW"
    if engine.startswith("System"):
        return "SYSTEM VIEW"
    return "BASE TABLE" if has_own_data else "FOREIGN TABLE"


def _tables(context: SystemContext) -> Iterator[Entry]:
    for one in _system("tables", context):
        engine = str(one["engine"])
        kind = _table_type(engine, one["has_own_data"])
        yield {
            "table_catalog": one["database"],
            "table_schema": one["database"],
            "table_name": one["name"],
            "table_type": kind,
            "table_rows": one["total_rows"],
            "data_length": one["total_bytes"],
            "index_length": 0,
            "table_collation": _COLLATION,
            "table_comment": one["comment"],
            "engine": None if kind.endswith("VIEW") else engine,
        }


def _views(context: SystemContext) -> Iterator[Entry]:
    for one in _system("tables", context):
        if not str(one["engine"]).endswith("View"):
            continue
        yield {
            "table_catalog": one["database"],
            "table_schema": one["database"],
            "table_name": one["name"],
            "view_definition": one["as_select"],
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "YES" if _inner_view(one) else "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def _inner_view(one: Entry) -> bool:
    """A view with a table of its own takes INSERTs into it."""
    return one["engine"] == "MaterializedView" and one["total_rows"] is not None


_EXTRA = {
    "DEFAULT": "DEFAULT_GENERATED",
    "MATERIALIZED": "STORED GENERATED",
    "ALIAS": "VIRTUAL GENERATED",
}


def _columns(context: SystemContext) -> Iterator[Entry]:
    for one in _system("columns", context):
        kind = str(one["default_kind"])
        yield {
            "table_catalog": one["database"],
            "table_schema": one["database"],
            "table_name": one["table"],
            "column_name": one["name"],
            "ordinal_position": one["position"],
            "column_default": one["default_expression"],
            "is_nullable": str(int(str(one["type"]).startswith(_NULLABLE))),
            "data_type": one["type"],
            "character_octet_length": one["character_octet_length"],
            "numeric_precision": one["numeric_precision"],
            "numeric_precision_radix": one["numeric_precision_radix"],
            "numeric_scale": one["numeric_scale"],
            "datetime_precision": one["datetime_precision"],
            "extra": _EXTRA.get(kind, ""),
            "column_comment": one["comment"],
            "column_type": one["type"],
            "column_key": "PRI" if one["is_in_primary_key"] else "",
            "privileges": "",
            "generation_expression": one["default_expression"]
            if kind in ("MATERIALIZED", "ALIAS")
            else "",
        }


_NULLABLE = ("Nullable(", "LowCardinality(Nullable(")


def _key_column_usage(context: SystemContext) -> Iterator[Entry]:
    for one in _system("columns", context):
        if one["is_in_primary_key"]:
            yield {
                "constraint_catalog": "def",
                "constraint_schema": one["database"],
                "constraint_name": "PRIMARY",
                "table_catalog": "def",
                "table_schema": one["database"],
                "table_name": one["table"],
                "column_name": one["name"],
                "ordinal_position": 1,
            }


def _engines(context: SystemContext) -> Iterator[Entry]:
    for one in _system("table_engines", context):
        default = one["name"] == "MergeTree"
        yield {"engine": one["name"], "support": "DEFAULT" if default else "YES"}


def _none(context: SystemContext) -> Iterator[Entry]:
    """No foreign keys, and no indexes as the standard has them."""
    return iter(())


_Definition = tuple[Fields, Callable[[SystemContext], Iterator[Entry]]]
_DEFINITIONS: Mapping[str, _Definition] = {
    "schemata": (
        (
            ("catalog_name", STRING),
            ("schema_name", STRING),
            ("schema_owner", STRING),
            ("default_character_set_catalog", _TEXT),
            ("default_character_set_schema", _TEXT),
            ("default_character_set_name", _TEXT),
            ("sql_path", _TEXT),
            ("default_collation_name", STRING),
            ("default_encryption", STRING),
        ),
        _schemata,
    ),
    "tables": (
        (
            ("table_catalog", STRING),
            ("table_schema", STRING),
            ("table_name", STRING),
            ("table_type", STRING),
            ("table_rows", _COUNT),
            ("data_length", _COUNT),
            ("index_length", _COUNT),
            ("table_collation", _TEXT),
            ("table_comment", _TEXT),
            ("engine", _TEXT),
            ("version", _COUNT),
            ("row_format", _TEXT),
            ("avg_row_length", _COUNT),
            ("max_data_length", _COUNT),
            ("data_free", _COUNT),
            ("auto_increment", _COUNT),
            ("create_time", _TIME),
            ("update_time", _TIME),
            ("check_time", _TIME),
            ("checksum", _NUMBER),
            ("create_options", _TEXT),
        ),
        _tables,
    ),
    "columns": (
        (
            ("table_catalog", STRING),
            ("table_schema", STRING),
            ("table_name", STRING),
            ("column_name", STRING),
            ("ordinal_position", UINT64),
            ("column_default", STRING),
            ("is_nullable", STRING),
            ("data_type", STRING),
            ("character_maximum_length", _COUNT),
            ("character_octet_length", _COUNT),
            ("numeric_precision", _COUNT),
            ("numeric_precision_radix", _COUNT),
            ("numeric_scale", _COUNT),
            ("datetime_precision", _COUNT),
            ("character_set_catalog", _TEXT),
            ("character_set_schema", _TEXT),
            ("character_set_name", _TEXT),
            ("collation_catalog", _TEXT),
            ("collation_schema", _TEXT),
            ("collation_name", _TEXT),
            ("domain_catalog", _TEXT),
            ("domain_schema", _TEXT),
            ("domain_name", _TEXT),
            ("extra", _TEXT),
            ("column_comment", STRING),
            ("column_type", STRING),
            ("column_key", STRING),
            ("privileges", STRING),
            ("generation_expression", STRING),
            ("srs_id", Nullable(UINT32)),
        ),
        _columns,
    ),
    "views": (
        (
            ("table_catalog", STRING),
            ("table_schema", STRING),
            ("table_name", STRING),
            ("view_definition", STRING),
            ("check_option", STRING),
            ("is_updatable", STRING),
            ("is_insertable_into", STRING),
            ("is_trigger_updatable", STRING),
            ("is_trigger_deletable", STRING),
            ("is_trigger_insertable_into", STRING),
        ),
        _views,
    ),
    "key_column_usage": (
        (
            ("constraint_catalog", STRING),
            ("constraint_schema", STRING),
            ("constraint_name", _TEXT),
            ("table_catalog", STRING),
            ("table_schema", STRING),
            ("table_name", STRING),
            ("column_name", _TEXT),
            ("ordinal_position", UINT32),
            ("position_in_unique_constraint", Nullable(UINT32)),
            ("referenced_table_schema", _TEXT),
            ("referenced_table_name", _TEXT),
            ("referenced_column_name", _TEXT),
        ),
        _key_column_usage,
    ),
    "referential_constraints": (
        (
            ("constraint_catalog", STRING),
            ("constraint_schema", STRING),
            ("constraint_name", _TEXT),
            ("unique_constraint_catalog", STRING),
            ("unique_constraint_schema", STRING),
            ("unique_constraint_name", _TEXT),
            ("match_option", STRING),
            ("update_rule", STRING),
            ("delete_rule", STRING),
            ("table_name", STRING),
            ("referenced_table_name", STRING),
        ),
        _none,
    ),
    "statistics": (
        (
            ("table_catalog", STRING),
            ("table_schema", STRING),
            ("table_name", STRING),
            ("non_unique", INT32),
            ("index_schema", STRING),
            ("index_name", _TEXT),
            ("seq_in_index", UINT32),
            ("column_name", _TEXT),
            ("collation", _TEXT),
            ("cardinality", _NUMBER),
            ("sub_part", _NUMBER),
            ("packed", _TEXT),
            ("nullable", STRING),
            ("index_type", STRING),
            ("comment", STRING),
            ("index_comment", STRING),
            ("is_visible", STRING),
            ("expression", _TEXT),
        ),
        _none,
    ),
    "engines": ((("engine", STRING), ("support", STRING)), _engines),
}
