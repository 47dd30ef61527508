"""ascii, char, hex and unhex: strings as byte codes, and values as hexadecimal digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalColumn, TooFewArguments, UnsupportedMethod
from olapdb.functions.base import Argument
from olapdb.functions.casts.parsing import unhexed
from olapdb.functions.kernels import brain_floats, columns, slices
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    define,
    illegal,
    require,
    with_count_errors,
)
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import TEXT_TYPES, text_kernel, text_rule
from olapdb.lazy import LazyModule
from olapdb.types import (
    INT32,
    STRING,
    UUID,
    AggregateFunction,
    Array,
    BFloat16,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    Float,
    Integer,
    IPv6,
    Map,
    Time,
    Time64,
    WideNumber,
)

if TYPE_CHECKING:
    from olapdb.functions.aggregates import state_bytes
else:
    state_bytes = LazyModule("olapdb.functions.aggregates.state_bytes")


def _ascii(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the code of the first byte, 0 for an empty string, as Int32: the kernel of ascii."""
    first = slices.pieces(
        columns.text(arrays[0]),
        np.zeros(len(arrays[0]), np.int64),
        np.ones(len(arrays[0]), np.int64),
    )
    offsets, data = columns.bytes_of(columns.binary(first))
    out = np.zeros(len(first), np.int32)
    out[np.diff(offsets) > 0] = data
    return columns.from_values(out, pa.int32())


def _char_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless all arguments are numbers."""
    require(name, types, (Integer, Float), "a number")
    return STRING


def _char(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return the strings of the bytes with these codes, modulo 256 and without their digits behind
    the point: the kernel of char."""
    with np.errstate(invalid="ignore"):  # NaN and infinities have no integer: 0 on every machine
        codes = [
            np.nan_to_num(columns.numpy_values(a), nan=0, posinf=0, neginf=0).astype(np.int64)
            for a in arrays
        ]
    matrix = np.stack(codes, axis=1).astype(np.uint8)
    offsets = np.arange(call.rows + 1, dtype=np.int64) * len(arrays)
    return columns.strings_from(offsets, matrix.reshape(-1))


def hex_digits(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Return hexadecimal digits of strings, numbers, dates, decimals and UUIDs, as ClickHouse's
    hex.
    """
    array = arrays[0]
    if isinstance(call.types[0], AggregateFunction):
        array = _bytes_of_states(array, call.types[0])
    if isinstance(call.types[0], (*TEXT_TYPES, AggregateFunction)):
        offsets, data = columns.bytes_of(columns.binary(array))
        return columns.strings_from(offsets * 2, rendering.hex_matrix(data[:, None]).reshape(-1))
    if isinstance(call.types[0], UUID | IPv6):
        return columns.text(columns.binary(_all_digits(rendering.fixed_bytes(array))))
    if isinstance(call.types[0], WideNumber):
        raw = _decimal_bytes(array, 38 if call.types[0].bits == 128 else 76)
        return _significant_digits(np.ascontiguousarray(raw[:, ::-1]))
    if isinstance(call.types[0], Decimal):
        return _all_digits(_decimal_bytes(array, call.types[0].precision))
    if isinstance(call.types[0], BFloat16):
        return _all_digits(brain_floats.words_of(array).view(np.uint8).reshape(-1, 2))
    values = columns.numpy_values(array)
    if isinstance(call.types[0], Date):
        values = values.astype(np.uint16)
    elif isinstance(call.types[0], DateTime):
        values = values.astype(np.uint32)
    if values.dtype.kind in "iu":
        return _digits_without_leading_zeros(values)
    raw = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"))).view(np.uint8)
    return _all_digits(raw.reshape(len(values), values.dtype.itemsize))


def _bytes_of_states(states: pa.Array, state_type: AggregateFunction) -> pa.Array:
    """Return the bytes of states; raise UnsupportedMethod if they are not those of ClickHouse."""
    encoded = state_bytes.state_bytes(columns.single(states), state_type)
    if encoded is None:
        raise UnsupportedMethod(
            f"hex of {state_type} is not supported: such a state has no bytes here.",
            hint="finalizeAggregation gives its value.",
        )
    return encoded


def _digits_without_leading_zeros(values: np.ndarray) -> pa.Array:
    """Return the hexadecimal digits of integers without leading zero bytes; 0 gives "00"."""
    width = values.dtype.itemsize
    raw = values.astype(values.dtype.newbyteorder(">")).view(np.uint8).reshape(len(values), width)
    return _significant_digits(raw)


def _significant_digits(raw: np.ndarray) -> pa.Array:
    """Return the hexadecimal digits of byte rows without leading zero bytes; the last byte is always written."""
    nonzero = (raw != 0) | (np.arange(raw.shape[1]) == raw.shape[1] - 1)
    keep = np.arange(raw.shape[1])[None, :] >= np.argmax(nonzero, axis=1)[:, None]
    keep = np.repeat(keep, 2, axis=1)
    return columns.strings_from(
        columns.offsets_from_counts(keep.sum(axis=1)), rendering.hex_matrix(raw)[keep]
    )


def _all_digits(raw: np.ndarray) -> pa.Array:
    """Return the hexadecimal digits of byte rows, shape (rows, width)."""
    offsets = np.arange(len(raw) + 1, dtype=np.int64) * 2 * raw.shape[1]
    return columns.strings_from(
        offsets, rendering.hex_matrix(np.ascontiguousarray(raw)).reshape(-1)
    )


def _decimal_bytes(array: pa.Array, precision: int) -> np.ndarray:
    """Return the little-endian bytes of decimals, in the width that ClickHouse stores; uint8, shape
    (rows, width)."""
    width = next(w for digits, w in ((9, 4), (18, 8), (38, 16), (76, 32)) if precision <= digits)
    stored = array.type.byte_width
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    raw = np.frombuffer(buffer, np.uint8, len(array) * stored, array.offset * stored)
    return raw.reshape(len(array), stored)[:, :width]


def _hex_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument for arrays, maps, Enums and the like, and IllegalColumn for a
    DateTime64."""
    if isinstance(types[0], DateTime64):
        raise IllegalColumn(
            f"{name} does not take a DateTime64.", hint="Give it the time as a number or a text."
        )
    if isinstance(types[0], Array | Map | Time | Time64 | Date32 | Enum):
        raise illegal(name, types[0], "a String, number or date")
    return STRING


def _unhex(array: pa.Array) -> pa.Array:
    """Return the bytes that hexadecimal digits spell, as unhex; an odd number gets a 0 in front.

    Any other character counts as the byte 255, as in ClickHouse.
    """
    odd = pc.equal(pc.bit_wise_and(pc.binary_length(array), 1), 1)
    even = pc.if_else(odd, pc.binary_join_element_wise("0", array, ""), array)
    offsets, data = columns.bytes_of(even)
    return columns.strings_from(offsets // 2, unhexed(data))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("ascii", text_rule(INT32), _ascii, insensitive=True),
    *with_count_errors(
        (define("char", _char_rule, _char, count=(1, None), insensitive=True),), few=TooFewArguments
    ),
    define("hex", _hex_rule, hex_digits, insensitive=True),
    define("unhex", text_rule(STRING), text_kernel(_unhex), insensitive=True),
)
