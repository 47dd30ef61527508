"""Networks of addresses, the keys of a dictionary of LAYOUT(IP_TRIE): the longest that holds an
address.

All are of 128 bits: an IPv4 network is one of addresses ::ffff:a.b.c.d. For each length that
occurs, longest first, the addresses are cut to it and searched among the networks of that length.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.casts.addresses import to_ipv6
from olapdb.types import STRING
from olapdb.types.arrow_values import to_numpy

_BYTES = 16


class Prefixes:
    """An index over networks, given as distinct texts `address/length`; `rows` are their rows."""

    def __init__(self, networks: pa.Array, rows: np.ndarray) -> None:
        parts = pc.split_pattern(networks.cast(pa.string()), "/")
        addresses = _bytes(to_ipv6(pc.list_element(parts, 0), STRING))
        lengths = to_numpy(pc.list_element(parts, 1).cast(pa.uint8()))
        self._by_length: list[tuple[int, np.ndarray, np.ndarray]] = []
        for length in np.unique(lengths)[::-1]:
            at = np.flatnonzero(lengths == length)
            keys = _cut(addresses[at], int(length))
            order = np.argsort(keys, kind="stable")
            self._by_length.append((int(length), keys[order], rows[at[order]]))

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index in memory."""
        return sum(keys.nbytes + rows.nbytes for _, keys, rows in self._by_length)

    def find(self, addresses: pa.Array) -> np.ndarray:
        """Return the row of the longest network that holds each address of 16 bytes, -1 where none
        does and for NULL; int64."""
        positions = np.full(len(addresses), -1, np.int64)
        open_rows = np.flatnonzero(to_numpy(addresses.is_valid()))
        wanted = _bytes(addresses.drop_null())
        for length, keys, rows in self._by_length:
            if not len(open_rows):
                break
            cut = _cut(wanted, length)
            at = np.minimum(np.searchsorted(keys, cut), len(keys) - 1)
            hits = keys[at] == cut
            positions[open_rows[hits]] = rows[at[hits]]
            open_rows, wanted = open_rows[~hits], wanted[~hits]
        return positions


def _bytes(addresses: pa.Array) -> np.ndarray:
    """Return addresses without nulls as bytes; uint8, shape (rows, 16)."""
    data = np.frombuffer(addresses.buffers()[1] or b"", np.uint8)
    start = addresses.offset * _BYTES
    return data[start : start + len(addresses) * _BYTES].reshape(-1, _BYTES)


def _cut(addresses: np.ndarray, length: int) -> np.ndarray:
    """Return the addresses with all bits behind the first `length` unset, as texts of 16 bytes."""
    bits = np.zeros(_BYTES * 8, np.uint8)
    bits[:length] = 1
    cut = np.ascontiguousarray(addresses & np.packbits(bits))
    return cut.view(f"S{_BYTES}").reshape(-1)
