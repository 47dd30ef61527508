"""Columns as users get them, of all types: `types.arrow.exported` and `types.python_values`, and what these do not
know of Dynamic and JSON, whose values are read by casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from olapdb.lazy import LazyModule
from olapdb.types import DataType, Dynamic, Json, any_part
from olapdb.types import arrow as arrow_forms
from olapdb.types import python_values as python_forms

if TYPE_CHECKING:
    from olapdb.functions.dynamic import edges as dynamic_edges
else:
    dynamic_edges = LazyModule("olapdb.functions.dynamic.edges")


def exported(array: pa.Array, data_type: DataType) -> pa.Array:
    """Convert a column to the Arrow types that users get, `exported_type`: JSON and Dynamic as texts, Enums as texts,
    times as durations."""
    if any_part(data_type, (Dynamic, Json)):
        array, data_type = dynamic_edges.with_texts(array, data_type)
    return arrow_forms.exported(array, data_type)


def python_values(
    column: pa.Array | pa.ChunkedArray, data_type: DataType, zone: str | None = None
) -> list[object]:
    """Convert a column to Python values as `types.python_values` does: a JSON gives a dict, a Dynamic the Python
    value of its own type."""
    if any_part(data_type, (Dynamic, Json)):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return dynamic_edges.python_values(whole, data_type, zone)
    return python_forms.python_values(column, data_type, zone)
