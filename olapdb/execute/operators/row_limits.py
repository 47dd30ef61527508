"""Limits of the rows that an operator holds: max_rows_in_set, _in_distinct, _in_join, _to_group_by."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings
from olapdb.errors import SetSizeLimitExceeded, TooManyRows


def limited(
    batches: Iterator[pa.RecordBatch], setting: str, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Return the batches, which raise as `check_rows` does once they have more rows than `setting`
    allows."""
    return _counted(batches, setting, context) if _limit(setting, context) else batches


def _counted(
    batches: Iterator[pa.RecordBatch], setting: str, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, checking the number of rows so far."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        check_rows(rows, setting, context)
        yield batch


def check_rows(rows: int, setting: str, context: ExecutionContext) -> None:
    """Raise SetSizeLimitExceeded, or TooManyRows for groups, if `rows` are more than the setting
    allows."""
    limit = _limit(setting, context)
    if not limit or rows <= limit:
        return
    kind = TooManyRows if setting == "max_rows_to_group_by" else SetSizeLimitExceeded
    raise kind(
        f"The query passed its limit {setting} = {limit} with {rows} rows.",
        hint="Filter the rows first, or raise the setting.",
    )


def _limit(setting: str, context: ExecutionContext) -> int:
    """Return the value of the setting; 0 means no limit."""
    return Settings.of(context.settings).integer(setting)
