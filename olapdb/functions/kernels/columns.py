"""Conversion between Arrow arrays and numpy, in both directions, for every kernel.

Physical values: integers and floats as stored, Date as int32 days, DateTime as int64 ticks of the
Arrow unit, Bool as uint8.  The value of a null row is arbitrary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import MemoryLimitExceeded
from olapdb.functions.base import Column
from olapdb.functions.kernels.arrow_buffers import converted
from olapdb.native import selection
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy

_SCALARS_MAX = 64
"""The most scalars that are joined one by one: `pa.array` imports pandas (see `types.arrow_values`)."""


class TooManyRepeated(Exception):
    """A constant that would have too many bytes in all rows; `share` of the rows can have it."""

    def __init__(self, share: float) -> None:
        super().__init__(f"Only {share:.2g} of the rows have room for a constant.")
        self.share = share


class _Repeated(threading.local):
    """The most bytes that a constant which the thread repeats may have in all rows; None is no bound."""

    bytes_max: int | None = None


_repeated = _Repeated()


@contextmanager
def repeating_at_most(bytes_max: int | None) -> Iterator[None]:
    """Let no constant be repeated by this thread within the block that has more bytes in all rows: `as_array` raises
    TooManyRepeated in place of that."""
    before, _repeated.bytes_max = _repeated.bytes_max, bytes_max
    try:
        yield
    finally:
        _repeated.bytes_max = before


def as_array(column: Column, rows: int) -> pa.Array:
    """Return the column as an array of `rows` values; a constant is repeated.

    Raises TooManyRepeated within `repeating_at_most`, if the constant would have too many bytes."""
    if isinstance(column, pa.Scalar):
        if not column.is_valid:
            return pa.nulls(rows, column.type)
        if pa.types.is_null(column.type):
            return pa.nulls(rows)
        if rows == 1:
            return _array_of_one(column)
        if _repeated.bytes_max is not None:
            nbytes = rows * constant_bytes(column)
            if nbytes > _repeated.bytes_max:
                raise TooManyRepeated(_repeated.bytes_max / nbytes)
        if pa.types.is_nested(column.type):
            return _array_of_one(column).take(from_numpy(np.zeros(rows, np.int64)))
        return pa.repeat(column, rows)
    return column


def constant_bytes(constant: pa.Scalar) -> int:
    """Return about how many bytes a text, an array, a map or a tuple has; 0 for NULL and for other constants."""
    arrow = constant.type
    if not constant.is_valid:
        return 0
    if pa.types.is_list(arrow) or pa.types.is_map(arrow):
        return int(constant.values.nbytes)
    if pa.types.is_struct(arrow):
        return sum(constant_bytes(constant[place]) for place in range(arrow.num_fields))
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return int(constant.as_buffer().size)
    return 0


def is_present(column: Column, rows: int) -> pa.BooleanArray:
    """Return for each of the rows whether the column's value is not NULL."""
    if isinstance(column, pa.Scalar):
        return pa.repeat(pa.scalar(column.is_valid), rows)
    return column.is_valid()


def _array_of_one(column: pa.Scalar) -> pa.Array:
    """Return a constant as an array of one value, nested types included."""
    arrow = column.type
    if not pa.types.is_nested(arrow):
        return pa.repeat(column, 1)
    if pa.types.is_list(arrow) or pa.types.is_map(arrow):
        offsets = pa.py_buffer(np.array([0, len(column.values)], np.int32))
        return pa.Array.from_buffers(arrow, 1, [None, offsets], children=[column.values])
    if pa.types.is_struct(arrow) and arrow.num_fields:
        fields = [as_array(column[place], 1) for place in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(arrow))
    try:
        return pa.array([column], column.type)
    except pa.ArrowNotImplementedError:  # a nested value of Arrow's null type
        return pa.array([column.as_py()], column.type)


def single(column: Column) -> pa.Array:
    """Return a constant as an array of one value, an array unchanged."""
    return as_array(column, 1) if isinstance(column, pa.Scalar) else column


def from_scalars(values: Iterable[pa.Scalar], arrow: pa.DataType) -> pa.Array:
    """Build an array of type `arrow` from constants, which have this type, are NULL of any type, or are cast."""
    present = [value if value.is_valid else None for value in values]
    typed = [v if v is None or v.type == arrow else v.cast(arrow) for v in present]
    if not pa.types.is_nested(arrow) and 0 < len(typed) <= _SCALARS_MAX:
        return pa.concat_arrays(
            [pa.nulls(1, arrow) if v is None else pa.repeat(v, 1) for v in typed]
        )
    return pa.array(typed, arrow)


def dtype_of(arrow: pa.DataType) -> np.dtype:
    """Return numpy's type of the physical values of an Arrow type."""
    dtype = _DTYPES.get(arrow.id)
    if dtype is None:
        dtype = np.dtype(arrow.to_pandas_dtype())
    return dtype


_DTYPES: dict[int, np.dtype] = {
    pa.uint8().id: np.dtype(np.uint8),
    pa.int8().id: np.dtype(np.int8),
    pa.uint16().id: np.dtype(np.uint16),
    pa.int16().id: np.dtype(np.int16),
    pa.uint32().id: np.dtype(np.uint32),
    pa.int32().id: np.dtype(np.int32),
    pa.uint64().id: np.dtype(np.uint64),
    pa.int64().id: np.dtype(np.int64),
    pa.float32().id: np.dtype(np.float32),
    pa.float64().id: np.dtype(np.float64),
    pa.bool_().id: np.dtype(np.uint8),
    pa.date32().id: np.dtype(np.int32),
    pa.timestamp("s").id: np.dtype(np.int64),
}


def numpy_values(array: pa.Array) -> np.ndarray:
    """Return the physical values of a fixed-width array as numpy; copies only Bool."""
    if pa.types.is_boolean(array.type):
        return numpy_values(array.cast(pa.uint8()))
    dtype = dtype_of(array.type)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype)
    start = array.offset * dtype.itemsize
    return np.frombuffer(buffer, dtype, len(array), start)


def operand(column: Column) -> np.ndarray:
    """Return the physical values of a column without NULL as numpy; a constant gives an array of one value, which
    numpy broadcasts."""
    if isinstance(column, pa.Scalar):
        timed = isinstance(column, pa.Date32Scalar | pa.TimestampScalar)
        return np.array([column.value if timed else column.as_py()], dtype_of(column.type))
    return numpy_values(column)


def validity(array: pa.Array) -> np.ndarray | None:
    """Return True for each row with a value, or None if no row is null."""
    if not array.null_count:
        return None
    return np.asarray(array.is_valid())


def mask_buffer(valid: np.ndarray | None) -> pa.Buffer | None:
    """Pack a mask of the valid rows into Arrow's validity bitmap; None if all rows are valid or `valid` is None."""
    if valid is None or bool(valid.all()):
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())


def from_values(
    values: np.ndarray, arrow: pa.DataType, valid: np.ndarray | None = None
) -> pa.Array:
    """Return an Arrow array of physical values, wrapped or rounded to the type's width."""
    if pa.types.is_boolean(arrow):
        bits = np.packbits(values.astype(bool), bitorder="little").tobytes()
        buffers = [mask_buffer(valid), pa.py_buffer(bits)]
        return pa.Array.from_buffers(arrow, len(values), buffers)
    data = np.ascontiguousarray(converted(values, dtype_of(arrow)))
    return pa.Array.from_buffers(arrow, len(data), [mask_buffer(valid), pa.py_buffer(data)])


def view(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Reinterpret the array's buffers as another type of the same width (int64 as timestamp), without a copy."""
    if array.type == arrow:
        return array
    return pa.Array.from_buffers(
        arrow, len(array), array.buffers(), null_count=array.null_count, offset=array.offset
    )


def text(array: pa.Array) -> pa.Array:
    """Return binary values as `string`, without validation: String holds any bytes."""
    if pa.types.is_string(array.type):
        return array
    if pa.types.is_fixed_size_binary(array.type):
        array = _of_fixed_size(array)
    return view(array, pa.string())


def unpadded(array: pa.Array) -> pa.Array:
    """Return strings without the zero padding of a FixedString, as parsers expect them."""
    padded = pa.types.is_fixed_size_binary(array.type)
    return pc.ascii_rtrim(text(array), characters="\0") if padded else text(array)


def binary(array: pa.Array) -> pa.Array:
    """Return String values as `binary`; copies only FixedString."""
    if pa.types.is_fixed_size_binary(array.type):
        return _of_fixed_size(array)
    return view(array, pa.binary())


def _of_fixed_size(array: pa.FixedSizeBinaryArray) -> pa.Array:
    """Convert fixed-size binary values to `binary`. Arrow's own cast of a slice keeps the bytes before the slice, on
    which text kernels fail."""
    rows, width = len(array), array.type.byte_width
    if not rows or rows * width >= 2**31:
        return array.cast(pa.binary())  # which raises for so many bytes
    data = array.buffers()[1].slice(array.offset * width, rows * width)
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    return pa.Array.from_buffers(pa.binary(), rows, [mask_buffer(validity(array)), offsets, data])


def offsets_of(array: pa.Array) -> np.ndarray:
    """Return the offsets of a string, binary, list or map array, int64, shape (rows + 1,).

    They are those of the buffer and need not begin at 0.
    """
    if not len(array):
        return np.zeros(1, np.int64)
    buffer = array.buffers()[1]
    offsets = np.frombuffer(buffer, np.int32, len(array) + 1, array.offset * 4)
    return offsets.astype(np.int64)


def bytes_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets from 0, bytes) of a string or binary array. A null row may have bytes of its own; the caller
    ignores them."""
    offsets = offsets_of(array)
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def strings_from(
    offsets: np.ndarray, data: np.ndarray, valid: np.ndarray | None = None
) -> pa.Array:
    """Return a string array of integer offsets from 0 and uint8 bytes."""
    _check_offsets(offsets)
    lengths = pa.py_buffer(converted(offsets, np.int32))
    body = pa.py_buffer(np.ascontiguousarray(data))
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [mask_buffer(valid), lengths, body])


def elements_of(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return (offsets from 0, elements) of a list array; a null list becomes an empty one."""
    if array.null_count:
        array = array.fill_null(pa.scalar([], array.type))
    offsets = offsets_of(array)
    return offsets - offsets[0], array.values.slice(offsets[0], offsets[-1] - offsets[0])


def lists_from(
    offsets: np.ndarray, elements: pa.Array, valid: np.ndarray | None = None
) -> pa.Array:
    """Return a list array of int64 offsets from 0 over its elements."""
    _check_offsets(offsets)
    return pa.Array.from_buffers(
        pa.list_(elements.type),
        len(offsets) - 1,
        [mask_buffer(valid), pa.py_buffer(offsets.astype(np.int32))],
        children=[elements],
    )


def _check_offsets(offsets: np.ndarray) -> None:
    """Raise MemoryLimitExceeded if Arrow's 32-bit offsets would wrap around."""
    if len(offsets) and int(offsets[-1]) >= 2**31:
        raise MemoryLimitExceeded(
            f"The texts or arrays of one batch would have {int(offsets[-1])} bytes or elements.",
            hint="Make them shorter, or read fewer rows at a time.",
        )


def retype(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return the same values under an Arrow type that differs only in field names."""
    return array if array.type == arrow else array.cast(arrow)


def structs_from(
    fields: Sequence[pa.Array], arrow: pa.DataType, valid: np.ndarray | None = None, rows: int = 0
) -> pa.Array:
    """Build a struct array from its fields' columns; `rows` gives the length where there are no fields."""
    count = len(fields[0]) if fields else rows
    children = [retype(f, arrow.field(i).type) for i, f in enumerate(fields)]
    return pa.Array.from_buffers(arrow, count, [mask_buffer(valid)], children=children)


def maps_from(
    offsets: np.ndarray, keys: pa.Array, values: pa.Array, arrow: pa.DataType
) -> pa.Array:
    """Return a column of maps of the Arrow type from offsets, which begin at 0, keys and values."""
    array = pa.MapArray.from_arrays(from_numpy(offsets.astype(np.int32)), keys, values)
    return array if array.type == arrow else array.cast(arrow)


def struct_fields(array: pa.Array) -> list[pa.Array]:
    """Return the fields' columns of a struct array; where the struct is null, each field is null."""
    return list(array.flatten())


def parents_of(offsets: np.ndarray) -> np.ndarray:
    """Return for each list element the number of the row whose list it is in."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def offsets_from_counts(counts: np.ndarray) -> np.ndarray:
    """Return the offsets, from 0, of lists with these numbers of elements."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))


def scatter(values: pa.Array, valid: np.ndarray) -> pa.Array:
    """Place `values` on the rows where `valid` is True, one each, and NULL elsewhere."""
    positions = np.cumsum(valid, dtype=np.int64) - 1
    return values.take(pa.array(positions, mask=~valid))


def replaced_rows(values: pa.Array, rows: np.ndarray, new: pa.Array) -> pa.Array:
    """Return `values` with the rows `rows`, in ascending order, replaced by `new`."""
    if len(rows) == len(values):
        return new
    places = np.arange(len(values))
    places[rows] = len(values) + np.arange(len(rows))
    return pa.concat_arrays([values, new]).take(from_numpy(places))


def all_valid(columns: Sequence[Column], rows: int) -> np.ndarray | None:
    """Return True for each row without a NULL in any column, or None if that is every row."""
    merged: np.ndarray | None = None
    for column in columns:
        if isinstance(column, pa.Scalar):
            if not column.is_valid:
                return np.zeros(rows, bool)
            continue
        valid = validity(column)
        if valid is not None:
            merged = valid if merged is None else merged & valid
    return merged


def truth(column: Column) -> Column:
    """Return a condition as Arrow's boolean: non-zero is true, NULL stays NULL."""
    if isinstance(column, pa.Scalar):
        return truth(single(column))[0]
    if pa.types.is_boolean(column.type):
        return column
    if pa.types.is_null(column.type):
        return column.cast(pa.bool_())
    return pc.not_equal(column, from_values(np.zeros(1, np.int8), column.type)[0])


def true_positions(keep: pa.BooleanArray) -> np.ndarray:
    """Return the positions, ascending int64, at which the mask is true; NULL counts as false."""
    if library() is not None:
        return selection.positions(keep)
    plain_keep = pc.fill_null(keep, False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(plain_keep)


def coded_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows whose code, an int64, is 0 or more, ascending, and the codes of these rows; int64 both."""
    if library() is not None:
        return selection.coded_rows(np.ascontiguousarray(codes))
    rows = np.flatnonzero(codes >= 0)
    return rows, np.take(codes, rows)


def wrapped(column: Column, arrow: pa.DataType) -> Column:
    """Cast a column or constant of numbers to `arrow`; integers wrap around."""
    return column if column.type == arrow else pc.cast(column, arrow, safe=False)


def has_lists(arrow: pa.DataType) -> bool:
    """Return whether values of a type are, or have inside of them, lists or maps."""
    inner = (arrow.field(at).type for at in range(arrow.num_fields))
    return pa.types.is_list(arrow) or pa.types.is_map(arrow) or any(map(has_lists, inner))
