"""The table that holds the rows of a Python model until SQL statements read them.

A Python model's rows are written into it in one commit; the materialization then runs the same
statements as for a SQL model, over `SELECT * FROM` this table, and drops it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

from olapdb.functions import parse_type
from olapdb.ingest.block import type_of_arrow
from olapdb.types import is_nullable, plain

from ..relation import OlapdbRelation, quote

ROWS_SUFFIX = "__dbt_python"
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


def create_statement(relation: OlapdbRelation, schema: pa.Schema, model: Mapping[str, Any]) -> str:
    """Return the CREATE TABLE of the rows' table.

    A column has the `data_type` that the model's YAML declares; else the type of its Arrow field,
    Nullable if the field is. Columns that are a key of the model are never Nullable, since a key
    cannot be."""
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
    return f"CREATE TABLE {relation.render()} ({', '.join(columns)}) ENGINE = MergeTree ORDER BY tuple()"


def _type_name(field: pa.Field, is_key: bool, model: Mapping[str, Any]) -> str:
    """Return the name of the type in which a column without a declared type is stored.

    A column that came from the warehouse and kept its Arrow type keeps its type there too."""
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
