"""Hashes of values of any types as ClickHouse makes them: each value is hashed, then joined.

The elements of tuples count as values of their own. An array is the hash of its length, joined with
those of its elements. A NULL inside of these is a constant; a bare NULL makes the result NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import InternalError
from olapdb.functions import scalar
from olapdb.functions.kernels import brain_floats, columns, wide_numbers
from olapdb.functions.numeric.byte_hashes import (
    U64,
    HashedValues,
    int_hash32,
    int_hash64,
    values_of,
)
from olapdb.functions.numeric.sip_hashes import Key
from olapdb.functions.strings.rendering import fixed_bytes
from olapdb.records import dataclass
from olapdb.types import (
    UINT64,
    UUID,
    Array,
    BFloat16,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    FixedString,
    Float,
    Integer,
    Interval,
    IPv4,
    IPv6,
    LowCardinality,
    Map,
    Nothing,
    Nullable,
    String,
    Time,
    Time64,
    Tuple,
    WideNumber,
)

_INT_HASH_64 = U64(0x4CF2D2BAAE6DA887)
_OF_NO_ARGUMENTS = U64(0xE28DBDE7FE22E41C)
_OF_NULL = (U64(0xC58AD2DA03D9A871), U64(0x5715F196CBEA7A40))
_SCALARS = (
    *(Integer, Enum, Float, Boolean, String, FixedString, Date, Date32, DateTime, DateTime64),
    *(IPv4, IPv6, UUID, Decimal, Interval, Time, Time64),
)


@dataclass(frozen=True)
class AnyHash:
    """A hash of several arguments of any types.

    `hashed(values, key)` hashes byte strings; `joined(so_far, next, key)` joins two hashes. Hashes
    are uint64 or uint32 of shape (rows,), or for 128 bits uint64 of shape (rows, 2). `key` is None
    but for hashes with a key. `by_value`: numbers are hashed by intHash64 of their bits instead of
    as bytes.
    """

    hashed: Callable[[HashedValues, Key], np.ndarray]
    joined: Callable[[np.ndarray, np.ndarray, Key], np.ndarray]
    by_value: bool = False
    result: DataType = UINT64
    leaf: Callable[[pa.Array, DataType], np.ndarray | None] = lambda array, data_type: None
    """Hashes values of some types in another way; returns None for all others."""

    def of_rows(
        self, arrays: Sequence[pa.Array], types: Sequence[DataType], rows: int, key: Key = None
    ) -> np.ndarray:
        """Return one hash for each of `rows` rows, over the columns from left to right; a constant without columns."""
        total: np.ndarray | None = None
        for array, data_type in zip(arrays, types, strict=True):
            total = self._absorbed(total, array, data_type, key)
        return self._constant(rows, _OF_NO_ARGUMENTS, U64(0)) if total is None else total

    def _absorbed(
        self, total: np.ndarray | None, array: pa.Array, data_type: DataType, key: Key
    ) -> np.ndarray:
        """Hash a column and join its hashes to `total`; return them alone if `total` is None. Goes into containers,
        each element of which counts as a value."""
        match data_type:
            case LowCardinality(inner):
                return self._absorbed(total, array, inner, key)
            case Nullable(inner):
                return self._absorbed_nullable(total, array, inner, key)
            case Tuple(elements):
                fields = columns.struct_fields(array)
                for field, element in zip(fields, elements, strict=True):
                    total = self._absorbed(total, field, element, key)
                if total is None:
                    return self._constant(len(array), _OF_NO_ARGUMENTS, U64(0))
                return total
            case Map(map_key, value):
                entries = Tuple((map_key, value))
                return self._absorbed_array(total, array.cast(_list_of(array)), entries, key)
            case Array(inner):
                return self._absorbed_array(total, array, inner, key)
            case Nothing():
                hashes = self._constant(len(array), U64(0), U64(0))
            case _:
                hashes = self._of_scalars(array, data_type, key)
        return hashes if total is None else self.joined(total, hashes, key)

    def _absorbed_nullable(
        self, total: np.ndarray | None, array: pa.Array, inner: DataType, key: Key
    ) -> np.ndarray:
        """Join the hashes of a Nullable column to `total`; a NULL counts as a constant, which depends on the key."""
        null = self._constant(len(array), *_OF_NULL)
        if key is not None:
            null = self.joined(null, np.zeros_like(null), key)
        result = null if total is None else self.joined(total, null, key)
        valid = np.flatnonzero(np.asarray(array.is_valid()))
        if len(valid):
            before = None if total is None else total[valid]
            present = array if len(valid) == len(array) else array.take(pa.array(valid))
            result[valid] = self._absorbed(before, present, inner, _key_of(key, valid))
        return result

    def _absorbed_array(
        self, total: np.ndarray | None, array: pa.Array, inner: DataType, key: Key
    ) -> np.ndarray:
        """Join the number of elements of each list to `total`, then the elements one after the other."""
        offsets, elements = columns.elements_of(array)
        counts = np.diff(offsets)
        hashes = self._constant(0, U64(0), U64(0))
        if len(elements):
            owners = columns.parents_of(offsets)
            hashes = self._absorbed(None, elements, inner, _key_of(key, owners))
        sizes = self._of_sizes(counts)
        total = sizes if total is None else self.joined(total, sizes, key)
        for at in range(int(counts.max(initial=0))):
            rows = np.flatnonzero(counts > at)
            total[rows] = self.joined(total[rows], hashes[offsets[rows] + at], _key_of(key, rows))
        return total

    def _of_sizes(self, counts: np.ndarray) -> np.ndarray:
        """Return the hash of each number of elements: intHash64 for hashes of 64 bits, else intHash32, as the low
        word of a hash of 128 bits."""
        sizes = counts.astype(U64)
        if self._dtype == np.uint64 and not self._is_wide:
            return int_hash64(sizes ^ _INT_HASH_64)
        hashes = int_hash32(sizes)
        if self._is_wide:
            return np.stack([hashes.astype(U64), np.zeros(len(counts), U64)], axis=1)
        return hashes.astype(self._dtype)

    def _of_scalars(self, array: pa.Array, data_type: DataType, key: Key) -> np.ndarray:
        """Return the hash of each value of a column that is no list and no tuple."""
        other = self.leaf(array, data_type)
        if other is not None:
            return other
        raw = _in_memory(array, data_type)
        if raw is None:
            if pa.types.is_fixed_size_binary(array.type):
                array = array.cast(pa.binary())
            return self.hashed(values_of(array), key)
        if self.by_value and not isinstance(
            data_type, Decimal | UUID | DateTime64 | Time | Time64 | Interval
        ):
            bits = raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.uint64)
            return int_hash64(bits ^ _INT_HASH_64)
        return self.hashed(HashedValues.of_width(raw), key)

    @property
    def _is_wide(self) -> bool:
        """Whether the hashes have 128 bits."""
        return isinstance(self.result, FixedString | WideNumber)

    @property
    def _dtype(self) -> np.dtype:
        """The type of one word of a hash."""
        if self._is_wide:
            return np.dtype(np.uint64)
        assert isinstance(self.result, Integer)
        return np.dtype(f"u{self.result.bits // 8}")

    def _constant(self, rows: int, low: np.uint64, high: np.uint64) -> np.ndarray:
        """Return the hash of these words for every row: `low` alone if a hash has 64 bits."""
        if self._is_wide:
            return np.tile(np.array([low, high], U64), (rows, 1))
        return np.full(rows, low, U64).astype(self._dtype)

    def column(self, hashes: np.ndarray) -> pa.Array:
        """Return hashes as a column of the result's type; hashes of 128 bits as integers, or as 16 bytes each."""
        if isinstance(self.result, WideNumber):
            return wide_numbers.column_of(hashes, self.result)
        if self._is_wide:
            data = np.ascontiguousarray(hashes).view(np.uint8)
            return pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), len(hashes), [None, pa.py_buffer(data.tobytes())]
            )
        signed = hashes.view(hashes.dtype.str.replace("u", "i"))
        unsigned = isinstance(self.result, Integer) and not self.result.signed
        return columns.from_values(hashes if unsigned else signed, self.result.arrow)


def _list_of(array: pa.Array) -> pa.DataType:
    """Return the Arrow type that shows a map as a list of structs of key and value."""
    fields = [pa.field("keys", array.type.key_type), pa.field("values", array.type.item_type)]
    return pa.list_(pa.struct(fields))


def _key_of(key: Key, rows: np.ndarray) -> Key:
    """Return the keys of the rows at these positions; None without a key."""
    return None if key is None else (key[0][rows], key[1][rows])


def _in_memory(array: pa.Array, data_type: DataType) -> np.ndarray | None:
    """Return the values as ClickHouse has them in memory, rows of one width; None for texts."""
    match data_type:
        case String() | FixedString() | IPv6():
            return None
        case UUID():
            halves = fixed_bytes(array).reshape(-1, 2, 8)
            return np.ascontiguousarray(halves[:, :, ::-1]).reshape(-1, 16)
        case WideNumber(bits=bits):
            return _decimal_bytes(array, 38 if bits == 128 else 76)
        case Decimal(precision):
            return _decimal_bytes(array, precision)
        case BFloat16():
            return brain_floats.words_of(array)
        case Date():
            return columns.numpy_values(array).astype(np.uint16)
        case DateTime():
            return columns.numpy_values(array).astype(np.uint32)
        case DateTime64(precision):
            ticks = columns.numpy_values(array)
            unit = -(-precision // 3) * 3
            return np.asarray(ticks // 10 ** (unit - precision))
        case _:
            return columns.numpy_values(array)


def _decimal_bytes(array: pa.Array, precision: int) -> np.ndarray:
    """Return unscaled decimals, little-endian, at ClickHouse's width for their digits."""
    stored = 16 if pa.types.is_decimal128(array.type) else 32
    width = next(w for digits, w in ((9, 4), (18, 8), (38, 16), (76, 32)) if precision <= digits)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    raw = np.frombuffer(buffer, np.uint8, len(array) * stored, array.offset * stored)
    return np.ascontiguousarray(raw.reshape(len(array), stored)[:, :width])


def require_hashable(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument unless values of the type, and of each type within it, can be hashed here; `name`
    is the function."""
    match data_type:
        case Nullable(inner) | LowCardinality(inner) | Array(inner):
            require_hashable(name, inner)
        case Tuple(elements):
            for element in elements:
                require_hashable(name, element)
        case Map(key, value):
            require_hashable(name, key)
            require_hashable(name, value)
        case Nothing():
            return
        case _:
            wanted = "a number, a string, a date, or arrays, tuples and maps of these"
            scalar.require(name, [data_type], _SCALARS, wanted)


def column_of(hash_of: AnyHash, arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return `hash_of` of the rows of all arguments of a call, as a column: the kernel of a hash function."""
    if len(arrays) != len(call.types):
        raise InternalError("A hash function got another number of columns than of types.")
    return hash_of.column(hash_of.of_rows(arrays, call.types, call.rows))
