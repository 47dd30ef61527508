"""Types as bytes, which RowBinary has before each value of a Dynamic.

Source: ClickHouse's documentation, "Data types binary encoding specification"."""

from __future__ import annotations

from olapdb import types
from olapdb.errors import NotSupportedError

_SIMPLE = (
    *("Nothing", "UInt8", "UInt16", "UInt32", "UInt64", "UInt128", "UInt256", "Int8", "Int16"),
    *("Int32", "Int64", "Int128", "Int256", "Float32", "Float64", "Date", "Date32", "DateTime"),
)
_CODES = {name: code for code, name in enumerate(_SIMPLE)} | {
    "String": 0x15,
    "UUID": 0x1D,
    "IPv4": 0x28,
    "IPv6": 0x29,
    "Bool": 0x2D,
    "BFloat16": 0x31,
    "Time": 0x32,
}
"""The codes of types without parameters, by name."""
_DECIMALS = ((9, 0x19), (18, 0x1A), (38, 0x1B), (76, 0x1C))
"""The code of a Decimal of at most so many digits."""


def encoded_type(data_type: types.DataType) -> bytes:
    """Encode a type in ClickHouse's binary form. Raises NotSupportedError for a type that no Dynamic value has."""
    if data_type.name in _CODES:
        return bytes((_CODES[data_type.name],))
    match data_type:
        case types.Nullable(inner):
            return b"\x23" + encoded_type(inner)
        case types.LowCardinality(inner):
            return b"\x26" + encoded_type(inner)
        case types.Array(inner):
            return b"\x1e" + encoded_type(inner)
        case types.Map(key, value):
            return b"\x27" + encoded_type(key) + encoded_type(value)
        case types.Tuple(elements, names):
            return _tuple(elements, names)
        case types.FixedString(length):
            return b"\x16" + _varint(length)
        case types.DateTime(zone):
            return b"\x12" + _text(zone or "")
        case types.DateTime64(precision, None):
            return bytes((0x13, precision))
        case types.DateTime64(precision, zone):
            return bytes((0x14, precision)) + _text(zone or "")
        case types.Time64(precision):
            return bytes((0x34, precision))
        case types.Enum(bits, elements):
            numbers = (
                _text(text) + number.to_bytes(bits // 8, "little", signed=True)
                for text, number in elements
            )
            code = b"\x17" if bits == 8 else b"\x18"
            return code + _varint(len(elements)) + b"".join(numbers)
        case types.Dynamic(types_max):
            return bytes((0x2B, types_max))
        case types.Json():
            return _json(data_type)
        case types.Decimal(precision, scale):
            by_digits = next(code for digits, code in _DECIMALS if precision <= digits)
            return bytes((by_digits, precision, scale))
    raise NotSupportedError(
        f"RowBinary of a Dynamic that holds {data_type} is not supported.",
        hint="Write toString(…) of it, or JSONEachRow.",
    )


def _tuple(elements: tuple[types.DataType, ...], names: tuple[str, ...]) -> bytes:
    """Encode a Tuple type, with element names if it has any."""
    if not names:
        return b"\x1f" + _varint(len(elements)) + b"".join(map(encoded_type, elements))
    pairs = zip(names, elements, strict=True)
    named = (_text(name) + encoded_type(element) for name, element in pairs)
    return b"\x20" + _varint(len(elements)) + b"".join(named)


def _json(data_type: types.Json) -> bytes:
    """Encode a JSON type: version 0, its limits, its typed paths, its SKIP paths and its SKIP REGEXP patterns."""
    typed = (_text(path) + encoded_type(kind) for path, kind in data_type.typed)
    skipped = (data_type.skipped, data_type.skipped_patterns)
    lists = (_varint(len(names)) + b"".join(map(_text, names)) for names in skipped)
    bounds = b"\x00" + _varint(data_type.paths_max) + bytes((data_type.types_max,))
    return b"\x30" + bounds + _varint(len(data_type.typed)) + b"".join(typed) + b"".join(lists)


def _text(text: str) -> bytes:
    """Return the UTF-8 bytes of a text, preceded by their number."""
    data = text.encode()
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Encode a number as a varint: groups of seven bits, lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
