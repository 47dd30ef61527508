"""Flights that arrive live: blocks of Arrow rows for INSERTs through the PEP 249 connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

BLOCK_ROWS = 5_000


def live_blocks(flights_csv: Path, months: range, rows: int = BLOCK_ROWS) -> Iterator[pa.Table]:
    """The flights of `months` as they come in, by date and time, `rows` at a time, cleaned as
    `pipeline.ingest` cleans history."""
    read = pa.csv.read_csv(
        flights_csv,
        convert_options=pa.csv.ConvertOptions(
            null_values=["NA", ""], strings_can_be_null=True, column_types={"tailnum": pa.string()}
        ),
    )
    wanted = pc.and_(
        pc.greater_equal(read["month"], months.start), pc.less(read["month"], months.stop)
    )
    flights = clean(read.filter(wanted))
    for start in range(0, flights.num_rows, rows):
        yield flights.slice(start, rows)


def clean(read: pa.Table) -> pa.Table:
    """Rows of flights.csv as the columns of raw.flights, in the order of arrival."""
    texts = pc.binary_join_element_wise(
        *(pc.utf8_lpad(read[c].cast(pa.string()), 2, "0") for c in ("year", "month", "day")), "-"
    )
    table = read.append_column("flight_date", texts.cast(pa.date32()))
    table = table.drop_columns(["year", "month", "day"]).rename_columns(
        {"time_hour": "scheduled_at"}
    )
    return table.sort_by(
        [("flight_date", "ascending"), ("sched_dep_time", "ascending"), ("flight", "ascending")]
    )
