"""Npy: one column as an array of NumPy, as its .npy files hold it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.functions import parse_type
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.byte_texts import scalar_bytes

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
"""The header of a file is a multiple of so many bytes."""
_HEAD_BYTES_MAX = 1 << 20
_EMPTY_ROWS_MAX = 1 << 31
"""Rows of empty arrays, of which a file has no byte."""
_COLUMN = "array"
_READ_BYTES = 1 << 23
_TYPES = {
    **{f"i{size}": f"Int{8 * size}" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"UInt{8 * size}" for size in (1, 2, 4, 8)},
    "b1": "Int8",
    "f2": "Float32",
    "f4": "Float32",
    "f8": "Float64",
}
"""The names of our types of numbers by those of NumPy."""


class NpyWriter(Writer):
    """A writer of a .npy file of one column. The header contains the number of rows, so all output comes at the end."""

    def __init__(self, header: Header) -> None:
        """Take the single column of the result."""
        super().__init__(header)
        if len(header.names) != 1:
            raise errors.TooManyColumns(
                f"Npy holds one column, the query has {len(header.names)}.",
                hint="SELECT one; an array of numbers is one column, too.",
            )
        self._depth, self._inner = _levels(header.types[0])
        self._pieces: list[pa.Array] = []

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Keep the rows; return nothing yet."""
        self._pieces.append(batch.column(0))
        return b""

    def finish(self, ending: Ending) -> bytes:
        """Return the whole file. Raises IllegalColumn for arrays of several lengths."""
        data_type = self.header.types[0]
        values = pa.concat_arrays(self._pieces) if self._pieces else pa.array([], data_type.arrow)
        shape = [len(values)]
        for _ in range(self._depth if len(values) else 0):
            offsets, values = columns.elements_of(values)
            lengths = np.unique(np.diff(offsets))
            if len(lengths) > 1:
                raise errors.IllegalColumn("Npy holds arrays of one length alone.")
            shape.append(int(lengths[0]) if len(lengths) else 0)
        if not shape[0]:
            values = pa.array([], self._inner.arrow)
        descriptor, data = _described(values, self._inner)
        return _head(descriptor, shape) + data


def _levels(data_type: types.DataType) -> tuple[int, types.DataType]:
    """Return the depth of nested arrays and the type of the innermost values. Raises BadArguments for a type that
    NumPy does not have."""
    depth, inner = 0, data_type
    while isinstance(inner, types.Array):
        depth, inner = depth + 1, inner.inner
    known = types.Integer | types.Boolean | types.Float | types.String | types.FixedString
    if not isinstance(inner, known):
        raise errors.BadArguments(
            f"Npy has no column of type {data_type}.", hint="It holds numbers, texts, and arrays."
        )
    return depth, inner


def _described(values: pa.Array, data_type: types.DataType) -> tuple[str, bytes]:
    """Return NumPy's descriptor of the values' type, and the values' bytes."""
    if isinstance(data_type, types.String | types.FixedString):
        texts = columns.binary(values)
        lengths = np.diff(columns.bytes_of(texts)[0])
        width = int(lengths.max(initial=1))
        padded = np.array(texts.to_numpy(zero_copy_only=False), dtype=f"S{width}")
        return f"|S{width}", padded.tobytes()
    data = scalar_bytes(values, data_type)
    letter = "f" if isinstance(data_type, types.Float) else "ui"[data_type.name.startswith("I")]
    size = data.shape[1]
    return f"<{letter}{size}", data.tobytes()


def _head(descriptor: str, shape: list[int]) -> bytes:
    """Return the header of a .npy file of version 3.0."""
    sizes = ",".join(str(size) for size in shape)
    text = f"{{'descr':'{descriptor}','fortran_order':False,'shape':({sizes},),}}"
    used = len(_MAGIC) + 6 + len(text) + 1
    text += " " * (-used % _ALIGNMENT) + "\n"
    return _MAGIC + b"\x03\x00" + len(text).to_bytes(4, "little") + text.encode()


# --- reading


def _read_head(stream: BinaryIO) -> tuple[np.dtype, tuple[int, ...]]:
    """Read the header; return the type and the shape. Raises IncorrectData for data that are not a .npy file."""
    start = stream.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + 2:
        raise errors.IncorrectData("The data are no array of NumPy.")
    size = int.from_bytes(stream.read(2 if start[len(_MAGIC)] == 1 else 4), "little")
    if size > _HEAD_BYTES_MAX:
        raise errors.IncorrectData(f"The data have no header of NumPy: it has {size} bytes.")
    try:
        head = ast.literal_eval(stream.read(size).decode("latin-1").strip())
        kind, shape = np.dtype(head["descr"]), tuple(head["shape"])
        is_fortran = head["fortran_order"]
    except (ValueError, KeyError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise errors.IncorrectData(f"The data have no header of NumPy: {error}.") from None
    if not all(type(length) is int and length >= 0 for length in shape) or not kind.itemsize:
        raise errors.IncorrectData(f"The data have no header of NumPy: the shape is {shape}.")
    row_bytes = kind.itemsize * math.prod(shape[1:])
    if row_bytes >= 1 << 63 or (shape and not row_bytes and shape[0] > _EMPTY_ROWS_MAX):
        raise errors.IncorrectData(f"The data have no header of NumPy: the shape is {shape}.")
    if is_fortran and len(shape) > 1:
        raise errors.BadArguments("Npy with the order of Fortran is not read.")
    if not shape:
        raise errors.BadArguments("Npy holds a single value, no array.")
    return kind, shape


def _type_of(kind: np.dtype, shape: tuple[int, ...]) -> types.DataType:
    """Return the column type for a NumPy type and shape. Raises BadArguments for types without an equivalent, such as
    complex numbers."""
    match = re.fullmatch(r"[<>|=]([a-zA-Z]\d+)", kind.str)
    code = match[1] if match else kind.str
    if kind.kind == "S":
        inner: types.DataType = types.STRING
    elif code in _TYPES:
        inner = parse_type(_TYPES[code])
    else:
        raise errors.BadArguments(f"Npy of {kind.str} is not read: there is no such type.")
    for _ in shape[1:]:
        inner = types.Array(inner)
    return inner


def _infer(source: Input) -> Structure:
    """Return the single column of the data, `array`."""
    return ((_COLUMN, _type_of(*_read_head(source.stream))),)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows in batches. Raises CannotReadAllData if there are fewer than the header says."""
    kind, shape = _read_head(source.stream)
    data_type = _type_of(kind, shape)
    name = source.structure[0][0] if source.structure else _COLUMN
    if source.structure and len(source.structure) != 1:
        raise errors.TooManyColumns(f"Npy holds one column, not {len(source.structure)}.")
    row_bytes = kind.itemsize * math.prod(shape[1:])
    at_once = max(1, _READ_BYTES // max(row_bytes, 1))
    for start in range(0, shape[0], at_once):
        rows = min(at_once, shape[0] - start)
        data = source.stream.read(rows * row_bytes)
        if len(data) < rows * row_bytes:
            raise errors.CannotReadAllData("The data end before their last row.")
        values = _values(np.frombuffer(data, kind), data_type)
        for size in reversed(shape[1:]):
            lists = len(values) // size if size else rows
            values = columns.lists_from(np.arange(lists + 1, dtype=np.int64) * size, values)
        yield Rows((name,), (data_type,), (values,), rows)


def _values(read: np.ndarray, data_type: types.DataType) -> pa.Array:
    """Convert NumPy values to a column; texts lose their trailing zero bytes."""
    while isinstance(data_type, types.Array):
        data_type = data_type.inner
    if isinstance(data_type, types.String):
        return pa.array(read, pa.binary()).view(data_type.arrow)  # a String may have any bytes
    plain = read.astype(np.float32) if read.dtype.itemsize == 2 and read.dtype.kind == "f" else read
    native = plain.astype(plain.dtype.newbyteorder("="))
    return pa.array(native.view(np.int8) if native.dtype == np.bool_ else native, data_type.arrow)


FORMATS = (
    Format(
        "Npy",
        "One column as an array of NumPy.",
        NpyWriter,
        Reader(_infer, _read),
        endings=("npy",),
        appends=False,
    ),
)
