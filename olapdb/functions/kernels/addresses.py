"""IPv4 and IPv6 addresses: their texts, and one as the other."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels import columns, regexes
from olapdb.lazy import LazyModule
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from olapdb.native import addresses
else:
    addresses = LazyModule("olapdb.native.addresses")

PADDED = r"^(?P<a>[0-9]{1,3})\.(?P<b>[0-9]{1,3})\.(?P<c>[0-9]{1,3})\.(?P<d>[0-9]{1,3})$"
"""An address of IPv4 whose numbers may have zeros in front: 010.0.0.1 is 10.0.0.1."""
PADDED_BEHIND = PADDED.replace("[0-9]{1,3}", "0|[1-9][0-9]{0,2}", 1)
"""The same, but for its first number."""
_STRICT = PADDED.replace("[0-9]{1,3}", "0|[1-9][0-9]{0,2}")
"""An address without zeros in front of its numbers, which may mean octal numbers."""
MAPPED = bytes(10) + b"\xff\xff"
"""The first 12 bytes of the IPv6 addresses that stand for IPv4 addresses, ::ffff:0:0/96."""


def parsed_ipv4(array: pa.Array, pattern: str = _STRICT) -> tuple[np.ndarray, np.ndarray]:
    """Parse texts such as 10.0.0.1; return the addresses as int64, 0 for other texts, and a mask of the texts that
    are addresses; shape (rows,). `pattern` is that of an address."""
    groups = regexes.extracted(columns.unpadded(array), pattern)
    valid = to_numpy(groups.is_valid())
    fields = columns.struct_fields(groups.filter(from_numpy(valid)))
    octets = [columns.numpy_values(field.cast(pa.int64())) for field in fields]
    small = np.ones(int(valid.sum()), bool)
    number = np.zeros(len(small), np.int64)
    for octet in octets:
        small &= octet < 256
        number = number * 256 + octet
    numbers, fine = np.zeros(len(array), np.int64), valid.copy()
    numbers[valid], fine[valid] = np.where(small, number, 0), small
    return numbers, fine


def parsed_ipv6(array: pa.Array, *, maps_ipv4: bool = True, pattern: str = _STRICT) -> pa.Array:
    """Parse texts such as ::1 to 16 bytes; other texts give NULL. With `maps_ipv4` the text 10.0.0.1 gives
    ::ffff:10.0.0.1, else NULL; `pattern` is that of an address of IPv4."""

    def parse(text: str) -> bytes | None:
        """Return the 16 bytes of one text; None if it is no address."""
        try:
            return socket.inet_pton(socket.AF_INET6, text)
        except (OSError, ValueError):
            return None

    texts = columns.unpadded(array)
    parsed = _per_distinct(texts, parse)
    if not maps_ipv4:
        return parsed
    numbers, fine = parsed_ipv4(texts, pattern)
    mapped = mapped_ipv4(pa.array(numbers, pa.uint32()))
    return pc.if_else(pa.array(fine), mapped, parsed)


def mapped_ipv4(array: pa.Array) -> pa.Array:
    """Convert IPv4 addresses, given as UInt32, to IPv6 addresses ::ffff:a.b.c.d; NULL stays null."""
    raw = np.zeros((len(array), 16), np.uint8)
    raw[:, :12] = np.frombuffer(MAPPED, np.uint8)
    values = columns.numpy_values(array).astype(">u4")
    raw[:, 12:] = values.view(np.uint8).reshape(len(array), 4)
    return fixed_binary(raw, columns.validity(array))


def fixed_binary(raw: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Return rows of 16 bytes, uint8 of shape (rows, 16), as a fixed-size binary array."""
    data = pa.py_buffer(np.ascontiguousarray(raw).tobytes())
    array = pa.Array.from_buffers(pa.binary(16), len(raw), [None, data])
    if valid is None:
        return array
    return pc.if_else(pa.array(valid), array, pa.scalar(None, array.type))


def ipv4_texts(array: pa.Array) -> pa.Array:
    """Format IPv4 addresses, given as UInt32, as 10.0.0.1; NULL stays null."""
    if library() is not None and len(array) <= addresses.ROWS_MAX:
        formatted = addresses.ipv4_texts(columns.numpy_values(array))
        return pc.if_else(array.is_valid(), formatted, None) if array.null_count else formatted
    octets = [
        array if at == 0 else pc.shift_right(array, pa.scalar(at, pa.uint32()))
        for at in (24, 16, 8, 0)
    ]
    texts = [
        pc.bit_wise_and(octet, pa.scalar(255, pa.uint32())).cast(pa.string()) for octet in octets
    ]
    return pc.binary_join_element_wise(*texts, ".")


def ipv6_texts(array: pa.Array) -> pa.Array:
    """Format IPv6 addresses of 16 bytes in their shortest text form; NULL stays null."""
    encoded = array.dictionary_encode()
    texts = [socket.inet_ntop(socket.AF_INET6, raw) for raw in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _per_distinct(array: pa.Array, parse: Callable[[str], bytes | None]) -> pa.Array:
    """Apply `parse`, which gives 16 bytes or None, to each distinct text, and return the results by row; NULL stays
    null."""
    encoded = columns.binary(array).dictionary_encode()
    texts = (raw.decode("latin-1") for raw in encoded.dictionary.to_pylist())
    return pa.array([parse(text) for text in texts], pa.binary(16)).take(encoded.indices)
