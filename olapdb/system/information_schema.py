"""information_schema: the content of system tables under the SQL standard's names, for BI tools.

Each column has its name in lower and in upper case, as in ClickHouse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from olapdb.system.registry import Row, SystemContext, SystemTable

DATABASE = "information_schema"
_COLLATION = "utf8mb4_0900_ai_ci"

Entry: TypeAlias = Mapping[str, object]


@cache
def information_tables() -> Mapping[str, SystemTable]:
    """Return the tables by name in lower case, without the database."""
    return {table.name: _in_both_cases(table) for table in _TABLES}


def _in_both_cases(table: SystemTable) -> SystemTable:
    """Return the table with each column twice, its name in lower and in upper case."""
    upper = ", ".join(f"{name.upper()} {data_type.name}" for name, data_type in table.fields)

    def rows(context: SystemContext) -> Iterator[Row]:
        """Yield each row with its values twice, for the columns in lower and in upper case."""
        return ((*row, *row) for row in table.row_tuples(context))

    return SystemTable(table.name, f"{table.columns}, {upper}", rows)


def _system(
    name: str, context: SystemContext, reads: Mapping[str, str], *also: str
) -> Iterator[Entry]:
    """Return the rows of a system table as mappings by its column names. `reads` maps columns of information_schema to
    the system table's columns that they show: only those that the query reads are sure to have a value, and its
    conditions on them may leave out rows. `also` are columns of the system table that are needed anyway."""
    table = context.tables[name]
    needed = {own for shown, own in reads.items() if context.needs(shown, shown.upper())}
    values = {
        own: context.values[spelling]
        for shown, own in reads.items()
        for spelling in (shown, shown.upper())
        if spelling in context.values
    }
    narrow = replace(context, columns=frozenset({*needed, *also}), values=values)
    names = [field for field, _ in table.fields]
    return (dict(zip(names, row, strict=True)) for row in table.row_tuples(narrow))


def _schemata(context: SystemContext) -> Iterator[Entry]:
    """List the databases."""
    for database in _system("databases", context, {"schema_name": "name"}):
        yield {
            "catalog_name": database["name"],
            "schema_name": database["name"],
            "schema_owner": "default",
            "default_collation_name": _COLLATION,
            "default_encryption": "NO",
        }


def _table_type(engine: str, has_own_data: object) -> str:
    """Return "VIEW", "SYSTEM VIEW", "BASE TABLE", or "FOREIGN TABLE" for other tables without data
    of their own."""
    if engine.endswith("View"):
        return "VIEW"
    if engine.startswith("System"):
        return "SYSTEM VIEW"
    return "BASE TABLE" if has_own_data else "FOREIGN TABLE"


_OF_TABLES = {
    "table_schema": "database",
    "table_name": "name",
    "table_rows": "total_rows",
    "data_length": "total_bytes",
    "table_comment": "comment",
    "view_definition": "as_select",
    "is_insertable_into": "total_rows",
}
_OF_COLUMNS = {"table_schema": "database", "table_name": "table", "column_name": "name"}


def _tables(context: SystemContext) -> Iterator[Entry]:
    """List tables and views."""
    for table in _system("tables", context, _OF_TABLES, "engine", "has_own_data", "is_temporary"):
        engine = str(table["engine"])
        kind = _table_type(engine, table["has_own_data"])
        if table["is_temporary"]:
            kind = "LOCAL TEMPORARY"
        yield {
            "table_catalog": table["database"],
            "table_schema": table["database"],
            "table_name": table["name"],
            "table_type": kind,
            "table_rows": table["total_rows"],
            "data_length": table["total_bytes"],
            "index_length": 0,
            "table_collation": _COLLATION,
            "table_comment": table["comment"],
            "engine": None if kind.endswith("VIEW") else engine,
        }


def _views(context: SystemContext) -> Iterator[Entry]:
    """List views and materialized views with their SELECT."""
    for table in _system("tables", context, _OF_TABLES, "engine"):
        if not str(table["engine"]).endswith("View"):
            continue
        yield {
            "table_catalog": table["database"],
            "table_schema": table["database"],
            "table_name": table["name"],
            "view_definition": table["as_select"],
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "YES" if _inner_view(table) else "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def _inner_view(table: Entry) -> bool:
    """Return whether the row of system.tables is a materialized view that owns its target table."""
    return table["engine"] == "MaterializedView" and table["total_rows"] is not None


_EXTRA = {
    "DEFAULT": "DEFAULT_GENERATED",
    "MATERIALIZED": "STORED GENERATED",
    "ALIAS": "VIRTUAL GENERATED",
}


def _columns(context: SystemContext) -> Iterator[Entry]:
    """List the columns of tables and views."""
    for column in _system("columns", context, _OF_COLUMNS):
        kind = str(column["default_kind"])
        yield {
            "table_catalog": column["database"],
            "table_schema": column["database"],
            "table_name": column["table"],
            "column_name": column["name"],
            "ordinal_position": column["position"],
            "column_default": column["default_expression"],
            "is_nullable": str(int(str(column["type"]).startswith(_NULLABLE))),
            "data_type": column["type"],
            "character_octet_length": column["character_octet_length"],
            "numeric_precision": column["numeric_precision"],
            "numeric_precision_radix": column["numeric_precision_radix"],
            "numeric_scale": column["numeric_scale"],
            "datetime_precision": column["datetime_precision"],
            "extra": _EXTRA.get(kind, ""),
            "column_comment": column["comment"],
            "column_type": column["type"],
            "column_key": "PRI" if column["is_in_primary_key"] else "",
            "privileges": "",
            "generation_expression": column["default_expression"]
            if kind in ("MATERIALIZED", "ALIAS")
            else "",
        }


_NULLABLE = ("Nullable(", "LowCardinality(Nullable(")


def _key_column_usage(context: SystemContext) -> Iterator[Entry]:
    """List the columns of primary keys; `ordinal_position` is always 1."""
    for column in _system("columns", context, _OF_COLUMNS):
        if column["is_in_primary_key"]:
            yield {
                "constraint_catalog": "def",
                "constraint_schema": column["database"],
                "constraint_name": "PRIMARY",
                "table_catalog": "def",
                "table_schema": column["database"],
                "table_name": column["table"],
                "column_name": column["name"],
                "ordinal_position": 1,
            }


def _engines(context: SystemContext) -> Iterator[Entry]:
    """List the table engines; MergeTree is the default."""
    for engine in _system("table_engines", context, {}):
        is_default = engine["name"] == "MergeTree"
        yield {"engine": engine["name"], "support": "DEFAULT" if is_default else "YES"}


def _none(context: SystemContext) -> Iterator[Entry]:
    """Yield nothing, as there are no foreign keys and no indexes in the sense of the standard."""
    return iter(())


_TABLES = (
    SystemTable(
        "schemata",
        """catalog_name String, schema_name String, schema_owner String,
        default_character_set_catalog Nullable(String),
        default_character_set_schema Nullable(String),
        default_character_set_name Nullable(String), sql_path Nullable(String),
        default_collation_name String, default_encryption String""",
        _schemata,
    ),
    SystemTable(
        "tables",
        """table_catalog String, table_schema String, table_name String, table_type String,
        table_rows Nullable(UInt64), data_length Nullable(UInt64),
        index_length Nullable(UInt64), table_collation Nullable(String),
        table_comment Nullable(String), engine Nullable(String), version Nullable(UInt64),
        row_format Nullable(String), avg_row_length Nullable(UInt64),
        max_data_length Nullable(UInt64), data_free Nullable(UInt64),
        auto_increment Nullable(UInt64), create_time Nullable(DateTime),
        update_time Nullable(DateTime), check_time Nullable(DateTime), checksum Nullable(Int64),
        create_options Nullable(String)""",
        _tables,
    ),
    SystemTable(
        "columns",
        """table_catalog String, table_schema String, table_name String, column_name String,
        ordinal_position UInt64, column_default String, is_nullable String, data_type String,
        character_maximum_length Nullable(UInt64), character_octet_length Nullable(UInt64),
        numeric_precision Nullable(UInt64), numeric_precision_radix Nullable(UInt64),
        numeric_scale Nullable(UInt64), datetime_precision Nullable(UInt64),
        character_set_catalog Nullable(String), character_set_schema Nullable(String),
        character_set_name Nullable(String), collation_catalog Nullable(String),
        collation_schema Nullable(String), collation_name Nullable(String),
        domain_catalog Nullable(String), domain_schema Nullable(String),
        domain_name Nullable(String), extra Nullable(String), column_comment String,
        column_type String, column_key String, privileges String, generation_expression String,
        srs_id Nullable(UInt32)""",
        _columns,
    ),
    SystemTable(
        "views",
        """table_catalog String, table_schema String, table_name String, view_definition String,
        check_option String, is_updatable Enum8('NO' = 0, 'YES' = 1),
        is_insertable_into Enum8('NO' = 0, 'YES' = 1), is_trigger_updatable Enum8('NO' = 0, 'YES' = 1),
        is_trigger_deletable Enum8('NO' = 0, 'YES' = 1),
        is_trigger_insertable_into Enum8('NO' = 0, 'YES' = 1)""",
        _views,
    ),
    SystemTable(
        "key_column_usage",
        """constraint_catalog String, constraint_schema String, constraint_name Nullable(String),
        table_catalog String, table_schema String, table_name String,
        column_name Nullable(String), ordinal_position UInt32,
        position_in_unique_constraint Nullable(UInt32),
        referenced_table_schema Nullable(String), referenced_table_name Nullable(String),
        referenced_column_name Nullable(String)""",
        _key_column_usage,
    ),
    SystemTable(
        "referential_constraints",
        """constraint_catalog String, constraint_schema String, constraint_name Nullable(String),
        unique_constraint_catalog String, unique_constraint_schema String,
        unique_constraint_name Nullable(String), match_option String, update_rule String,
        delete_rule String, table_name String, referenced_table_name String""",
        _none,
    ),
    SystemTable(
        "statistics",
        """table_catalog String, table_schema String, table_name String, non_unique Int32,
        index_schema String, index_name Nullable(String), seq_in_index UInt32,
        column_name Nullable(String), collation Nullable(String), cardinality Nullable(Int64),
        sub_part Nullable(Int64), packed Nullable(String), nullable String, index_type String,
        comment String, index_comment String, is_visible String, expression Nullable(String)""",
        _none,
    ),
    SystemTable("engines", "engine String, support String", _engines),
)
