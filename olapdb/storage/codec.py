"""Translate a column's CODEC to Parquet: a compression and, for some codecs, an encoding."""

from __future__ import annotations

import re
from typing import TypeAlias

from olapdb import errors, types
from olapdb.model.schema import Column
from olapdb.records import dataclass

_STEP = re.compile(r"\s*([A-Za-z0-9]+)\s*(?:\(([^)]*)\))?\s*")
_ZSTD_LEVEL_MAX = 22
_CODECS = "Use NONE, LZ4, LZ4HC, ZSTD(level), Delta, DoubleDelta, Gorilla, FPC, GCD or T64."
_CANONICAL_NAMES = {
    "none": "NONE",
    "lz4": "LZ4",
    "lz4hc": "LZ4HC",
    "zstd": "ZSTD",
    "default": "Default",
    "delta": "Delta",
    "doubledelta": "DoubleDelta",
    "gorilla": "Gorilla",
    "fpc": "FPC",
    "t64": "T64",
    "gcd": "GCD",
}
_TRANSFORMING = ("delta", "doubledelta", "gorilla", "fpc", "t64", "gcd")
_COMPACTING = frozenset(("doubledelta", "gorilla", "fpc", "t64"))
"""Transformations that make values smaller, so that a chain of them alone compresses."""
_WIDTHS = ("1", "2", "4", "8")
_VARIABLE_SIZE = (types.String, types.Array, types.Map, types.Tuple)
_Step: TypeAlias = tuple[str, str]
"""A codec of a chain: its name in lower case, and the text of its arguments."""


DEFAULT_CODEC = "LZ4"


@dataclass(frozen=True, slots=True)
class ParquetCodec:
    """Parquet's settings for a column. `encoding` "" lets the writer choose; `dictionary` allows a
    dictionary."""

    compression: str
    level: int | None
    encoding: str
    dictionary: bool


def column_codec(column: Column, default: str = "") -> ParquetCodec:
    """Return the Parquet settings for a column's chain, such as `CODEC(Delta, ZSTD(3))`.

    `default` is the chain of columns without one, "" for LZ4. Raises BadArguments or
    NotSupportedError.
    """
    chain = [step for step in _chain(column) if step[0] != "default"]
    chain = chain or [step for step in _steps(default) if step[0] != "default"]
    chain = chain or _steps(DEFAULT_CODEC)
    compression, level = _compression(chain, f"column {column.name}")
    encoding = ""
    for name, _ in chain:
        if name in _TRANSFORMING:
            encoding = _encoding(name, column) or encoding
    return ParquetCodec(compression, level, encoding, not encoding and _has_dictionary(column))


def _compression(chain: list[_Step], owner: str) -> tuple[str, int | None]:
    """Return Parquet's name of the compression at the end of the chain, and its level, None for the default. Raise
    UnknownCodec for a name that ClickHouse lacks, NotSupportedError for one that Parquet files lack."""
    compression: tuple[str, int | None] = ("lz4", None)
    for name, argument in chain:
        match name:
            case "none":
                compression = ("none", None)
            case "lz4" | "lz4hc":
                compression = ("lz4", None)
            case "zstd":
                compression = ("zstd", _zstd_level(argument))
            case "delta" | "doubledelta" | "gorilla" | "fpc" | "t64" | "gcd":
                pass
            case "deflate_qpl" | "zstd_qat" | "aes_128_gcm_siv" | "aes_256_gcm_siv" | "sz3" | "alp":
                raise errors.NotSupportedError(
                    f"Codec {name} of {owner} is not supported.", hint=_CODECS
                )
            case _:
                raise errors.UnknownCodec(f"There is no codec {name}, of {owner}.", hint=_CODECS)
    return compression


def check_codec(column: Column) -> None:
    """Raise ClickHouse's error if the column's chain of codecs cannot work: a transformation of
    values without a fixed size, or no compression after the transformations."""
    column_codec(column)
    steps = _chain(column)
    transforming = [name for name, _ in steps if name in _TRANSFORMING]
    kind = types.plain(column.type)
    if transforming and isinstance(kind, _VARIABLE_SIZE):
        raise errors.BadArguments(
            f"Codec {_CANONICAL_NAMES[transforming[0]]} is not for column {column.name}: {column.type} has no"
            " fixed size.",
            hint="Use LZ4 or ZSTD.",
        )
    _check_arguments(steps)
    _check_kinds(column, transforming)
    _check_order(steps, codec_text(column), f"column {column.name}")


def default_codec_text(text: str) -> str:
    """Return a chain for columns without one as ClickHouse spells it: `ZSTD(5)` of `CODEC(ZSTD(5))`.

    Its transformations apply to the columns that they are for.  Raises ClickHouse's errors for a
    chain that cannot work.
    """
    spelt = _without_keyword(text)
    steps = _steps(spelt)
    for name, _ in steps:
        if _CANONICAL_NAMES.get(name, name) not in spelt:
            raise errors.UnknownCodec(f"There is no codec {name}, of TTL.", hint=_CODECS)
    _compression([step for step in steps if step[0] != "default"], "TTL")
    _check_arguments(steps)
    canonical = _chain_text(steps, 1)
    _check_order(steps, canonical, "TTL")
    return DEFAULT_CODEC if canonical == "Default" else canonical


def _check_order(steps: list[_Step], text: str, owner: str) -> None:
    """Raise BadArguments unless the chain ends with a step that compresses, or is NONE alone, and all steps before it
    transform values; also for Delta or DoubleDelta beside a codec for floats."""
    names = [name for name, _ in steps]
    if not {"gorilla", "fpc"}.isdisjoint(names) and not {"delta", "doubledelta"}.isdisjoint(names):
        raise errors.BadArguments(
            f"CODEC({text}) of {owner} makes no sense: codecs for floats make differences themselves.",
            hint="Leave Delta out.",
        )
    first = next((at for at, name in enumerate(names) if name not in _TRANSFORMING), None)
    if first is None and names and _COMPACTING.isdisjoint(names):
        last = _CANONICAL_NAMES[names[-1]]
        raise errors.BadArguments(
            f"Codec {last} of {owner} does not compress anything.",
            hint=f"Put a compression behind it: CODEC({last}, LZ4).",
        )
    if first is not None and (first < len(names) - 1 or (first and names[first] == "none")):
        raise errors.BadArguments(
            f"CODEC({text}) of {owner} makes no sense: what compresses, or NONE alone, stands last.",
            hint="For example CODEC(Delta, ZSTD(3)).",
        )


def _check_arguments(steps: list[_Step]) -> None:
    """Raise an error if any codec without an argument has one, or the argument of Delta,
    DoubleDelta or Gorilla is not 1, 2, 4 or 8."""
    for name, argument in steps:
        spelt = argument.strip()
        if spelt and name in ("none", "lz4", "default"):
            raise errors.CodecTakesNoArguments(f"Codec {_CANONICAL_NAMES[name]} takes no argument.")
        if spelt and name == "gcd":
            raise errors.IllegalCodecType("Codec GCD takes no argument.")
        if spelt and name in ("delta", "doubledelta", "gorilla") and spelt not in _WIDTHS:
            raise errors.IllegalCodecParameter(
                f"{_CANONICAL_NAMES[name]}({spelt}): the bytes of a value are 1, 2, 4 or 8.",
                hint="Leave the argument out.",
            )


def _check_kinds(column: Column, transforming: list[str]) -> None:
    """Raise IllegalCodecType if any transforming codec is for another kind of numbers than the
    column's. Also raises BadArguments."""
    kind = types.plain(column.type)
    for name in transforming:
        if name == "t64" and isinstance(kind, types.Float):
            raise errors.IllegalCodecType(
                f"Codec T64 of column {column.name} is not for {column.type}.", hint=_CODECS
            )
        floating = name in ("gorilla", "fpc")
        if floating != isinstance(kind, types.Float) and (floating or name == "gcd"):
            raise errors.BadArguments(
                f"Codec {_CANONICAL_NAMES[name]} of column {column.name} is not for {column.type}: it is for"
                f" {'floats' if floating else 'whole numbers'}.",
                hint="Use Delta.",
            )
        if isinstance(kind, types.UUID | types.IPv6):
            raise errors.BadArguments(
                f"Codec {_CANONICAL_NAMES[name]} of column {column.name} is not for {column.type}."
            )


def codec_text(column: Column) -> str:
    """Return the chain with its arguments as ClickHouse spells it, `Delta(4), ZSTD(1)`; "" without
    a codec."""
    return _chain_text(_chain(column), _width(column))


def _chain_text(steps: list[_Step], width: int) -> str:
    """Return the chain with its arguments as ClickHouse spells it; `width` is the bytes of a
    value."""
    words = []
    for name, argument in steps:
        if not argument and name in ("delta", "gorilla"):
            argument = str(width)
        elif not argument:
            argument = {"zstd": "1", "lz4hc": "0"}.get(name, "")
        words.append(
            _CANONICAL_NAMES.get(name, name) + (f"({argument.strip()})" if argument else "")
        )
    return ", ".join(words)


def codec_clause(column: Column) -> str:
    """Return `CODEC(Delta(4), ZSTD(1))`, or "" without a codec."""
    text = codec_text(column)
    return f"CODEC({text})" if text else ""


def parquet_text(column: Column) -> str:
    """Return compression and encoding in the files: `ZSTD(3), DELTA_BINARY_PACKED`."""
    codec = column_codec(column)
    words = [codec.compression.upper() + (f"({codec.level})" if codec.level is not None else "")]
    if codec.encoding:
        words.append(codec.encoding)
    elif codec.dictionary:
        words.append("DICTIONARY")
    return ", ".join(words)


def _chain(column: Column) -> list[_Step]:
    """Return the steps of the column's chain of codecs, in their order; none without a CODEC."""
    return _steps(_without_keyword(column.codec))


def _without_keyword(text: str) -> str:
    """Return the chain of `CODEC(chain)`, or of the chain alone."""
    text = text.strip()
    return text[6:-1] if text[:6].upper() == "CODEC(" and text.endswith(")") else text


def _width(column: Column) -> int:
    """Return the bytes that ClickHouse uses for a value; 1 for types without a fixed size."""
    kind = types.plain(column.type)
    if isinstance(kind, types.Integer | types.Float):
        return kind.bits // 8
    return {
        types.Date: 2,
        types.Date32: 4,
        types.DateTime: 4,
        types.IPv4: 4,
        types.DateTime64: 8,
        types.Time: 4,
        types.Time64: 8,
    }.get(type(kind), 1)


def _steps(text: str) -> list[_Step]:
    """Split the text between the parentheses of CODEC(…) into (name in lower case, text of the
    arguments). Raise BadArguments if it is malformed."""
    steps = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or (step.end() < len(text) and text[step.end()] != ","):
            raise errors.BadArguments(
                f"Not a codec: {text!r}.", hint="For example CODEC(Delta, ZSTD(3))."
            )
        steps.append((step.group(1).lower(), step.group(2) or ""))
        at = step.end() + 1
    return steps


def _zstd_level(argument: str) -> int:
    """Return the level of ZSTD, 1 if the argument is empty. Raise IllegalCodecParameter if it is
    out of range."""
    level = int(argument) if argument.strip().isdigit() else (1 if not argument.strip() else 0)
    if not 1 <= level <= _ZSTD_LEVEL_MAX:
        raise errors.IllegalCodecParameter(
            f"ZSTD has levels 1 to {_ZSTD_LEVEL_MAX}, not {argument!r}."
        )
    return level


def _encoding(name: str, column: Column) -> str:
    """Return Parquet's encoding for a transformation: deltas for whole numbers, split bytes for
    floats, "" if Parquet has no equivalent."""
    kind = types.plain(column.type)
    if name in ("delta", "doubledelta"):
        if isinstance(kind, types.Date | types.Date32 | types.DateTime | types.DateTime64):
            return "DELTA_BINARY_PACKED"
        if isinstance(kind, types.Integer | types.Time | types.Time64):
            return "DELTA_BINARY_PACKED"
    if name in ("gorilla", "fpc", "delta", "doubledelta") and isinstance(kind, types.Float):
        return "BYTE_STREAM_SPLIT"
    return ""


def _has_dictionary(column: Column) -> bool:
    """Return whether to allow a dictionary. It pays for text; for numbers it doubles the writer's
    time (measured)."""
    return isinstance(column.type, types.LowCardinality) or isinstance(
        types.plain(column.type), types.String | types.FixedString
    )
