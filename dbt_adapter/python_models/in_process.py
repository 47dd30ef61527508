"""`submission_method: arrow`: the model runs in the process of dbt, on Arrow data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

import olapdb

from .module import ModelModule

INPUTS = ("table", "reader")


def run(
    module: ModelModule, connection: olapdb.Connection, model: Mapping[str, Any]
) -> pa.RecordBatchReader:
    """Run the model with the connection as its session; return its rows as a stream.

    `dbt.ref` returns a pyarrow.Table, or with the config `arrow_input: reader` a RecordBatchReader
    that holds one batch at a time. Raises DbtRuntimeError."""
    kind = (model.get("config") or {}).get("arrow_input") or "table"
    if kind not in INPUTS:
        raise DbtRuntimeError(
            f"arrow_input of the Python model {model['name']} is {kind!r}; it is table or reader."
        )

    def load(relation: str) -> pa.Table | pa.RecordBatchReader:
        """Return all rows of a relation."""
        cursor = connection.execute(f"SELECT * FROM {relation}")
        return cursor.fetch_arrow_table() if kind == "table" else cursor.fetch_record_batch()

    return as_reader(module.run(load, connection), str(model["name"]))


def as_reader(rows: Any, model: str) -> pa.RecordBatchReader:
    """Return what a model returned as a stream of Arrow batches.

    Takes a pyarrow Table, batch, reader or dataset, a pandas or polars frame (a lazy one too), a
    cursor, and all else with an Arrow stream. The index of a pandas frame is dropped. Raises
    DbtRuntimeError for anything else."""
    home = type(rows).__module__.partition(".")[0]
    if home == "polars" and hasattr(rows, "collect"):
        rows = rows.collect()
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if home == "pandas" and hasattr(rows, "columns"):
        return pa.Table.from_pandas(rows, preserve_index=False).to_reader()
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows]).to_reader()
    if hasattr(rows, "scanner"):
        return rows.scanner().to_reader()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    raise DbtRuntimeError(
        f"The Python model {model} returned {_described(rows)}. Return a pyarrow Table or reader, or "
        "a pandas or polars DataFrame; a Spark DataFrame with submission_method: spark."
    )


def _described(rows: object) -> str:
    """Return what the value is, for an error message."""
    if rows is None:
        return "nothing"
    return f"an object of the class {type(rows).__module__}.{type(rows).__qualname__}"
