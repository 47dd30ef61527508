"""`submission_method: spark`: the model runs on Spark, over DataFrames of the warehouse's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema

import olapdb
from olapdb.spark import read_table, spark_session, write_dataframe

from ..relation import OlapdbRelation, quote
from .in_process import as_reader
from .module import ModelModule
from .rows_table import create_statement, write_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_rows(
    module: ModelModule,
    connection: olapdb.Connection,
    model: Mapping[str, Any],
    target: OlapdbRelation,
    spark_options: Mapping[str, Any],
) -> tuple[OlapdbRelation, int]:
    """Run the model on Spark, create `target` and write the rows into it in one commit.

    Returns the table and the number of rows. A model may also return Arrow data or a pandas or
    polars frame, which this process writes."""
    options = dict(spark_options)
    spark = spark_session(options.pop("app_name", "olapdb dbt"), **options)
    frames = _Frames(spark, connection, target)
    rows = module.run(frames.load, spark)
    if not hasattr(rows, "mapInArrow"):
        reader = as_reader(rows, str(model["name"]))
        return write_reader(connection, target, reader, model)
    with module.errors():  # Spark is lazy: the model's mistakes surface here
        schema = to_arrow_schema(rows.schema, timezone="UTC")
        connection.execute(create_statement(target, schema, model))
        return target, write_dataframe(rows, connection, target.render()).rows


class _Frames:
    """Loads relations as DataFrames of one snapshot each."""

    def __init__(
        self, spark: SparkSession, connection: olapdb.Connection, target: OlapdbRelation
    ) -> None:
        self._spark, self._connection, self._target = spark, connection, target
        self._copies = 0

    def load(self, relation: str) -> DataFrame:
        """Return the rows of a relation as of now, as `SELECT * FROM` it shows them.

        Spark's tasks read a table's own files. The rows of any other relation are copied into a
        table that is dropped at once: the frame keeps reading the snapshot before that."""
        columns = [name for name, _ in self._connection.describe(f"SELECT * FROM {relation}")]
        if self._is_stored(relation):
            return read_table(self._spark, self._connection, relation, columns=columns)
        self._copies += 1
        copy = f"{quote(self._target.schema or '')}." + quote(
            f"{self._target.identifier}_input_{self._copies}"
        )
        self._connection.execute(f"DROP TABLE IF EXISTS {copy}")
        self._connection.execute(
            f"CREATE TABLE {copy} ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM {relation}"
        )
        try:
            return read_table(self._spark, self._connection, copy)
        finally:
            self._connection.execute(f"DROP TABLE {copy}")

    def _is_stored(self, relation: str) -> bool:
        """Return whether the relation is a table with parts that Spark's tasks can read."""
        database, _, name = relation.rpartition(".")
        rows = self._connection.execute(
            "SELECT engine FROM system.tables WHERE database = ? AND name = ?",
            (database.strip("`"), name.strip("`")),
        ).fetchall()
        return bool(rows) and str(rows[0][0]).endswith("MergeTree")
