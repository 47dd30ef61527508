"""Values that were read, converted to the types of columns, where NULL may be none of theirs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.functions import store_column
from olapdb.functions.base import Environment
from olapdb.types import DataType, is_nullable, make_nullable


def store_with_nulls(
    array: pa.Array, source: DataType, target: DataType, environment: Environment
) -> pa.Array:
    """Convert values to `target` as an INSERT does. NULL stays null even where `target` is not Nullable, such as an
    array. Raises the DataError of `store_column`, which names the row."""
    wanted = make_nullable(target) if array.null_count else target
    if not array.null_count or is_nullable(wanted):
        return store_column(array, source, wanted, environment)
    valid = array.is_valid()
    try:
        present = store_column(array.drop_null(), source, target, environment)
    except errors.DataError as error:
        if error.row is None:
            raise
        rows = pc.indices_nonzero(valid)
        raise error.at_row(rows[error.row].as_py()) from None
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return present.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
