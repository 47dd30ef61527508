"""All formats by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from olapdb.errors import FormatNotForInput, FormatNotForOutput, UnknownFormat
from olapdb.formats import (
    arrow,
    avro,
    bson,
    csv,
    custom,
    form,
    geojson,
    hive_text,
    json_as_string,
    json_document,
    json_object_rows,
    json_rows,
    markdown,
    matched,
    message_pack,
    native,
    npy,
    null,
    odbc,
    one,
    pretty,
    prometheus,
    raw,
    row_binary,
    tab_separated,
    template,
    tskv,
    values,
    xml,
)
from olapdb.formats.base import Format, Header, Reader, Writer

_MODULES = (
    tab_separated,
    tskv,
    csv,
    custom,
    matched,
    json_rows,
    json_object_rows,
    json_as_string,
    json_document,
    values,
    pretty,
    markdown,
    xml,
    arrow,
    raw,
    row_binary,
    native,
    message_pack,
    bson,
    avro,
    prometheus,
    geojson,
    odbc,
    npy,
    form,
    hive_text,
    null,
    one,
    template,
)


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats of input and output, by name."""
    return tuple(data_format for module in _MODULES for data_format in module.FORMATS)


@cache
def _by_name() -> Mapping[str, Format]:
    """Return the formats by lower-case name and alias."""
    return MappingProxyType(
        {
            name.lower(): data_format
            for data_format in formats()
            for name in (data_format.name, *data_format.aliases)
        }
    )


def find_format(name: str) -> Format:
    """Return the format by its name in any case. Raises UnknownFormat with the nearest name."""
    named = _by_name().get(name.lower())
    if named is None:
        names = {known: data_format.name for known, data_format in _by_name().items()}
        near = difflib.get_close_matches(name.lower(), names, n=1)
        hint = (
            f"Did you mean {names[near[0]]}?" if near else "system.formats lists those there are."
        )
        raise UnknownFormat(f"Unknown format {name}.", hint=hint)
    return named


_READ_BY_CLICKHOUSE = ("DWARF", "MySQLDump", "ParquetMetadata")
"""Formats that ClickHouse reads and nothing writes; olapdb does not read them."""


def find_output(name: str) -> Format:
    """Return the format `name` for output. Raises UnknownFormat, and FormatNotForOutput for a format that is only
    read."""
    if name.lower() in (name_there.lower() for name_there in _READ_BY_CLICKHOUSE):
        raise FormatNotForOutput(
            f"Format {name} is only read, and that by ClickHouse alone.",
            hint="system.formats says which are written.",
        )
    return find_format(name)


def writer_of(name: str, header: Header) -> Writer:
    """Return a new writer of the format. Raises FormatNotForOutput for a format that is only read."""
    data_format = find_output(name)
    if data_format.writer is None:
        raise FormatNotForOutput(f"Format {data_format.name} is only read.")
    return data_format.writer(header)


def reader_of(name: str) -> Reader:
    """Return the reader of the format. Raises FormatNotForInput for a format that is only written."""
    data_format = find_format(name)
    if data_format.reader is None:
        raise FormatNotForInput(
            f"Format {data_format.name} is only written.",
            hint="system.formats says which are read.",
        )
    return data_format.reader


_COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "lzma": "xz", "zst": "zstd", "lz4": "lz4"}


def compression_of_path(path: str) -> str:
    """Return the compression by the ending of a file name; "none" for an unknown ending."""
    return _COMPRESSIONS.get(path.rpartition(".")[2].lower(), "none")


def format_of_path(path: str) -> Format | None:
    """Return the format by the ending of a file name, before an ending of a compression if there is one. An ending
    may be the name of a format, in any case. None if unknown."""
    stem = path if compression_of_path(path) == "none" else path.rpartition(".")[0]
    ending = stem.rpartition(".")[2].lower()
    ended = (data_format for data_format in formats() if ending in data_format.endings)
    return next(ended, _by_name().get(ending) if "." in stem else None)
