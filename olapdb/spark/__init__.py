"""Spark as the engine of the data pipeline: sessions, tasks, backfill, writer and reader.

    import olapdb
    from olapdb.spark import spark_session, write_dataframe, read_table

    spark = spark_session()
    with olapdb.connect("warehouse/") as connection:
        write_dataframe(spark.read.parquet("history/"), connection, "default.events")
        read_table(spark, connection, "default.events").groupBy("country").count().show()

Only this package imports pyspark.  Importing it raises ExternalToolMissing if pyspark is not
installed.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from olapdb.errors import ExternalToolMissing

if find_spec("pyspark") is None:
    raise ExternalToolMissing(
        "pyspark is not installed.", hint="Install it with: pip install 'olapdb[spark]'."
    )

if TYPE_CHECKING:
    from olapdb.spark.executor import SparkExecutor
    from olapdb.spark.items import run_items
    from olapdb.spark.reader import read_table
    from olapdb.spark.session import session_scope, spark_session, stop_session
    from olapdb.spark.writer import write_dataframe

__all__ = [
    "SparkExecutor",
    "read_table",
    "run_items",
    "session_scope",
    "spark_session",
    "stop_session",
    "write_dataframe",
]

# Lazily: a Spark worker imports this package for `tasks`, and needs neither writer nor session.
_HOMES = {
    "SparkExecutor": "olapdb.spark.executor",
    "read_table": "olapdb.spark.reader",
    "run_items": "olapdb.spark.items",
    "session_scope": "olapdb.spark.session",
    "spark_session": "olapdb.spark.session",
    "stop_session": "olapdb.spark.session",
    "write_dataframe": "olapdb.spark.writer",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that PySpark is loaded only then."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
