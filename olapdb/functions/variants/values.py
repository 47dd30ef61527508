"""Columns of a Variant, taken apart into the values of each alternative and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from olapdb.errors import DataError
from olapdb.functions.kernels import columns
from olapdb.lazy import LazyModule
from olapdb.records import dataclass
from olapdb.types import DataType, Dynamic, Variant
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.functions.dynamic import values as dynamic_values
else:
    dynamic_values = LazyModule("olapdb.functions.dynamic.values")

NO_ALTERNATIVE = 255
"""The number of a row that is NULL."""


@dataclass(frozen=True)
class Alternative:
    """The rows of a column that have a value of one alternative.

    `rows` are their positions, ascending, int64; `values` their values, without NULL, in that order."""

    place: int
    type: DataType
    rows: np.ndarray
    values: pa.Array


def numbers_of(array: pa.Array) -> np.ndarray:
    """Return the place of each row's alternative, `NO_ALTERNATIVE` for NULL; uint8, shape (rows,)."""
    if not len(array):
        return np.zeros(0, np.uint8)
    numbers = columns.struct_fields(array)[0]
    if numbers.null_count:
        numbers = numbers.fill_null(pa.scalar(NO_ALTERNATIVE, pa.uint8()))
    return columns.numpy_values(numbers)


def alternatives_of(array: pa.Array, variant: Variant) -> Iterator[Alternative]:
    """Yield the alternatives that occur in the column, with their rows and values."""
    numbers = numbers_of(array)
    fields = columns.struct_fields(array)[1:]
    for place, (field, data_type) in enumerate(zip(fields, variant.alternatives, strict=True)):
        rows = np.flatnonzero(numbers == place)
        if len(rows) == len(array):
            yield Alternative(place, data_type, rows, field)
        elif len(rows):
            yield Alternative(place, data_type, rows, field.take(from_numpy(rows)))


def gathered(
    array: pa.Array,
    variant: Variant | Dynamic,
    convert: Callable[[pa.Array, DataType], pa.Array],
    arrow: pa.DataType,
) -> pa.Array:
    """Convert the values of each alternative, or of each type of a Dynamic, by `convert`; return the results in the
    order of the rows, NULL for NULL.

    `convert` returns as many values of the Arrow type `arrow`. A DataError of it names the row of the column."""
    if isinstance(variant, Dynamic):
        return dynamic_values.gathered(array, convert, arrow)
    pieces: list[pa.Array] = []
    rows: list[np.ndarray] = []
    for alternative in alternatives_of(array, variant):
        try:
            pieces.append(convert(alternative.values, alternative.type))
        except DataError as error:
            if error.row is not None:
                error.row = int(alternative.rows[error.row])
            raise
        rows.append(alternative.rows)
    return in_rows(pieces, rows, len(array), arrow)


def in_rows(
    pieces: list[pa.Array], rows: list[np.ndarray], count: int, arrow: pa.DataType
) -> pa.Array:
    """Return a column of `count` rows with the values of each piece at its rows, NULL at all others."""
    if not pieces:
        return pa.nulls(count, arrow)
    if len(pieces) == 1 and len(rows[0]) == count:
        return pieces[0]
    places = np.full(count, -1, np.int64)
    joined = np.concatenate(rows)
    places[joined] = np.arange(len(joined))
    missing = places < 0
    indices = from_numpy(np.where(missing, 0, places), missing if missing.any() else None)
    return pa.concat_arrays(pieces).take(indices)


def assembled(variant: Variant, numbers: np.ndarray, values: Mapping[int, pa.Array]) -> pa.Array:
    """Return a column of the Variant: `numbers` has the place of each row's alternative, `NO_ALTERNATIVE` for NULL.

    `values` has the values of each alternative that occurs, by its place, in the order of the rows."""
    fields = [columns.from_values(numbers, pa.uint8(), _mask(numbers != NO_ALTERNATIVE))]
    for place, data_type in enumerate(variant.alternatives):
        own = values.get(place)
        if own is None or not len(own):
            fields.append(pa.nulls(len(numbers), data_type.arrow))
            continue
        is_own = numbers == place
        fields.append(own if is_own.all() else columns.scatter(own, is_own))
    return columns.structs_from(fields, variant.arrow, _mask(numbers != NO_ALTERNATIVE))


def _mask(valid: np.ndarray) -> np.ndarray | None:
    """Return `valid`, or None if all rows are valid: a column without nulls needs no mask."""
    return None if valid.all() else valid


def of_one(variant: Variant, place: int, values: pa.Array) -> pa.Array:
    """Return values of the alternative at `place` as a column of the Variant; NULL stays NULL."""
    valid = columns.validity(values)
    numbers = np.full(len(values), place, np.uint8)
    if valid is not None:
        numbers[~valid] = NO_ALTERNATIVE
        values = values.filter(pa.array(valid))
    return assembled(variant, numbers, {place: values})
