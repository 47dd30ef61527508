"""Reads RowBinary: values as bytes, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.absent import apart
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.byte_positions import ByteBlock, blocks_of_rows, repeated, row_starts
from olapdb.formats.heads import Head, checked_head
from olapdb.functions.kernels import brain_floats, columns
from olapdb.functions.kernels.escapes import spans
from olapdb.functions.variants.values import NO_ALTERNATIVE, assembled

_VARINT_BYTES = 5
_DECIMAL_BYTES = ((9, 4), (18, 8), (38, 16), (76, 32))
"""The bytes of a decimal of at most so many digits."""


def with_json_as_text(data_type: types.DataType) -> types.DataType:
    """Return the type with each JSON in it replaced by String; the typed paths of a JSON are not touched."""
    match data_type:
        case types.Json():
            return types.STRING
        case types.Nullable(inner):
            return types.Nullable(with_json_as_text(inner))
        case types.Array(inner):
            return types.with_inner(data_type, with_json_as_text(inner))
        case types.Map(key, value):
            return types.Map(key, with_json_as_text(value))
        case types.Tuple(elements=elements):
            return types.with_elements(data_type, tuple(map(with_json_as_text, elements)))
        case _:
            return data_type


# --- ends


def _ends(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> np.ndarray:
    """Return for each position the position after the value of this type that begins there."""
    match data_type:
        case types.Nullable(inner):
            behind = block.moved(at, 1)
            is_null = block.data[at] == 1
            return np.where(is_null, behind, _ends(block, behind, inner))
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return _ends(block, at, inner)
        case types.String():
            lengths, behind = block.numbers(at)
            return block.moved(behind, lengths)
        case types.Array() | types.Map():
            counts, behind = block.numbers(at)
            counts = np.minimum(counts, block.beyond)
            return repeated(block, behind, counts, partial(_ends, data_type=_element(data_type)))
        case types.Tuple(elements=elements):
            for element in elements:
                at = _ends(block, at, element)
            return at
        case types.Variant(alternatives):
            number, behind = block.data[at], block.moved(at, 1)
            ends = behind
            for place, alternative in enumerate(alternatives):
                ends = np.where(number == place, _ends(block, behind, alternative), ends)
            return ends
        case _:
            return block.moved(at, byte_width(data_type))


def _element(data_type: types.Array | types.Map) -> types.DataType:
    """Return the type of the values that an array or a map has one behind the other: a map's are tuples (key, value)."""
    if isinstance(data_type, types.Map):
        return types.Tuple((data_type.key, data_type.value))
    return data_type.inner


def texts_at_start(data: bytes, count: int) -> tuple[pa.Array, int]:
    """Read up to `count` texts from the start of the data; return the complete ones and their total number of bytes."""
    block = ByteBlock.of(data)
    at, end = row_starts(block, partial(_ends, data_type=types.STRING), "RowBinary")
    if len(at) > count:
        at, end = at[:count], int(at[count])
    return _values(block, at, types.STRING), end


def byte_width(data_type: types.DataType, format_name: str = "RowBinary") -> int:
    """Return the number of bytes of a fixed-width type. Raises NotSupportedError for states of aggregates, and for
    types whose values have types of their own."""
    match data_type:
        case types.Json():
            raise errors.NotSupportedError(
                f"Reading {format_name} of {data_type} by its paths is not supported.",
                hint="SETTINGS input_format_binary_read_json_as_string = 1 reads texts of JSON."
                if format_name == "RowBinary"
                else "Read a String column, and cast it to JSON.",
            )
        case types.Dynamic():
            raise errors.NotSupportedError(
                f"Reading {format_name} of {data_type} is not supported.",
                hint="Read a column of one type, and cast it to Dynamic.",
            )
        case types.AggregateFunction():
            raise errors.NotSupportedError(
                f"{format_name} of {data_type} is not supported: states have other bytes here.",
                hint="Insert values, and aggregate them.",
            )
        case types.Boolean() | types.Nothing():
            return 1
        case types.Date() | types.BFloat16():
            return 2
        case types.DateTime():
            return 4
        case types.WideNumber():
            return data_type.bits // 8
        case types.Decimal(precision=precision):
            return next(size for digits, size in _DECIMAL_BYTES if precision <= digits)
        case _:
            return int(data_type.arrow.byte_width)


# --- values


def _values(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode the values at the positions."""
    match data_type:
        case types.Nullable(inner):
            valid = block.data[at] != 1
            present = _values(block, at[valid] + 1, inner)
            return present if valid.all() else columns.scatter(present, valid)
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return _values(block, at, inner)
        case types.String():
            lengths, behind = block.numbers(at)
            return spans(block.data, behind, behind + lengths)
        case types.Array(inner):
            offsets, starts = _elements(block, at, data_type)
            return columns.lists_from(offsets, _values(block, starts, inner))
        case types.Map(key, value):
            offsets, starts = _elements(block, at, data_type)
            keys = _values(block, starts, key)
            items = _values(block, _ends(block, starts, key), value)
            return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
        case types.Tuple(elements=elements):
            parts = []
            for element in elements:
                parts.append(_values(block, at, element))
                at = _ends(block, at, element)
            return columns.structs_from(parts, data_type.arrow, rows=len(at))
        case types.Variant(alternatives):
            number = block.data[at]
            if ((number >= len(alternatives)) & (number != NO_ALTERNATIVE)).any():
                raise errors.IncorrectData(
                    f"The data are not RowBinary: {data_type} has no such type."
                )
            values = {
                place: _values(block, at[number == place] + 1, alternative)
                for place, alternative in enumerate(alternatives)
            }
            return assembled(data_type, number, values)
        case _:
            rows = block.data[at[:, None] + np.arange(byte_width(data_type))]
            return scalars_of(np.ascontiguousarray(rows), data_type)


def _elements(
    block: ByteBlock, at: np.ndarray, data_type: types.Array | types.Map
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of lists, and the position of each of their elements."""
    counts, behind = block.numbers(at)
    offsets = columns.offsets_from_counts(counts)
    parents = columns.parents_of(offsets)
    places = np.arange(len(parents)) - offsets[parents]
    starts = repeated(block, behind[parents], places, partial(_ends, data_type=_element(data_type)))
    return offsets, starts


def _extended(rows: np.ndarray, width: int, *, signed: bool) -> np.ndarray:
    """Extend little-endian numbers to `width` bytes, with the sign if `signed`; shape (rows, width)."""
    missing = width - rows.shape[1]
    if not missing:
        return rows
    fill = (rows[:, -1:] >= 0x80) * np.uint8(0xFF) if signed else np.zeros((len(rows), 1), np.uint8)
    return np.concatenate((rows, np.repeat(fill.astype(np.uint8), missing, axis=1)), axis=1)


def scalars_of(rows: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode fixed-width values from their bytes, shape (rows, width). Raises UnknownElementOfEnum."""
    arrow = data_type.arrow
    match data_type:
        case types.Boolean():
            return pa.array(rows[:, 0] != 0)
        case types.Nothing():
            return pa.nulls(len(rows), arrow)
        case types.Enum(bits=bits):
            numbers = rows.view(f"<i{bits // 8}")[:, 0]
            unknown = ~np.isin(numbers, list(data_type.texts))
            if unknown.any():
                number = numbers[np.argmax(unknown)]
                raise errors.UnknownElementOfEnum(f"{data_type} has no element {number}.")
        case types.BFloat16():
            return brain_floats.of_words(rows.view("<u2")[:, 0])
        case types.Date():
            return columns.from_values(rows.view("<u2")[:, 0].astype(np.int32), arrow, None)
        case types.DateTime():
            return columns.from_values(rows.view("<u4")[:, 0].astype(np.int64), arrow, None)
        case types.DateTime64(precision=precision):
            unit = {"s": 0, "ms": 3, "us": 6, "ns": 9}[data_type.unit]
            ticks = rows.view("<i8")[:, 0] * 10 ** (unit - precision)
            return columns.from_values(ticks, arrow, None)
        case types.WideNumber():
            rows = _extended(rows, arrow.byte_width, signed=data_type.signed)
        case types.Decimal():
            rows = _extended(rows, arrow.byte_width, signed=True)
        case types.UUID():
            rows = rows.reshape(-1, 2, 8)[:, :, ::-1].reshape(-1, 16)
        case _:
            pass
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(arrow, len(rows), buffers)


# --- reader


def _number(stream: BinaryIO) -> int:
    """Read a varint from the stream. Raises AttemptToReadAfterEof."""
    result = 0
    for at in range(_VARINT_BYTES):
        byte = _exactly(stream, 1)[0]
        result |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    return result


def _exactly(stream: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes of the stream. Raises AttemptToReadAfterEof if there are fewer."""
    data = stream.read(size)
    if len(data) < size:
        raise errors.AttemptToReadAfterEof("The data end within their names or types.")
    return data


def _head(source: Input, head_lines: int) -> Head | None:
    """Read the number of columns, their names, and with `head_lines` 2 their types; None with `head_lines` 0."""
    if not head_lines:
        return None
    count = _number(source.stream)
    lines = [
        [
            _exactly(source.stream, _number(source.stream)).decode("utf-8", "surrogateescape")
            for _ in range(count)
        ]
        for _ in range(head_lines)
    ]
    return checked_head(source, lines[0], lines[1] if head_lines > 1 else None)


def _infer(source: Input, head_lines: int) -> Structure:
    """Return the columns that the data name with their types."""
    plain = Input(source.stream, source.settings, source.environment)
    head = _head(plain, head_lines)
    assert head is not None
    assert head.types is not None
    return tuple(zip(head.names, head.types, strict=True))


def _read(source: Input, head_lines: int, has_flags: bool) -> Iterator[Rows]:
    """Yield the rows of one block at a time. `has_flags`: each value is preceded by a byte that is 1 if the column's
    default stands for it. Raises CannotReadAllData for an incomplete last row."""
    head = _head(source, head_lines)
    wanted = dict(source.structure or ())
    names = tuple(wanted) if head is None else head.names
    if head is not None and head.types is not None:
        kinds = head.types
    else:
        kinds = tuple(_known(wanted, name) for name in names)
    if source.settings.boolean("input_format_binary_read_json_as_string"):
        kinds = tuple(map(with_json_as_text, kinds))
    laid = tuple(types.Nullable(kind) for kind in kinds) if has_flags else kinds
    row = types.Tuple(laid)
    for block, at in blocks_of_rows(source.stream, partial(_ends, data_type=row), "RowBinary"):
        arrays: dict[str, pa.Array] = {}
        absent: dict[str, np.ndarray] = {}
        for name, kind in zip(names, laid, strict=True):
            is_needed = source.needed is None or name in source.needed
            if name not in arrays and is_needed and (not wanted or name in wanted):
                arrays[name] = _values(block, at, kind)
                if has_flags and name in source.absent_apart:
                    absent[name] = block.data[at] == 1
            at = _ends(block, at, kind)
        types_by_name = dict(zip(names, kinds, strict=True))
        shown = tuple(types_by_name[name] for name in arrays)
        yield from apart(Rows(tuple(arrays), shown, tuple(arrays.values()), len(at)), absent)


def _known(wanted: dict[str, types.DataType], name: str) -> types.DataType:
    """Return the type of a column. Raises IncorrectData for an unknown column, whose bytes cannot be skipped."""
    if name not in wanted:
        raise errors.IncorrectData(
            f"Nothing says the type of the column {name} of the data.",
            hint="RowBinaryWithNamesAndTypes has types.",
        )
    return wanted[name]


def binary_reader(head_lines: int, *, has_flags: bool = False) -> Reader:
    """Return the reader of RowBinary. `head_lines`: 1 for names first, 2 for names and types. `has_flags`: each value
    is preceded by a byte that is 1 if the column's default stands for it."""
    return Reader(
        partial(_infer, head_lines=head_lines),
        partial(_read, head_lines=head_lines, has_flags=has_flags),
        named=head_lines > 0,
        infers=head_lines > 1,
    )
