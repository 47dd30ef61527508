"""Limits of what an operator holds: rows and bytes of a set, DISTINCT, JOIN, ORDER BY and GROUP BY."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings
from olapdb.errors import OperationalError, SetSizeLimitExceeded, TooManyRows, TooManyRowsOrBytes

_ERRORS: dict[str, type[OperationalError]] = {
    "max_rows_to_group_by": TooManyRows,
    "max_rows_to_sort": TooManyRowsOrBytes,
    "max_bytes_to_sort": TooManyRowsOrBytes,
}
"""The error of a limit; of the others it is SetSizeLimitExceeded."""


def limited(
    batches: Iterator[pa.RecordBatch], setting: str, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Return the batches, which raise as `check_rows` does once they have more rows than `setting`
    allows, or more bytes than the setting of bytes beside it."""
    if _limit(setting, context) or _limit(_of_bytes(setting), context):
        return _counted(batches, setting, context)
    return batches


_IN_MEMORY = frozenset({"default", "auto", "hash", "parallel_hash", "direct"})
"""Values of join_algorithm that keep the right side in memory."""


def is_held_in_memory(context: ExecutionContext) -> bool:
    """Return whether the limits of a JOIN raise an error: not if `join_algorithm` names only algorithms that go to the
    disk beyond them, as a join here does where memory ends."""
    named = str(Settings.of(context.settings)["join_algorithm"]).lower().split(",")
    return any(name.strip() in _IN_MEMORY for name in named)


def _counted(
    batches: Iterator[pa.RecordBatch], setting: str, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the batches, checking the number of rows and bytes so far."""
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
        check_rows(rows, setting, context)
        check_bytes(size, setting, context)
        yield batch


def check_rows(rows: int, setting: str, context: ExecutionContext) -> None:
    """Raise SetSizeLimitExceeded, TooManyRows for groups, or TooManyRowsOrBytes for ORDER BY, if
    `rows` are more than the setting allows."""
    _check(rows, "rows", setting, context)


def check_bytes(size: int, setting: str, context: ExecutionContext) -> None:
    """Raise the errors of `check_rows` if `size` is more than the setting of bytes beside `setting`
    allows."""
    _check(size, "bytes", _of_bytes(setting), context)


def has_limit(setting: str, context: ExecutionContext) -> bool:
    """Return whether the setting of rows, or that of bytes beside it, is a limit."""
    return bool(_limit(setting, context) or _limit(_of_bytes(setting), context))


def _check(count: int, what: str, setting: str, context: ExecutionContext) -> None:
    """Raise the error of the setting if the count is above its limit."""
    limit = _limit(setting, context)
    if not limit or count <= limit:
        return
    raise _ERRORS.get(setting, SetSizeLimitExceeded)(
        f"The query passed its limit {setting} = {limit} with {count} {what}.",
        hint="Filter the rows first, or raise the setting.",
    )


def _of_bytes(setting: str) -> str:
    """Return the name of the setting that limits bytes where `setting` limits rows."""
    return setting.replace("rows", "bytes")


def _limit(setting: str, context: ExecutionContext) -> int:
    """Return the value of the setting; 0 means no limit, as for a setting that does not exist."""
    settings = Settings.of(context.settings)
    return settings.integer(setting) if setting in settings else 0
