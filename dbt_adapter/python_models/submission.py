"""Which way a Python model runs, and the table that its rows are written to."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

import olapdb

from ..credentials import MEMORY, OlapdbCredentials
from ..relation import OlapdbRelation
from . import in_process
from .module import ModelModule
from .rows_table import drop_statement, in_memory, rows_relation, write_reader

METHODS = ("spark", "arrow")


def default_method(credentials: OlapdbCredentials) -> str:
    """Return the submission method of models that name none.

    Spark if PySpark is installed and the warehouse is in a folder, which Spark's tasks need."""
    return "spark" if credentials.location != MEMORY and find_spec("pyspark") else "arrow"


def method_of(model: Mapping[str, Any], credentials: OlapdbCredentials) -> str:
    """Return the model's submission method. Raises DbtRuntimeError for one that cannot work."""
    method = (model.get("config") or {}).get("submission_method")
    if method is None:
        return default_method(credentials)
    if method not in METHODS:
        raise DbtRuntimeError(
            f"The submission_method of the Python model {model['name']} is {method!r}; olapdb has "
            f"{' and '.join(METHODS)}."
        )
    if method == "spark" and credentials.location == MEMORY:
        raise DbtRuntimeError(
            f"The Python model {model['name']} has submission_method: spark, but the warehouse is in "
            "memory, where Spark's tasks cannot read it. Give path in the profile, or set "
            "submission_method: arrow."
        )
    if method == "spark" and find_spec("pyspark") is None:
        raise DbtRuntimeError(
            f"The Python model {model['name']} has submission_method: spark, but PySpark is not "
            "installed. Run pip install 'olapdb[spark]', or set submission_method: arrow."
        )
    return str(method)


def write_rows(
    connection: olapdb.Connection,
    model: Mapping[str, Any],
    compiled_code: str,
    relation: OlapdbRelation,
    credentials: OlapdbCredentials,
) -> tuple[OlapdbRelation, int]:
    """Run a Python model; write its rows into the rows' table of `relation` in one commit.

    Returns that table and the number of rows. A rows' table that an earlier run left is dropped
    first; this run's is dropped if the model fails."""
    method = method_of(model, credentials)
    target = rows_relation(relation, model)
    connection.execute(drop_statement(target))
    module = ModelModule(model, compiled_code)
    try:
        if method == "spark":
            from . import on_spark  # PySpark is optional and slow to import

            return on_spark.write_rows(module, connection, model, target, credentials.spark)
        reader = in_process.run(module, connection, model)
        with module.errors():  # a reader may call the model's own code
            return write_reader(connection, target, reader, model)
    except BaseException:
        for table in (in_memory(target), target):
            connection.execute(drop_statement(table))
        raise
