"""Data of a format as a stream of bytes: opened, decompressed, errors named."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from olapdb import errors
from olapdb.formats.blocks import without_byte_order_mark
from olapdb.formats.files import open_input
from olapdb.formats.registry import compression_of_path

BINARY = ("Parquet", "Arrow", "ArrowStream", "ORC")
"""The formats whose readers need the whole file, and that no text of a statement can hold."""

BYTES = (
    *BINARY,
    "Avro",
    "BSONEachRow",
    "MsgPack",
    "Native",
    "Npy",
    "RawBLOB",
    "RowBinary",
    "RowBinaryWithNames",
    "RowBinaryWithNamesAndTypes",
    "RowBinaryWithDefaults",
)
"""The formats whose first bytes are never a mark of UTF-8."""


def open_data(format_name: str, path: str, compression: str) -> BinaryIO:
    """Open a file of the format for reading, decompressed, without a byte order mark if it is a text format. An empty
    `compression` means: by the ending of the file's name. Raises CannotStat, IncorrectData."""
    stream = open_input(path, compression or compression_of_path(path))
    if format_name in BYTES:
        return stream
    try:
        with decoding(format_name):
            return without_byte_order_mark(stream)
    except errors.Error:
        stream.close()
        raise


@contextmanager
def decoding(format_name: str) -> Iterator[None]:
    """Turn errors of reading or decompression inside the context into IncorrectData."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise errors.IncorrectData(
            f"The data of format {format_name} cannot be read: {error}.",
            hint="Is the file whole, and compressed as its name or COMPRESSION says?",
        ) from None
