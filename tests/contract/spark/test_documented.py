"""The block of docs/spark.md runs, and a frame of pandas is refused with what takes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import olapdb
from olapdb.spark import write_dataframe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.feature("spark")]

PAGE = Path(__file__).parents[3] / "docs/spark.md"
TABLES = """
CREATE TABLE events (country String, n Int64) ENGINE = MergeTree ORDER BY country;
CREATE TABLE totals (country String, n SimpleAggregateFunction(sum, Int64))
    ENGINE = AggregatingMergeTree ORDER BY country;
INSERT INTO events VALUES ('DE', 1);
CREATE MATERIALIZED VIEW totals_mv TO totals AS SELECT country, sum(n) AS n FROM events GROUP BY country
"""


def test_the_first_block_runs(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("history").mkdir()
    pq.write_table(pa.table({"country": ["DE", "FR"], "n": [2, 3]}), "history/a.parquet")
    with olapdb.connect("warehouse") as connection:
        connection.execute(TABLES)
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    there = block.replace(
        '"history/"', repr(str(tmp_path / "history"))
    )  # the JVM keeps its own folder
    assert there != block
    exec(there, {})
    assert re.search(r"\| +DE\| +2\|", capsys.readouterr().out)
    with olapdb.connect("warehouse") as connection:
        totals = connection.execute("SELECT * FROM totals FINAL ORDER BY country").fetchall()
        assert totals == [("DE", 3), ("FR", 3)]


def test_a_frame_of_pandas_is_refused() -> None:
    frame: Any = pd.DataFrame({"n": [1]})
    with (
        olapdb.connect() as connection,
        pytest.raises(olapdb.errors.BadArguments, match=r"takes a Spark DataFrame.*insert"),
    ):
        write_dataframe(frame, connection, "t")
