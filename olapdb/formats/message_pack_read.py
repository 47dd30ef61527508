"""Reads MsgPack: the values of rows, by the types of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.byte_positions import BLOCK_BYTES, ByteBlock, blocks_of_rows, repeated
from olapdb.formats.heads import no_structure, numbered_names
from olapdb.formats.row_binary_read import byte_width, scalars_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.escapes import spans

_NIL = 0xC0


def _table(*ranges: tuple[int, int, int]) -> np.ndarray:
    """Build a table of 256 first bytes from ranges (first, last, value); 0 outside the ranges."""
    table = np.zeros(256, np.int64)
    for first, last, value in ranges:
        table[first : last + 1] = value
    return table


_SIZE_BYTES = _table(
    (0xC4, 0xC4, 1), (0xC5, 0xC5, 2), (0xC6, 0xC6, 4), (0xC7, 0xC7, 1), (0xC8, 0xC8, 2),
    (0xC9, 0xC9, 4), (0xD9, 0xD9, 1), (0xDA, 0xDA, 2), (0xDB, 0xDB, 4), (0xDC, 0xDC, 2),
    (0xDD, 0xDD, 4), (0xDE, 0xDE, 2), (0xDF, 0xDF, 4),
)  # fmt: skip
"""The bytes of the number of bytes or elements behind the first byte."""
_FIXED_BYTES = _table(
    (0xA0, 0xBF, 0), (0xC7, 0xC9, 1), (0xCA, 0xCA, 4), (0xCB, 0xCB, 8), (0xCC, 0xCC, 1), (0xCD, 0xCD, 2),
    (0xCE, 0xCE, 4), (0xCF, 0xCF, 8), (0xD0, 0xD0, 1), (0xD1, 0xD1, 2), (0xD2, 0xD2, 4), (0xD3, 0xD3, 8),
    (0xD4, 0xD4, 2), (0xD5, 0xD5, 3), (0xD6, 0xD6, 5), (0xD7, 0xD7, 9), (0xD8, 0xD8, 17),
)  # fmt: skip
"""The bytes of a value behind the first byte and the size; an extension has its kind there."""
_IS_TEXT = _table((0xA0, 0xBF, 1), (0xC4, 0xC6, 1), (0xD9, 0xDB, 1)).astype(bool)
_IS_INTEGER = _table((0x00, 0x7F, 1), (0xCC, 0xD3, 1), (0xE0, 0xFF, 1)).astype(bool)
_IS_BOOL = _table((0xC2, 0xC3, 1)).astype(bool)
_IS_FLOAT = _table((0xCA, 0xCB, 1)).astype(bool)
_IS_ARRAY = _table((0x90, 0x9F, 1), (0xDC, 0xDD, 1)).astype(bool)
_IS_MAP = _table((0x80, 0x8F, 1), (0xDE, 0xDF, 1)).astype(bool)
_IS_EXTENSION = _table((0xC7, 0xC9, 1), (0xD4, 0xD8, 1)).astype(bool)
_KINDS = (
    (_IS_TEXT, "string"),
    (_IS_INTEGER, "integer"),
    (_IS_BOOL, "bool"),
    (_IS_FLOAT, "float"),
    (_IS_ARRAY, "array"),
    (_IS_MAP, "map"),
    (_IS_EXTENSION, "extension"),
)


def _big(block: ByteBlock, at: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Read big-endian numbers of 0, 1, 2, 4 or 8 bytes (`width`) at the positions; uint64."""
    result = np.zeros(len(at), np.uint64)
    for place in range(int(width.max(initial=0))):
        byte = block.data[at + place].astype(np.uint64)
        result = np.where(place < width, (result << np.uint64(8)) | byte, result)
    return result


def _sizes(block: ByteBlock, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of each text, array or map at the positions, and the position where its content begins."""
    first = block.data[at]
    width = _SIZE_BYTES[first]
    sizes = np.minimum(_big(block, at + 1, width), np.uint64(block.beyond)).astype(np.int64)
    sizes = np.where((first >= 0xA0) & (first <= 0xBF), first & 0x1F, sizes)
    sizes = np.where((first >= 0x80) & (first <= 0x9F), first & 0x0F, sizes)
    return sizes, block.moved(at, 1 + width)


def _ends(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> np.ndarray:
    """Return for each position the position after the value of this type that begins there."""
    match data_type:
        case types.Nullable(inner):
            is_nil = block.data[at] == _NIL
            return np.where(is_nil, block.moved(at, 1), _ends(block, at, inner))
        case types.LowCardinality(inner) | types.SimpleAggregateFunction(inner=inner):
            return _ends(block, at, inner)
        case types.Array() | types.Map():
            counts, behind = _sizes(block, at)
            return repeated(block, behind, counts, partial(_element_ends, data_type=data_type))
        case types.Tuple(elements=elements):
            at = _sizes(block, at)[1]
            for element in elements:
                at = _ends(block, at, element)
            return at
        case _:
            first = block.data[at]
            sizes, behind = _sizes(block, at)
            is_sized = _IS_TEXT[first] | _IS_EXTENSION[first]
            return block.moved(behind, np.where(is_sized, sizes, 0) + _FIXED_BYTES[first])


def _element_ends(
    block: ByteBlock, at: np.ndarray, data_type: types.Array | types.Map
) -> np.ndarray:
    """Return for each position the position after an array element, or after a map's key and value."""
    if isinstance(data_type, types.Array):
        return _ends(block, at, data_type.inner)
    return _ends(block, _ends(block, at, data_type.key), data_type.value)


def _row_ends(block: ByteBlock, at: np.ndarray, kinds: Sequence[types.DataType]) -> np.ndarray:
    """Return for each position the position after the row that begins there."""
    for kind in kinds:
        at = _ends(block, at, kind)
    return at


# --- values


def _values(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode the values at the positions as `data_type`; nil is null. Raises IllegalColumn for a value that the type
    cannot hold."""
    valid = block.data[at] != _NIL
    if not valid.all():
        present = _values(block, at[valid], data_type)
        return columns.scatter(present, valid)
    match data_type:
        case types.Nullable(inner) | types.LowCardinality(inner):
            return _values(block, at, inner)
        case types.SimpleAggregateFunction(inner=inner):
            return _values(block, at, inner)
        case types.Array(inner):
            _check(block, at, data_type, _IS_ARRAY)
            offsets, starts = _elements(block, at, data_type)
            return columns.lists_from(offsets, _values(block, starts, inner))
        case types.Map(key, value):
            _check(block, at, data_type, _IS_MAP)
            offsets, starts = _elements(block, at, data_type)
            keys = _values(block, starts, key)
            items = _values(block, _ends(block, starts, key), value)
            return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
        case types.Tuple(elements=elements):
            _check(block, at, data_type, _IS_ARRAY)
            at = _sizes(block, at)[1]
            parts = []
            for element in elements:
                parts.append(_values(block, at, element))
                at = _ends(block, at, element)
            return columns.structs_from(parts, data_type.arrow, rows=len(at))
        case types.UUID():
            return _uuids(block, at, data_type)
        case types.Float():
            return _floats(block, at, data_type)
        case types.String():
            _check(block, at, data_type, _IS_TEXT)
            return _texts(block, at)
        case types.FixedString() | types.IPv6() | types.WideNumber() | types.Decimal() if (
            byte_width(data_type) > 8 or isinstance(data_type, types.FixedString)
        ):
            _check(block, at, data_type, _IS_TEXT)
            return _fixed(block, at, data_type)
        case _:
            return _integers(block, at, data_type)


def _check(block: ByteBlock, at: np.ndarray, data_type: types.DataType, kind: np.ndarray) -> None:
    """Raise IllegalColumn for the first value whose kind, by the table `kind`, the type does not take."""
    wrong = ~kind[block.data[at]]
    if wrong.any():
        first = block.data[at[np.argmax(wrong)]]
        name = next((name for table, name in _KINDS if table[first]), "value")
        raise errors.IllegalColumn(
            f"Cannot insert MessagePack {name} into column with type {data_type}."
        )


def _elements(
    block: ByteBlock, at: np.ndarray, data_type: types.Array | types.Map
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of lists, and the position of each of their elements."""
    counts, behind = _sizes(block, at)
    offsets = columns.offsets_from_counts(counts)
    parents = columns.parents_of(offsets)
    places = np.arange(len(parents)) - offsets[parents]
    ends = partial(_element_ends, data_type=data_type)
    return offsets, repeated(block, behind[parents], places, ends)


def _texts(block: ByteBlock, at: np.ndarray) -> pa.Array:
    """Decode texts or binaries as texts."""
    sizes, behind = _sizes(block, at)
    return spans(block.data, behind, behind + sizes)


def _fixed(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode values of fixed size, such as FixedString. Raises IncorrectData for another size."""
    sizes, behind = _sizes(block, at)
    width = byte_width(data_type)
    if (sizes != width).any():
        raise errors.IncorrectData(f"A value of {data_type} has {width} bytes in MsgPack.")
    return scalars_of(block.bytes_at(behind, width), data_type)


def _integers(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode integers as numbers, dates, times or codes; values out of the type's range keep their low bits."""
    _check(block, at, data_type, _IS_INTEGER | _IS_BOOL)
    rows = _bits(block, at).view(np.uint8).reshape(len(at), 8)
    return scalars_of(np.ascontiguousarray(rows[:, : byte_width(data_type)]), data_type)


def _bits(block: ByteBlock, at: np.ndarray) -> np.ndarray:
    """Decode integers and Bools as 64 bits."""
    first = block.data[at].astype(np.int64)
    width = np.where(_IS_INTEGER[first], _FIXED_BYTES[first], 0)
    bits = _big(block, at + 1, width)
    signed = (first >= 0xD0) & (first <= 0xD3)
    shift = (64 - 8 * np.maximum(width, 1)).astype(np.uint64)
    extended = ((bits << shift).view(np.int64) >> shift.view(np.int64)).view(np.uint64)
    bits = np.where(signed, extended, bits)
    small = np.where(first >= 0xE0, first - 256, first).astype(np.uint64)
    bits = np.where(width == 0, small, bits)
    return np.where(_IS_BOOL[first], (first == 0xC3).astype(np.uint64), bits)


def _floats(block: ByteBlock, at: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Decode floats of 4 or 8 bytes; integers are converted."""
    _check(block, at, data_type, _IS_FLOAT | _IS_INTEGER)
    first = block.data[at]
    values = np.zeros(len(at), np.float64)
    for code, width in ((0xCA, 4), (0xCB, 8)):
        rows = np.flatnonzero(first == code)
        values[rows] = block.bytes_at(at[rows] + 1, width).view(f">f{width}")[:, 0]
    rows = np.flatnonzero(_IS_INTEGER[first])
    if len(rows):
        bits = _bits(block, at[rows])
        below = (first[rows] >= 0xE0) | ((first[rows] >= 0xD0) & (first[rows] <= 0xD3))
        values[rows] = np.where(below, bits.view(np.int64).astype(float), bits.astype(float))
    return columns.from_values(values.astype(columns.dtype_of(data_type.arrow)), data_type.arrow)


def _uuids(block: ByteBlock, at: np.ndarray, data_type: types.UUID) -> pa.Array:
    """Decode UUIDs from extensions, 16 bytes, or texts. Raises IllegalColumn for other values."""
    first = block.data[at]
    _check(block, at, data_type, _IS_TEXT | _IS_EXTENSION)
    raw = np.zeros((len(at), 16), np.uint8)
    sizes, behind = _sizes(block, at)
    is_extension = first == 0xD8
    starts = np.where(is_extension, at + 2, behind)
    is_raw = is_extension | (sizes == 16)
    raw[is_raw] = block.bytes_at(starts[is_raw], 16)
    written = np.flatnonzero(~is_raw)
    if len(written):
        digits = block.bytes_at(behind[written], 36)
        if (sizes[written] != 36).any():
            raise errors.IncorrectData("A UUID has 16 bytes in MsgPack, or 36 characters.")
        text = np.delete(digits, [8, 13, 18, 23], axis=1).tobytes()
        try:
            raw[written] = np.frombuffer(bytes.fromhex(text.decode()), np.uint8).reshape(-1, 16)
        except ValueError:
            raise errors.IncorrectData("The text is no UUID.") from None
    stored = raw.reshape(-1, 2, 8)[:, :, ::-1].reshape(-1, 16)
    return scalars_of(np.ascontiguousarray(stored), data_type)


# --- reader


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of a block at a time. Raises CannotReadAllData for a row without its end."""
    structure = source.structure or ()
    kinds = tuple(kind for _, kind in structure)
    ends = partial(_row_ends, kinds=kinds)
    for block, at in blocks_of_rows(source.stream, ends, "MsgPack"):
        names, arrays, shown = [], [], []
        rows = len(at)
        for name, kind in structure:
            if source.needed is None or name in source.needed:
                names.append(name)
                arrays.append(_values(block, at, kind))
                shown.append(kind if not arrays[-1].null_count else types.make_nullable(kind))
            at = _ends(block, at, kind)
        yield Rows(tuple(names), tuple(shown), tuple(arrays), rows)


# --- inference


def _guessed(block: ByteBlock, at: int) -> tuple[types.DataType | None, int]:
    """Infer the type of the value at a position; return it (None for nil) and the position after the value. Raises
    BadArguments for an extension that is no UUID, CannotReadAllData past the end."""
    if at >= block.size:
        raise errors.CannotReadAllData("The data end within a row.")
    first = int(block.data[at])
    places = np.array([at])
    if _IS_ARRAY[first] or _IS_MAP[first]:
        return _guessed_list(block, places, is_map=bool(_IS_MAP[first]))
    end = int(_ends(block, places, types.STRING)[0])
    if first == _NIL:
        return None, end
    if _IS_TEXT[first]:
        return types.STRING, end
    if _IS_INTEGER[first]:
        return types.INT64, end
    if _IS_FLOAT[first]:
        return types.FLOAT32 if first == 0xCA else types.FLOAT64, end
    if _IS_BOOL[first]:
        return types.BOOL, end
    if first == 0xD8 and block.data[at + 1] == _UUID_KIND:
        return types.UUID_TYPE, end
    raise errors.BadArguments(f"MsgPack has no type for the extension {first:#x}.")


_UUID_KIND = 2


def _guessed_list(
    block: ByteBlock, places: np.ndarray, *, is_map: bool
) -> tuple[types.DataType | None, int]:
    """Infer the type of an array or map from its elements; return it (None if empty) and the position after it."""
    sizes, behind = _sizes(block, places)
    element_kinds: list[list[types.DataType | None]] = [[], []]
    at = int(behind[0])
    for number in range(int(sizes[0]) * (2 if is_map else 1)):
        kind, at = _guessed(block, at)
        element_kinds[number % 2 if is_map else 0].append(kind)
    first = _common(element_kinds[0])
    if is_map:
        second = _common(element_kinds[1])
        if first is None or second is None:
            return None, at
        return types.Map(first, types.make_nullable(second)), at
    if first is not None:
        return types.Array(types.make_nullable(first)), at
    return None, at


def _common(kinds: Sequence[types.DataType | None]) -> types.DataType | None:
    """Return the only type among the values that are not nil; None if all are nil. Raises CannotExtractTableStructure
    for several types."""
    known = {kind for kind in kinds if kind is not None}
    if len(known) > 1:
        raise no_structure(f"values are {', '.join(sorted(k.name for k in known))}")
    return known.pop() if known else None


def _infer(source: Input) -> Structure:
    """Infer the columns c1, c2, … from the first rows, as many as the settings say."""
    count = source.settings.integer("input_format_msgpack_number_of_columns")
    if not count:
        raise errors.BadArguments(
            "Nothing says how many columns MsgPack data have.",
            hint="SETTINGS input_format_msgpack_number_of_columns = 3, or give the structure.",
        )
    rows = max(source.settings.integer("input_format_max_rows_to_read_for_schema_inference"), 1)
    block = ByteBlock.of(source.stream.read(BLOCK_BYTES))
    kinds: list[types.DataType | None] = [None] * count
    at = 0
    for _ in range(rows):
        if at >= block.size:
            break
        for place in range(count):
            kind, at = _guessed(block, at)
            kinds[place] = _common((kinds[place], kind))
        if None not in kinds:
            break
    if not at:
        raise no_structure("they have no rows")
    return tuple(
        (name, types.make_nullable(kind or types.STRING))
        for name, kind in zip(numbered_names(count), kinds, strict=True)
    )


READER = Reader(_infer, _read)
