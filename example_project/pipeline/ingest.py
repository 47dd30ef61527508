"""Loads history into the warehouse on Spark: executors write the parts, this process commits.

python -m pipeline.ingest warehouse/          # all of 2013
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import olapdb
from olapdb.spark import spark_session, stop_session, write_dataframe
from pipeline.files import csv_files
from pipeline.tables import CSV_SCHEMAS, DATABASE, create_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, int, int], None]
"""Called with (table, finished tasks, tasks planned so far)."""


def ingest(
    spark: SparkSession,
    connection: olapdb.Connection,
    files: dict[str, Path],
    *,
    months: range = range(1, 13),
    on_progress: Progress = lambda table, done, total: None,
) -> dict[str, int]:
    """Write every source table in one commit each, flights of `months` only; return rows by table.

    The token of each INSERT names its data, so a second run inserts nothing twice.
    """
    create_tables(connection)
    rows: dict[str, int] = {}
    for table, path in files.items():
        frame = read_clean(spark, table, path)
        token = f"{table}-2013"
        if table == "flights":
            frame = frame.where(f"month(flight_date) between {months.start} and {months.stop - 1}")
            token = f"{table}-2013-{months.start:02}-{months.stop - 1:02}"
        written = write_dataframe(
            frame,
            connection,
            f"{DATABASE}.{table}",
            token=token,
            on_progress=lambda done, total, table=table: on_progress(table, done, total),
        )
        rows[table] = written.rows
    return rows


def read_clean(spark: SparkSession, table: str, path: Path) -> DataFrame:
    """Read a CSV file with the columns of its source table: 'NA' is NULL, dates are local.

    `time_hour` is UTC, in which 1,218 flights have another month. So the date, by which the table is
    partitioned, is computed from year, month and day.
    """
    from pyspark.sql import functions as F

    frame = spark.read.csv(
        str(path),
        header=True,
        schema=CSV_SCHEMAS[table],
        nullValue="NA",
        mode="FAILFAST",
        timestampFormat="yyyy-MM-dd'T'HH:mm:ssX",
    )
    date = F.make_date("year", "month", "day")
    if table == "flights":
        frame = frame.withColumn("flight_date", date).withColumnRenamed("time_hour", "scheduled_at")
    elif table == "weather":
        frame = frame.withColumn("weather_date", date).withColumnRenamed("time_hour", "observed_at")
    else:
        return frame
    return frame.drop("year", "month", "day")


def main() -> None:
    warehouse = sys.argv[1] if len(sys.argv) > 1 else "warehouse"
    spark = spark_session("flights ingest")
    with tempfile.TemporaryDirectory() as folder, olapdb.connect(warehouse) as connection:
        for table, rows in ingest(spark, connection, csv_files(Path(folder))).items():
            print(f"{DATABASE}.{table}: {rows:,} rows")
    stop_session(spark)


if __name__ == "__main__":
    main()
