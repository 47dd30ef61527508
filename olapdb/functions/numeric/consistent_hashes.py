"""kostikConsistentHash: buckets of keys, few of which change when a bucket is added.

Source: Oblakov's consistent hash of Yandex. The key has four blocks of 16 bits, a, b, c and d from
the lowest on. Let 2 ** (k - 1) < buckets <= 2 ** k. The low k bits of c choose a bucket of 2 ** k: itself
if it is 0 or 1, else its highest bit followed by bits of a, or of b if an odd number of its bits is set.
If there is no such bucket, the other bits of all blocks choose between the last half and 2 ** (k - 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalColumn, IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import UINT16, Boolean, DataType, Integer, IPv4

_U64 = np.uint64
_MOST = 32768
_BLOCK = 16


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt16; raise BadArguments unless the number of buckets is 1 to 32768.

    Also raises IllegalTypeOfArgument, and IllegalColumn if that number is no constant."""
    scalar.require(name, types[:1], (Integer, Boolean, IPv4), "an integer")
    if not isinstance(types[1], Integer):
        raise IllegalTypeOfArgument(f"The number of buckets of {name} must be an integer.")
    if arguments[1].constant is None:
        raise IllegalColumn(f"The number of buckets of {name} must be a constant.")
    count = arguments[1].constant.as_py()
    if not 0 < count <= _MOST:
        raise BadArguments(f"The number of buckets of {name} is 1 to {_MOST}, not {count}.")
    return UINT16


def _kostik(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return for each key the bucket, from 0, that Kostik's consistent hash chooses: the kernel of
    kostikConsistentHash."""
    count = call.constant(1)
    assert isinstance(count, int)
    values = columns.numpy_values(arrays[0])
    keys = values.astype(_U64) if values.dtype.kind == "u" else values.astype(np.int64).view(_U64)
    if count == 1:
        return columns.from_values(np.zeros(len(keys), _U64), pa.uint16())
    blocks = [keys >> _U64(_BLOCK * at) & _U64(0xFFFF) for at in range(4)]
    bits = (count - 1).bit_length()
    buckets = _of_power(blocks, bits)
    rows = np.flatnonzero(buckets >= count)
    if len(rows):
        chosen = [block[rows] for block in blocks]
        half = _U64(1 << bits - 1)
        large = buckets[rows]
        with np.errstate(over="ignore"):
            moved = _other_bits(chosen, bits) % (large * (large + _U64(1)))
        moved = (moved >> _U64(bits)) + half
        buckets[rows] = np.where(moved < count, moved, _of_power(chosen, bits - 1))
    return columns.from_values(buckets, pa.uint16())


def _of_power(blocks: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Return each key's bucket among 2 ** `bits` buckets, from the key's four blocks of bits."""
    a, b, c, _ = blocks
    low = c & _U64((1 << bits) - 1)
    highest = np.zeros(len(low), _U64)
    for bit in range(bits):
        highest = np.where(low >> _U64(bit) > 0, _U64(1 << bit), highest)
    odd = np.bitwise_count(low) % 2 == 1
    rest = np.where(odd, b, a) & (np.maximum(highest, _U64(1)) - _U64(1))
    return np.where(low < 2, low, highest + rest)


def _other_bits(blocks: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Return as one number the bits of the four blocks that `_of_power` did not use for 2 ** `bits` buckets."""
    a, b, c, d = blocks
    shift = _BLOCK - bits
    total = d << _U64(shift) | c >> _U64(bits)
    for block in (b, a):
        total = total << _U64(shift + 1) | block >> _U64(bits - 1)
    return np.asarray(total)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "kostikConsistentHash", _rule, _kostik, count=2, aliases=("yandexConsistentHash",)
    ),
)
