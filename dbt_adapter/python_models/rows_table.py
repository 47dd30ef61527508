"""The table that holds the rows of a Python model until SQL statements read them.

The materialization runs the same statements as for a SQL model, over `SELECT * FROM` this table, and
drops it. It is a temporary table, in the memory of dbt's process, so that rows are written once, into
the model. Rows that Spark's tasks write, and more than `MEMORY_BYTES_MAX`, go into a table of the
warehouse in one commit. The model shares that table's files if it can (`is_whole_table`); else they are
written again when the model is built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

import olapdb
from olapdb.functions import parse_type
from olapdb.ingest.plain_arrays import type_of_arrow
from olapdb.types import is_nullable, plain

from ..relation import OlapdbRelation, quote
from ..storage_clause import storage_clause, with_indexes

ROWS_SUFFIX = "__dbt_python"
MEMORY_BYTES_MAX = 256 << 20
"""The most Arrow bytes of a model's rows that are held in memory."""
_KEY_CONFIGS = ("order_by", "primary_key", "partition_by")
_WORD = re.compile(r"\w+")


def rows_relation(relation: OlapdbRelation, model: Mapping[str, Any]) -> OlapdbRelation:
    """Return the relation that holds the rows of the model while dbt builds it.

    Batches of a microbatch model run at the same time, so each has its own."""
    batch = model.get("batch") or {}
    suffix = f"{ROWS_SUFFIX}_{batch['id']}" if batch.get("id") else ROWS_SUFFIX
    rows: OlapdbRelation = relation.incorporate(
        path={"identifier": f"{relation.identifier}{suffix}"}, type="table"
    )
    return rows


def in_memory(relation: OlapdbRelation) -> OlapdbRelation:
    """Return the rows' relation as a temporary table, whose name has no schema."""
    temporary: OlapdbRelation = relation.include(schema=False)
    return temporary


def drop_statement(relation: OlapdbRelation) -> str:
    """Return the statement that drops a rows' table if it is there."""
    kind = "TABLE" if relation.include_policy.schema else "TEMPORARY TABLE"
    return f"DROP {kind} IF EXISTS {relation.render()}"


def write_reader(
    connection: olapdb.Connection,
    relation: OlapdbRelation,
    rows: pa.RecordBatchReader,
    model: Mapping[str, Any],
) -> tuple[OlapdbRelation, int]:
    """Make the rows' table of a stream; return it, and the number of rows.

    The stream is read up to `MEMORY_BYTES_MAX`. If it ends there the table is a temporary one."""
    batches, size = [], 0
    for batch in rows:
        batches.append(batch)
        size += batch.nbytes
        if size > MEMORY_BYTES_MAX:
            break
    table = relation if size > MEMORY_BYTES_MAX else in_memory(relation)
    connection.execute(create_statement(table, rows.schema, model))
    stream = pa.RecordBatchReader.from_batches(rows.schema, chain(batches, rows))
    return table, int(connection.insert(table.render(), stream))


def create_statement(relation: OlapdbRelation, schema: pa.Schema, model: Mapping[str, Any]) -> str:
    """Return the CREATE TABLE of the rows' table, CREATE TEMPORARY TABLE of one `in_memory`.

    A column has the `data_type` that the model's YAML declares; else the type of its Arrow field,
    Nullable if the field is. Columns that are a key of the model are never Nullable, since a key
    cannot be. Raises DbtRuntimeError."""
    if not schema.names:
        raise DbtRuntimeError(f"The Python model {model['name']} returned no columns.")
    declared = {
        name: column["data_type"]
        for name, column in (model.get("columns") or {}).items()
        if column.get("data_type")
    }
    keys = _key_columns(model.get("config") or {})
    columns = [
        f"{quote(field.name)} {declared.get(field.name) or _type_name(field, field.name in keys, model)}"
        for field in schema
    ]
    listed = f"({', '.join(columns)})"
    if not relation.include_policy.schema:
        return f"CREATE TEMPORARY TABLE {relation.render()} {listed} ENGINE = Memory"
    storage = "ENGINE = MergeTree ORDER BY tuple()"
    if is_whole_table(model):
        config = model["config"]
        listed, storage = with_indexes(listed, config), storage_clause(config)
    return f"CREATE TABLE {relation.render()} {listed} {storage}"


def is_whole_table(model: Mapping[str, Any]) -> bool:
    """Return whether the model is a table as its rows' table is, so that it may share its files.

    A contract adds constraints, `query_settings` are of the statement that fills the model, and only
    engines with parts share them."""
    config = model.get("config") or {}
    contract = config.get("contract") or {}
    engine = str(config.get("engine") or "MergeTree").partition("(")[0].strip()
    return (
        config.get("materialized") == "table"
        and engine.endswith("MergeTree")
        and not contract.get("enforced")
        and not config.get("query_settings")
    )


def _type_name(field: pa.Field, is_key: bool, model: Mapping[str, Any]) -> str:
    """Return the name of the type in which a column without a declared type is stored.

    A column that came from the warehouse and kept its Arrow type keeps its type there too.

    Raises DbtRuntimeError."""
    if pa.types.is_null(field.type):
        raise DbtRuntimeError(
            f"The column {field.name} of the Python model {model['name']} has no type: all its "
            "values are NULL. Declare its data_type in the model's YAML, or cast the column."
        )
    source_type = (field.metadata or {}).get(b"olapdb.type")
    data_type = type_of_arrow(field.type)
    if source_type is not None and parse_type(source_type.decode()).arrow == field.type:
        data_type = parse_type(source_type.decode())
        return str(plain(data_type) if is_key and is_nullable(data_type) else data_type)
    return str(plain(data_type) if is_key or not field.nullable else data_type)


def _key_columns(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the words of the expressions that the model's config has as keys of the table."""
    values = [config.get(key) for key in _KEY_CONFIGS]
    return frozenset(word for value in values if value for word in _WORD.findall(str(value)))
