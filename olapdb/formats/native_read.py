"""Reads Native, a block at a time: values of fixed width are the bytes of the block, and where each
text ends is found for all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.heads import checked_head
from olapdb.formats.row_binary_read import byte_width, scalars_of, texts_at_start
from olapdb.functions import parse_type
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import NO_ALTERNATIVE, assembled

_TEXT_BYTES = 1 << 18
"""Bytes in which the ends of texts are found at once."""
_READ_BYTES_MAX = 1 << 26
_READ_BYTES = 1 << 20
_VARINT_BYTES = 10
_ROWS_MAX = 1 << 31
"""A block has fewer rows: more is not a block of Native."""


class _Bytes:
    """A buffer over a stream, from which pieces of known sizes are taken."""

    def __init__(self, stream: BinaryIO) -> None:
        """Take the stream; read nothing yet."""
        self._stream = stream
        self._held = b""

    def _fill(self, size: int) -> None:
        """Read until `size` bytes are buffered or the stream ends. A wrong size in damaged data never allocates more
        than the stream has."""
        pieces, held = [self._held], len(self._held)
        while held < size and (
            data := self._stream.read(min(max(size - held, _READ_BYTES), _READ_BYTES_MAX))
        ):
            pieces.append(data)
            held += len(data)
        self._held = b"".join(pieces)

    def is_at_end(self) -> bool:
        """Return True if there are no more bytes."""
        self._fill(1)
        return not self._held

    def take(self, size: int) -> bytes:
        """Take the next `size` bytes. Raises CannotReadAllData if there are fewer."""
        if len(self._held) < size:
            self._fill(size)
        if len(self._held) < size:
            raise errors.CannotReadAllData("The data end within a block.")
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def number(self) -> int:
        """Take the next varint. Raises IncorrectData for one that is too long."""
        result = 0
        for at in range(_VARINT_BYTES):
            byte = self.take(1)[0]
            result |= (byte & 0x7F) << (7 * at)
            if byte < 0x80 and result < 1 << 64:
                return result
        raise errors.IncorrectData("The data are not Native: a number has more than 64 bits.")

    def text(self) -> str:
        """Take the next text, which its number of bytes precedes."""
        return self.take(self.number()).decode("utf-8", "surrogateescape")

    def words(self, count: int) -> np.ndarray:
        """Take the next `count` 64-bit integers."""
        return np.frombuffer(self.take(8 * count), "<u8").astype(np.int64)

    def texts(self, count: int) -> pa.Array:
        """Take the next `count` texts, each preceded by its number of bytes."""
        pieces: list[pa.Array] = []
        window = _TEXT_BYTES
        while count:
            self._fill(window)
            texts, used = texts_at_start(self._held[:window], count)
            if not used and len(self._held) < window:
                raise errors.CannotReadAllData("The data end within a text.")
            window = _TEXT_BYTES if used else 2 * window
            self._held = self._held[used:]
            count -= len(texts)
            pieces.append(texts)
        return pa.concat_arrays(pieces) if pieces else pa.array([], types.STRING.arrow)


def _skip_prefix(data: _Bytes, data_type: types.DataType) -> None:
    """Read the version numbers before a column's values. Raises IncorrectData for an unknown version."""
    match data_type:
        case types.LowCardinality():
            if data.words(1)[0] != 1:
                raise errors.IncorrectData("Native has LowCardinality of an unknown version.")
        case types.Nullable(inner) | types.Array(inner):
            _skip_prefix(data, inner)
        case types.SimpleAggregateFunction(inner=inner):
            _skip_prefix(data, inner)
        case types.Map(key, value):
            _skip_prefix(data, key)
            _skip_prefix(data, value)
        case types.Tuple(elements=elements):
            for element in elements:
                _skip_prefix(data, element)
        case types.Variant(alternatives):
            if data.words(1)[0] != 0:
                raise errors.IncorrectData("Native has Variant of an unknown version.")
            for alternative in alternatives:
                _skip_prefix(data, alternative)
        case _:
            pass


def _values(data: _Bytes, rows: int, data_type: types.DataType) -> pa.Array:
    """Read `rows` values of a type. Raises NotSupportedError for states of aggregates."""
    match data_type:
        case types.Nullable(inner):
            valid = np.frombuffer(data.take(rows), np.uint8) == 0
            if isinstance(inner, types.Enum):  # behind a NULL is any number
                read = _fixed(data, rows, inner)
                return columns.scatter(scalars_of(read[valid], inner), valid)
            values = _values(data, rows, inner)
            return values if valid.all() else columns.scatter(values.filter(pa.array(valid)), valid)
        case types.LowCardinality(inner):
            return _keyed_values(data, rows, inner)
        case types.SimpleAggregateFunction(inner=inner):
            return _values(data, rows, inner)
        case types.String():
            return data.texts(rows)
        case types.Array(inner):
            offsets = _offsets(data, rows)
            return columns.lists_from(offsets, _values(data, int(offsets[-1]), inner))
        case types.Map(key, value):
            offsets = _offsets(data, rows)
            keys = _values(data, int(offsets[-1]), key)
            items = _values(data, int(offsets[-1]), value)
            return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items)
        case types.Tuple(elements=elements):
            if not elements:
                data.take(rows)
            parts = [_values(data, rows, element) for element in elements]
            return columns.structs_from(parts, data_type.arrow, rows=rows)
        case types.Variant():
            return _variants(data, rows, data_type)
        case _:
            return scalars_of(_fixed(data, rows, data_type), data_type)


def _variants(data: _Bytes, rows: int, variant: types.Variant) -> pa.Array:
    """Read a Variant column: the alternative's number of each row, then the values of each alternative."""
    numbers = np.frombuffer(data.take(rows), np.uint8)
    if ((numbers >= len(variant.alternatives)) & (numbers != NO_ALTERNATIVE)).any():
        raise errors.IncorrectData(f"The data are not Native: {variant} has no such type.")
    counts = np.bincount(numbers, minlength=len(variant.alternatives))
    values = {
        at: _values(data, int(counts[at]), alternative)
        for at, alternative in enumerate(variant.alternatives)
        if counts[at]
    }
    return assembled(variant, numbers, values)


def _fixed(data: _Bytes, rows: int, data_type: types.DataType) -> np.ndarray:
    """Read `rows` values of fixed width as bytes, shape (rows, width)."""
    width = byte_width(data_type, "Native")
    return np.frombuffer(data.take(rows * width), np.uint8).reshape(rows, width)


def _offsets(data: _Bytes, rows: int) -> np.ndarray:
    """Read the ends of lists and return their offsets. Raises IncorrectData if they descend, or exceed what Arrow's
    lists can hold."""
    offsets = np.concatenate((np.zeros(1, np.int64), data.words(rows)))
    if (np.diff(offsets) < 0).any():
        raise errors.IncorrectData("The data are not Native: a list ends before it begins.")
    if offsets[-1] > np.iinfo(np.int32).max:
        raise errors.IncorrectData(
            "A block of the data has lists of more than 2147483647 elements."
        )
    return offsets


def _keyed_values(data: _Bytes, rows: int, inner: types.DataType) -> pa.Array:
    """Read a LowCardinality column: runs of rows, each with its dictionary and indices."""
    key_type = inner.inner if isinstance(inner, types.Nullable) else inner
    pieces: list[pa.Array] = []
    while rows:
        kind, count = data.words(2).tolist()
        if not 0 <= count < _ROWS_MAX:
            raise errors.IncorrectData("The data are not Native: LowCardinality has no keys.")
        keys = _values(data, count, key_type)
        run = int(data.words(1)[0])
        width = 1 << (kind & 0xFF)
        if width > 8 or not 0 < run <= rows:
            raise errors.IncorrectData("The data are not Native: LowCardinality has no indices.")
        read = np.frombuffer(data.take(run * width), f"<u{width}").astype(np.int64)
        if read.max(initial=0) >= count or read.min(initial=0) < 0:
            raise errors.IncorrectData("The data are not Native: an index has no key.")
        mask = read == 0 if isinstance(inner, types.Nullable) else None
        pieces.append(keys.take(pa.array(read, mask=mask)))
        rows -= run
    return pa.concat_arrays(pieces) if pieces else pa.array([], key_type.arrow)


def _head(data: _Bytes) -> tuple[int, int]:
    """Read the head of the next block: the numbers of columns and rows. Raises IncorrectData."""
    head = data.number(), data.number()
    if max(head) >= _ROWS_MAX or (head[1] and not head[0]):
        raise errors.IncorrectData("The data are not Native: a block has no such number of rows.")
    return head


def _infer(source: Input) -> Structure:
    """Return the columns of the first block. Raises CannotExtractTableStructure for empty data."""
    data = _Bytes(source.stream)
    if data.is_at_end():
        raise errors.CannotExtractTableStructure(
            "The columns of the data cannot be found: there is no block.",
            hint="Give the structure: file('path', 'Native', 'a UInt8, b String').",
        )
    structure = []
    count, rows = _head(data)
    for _ in range(count):
        name, data_type = data.text(), parse_type(data.text())
        structure.append((name, data_type))
        if rows:
            _skip_prefix(data, data_type)
            _values(data, rows, data_type)
    return tuple(structure)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block at a time."""
    data = _Bytes(source.stream)
    while not data.is_at_end():
        count, rows = _head(data)
        block: list[tuple[str, types.DataType, pa.Array]] = []
        for _ in range(count):
            name, data_type = data.text(), parse_type(data.text())
            if rows:
                _skip_prefix(data, data_type)
            values = _values(data, rows, data_type)
            block.append((name, data_type, values))
        names = checked_head(source, [name for name, _, _ in block], None).names
        wanted = dict(source.structure or ())
        kept = [
            (name, data_type, values)
            for name, (_, data_type, values) in zip(names, block, strict=True)
            if not wanted or name in wanted
        ]
        if rows:
            shown = tuple(zip(*kept, strict=True)) if kept else ((), (), ())
            yield Rows(shown[0], shown[1], shown[2], rows)


READER = Reader(_infer, _read, named=True)
"""The reader of Native: columns of other types are converted."""
