"""UUIDs and MAC addresses as bytes and numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.types import STRING, UINT64, UUID, DataType, DateTime64, FixedString, Integer

_SIXTEEN = FixedString(16)
_DASHES = (8, 13, 18, 23)
_DIGITS = [at for at in range(36) if at not in _DASHES]
_SWAPPED = [3, 2, 1, 0, 5, 4, 7, 6, *range(8, 16)]
"""The order of bytes in Microsoft's form, which is variant 2."""
_HEX = np.full(256, 0xFF, np.uint8)
for _at, _digit in enumerate(b"0123456789"):
    _HEX[_digit] = _at
for _at in range(6):
    _HEX[ord("a") + _at] = _HEX[ord("A") + _at] = 10 + _at


def _variant(name: str, arguments: Sequence[Argument]) -> int:
    """Return the constant second argument, 1 if there is none.

    Raises IllegalTypeOfArgument unless it is an integer of 8 bits, ArgumentOutOfBound unless it is
    1 or 2.
    """
    if len(arguments) < 2:
        return 1
    data_type = arguments[1].type
    if not isinstance(data_type, Integer) or data_type.bits != 8:
        raise scalar.illegal(name, data_type, "an Int8 or UInt8")
    variant = scalar.constant_integer(name, arguments, 1, "the variant of UUIDs")
    if variant not in (1, 2):
        raise ArgumentOutOfBound(f"The variant of UUIDs is 1 or 2, not {variant}.")
    return variant


def _ordered(raw: np.ndarray, call: scalar.Invocation) -> np.ndarray:
    """Return rows of 16 bytes, reordered if the call's second argument is 2 (Microsoft's order of UUIDs)."""
    return np.ascontiguousarray(raw[:, _SWAPPED] if call.constant(1) == 2 else raw)


def _fixed(raw: np.ndarray) -> pa.Array:
    """Return rows of 16 bytes as FixedString(16)."""
    data = pa.py_buffer(np.ascontiguousarray(raw).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(raw), [None, data])


def _uuid_text_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the first argument is FixedString(16)."""
    if types[0] != _SIXTEEN:
        raise scalar.illegal(name, types[0], "a FixedString(16)")
    _variant(name, arguments)
    return STRING


def _uuid_text(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the texts of UUIDs from their 16 bytes: the kernel of UUIDNumToString."""
    raw = _ordered(rendering.fixed_bytes(arrays[0]), call)
    out = np.full((len(raw), 36), ord("-"), np.uint8)
    out[:, _DIGITS] = rendering.hex_matrix(raw, upper=False)
    return columns.strings_from(np.arange(len(raw) + 1) * 36, out.reshape(-1))


def _uuid_bytes_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return FixedString(16); raise IllegalTypeOfArgument unless the first argument is a text."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    _variant(name, arguments)
    return _SIXTEEN


def _uuid_bytes(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the bytes of UUIDs from their texts; 16 zero bytes for a text that has not 36 characters."""
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    whole = np.flatnonzero(np.diff(offsets) == 36)
    digits = _HEX[data[offsets[whole][:, None] + np.array(_DIGITS)]]
    raw = np.zeros((len(arrays[0]), 16), np.uint8)
    raw[whole] = (digits[:, ::2].astype(np.int64) * 16 + digits[:, 1::2]).astype(np.uint8)
    return _fixed(_ordered(raw, call))


def _uuid_number_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return FixedString(16); raise IllegalTypeOfArgument unless the first argument is a UUID."""
    scalar.require(name, types[:1], UUID, "a UUID")
    _variant(name, arguments)
    return _SIXTEEN


def _uuid_number(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the 16 bytes of UUIDs: the kernel of UUIDToNum."""
    return _fixed(_ordered(rendering.fixed_bytes(arrays[0]), call))


def _time_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return DateTime64(3) in the zone of the second argument, if there is one."""
    scalar.require(name, types[:1], UUID, "a UUID")
    zone = scalar.constant_zone(name, arguments, 1) if len(arguments) > 1 else None
    return DateTime64(3, zone)


def _time_of_uuid(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the time, in Unix milliseconds, in UUIDs of version 7; 0 for other versions."""
    raw = rendering.fixed_bytes(arrays[0]).astype(np.int64)
    milliseconds = np.zeros(len(raw), np.int64)
    for byte in range(6):
        milliseconds = milliseconds << 8 | raw[:, byte]
    known = np.where(raw[:, 6] >> 4 == 7, milliseconds, 0)
    return columns.from_values(known, call.result.arrow)


# --- MAC addresses


def _mac_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the argument is a UInt64."""
    if types[0] != UINT64:
        raise scalar.illegal(name, types[0], "a UInt64")
    return STRING


def _mac_text(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the low 48 bits of numbers as the text of a MAC address."""
    values = columns.numpy_values(arrays[0])
    raw = values.astype(">u8").view(np.uint8).reshape(len(values), 8)[:, 2:]
    out = np.full((len(raw), 17), ord(":"), np.uint8)
    out[:, [at for at in range(17) if at % 3 < 2]] = rendering.hex_matrix(np.ascontiguousarray(raw))
    return columns.strings_from(np.arange(len(raw) + 1) * 17, out.reshape(-1))


def _mac_number(pieces: int, lengths: range) -> scalar.Kernel:
    """Return the kernel that reads the first `pieces` bytes of MAC addresses such as 01:23:45:67:89:ab as a UInt64.

    A text whose length is not in `lengths` gives 0. A character that is no digit sets all bits of its byte, and of
    the half before, as in ClickHouse."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Read the digits of all addresses of a fitting length."""
        offsets, data = columns.bytes_of(columns.binary(arrays[0]))
        sizes = np.diff(offsets)
        rows = np.flatnonzero((sizes >= lengths.start) & (sizes < lengths.stop))
        places = [3 * at + half for at in range(pieces) for half in range(2)]
        digits = _HEX[data[offsets[rows][:, None] + np.array(places)]]
        total = np.zeros(len(rows), np.uint64)
        for at in range(2 * pieces):
            total = total << np.uint64(4) | digits[:, at].astype(np.uint64)
        result = np.zeros(len(sizes), np.uint64)
        result[rows] = total
        return columns.from_values(result, pa.uint64())

    return kernel


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("UUIDNumToString", _uuid_text_rule, _uuid_text, count=(1, 2)),
    scalar.define("UUIDStringToNum", _uuid_bytes_rule, _uuid_bytes, count=(1, 2)),
    scalar.define("UUIDToNum", _uuid_number_rule, _uuid_number, count=(1, 2)),
    scalar.define("UUIDv7ToDateTime", _time_rule, _time_of_uuid, count=(1, 2)),
    scalar.define("MACNumToString", _mac_rule, _mac_text),
    scalar.define("MACStringToNum", text_rule(UINT64), _mac_number(6, range(17, 18))),
    scalar.define("MACStringToOUI", text_rule(UINT64), _mac_number(3, range(8, 18))),
)
