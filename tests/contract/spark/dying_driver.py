"""A driver that writes a frame, or fills a view's gap, and dies by SIGKILL at a failpoint:

python -m tests.contract.spark.dying_driver WAREHOUSE STAGE WORK
"""

from __future__ import annotations

import sys

import olapdb
from olapdb.runtime.failpoints import kill_at
from olapdb.spark import spark_session, write_dataframe

TOKEN = "one delivery"
BACKFILL = "SYSTEM BACKFILL VIEW v SETTINGS engine = 'spark'"
ROWS = 4_000


def main() -> None:
    warehouse, stage, work = sys.argv[1:]
    spark = spark_session("olapdb tests", "local[2]", memory="1g")
    with olapdb.connect(warehouse) as connection:
        kill_at(stage)
        if work == "write":
            rows = spark.range(0, ROWS, 1, 4).selectExpr("id AS n", "id % 7 AS k")
            write_dataframe(rows, connection, "s", token=TOKEN)
        else:
            connection.execute(BACKFILL)


if __name__ == "__main__":
    main()
