"""Conversions to and from IPv4 and IPv6."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.addresses import (
    MAPPED,
    PADDED,
    PADDED_BEHIND,
    ipv6_texts,
    mapped_ipv4,
    parsed_ipv4,
    parsed_ipv6,
)
from olapdb.functions.kernels.wide_numbers import column_of, limbs_of
from olapdb.functions.strings.rendering import fixed_bytes
from olapdb.types.arrow_values import from_numpy, to_numpy


def to_ipv4(array: pa.Array, source: types.DataType) -> pa.Array:
    """Convert texts, unsigned integers and IPv6 addresses, without nulls, to IPv4.

    Integers keep their low 32 bits. Raises CannotParseIPv4 or CannotConvertType with its row for a
    value that is no address, NotSupportedError for other types.
    """
    match source:
        case types.String() | types.FixedString():
            numbers, fine = parsed_ipv4(array, PADDED)
            _refuse(array, ~fine, errors.CannotParseIPv4, "IPv4")
            return from_numpy(numbers.astype(np.uint32))
        case types.Integer(signed=False):
            return columns.wrapped(array, pa.uint32())
        case types.IPv6():
            raw = fixed_bytes(array)
            bad = first_bad((raw[:, :12] != np.frombuffer(MAPPED, np.uint8)).any(axis=1))
            if bad is not None:
                raise errors.CannotConvertType(
                    f"{ipv6_texts(array.slice(bad, 1))[0]} is no IPv4 address.",
                    hint="Those in ::ffff:0:0/96 are.",
                ).at_row(bad)
            return pa.array(np.ascontiguousarray(raw[:, 12:]).view(">u4").ravel().astype(np.uint32))
        case _:
            raise _unsupported(source, types.IPV4)


def to_ipv6(array: pa.Array, source: types.DataType) -> pa.Array:
    """Convert texts, IPv4 addresses, UInt128 and 16 bytes, without nulls, to IPv6.

    Raises CannotParseIPv6 with its row for a text that is no address, NotSupportedError for other
    types.
    """
    match source:
        case types.FixedString(16):
            return array
        case types.String() | types.FixedString():
            addresses = parsed_ipv6(array, pattern=PADDED_BEHIND)
            _refuse(array, to_numpy(addresses.is_null()), errors.CannotParseIPv6, "IPv6")
            return addresses
        case types.IPv4():
            return mapped_ipv4(array)
        case types.WideNumber(bits=128, signed=False):
            return _of_number(array)
        case _:
            raise _unsupported(source, types.IPV6)


def from_address(array: pa.Array, source: types.DataType, target: types.DataType) -> pa.Array:
    """Convert IPv4 and IPv6 addresses, without nulls, to the other kind, to numbers or to bytes.

    An IPv4 becomes a UInt32, UInt64 or Bool, an IPv6 a FixedString(16) or UInt128. Raises NotSupportedError for
    other types, CannotConvertType with its row for an IPv6 that is no IPv4.
    """
    match source, target:
        case types.IPv6(), types.IPv4():
            return to_ipv4(array, source)
        case types.IPv4(), types.IPv6():
            return to_ipv6(array, source)
        case types.IPv4(), types.Integer(bits=32 | 64, signed=False):
            return array.cast(target.arrow)
        case types.IPv4(), types.Boolean():
            return pc.not_equal(array, pa.scalar(0, pa.uint32()))
        case types.IPv6(), types.FixedString(16):
            return array
        case types.IPv6(), types.WideNumber(bits=128, signed=False):
            return as_number(array, target)
        case _:
            raise _unsupported(source, target)


def _of_number(array: pa.Array) -> pa.Array:
    """Return the IPv6 addresses that UInt128 values are, without nulls."""
    least_first = np.ascontiguousarray(limbs_of(array)[:, :2]).view(np.uint8)
    data = pa.py_buffer(np.ascontiguousarray(least_first[:, ::-1]).tobytes())
    return pa.Array.from_buffers(types.IPV6.arrow, len(array), [None, data])


def as_number(array: pa.Array, target: types.WideNumber) -> pa.Array:
    """Return 16 bytes each, the greatest first, without nulls, as UInt128: IPv6 addresses and UUIDs."""
    least_first = np.ascontiguousarray(fixed_bytes(array)[:, ::-1]).view("<u8")
    return column_of(np.concatenate((least_first, np.zeros_like(least_first)), axis=1), target)


def _refuse(array: pa.Array, bad: np.ndarray, kind: type[errors.DataError], name: str) -> None:
    """Raise an error of this class about the first text that is marked as bad, if any."""
    row = first_bad(bad)
    if row is not None:
        value = columns.binary(array)[row].as_py().decode("utf-8", "replace")
        raise kind(f"Invalid {name} value {value!r}.", hint=f"to{name}OrNull gives NULL.").at_row(
            row
        )


def _unsupported(source: types.DataType, target: types.DataType) -> errors.Error:
    """Return the error about two types without a conversion."""
    if isinstance(source, types.Array | types.Tuple | types.Map):
        return errors.IllegalConversion(f"Conversion from {source} to {target} is not supported.")
    if isinstance(target, types.Decimal) and not isinstance(target, types.WideNumber):
        return errors.CannotConvertType(f"Conversion from {source} to {target} is not supported.")
    return errors.NotSupportedError(f"Conversion from {source} to {target} is not supported.")
