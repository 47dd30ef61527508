"""Encodings of bytes and numbers as text: base32, base58, base64 of URLs, binary digits, bit masks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, IncorrectData
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import brain_floats, columns, wide_numbers
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings import byte_codes, rendering
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.types import (
    STRING,
    UINT32,
    UINT64,
    UUID,
    Array,
    BFloat16,
    Boolean,
    DataType,
    Date,
    DateTime,
    Decimal,
    Float,
    Integer,
    WideNumber,
    plain,
)

_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58_encoded(value: bytes) -> bytes:
    """Return the base58 text of bytes; each leading zero byte becomes a 1."""
    number, digits = int.from_bytes(value, "big"), bytearray()
    while number:
        number, digit = divmod(number, 58)
        digits.append(_BASE58[digit])
    zeros = len(value) - len(value.lstrip(b"\0"))
    return b"1" * zeros + bytes(reversed(digits))


def _base58_decoded(value: bytes) -> bytes:
    """Return the bytes of a base58 text; raise ValueError for a character that is no digit of base58."""
    number = 0
    for character in value:
        number = number * 58 + _BASE58.index(character)
    zeros = len(value) - len(value.lstrip(b"1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base32_decoded(value: bytes) -> bytes:
    """Return the bytes of a base32 text in any case; raise ValueError if it is none."""
    return base64.b32decode(value, casefold=True)


def _url_encoded(value: bytes) -> bytes:
    """Return the base64 text of bytes in the alphabet of URLs, without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=")


def _url_decoded(value: bytes) -> bytes:
    """Return the bytes of a base64 text in the alphabet of URLs; raise ValueError if it is none."""
    padded = value + b"=" * (-len(value) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)


def _decoder(
    name: str, decode: Callable[[bytes], bytes], *, lenient: bool
) -> Callable[[bytes], bytes]:
    """Return a function that decodes by `decode`: for a text at which that raises ValueError it raises
    IncorrectData, or with `lenient` returns ""."""

    def decoded(value: bytes) -> bytes:
        """Decode one text; a bad one gives "" if `lenient`, else raises IncorrectData."""
        try:
            return decode(value)
        except (ValueError, binascii.Error):
            if lenient:
                return b""
            shown = value.decode("utf-8", "replace")
            raise IncorrectData(f"Failed to {name} {shown!r}.") from None

    return decoded


def _crc(value: bytes, table: Sequence[int]) -> int:
    """Return the checksum of bytes by a reflected polynomial's table of single bytes, from the start value 0."""
    total = 0
    for byte in value:
        total = table[(total ^ byte) & 0xFF] ^ (total >> 8)
    return total


def crc_table(polynomial: int) -> tuple[int, ...]:
    """Return the table of a reflected polynomial: the checksum of each of the 256 single bytes."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (polynomial if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC32_IEEE = crc_table(0xEDB88320)
_CRC64 = crc_table(0xC96C5795D7870F42)


def _crc32_ieee(value: bytes) -> int:
    """Return CRC-32 with the start value 0, as ClickHouse's CRC32IEEE."""
    return _crc(value, _CRC32_IEEE)


def _crc64(value: bytes) -> int:
    """Return CRC-64 of ECMA-182."""
    return _crc(value, _CRC64)


# --- binary digits


def _bin_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text, number, date, DateTime or UUID is given."""
    kinds = (*TEXT_TYPES, Integer, Float, Boolean, Date, DateTime, UUID, Decimal)
    scalar.require(name, types, kinds, "a String, number or date")
    return STRING


def _bin(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the binary digits of values: of integers without leading zero bytes, of texts, floats and other values
    those of all bytes in memory."""
    array, data_type = arrays[0], call.types[0]
    if isinstance(data_type, TEXT_TYPES):
        offsets, data = columns.bytes_of(columns.binary(array))
        return _digits_of(data, offsets)
    if isinstance(data_type, UUID):
        raw = rendering.fixed_bytes(array)
        return _digits_of(raw.reshape(-1), np.arange(len(raw) + 1) * 16)
    if isinstance(data_type, Decimal):  # wide integers too
        offsets, digits = columns.bytes_of(byte_codes.hex_digits(arrays, call))
        data = np.frombuffer(bytes.fromhex(digits.tobytes().decode("ascii")), np.uint8)
        return _digits_of(data, offsets // 2)
    values = columns.numpy_values(array)
    if isinstance(data_type, BFloat16):
        return _digits_of(
            brain_floats.words_of(array).view(np.uint8), np.arange(len(values) + 1) * 2
        )
    if isinstance(data_type, Date | DateTime):
        values = values.astype(np.uint16 if isinstance(data_type, Date) else np.uint32)
    width = values.dtype.itemsize
    if values.dtype.kind == "f":
        raw = np.ascontiguousarray(values).view(np.uint8)
        return _digits_of(raw, np.arange(len(values) + 1) * width)
    big_endian = values.astype(values.dtype.newbyteorder(">")).view(np.uint8)
    raw = big_endian.reshape(len(values), width)
    present = raw != 0
    present[:, -1] = True
    keep = np.maximum.accumulate(present, axis=1)
    return _digits_of(raw[keep], columns.offsets_from_counts(keep.sum(axis=1)))


def _digits_of(data: np.ndarray, offsets: np.ndarray) -> pa.Array:
    """Return each value's bytes as eight binary digits a byte."""
    digits = np.unpackbits(data) + np.uint8(ord("0"))
    return columns.strings_from(offsets * 8, digits)


def _unbin(value: bytes) -> bytes:
    """Return the bytes that binary digits spell, filled up with zeros on the left.

    As in ClickHouse any character but 0 is a 1.
    """
    if not value:
        return b""
    number = int("".join("0" if c == ord("0") else "1" for c in value), 2)
    return number.to_bytes((len(value) + 7) // 8, "big")


# --- bits as lists


def _mask_rule(result: Callable[[DataType], DataType]) -> scalar.TypeRule:
    """Return the type rule of a function of one integer; `result` maps the integer's type to the result type."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument unless the argument is an
        integer."""
        scalar.require(name, types, (Integer, WideNumber), "an integer")
        return result(plain(types[0]))

    return rule


def _set_bits(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of each integer's set bits, and their positions from the lowest."""
    if pa.types.is_decimal(array.type):  # 128 or 256 bits
        words = wide_numbers.limbs_of(array)[:, : array.type.byte_width // 8]
    else:
        words = columns.numpy_values(array).reshape(-1, 1)
    raw = np.ascontiguousarray(words).view(np.uint8)
    rows, positions = np.nonzero(np.unpackbits(raw, axis=1, bitorder="little"))
    return columns.offsets_from_counts(np.bincount(rows, minlength=len(words))), positions


def _mask_to_array(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the powers of two that make up each integer."""
    offsets, positions = _set_bits(arrays[0])
    assert isinstance(call.result, Array)
    if isinstance(call.result.inner, WideNumber):
        limbs = np.zeros((len(positions), wide_numbers.LIMBS), np.uint64)
        limbs[np.arange(len(positions)), positions // 64] = np.uint64(1) << (positions % 64).astype(
            np.uint64
        )
        return columns.lists_from(offsets, wide_numbers.column_of(limbs, call.result.inner))
    powers = np.uint64(1) << positions.astype(np.uint64)
    return columns.lists_from(offsets, columns.from_values(powers, call.result.inner.arrow))


def _mask_to_list(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the powers of two that make up each integer, joined by commas."""
    offsets, positions = _set_bits(arrays[0])
    kind = plain(call.types[0])
    assert isinstance(kind, Integer | WideNumber)
    powers = [1 << bit for bit in range(kind.bits)]
    if kind.signed:
        powers[-1] = -powers[-1]
    texts = pa.array([str(power) for power in powers]).take(pa.array(positions))
    return pc.binary_join(columns.lists_from(offsets, texts), ",")


def _bit_positions(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the positions of each integer's set bits, from the lowest."""
    offsets, positions = _set_bits(arrays[0])
    return columns.lists_from(offsets, columns.from_values(positions, pa.uint64()))


# --- number bases


def _conv_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text or integer and two bases."""
    scalar.require(name, types[:1], (*TEXT_TYPES, Integer), "a String or integer")
    scalar.require(name, types[1:], Integer, "an integer base")
    return STRING


_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _conv(value: bytes | int, from_base: int, to_base: int) -> bytes:
    """Return a number's text in another base, as MySQL's CONV: an unsigned 64-bit number;
    reading stops at the first character that is no digit.

    Raises BadArguments."""
    if not 2 <= from_base <= 36 or not 2 <= to_base <= 36:
        raise BadArguments("The bases of conv are from 2 to 36.")
    text = str(value) if isinstance(value, int) else value.decode("utf-8", "replace")
    if not text:
        raise BadArguments("The number of conv is empty.")
    text = text.strip().upper()
    negative = text.startswith("-")
    number = 0
    for character in text.lstrip("+-"):
        digit = _DIGITS.find(character)
        if not 0 <= digit < from_base:
            break
        number = number * from_base + digit
    number = min(number, 2**64 - 1)
    number = (-number if negative else number) % 2**64
    return _in_base(number, to_base)


def _in_base(number: int, base: int) -> bytes:
    """Return the digits of a number that is not negative."""
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return (digits or "0").encode()


_DECODERS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("ase32Decode", _base32_decoded),
    ("ase58Decode", _base58_decoded),
    ("ase64URLDecode", _url_decoded),
)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("base32Encode", text_rule(STRING), base64.b32encode),
    define_by_value("base58Encode", text_rule(STRING), _base58_encoded),
    define_by_value("base64URLEncode", text_rule(STRING), _url_encoded),
    *(
        define_by_value(f"b{name}", text_rule(STRING), _decoder(f"b{name}", decode, lenient=False))
        for name, decode in _DECODERS
    ),
    *(
        define_by_value(
            f"tryB{name}", text_rule(STRING), _decoder(f"tryB{name}", decode, lenient=True)
        )
        for name, decode in _DECODERS
    ),
    define_by_value("CRC32IEEE", text_rule(UINT32), _crc32_ieee, insensitive=True),
    define_by_value("CRC64", text_rule(UINT64), _crc64, insensitive=True),
    scalar.define("bin", _bin_rule, _bin, insensitive=True),
    define_by_value("unbin", text_rule(STRING), _unbin, insensitive=True),
    scalar.define("bitmaskToArray", _mask_rule(Array), _mask_to_array),
    scalar.define("bitmaskToList", _mask_rule(lambda t: STRING), _mask_to_list),
    scalar.define("bitPositionsToArray", _mask_rule(lambda t: Array(UINT64)), _bit_positions),
    define_by_value("conv", _conv_rule, _conv, count=3, insensitive=True),
)
