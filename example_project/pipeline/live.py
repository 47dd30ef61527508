"""Live flights: blocks of Arrow rows for INSERTs through the PEP 249 connection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

BLOCK_ROWS = 5_000


def live_blocks(flights_csv: Path, months: range, rows: int = BLOCK_ROWS) -> Iterator[pa.Table]:
    """Yield the flights of `months` in order of date and time, in blocks of `rows` rows, cleaned as
    `pipeline.ingest` cleans history."""
    csv_rows = pa.csv.read_csv(
        flights_csv,
        convert_options=pa.csv.ConvertOptions(
            null_values=["NA", ""], strings_can_be_null=True, column_types={"tailnum": pa.string()}
        ),
    )
    in_months = pc.and_(
        pc.greater_equal(csv_rows["month"], months.start), pc.less(csv_rows["month"], months.stop)
    )
    flights = clean(csv_rows.filter(in_months))
    for start in range(0, flights.num_rows, rows):
        yield flights.slice(start, rows)


def clean(csv_rows: pa.Table) -> pa.Table:
    """Return rows of flights.csv with the columns of raw.flights, in the order of arrival."""
    date_parts = [csv_rows[c].cast(pa.string()) for c in ("year", "month", "day")]
    texts = pc.binary_join_element_wise(*(pc.utf8_lpad(p, 2, "0") for p in date_parts), "-")
    table = csv_rows.append_column("flight_date", texts.cast(pa.date32()))
    table = table.drop_columns(["year", "month", "day"]).rename_columns(
        {"time_hour": "scheduled_at"}
    )
    return table.sort_by(
        [("flight_date", "ascending"), ("sched_dep_time", "ascending"), ("flight", "ascending")]
    )
