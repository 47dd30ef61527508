"""Arrow arrays from Python's and numpy's values and back, by their buffers.

`pa.array` and `pa.scalar` import pandas where it is installed, to recognise its objects. That takes
longer than a first query, so the few values that nearly every query has are made without them.
For the same reason numpy's values are taken and given here, not by `pa.array` and `to_numpy`.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import sys
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

VALUES_MAX = 1_000
"""A sequence of up to so many values is packed here, whether pandas is loaded or not: the child of a fork would wait
for ever for an import that a thread of its parent had begun."""
VALUES_MAX_WITHOUT_PANDAS = 50_000
"""The longest sequence that is packed here while pandas is not loaded: loading it takes less time than packing more."""
_FORMATS = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
}
"""The format of an integer in `struct`, by Arrow type."""
_EXACT_INTEGERS = {pa.float32(): 1 << 24, pa.float64(): 1 << 53}
"""The largest integer up to which a float type holds all integers."""
_UNIT_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_TEXTS = {pa.string(): "i", pa.binary(): "i", pa.large_string(): "q", pa.large_binary(): "q"}
"""The format of an offset, by Arrow type."""
_NUMBERS: dict[np.dtype, pa.DataType] = {
    np.dtype(arrow.to_pandas_dtype()): arrow for arrow in (*_FORMATS, pa.float32(), pa.float64())
}
_DTYPES = {arrow: dtype for dtype, arrow in _NUMBERS.items()}
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


def array_of(values: Sequence[object], arrow: pa.DataType) -> pa.Array:
    """Build an array of Python values, equal to `pa.array(values, arrow)` but faster. Raises the same errors."""
    limit = VALUES_MAX if "pandas" in sys.modules else VALUES_MAX_WITHOUT_PANDAS
    if len(values) > limit:
        return pa.array(values, arrow)
    array = packed(values, arrow)
    return pa.array(values, arrow) if array is None else array


def packed(values: Sequence[object], arrow: pa.DataType) -> pa.Array | None:
    """Build an array from buffers, equal to `pa.array(values, arrow)`. Returns None for values of several classes,
    unsupported types, and values that do not fit."""
    present = [value for value in values if value is not None]
    if not present:
        return pa.nulls(len(values), arrow)
    kinds = set(map(type, present))
    kind = kinds.pop()
    return None if kinds else _of_one_kind(values, kind, arrow, len(present) < len(values))


def scalar_of(value: object, arrow: pa.DataType) -> pa.Scalar:
    """Convert a Python value to a scalar of the type. Raises the errors of `pa.array`."""
    return array_of([value], arrow)[0]


def from_numpy(values: np.ndarray, null: np.ndarray | None = None) -> pa.Array:
    """Convert numpy values to Arrow, NULL where the mask `null` is True, as `pa.array` does. Numbers are not copied."""
    is_bool = values.dtype == np.bool_
    arrow = pa.bool_() if is_bool else _NUMBERS.get(values.dtype)
    if arrow is None or values.ndim != 1:
        return pa.array(values, mask=null)
    bitmap = None if null is None or not null.any() else np.packbits(~null, bitorder="little")
    data = np.packbits(values, bitorder="little") if is_bool else np.ascontiguousarray(values)
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(data)]
    return pa.Array.from_buffers(arrow, len(values), buffers)


def to_numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Convert to numpy as `array.to_numpy(zero_copy_only=False)` does. Numbers without NULL are not copied."""
    dtype = _DTYPES.get(array.type)
    is_bool = pa.types.is_boolean(array.type)
    if isinstance(array, pa.ChunkedArray) or array.null_count or not (dtype or is_bool):
        values: np.ndarray = (
            array.to_numpy()
            if isinstance(array, pa.ChunkedArray)
            else array.to_numpy(zero_copy_only=False)
        )
        return values
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(0, dtype or np.bool_)
    if dtype is not None:
        return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    first_byte, skipped = divmod(array.offset, 8)
    stored = np.frombuffer(buffer, np.uint8, (skipped + len(array) + 7) // 8, first_byte)
    bits = np.unpackbits(stored, count=skipped + len(array), bitorder="little")
    return bits[skipped:].view(np.bool_)


def _of_one_kind(
    values: Sequence[object], kind: type, arrow: pa.DataType, has_nulls: bool
) -> pa.Array | None:
    """Build an array of values that are all of class `kind` or None, which are there if `has_nulls`. Returns None for
    unsupported types, and values that do not fit."""
    bitmap = None
    if has_nulls:
        valid = np.array([value is not None for value in values])
        bitmap = np.packbits(valid, bitorder="little").tobytes()
    if kind in (list, tuple) and pa.types.is_list(arrow):
        return _lists(values, bitmap, arrow)
    buffers = _fixed(values, kind, arrow) or _texts(values, kind, arrow)  # type: ignore[arg-type]
    if buffers is None:
        return None
    parts = (bitmap, *buffers)
    return pa.Array.from_buffers(
        arrow, len(values), [None if part is None else pa.py_buffer(part) for part in parts]
    )


def _fixed(values: Sequence[object], kind: type, arrow: pa.DataType) -> tuple[bytes] | None:
    """Pack the values of a fixed-width type as little-endian bytes; None where `_of_one_kind` returns None."""
    count = len(values)
    if kind is int and (integer := _integer_format(arrow)):
        try:
            return (struct.pack(f"={count}{integer}", *[v or 0 for v in values]),)
        except struct.error:
            return None
    if kind is datetime.datetime and pa.types.is_timestamp(arrow):
        return _timestamps(values, arrow)
    if kind is float and arrow in _EXACT_INTEGERS:
        floats = np.array([0.0 if v is None else v for v in values])
        with np.errstate(over="ignore"):
            return (floats.astype(arrow.to_pandas_dtype()).tobytes(),)
    if kind is int and arrow in _EXACT_INTEGERS:
        numbers = [v for v in values if isinstance(v, int)]
        if max(map(abs, numbers)) > _EXACT_INTEGERS[arrow]:
            return None
        return (np.array([v or 0 for v in values], arrow.to_pandas_dtype()).tobytes(),)
    if kind is bytes and pa.types.is_fixed_size_binary(arrow):
        width = arrow.byte_width
        parts = [value if isinstance(value, bytes) else bytes(width) for value in values]
        return (b"".join(parts),) if all(len(part) == width for part in parts) else None
    if kind is decimal.Decimal and pa.types.is_decimal(arrow):
        return _decimals(values, arrow)
    if kind is bool and arrow == pa.bool_():
        return (np.packbits([v is True for v in values], bitorder="little").tobytes(),)
    if kind is datetime.date and arrow == pa.date32():
        days = (v.toordinal() - _EPOCH_DAY if isinstance(v, datetime.date) else 0 for v in values)
        return (struct.pack(f"={count}i", *days),)
    return None


def _integer_format(arrow: pa.DataType) -> str | None:
    """Return the `struct` format of an Arrow type whose values are stored as Python's integers: numbers, and times
    that count their unit. None for other types."""
    if arrow in _FORMATS:
        return _FORMATS[arrow]
    if arrow == pa.date32():
        return "i"
    return "q" if pa.types.is_timestamp(arrow) or pa.types.is_duration(arrow) else None


def _timestamps(values: Sequence[object], arrow: pa.TimestampType) -> tuple[bytes] | None:
    """Pack datetimes as counts of the unit since 1970 in UTC, rounded down; those without a zone count as UTC.
    Returns None for nanoseconds, and for datetimes with a zone in a type without one."""
    unit = _UNIT_MICROSECONDS.get(arrow.unit)
    moments = [
        v if isinstance(v, datetime.datetime) else _EPOCH.replace(tzinfo=None) for v in values
    ]
    zoned = any(moment.tzinfo is not None for moment in moments)
    if unit is None or (zoned and arrow.tz is None):
        return None
    counts = []
    for moment in moments:
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        counts.append((moment - _EPOCH) // _MICROSECOND // unit)
    return (struct.pack(f"={len(counts)}q", *counts),)


def _decimals(values: Sequence[object], arrow: pa.Decimal128Type) -> tuple[bytes] | None:
    """Pack decimals as little-endian unscaled integers of the type's width; values that are no Decimal become 0. None
    if a value has more digits, before or after the point, than the type, or is not finite."""
    limit, width, parts = 10**arrow.precision, arrow.bit_width // 8, []
    for value in values:
        number = (
            value if isinstance(value, decimal.Decimal) else decimal.Decimal(0).scaleb(-arrow.scale)
        )
        sign, digits, exponent = number.as_tuple()
        shift = exponent + arrow.scale if isinstance(exponent, int) else -1
        if not 0 <= shift <= arrow.precision:
            return None
        unscaled = int("".join(map(str, digits))) * 10**shift
        if unscaled >= limit:
            return None
        parts.append((-unscaled if sign else unscaled).to_bytes(width, "little", signed=True))
    return (b"".join(parts),)


def _lists(values: Sequence[object], bitmap: bytes | None, arrow: pa.ListType) -> pa.Array | None:
    """Build an array of lists or tuples; None where `packed` returns None. `bitmap` says which values are not None;
    None if all are."""
    lists = [value if isinstance(value, (list, tuple)) else () for value in values]
    offsets = np.array([0, *accumulate(map(len, lists))], np.int32)
    items = packed([item for value in lists for item in value], arrow.value_type)
    if items is None:
        return None
    validity = None if bitmap is None else pa.py_buffer(bitmap)
    return pa.Array.from_buffers(
        arrow, len(values), [validity, pa.py_buffer(offsets)], children=[items]
    )


def _texts(
    values: Sequence[str | bytes | None], kind: type, arrow: pa.DataType
) -> tuple[bytes, bytes] | None:
    """Return the offsets and the bytes of texts or binary values; None where `_of_one_kind` returns None."""
    if arrow not in _TEXTS or kind not in (str, bytes):
        return None
    if kind is bytes and arrow not in (pa.binary(), pa.large_binary()):
        return None
    joined = _ascii(values) if kind is str else None
    if joined is not None:
        ends = accumulate(map(len, values), initial=0)  # type: ignore[arg-type]
        return struct.pack(f"={len(values) + 1}{_TEXTS[arrow]}", *ends), joined
    try:
        parts = [v.encode() if isinstance(v, str) else bytes(v or b"") for v in values]
    except UnicodeEncodeError:
        return None
    offsets = accumulate(map(len, parts), initial=0)
    return struct.pack(f"={len(values) + 1}{_TEXTS[arrow]}", *offsets), b"".join(parts)


def _ascii(values: Sequence[str | bytes | None]) -> bytes | None:
    """Return the bytes of all texts, one behind the other, where each character is a byte. None if one is not, or is NULL."""
    try:
        joined = "".join(values)  # type: ignore[arg-type]
    except TypeError:  # a NULL
        return None
    return joined.encode() if joined.isascii() else None


TRUE, FALSE = (
    pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(b)])[0] for b in (b"\1", b"\0")
)
"""Arrow's truth values, for its functions: these import pandas for a Python value."""
