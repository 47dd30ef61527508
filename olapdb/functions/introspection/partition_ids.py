"""partitionId(…): the id that ClickHouse gives the partition of a key.

Integers, dates and times are written one behind the other, `202401-3`; a key with other values is hashed, as
MergeTreePartition of ClickHouse does: SipHash of each value's kind and bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.numeric.byte_hashes import values_of
from olapdb.functions.numeric.sip_hashes import sip_hash128
from olapdb.functions.strings import rendering
from olapdb.types import (
    STRING,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    Enum,
    FixedString,
    Float,
    Integer,
    IPv4,
    String,
)

_NUMBERED = (Integer, Date, Date32, DateTime, Enum, IPv4, Boolean)
"""Types whose values are written as numbers."""
_HASHED = (Integer, Date, Date32, DateTime, Float, String, FixedString)
_UNSIGNED, _SIGNED, _FLOAT, _TEXT = (bytes([kind]) for kind in (1, 2, 3, 16))
"""How ClickHouse numbers the kinds of values."""


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise NotSupportedError for types of keys that olapdb has no id for."""
    taken = _NUMBERED if all(isinstance(t, _NUMBERED) for t in types) else _HASHED
    for data_type in types:
        if not isinstance(data_type, taken):
            raise NotSupportedError(
                f"{name} takes numbers, days, times and texts, not {data_type}."
            )
    return STRING


def _partition_ids(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the id of each row's key."""
    keys = list(zip(arrays, call.types, strict=True))
    if all(isinstance(data_type, _NUMBERED) for data_type in call.types):
        return pc.binary_join_element_wise(*(_number(array, t) for array, t in keys), "-")
    fields = pc.binary_join_element_wise(*(_field(array, t) for array, t in keys), b"")
    words = sip_hash128(values_of(fields))
    digits = rendering.hex_matrix(np.ascontiguousarray(words).view(np.uint8).reshape(-1, 1))
    return columns.strings_from(
        np.arange(len(words) + 1) * 32, np.char.lower(digits.reshape(-1).view("S1")).view(np.uint8)
    )


def _number(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return the texts of numbers; a Date as 20240131, a Date32 as the number of its day."""
    if isinstance(data_type, Date):
        return pc.strftime(array, "%Y%m%d")
    numbers = columns.numpy_values(array).astype(np.int64 if _signed(data_type) else np.uint64)
    return pa.array(numbers).cast(pa.string())


def _signed(data_type: DataType) -> bool:
    """Return whether values of the type may be negative."""
    return isinstance(data_type, Date32 | Enum) or (
        isinstance(data_type, Integer) and data_type.signed
    )


def _field(array: pa.Array, data_type: DataType) -> pa.Array:
    """Return what is hashed of each value: its kind, and its 8 bytes, or the length and the bytes of a text."""
    if isinstance(data_type, String | FixedString):
        texts = columns.binary(array).cast(pa.binary())
        lengths = pc.binary_length(texts)
        return pc.binary_join_element_wise(
            pa.scalar(_TEXT), _bytes_of(columns.numpy_values(lengths).astype("<u8")), texts, b""
        )
    values = columns.numpy_values(array)
    if isinstance(data_type, Float):
        return pc.binary_join_element_wise(pa.scalar(_FLOAT), _bytes_of(values.astype("<f8")), b"")
    kind, width = (_SIGNED, "<i8") if _signed(data_type) else (_UNSIGNED, "<u8")
    return pc.binary_join_element_wise(pa.scalar(kind), _bytes_of(values.astype(width)), b"")


def _bytes_of(values: np.ndarray) -> pa.Array:
    """Return the 8 bytes of each number."""
    data = pa.py_buffer(np.ascontiguousarray(values).tobytes())
    fixed = pa.Array.from_buffers(pa.binary(8), len(values), [None, data])
    return fixed.cast(pa.binary())


DEFINITIONS = (
    scalar.define("partitionId", _rule, _partition_ids, count=(1, None), aliases=("partitionID",)),
)
