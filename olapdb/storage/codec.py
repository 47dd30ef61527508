"""What CODEC of a column means in Parquet: a compression and, for some, an encoding."""

from __future__ import annotations

import re
from dataclasses import dataclass

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.model.schema import Column, Table
from olapdb.types import (
    Date,
    Date32,
    DateTime,
    DateTime64,
    FixedString,
    Float,
    Integer,
    LowCardinality,
    String,
    plain,
)

_STEP = re.compile(r"\s*([A-Za-z0-9]+)\s*(?:\(([^)]*)\))?\s*")
_ZSTD_LEVEL_MAX = 22


@dataclass(frozen=True, slots=True)
class ParquetCodec:
    """`encoding` "" means what Parquet's writer chooses; `dictionary` whether it may use one."""

    compression: str
    level: int | None
    encoding: str
    dictionary: bool


def column_codec(column: Column, table: Table) -> ParquetCodec:
    """`CODEC(Delta, ZSTD(3))` and the like; by default LZ4, or the table's
    `default_compression_codec`. Raises BadArguments or NotSupportedError."""
    text = column.codec.strip()
    if text[:6].upper() == "CODEC(" and text.endswith(")"):
        text = text[6:-1]
    chain = _steps(text)
    chain = [step for step in chain if step[0] != "default"] or _steps(
        str(table.setting("default_compression_codec", "LZ4"))
    )
    compression, level, encoding = "lz4", None, ""
    for name, argument in chain:
        match name:
            case "none":
                compression, level = "none", None
            case "lz4" | "lz4hc":
                compression, level = "lz4", None
            case "zstd":
                compression, level = "zstd", _zstd_level(argument)
            case "delta" | "doubledelta" | "gorilla" | "fpc" | "t64" | "gcd":
                encoding = _encoding(name, column) or encoding
            case _:
                raise NotSupportedError(
                    f"Codec {name} of column {column.name} is not supported.",
                    hint="Use NONE, LZ4, LZ4HC, ZSTD(level), Delta, DoubleDelta, Gorilla or T64.",
                )
    return ParquetCodec(compression, level, encoding, not encoding and _has_dictionary(column))


def _steps(text: str) -> list[tuple[str, str]]:
    steps = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (found.end() < len(text) and text[found.end()] != ","):
            raise BadArguments(f"Not a codec: {text!r}.", hint="For example CODEC(Delta, ZSTD(3)).")
        steps.append((found.group(1).lower(), found.group(2) or ""))
        at = found.end() + 1
    return steps


def _zstd_level(argument: str) -> int:
    level = int(argument) if argument.strip().isdigit() else (1 if not argument.strip() else 0)
    if not 1 <= level <= _ZSTD_LEVEL_MAX:
        raise BadArguments(f"ZSTD has levels 1 to {_ZSTD_LEVEL_MAX}, not {argument!r}.")
    return level


def _encoding(name: str, column: Column) -> str:
    """Differences of whole numbers, split bytes of floats; "" where Parquet has nothing alike."""
    kind = plain(column.type)
    if name in ("delta", "doubledelta"):
        if isinstance(kind, Date | Date32 | DateTime | DateTime64):
            return "DELTA_BINARY_PACKED"
        if isinstance(kind, Integer):
            return "DELTA_BINARY_PACKED"
    if name in ("gorilla", "fpc", "delta", "doubledelta") and isinstance(kind, Float):
        return "BYTE_STREAM_SPLIT"
    return ""


def _has_dictionary(column: Column) -> bool:
    """Dictionaries pay for text; for numbers they cost the writer twice the time (measured)."""
    return isinstance(column.type, LowCardinality) or isinstance(
        plain(column.type), String | FixedString
    )
