"""groupNumericIndexedVector: a sparse vector of numbers by integer index, which adds up values.

A vector is a state, so that it merges and is stored. Its values are fixed-point numbers of
`integer_bits` and `fraction_bits`, as in ClickHouse's bit-sliced index (BSI): a value is cut behind its
last bit, and sums wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    IncorrectData,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
)
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    INT64,
    AggregateFunction,
    Array,
    DataType,
    Float,
    Integer,
    Tuple,
    plain,
)

NAME = "groupNumericIndexedVector"
_WORD = 64


@dataclass(frozen=True)
class Layout:
    """The types of a vector's indexes and values, and the numbers of integer and fraction bits of a value."""

    index: Integer
    value: Integer | Float
    integer_bits: int
    fraction_bits: int

    @property
    def bits(self) -> int:
        """Return the total number of bits of a value."""
        return self.integer_bits + self.fraction_bits

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Convert values to fixed-point numbers, int64. Raises IncorrectData for NaN, infinity and values out of the
        range of the bits."""
        if isinstance(self.value, Integer):
            if values.dtype == np.uint64 and values.size and int(values.max()) >= 1 << 63:
                raise IncorrectData("A value of a NumericIndexedVector must fit in Int64.")
            return self.wrapped(values.astype(np.int64))
        if not np.isfinite(values).all():
            raise IncorrectData("A NumericIndexedVector has neither NaN nor infinity.")
        limit = float(1 << max(self.integer_bits - 1, 0))
        if values.size and float(np.abs(values).max()) >= limit:
            raise IncorrectData(
                f"A value is out of range for {self.integer_bits} integer bits of a"
                " NumericIndexedVector."
            )
        return self.fixed(values)

    def fixed(self, values: np.ndarray) -> np.ndarray:
        """Convert floats to fixed-point numbers: truncate after the last fraction bit, and wrap around on overflow."""
        whole = np.trunc(values.astype(np.float64) * float(1 << self.fraction_bits))
        span = float(1 << _WORD)
        beyond = np.abs(whole) >= span / 2
        safe = np.where(beyond, np.mod(whole, span), whole)
        safe = np.where(safe >= span / 2, safe - span, safe)
        return self.wrapped(safe.astype(np.int64))

    def wrapped(self, numbers: np.ndarray) -> np.ndarray:
        """Wrap fixed-point numbers to the number of bits; the result is signed unless the value type is unsigned."""
        unused = _WORD - self.bits
        if not unused:
            return numbers
        raised = numbers.view(np.uint64) << np.uint64(unused)
        if isinstance(self.value, Integer) and not self.value.signed:
            return np.asarray((raised >> np.uint64(unused)).view(np.int64))
        return np.asarray(raised.view(np.int64) >> np.int64(unused))

    def floats(self, numbers: np.ndarray) -> np.ndarray:
        """Return fixed-point numbers as floats."""
        return numbers.astype(np.float64) / float(1 << self.fraction_bits)

    def column(self, numbers: np.ndarray) -> pa.Array:
        """Return fixed-point numbers as a column of the value's type."""
        values = self.floats(numbers) if isinstance(self.value, Float) else numbers
        return columns.from_values(values, self.value.arrow)


def layout_of(data_type: AggregateFunction) -> Layout:
    """Return the layout of a type of vectors."""
    index, value = (plain(argument) for argument in data_type.arguments)
    assert isinstance(index, Integer)
    assert isinstance(value, Integer | Float)
    bits = tuple(int(text) for text in data_type.parameters[1:])
    return _layout(index, value, bits)


def _layout(index: Integer, value: Integer | Float, bits: tuple[int, ...]) -> Layout:
    """Return the layout with these bits, (integer, fraction); with the value type's default bits if the tuple is
    empty."""
    if bits:
        return Layout(index, value, *bits)
    return (
        Layout(index, value, value.bits, 0)
        if isinstance(value, Integer)
        else (Layout(index, value, 40, 24))
    )


def vector_type(index: DataType, value: DataType) -> AggregateFunction:
    """Return the type of vectors with the default bits. Raises IllegalTypeOfArgument for types that a vector cannot
    have."""
    return _checked_type(NAME, (), (index, value))


def _checked_type(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> AggregateFunction:
    """Return the type of the states; raise IllegalTypeOfArgument for types that have no vector."""
    index, value = (plain(data_type) for data_type in types)
    if not isinstance(index, Integer) or index.bits > 32:
        raise illegal_argument(name, index, "an index of at most 32 bits")
    if not isinstance(value, Integer | Float):
        raise illegal_argument(name, value, "an integer or a float of at most 64 bits")
    element = Tuple((index, INT64), ("index", "number"))
    return state_type_of(name, parameters, types, Array(element))


def vectors_from(
    owners: np.ndarray, indexes: np.ndarray, numbers: np.ndarray, rows: int, layout: Layout
) -> pa.Array:
    """Return one vector for each of `rows` owners, sorted by index; equal indexes add up."""
    order = order_by(owners, indexes)
    owners, indexes, numbers = owners[order], indexes[order], numbers[order]
    first = np.ones(len(owners), bool)
    first[1:] = (owners[1:] != owners[:-1]) | (indexes[1:] != indexes[:-1])
    starts = np.flatnonzero(first)
    if len(starts):
        numbers = layout.wrapped(np.add.reduceat(numbers, starts))
    counts = np.bincount(owners[starts], minlength=rows)
    arrow = pa.struct([("index", layout.index.arrow), ("number", pa.int64())])
    fields = [
        columns.from_values(indexes[starts], layout.index.arrow),
        columns.from_values(numbers, pa.int64()),
    ]
    elements = columns.structs_from(fields, arrow)
    return columns.lists_from(columns.offsets_from_counts(counts), elements)


def parts_of(vectors: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the vectors' offsets, from 0, their indexes (int64), and their fixed-point numbers."""
    offsets, elements = columns.elements_of(vectors)
    indexes, numbers = (columns.numpy_values(field) for field in columns.struct_fields(elements))
    return offsets, indexes.astype(np.int64), numbers


@dataclass(frozen=True)
class NumericIndexedVector(Aggregate):
    """groupNumericIndexedVector(index, value): the sum of all values; its state is the vector.

    State: Array(Tuple(index, number Int64)), sorted by index; number is the fixed-point value."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's vector; rows with a NULL are skipped."""
        (indexes, values), groups = group_kernels.drop_null_rows(arguments, groups)
        layout = layout_of(self.state_type)
        numbers = layout.scaled(columns.numpy_values(values))
        places = columns.numpy_values(indexes).astype(np.int64)
        return self._typed(vectors_from(groups.codes, places, numbers, groups.count, layout))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up each group's vectors."""
        offsets, indexes, numbers = parts_of(states)
        owners = group_kernels.element_groups(offsets, groups)
        layout = layout_of(self.state_type)
        return self._typed(vectors_from(owners.codes, indexes, numbers, groups.count, layout))

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the sum of each vector's values."""
        return sums_of(states, layout_of(self.state_type))

    def _typed(self, vectors: pa.Array) -> pa.Array:
        """Return vectors as the state's type."""
        return columns.retype(vectors, self.state_type.arrow)


def sums_of(vectors: pa.Array, layout: Layout) -> pa.Array:
    """Return the sum of each vector's values, Float64."""
    offsets, _, numbers = parts_of(vectors)
    totals = np.bincount(
        columns.parents_of(offsets), layout.floats(numbers), minlength=len(vectors)
    )
    return columns.from_values(totals, pa.float64())


def numeric_indexed_vector(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupNumericIndexedVector[('BSI', integer_bits, fraction_bits)](index, value).

    Raises NumberOfArgumentsDoesntMatch, BadArguments and IllegalTypeOfArgument; NotSupportedError
    for more than 64 bits together."""
    require_count(name, types, 2)
    if parameters and parameters[0] != "BSI":
        raise BadArguments(f"The first parameter of {name} is 'BSI', not {parameters[0]!r}.")
    if len(parameters) not in (0, 3):
        raise NumberOfArgumentsDoesntMatch(f"{name} takes no parameters, or three.")
    state = _checked_type(name, parameters, types)
    bits = [p for p in parameters[1:] if isinstance(p, int) and not isinstance(p, bool) and p >= 0]
    if len(bits) < len(parameters) - 1:
        raise BadArguments(f"The numbers of bits of {name} are integers from 0 on.")
    if bits:
        if bits[0] > _WORD or bits[1] > 24:
            raise BadArguments(f"{name} takes at most 64 integer bits and 24 fraction bits.")
        if bits[1] and isinstance(plain(types[1]), Integer):
            raise BadArguments(f"Integer values of {name} have no fraction bits.")
        if not 0 < sum(bits) <= _WORD:
            raise NotSupportedError(f"{name} of {sum(bits)} bits is not supported: 1 to 64 are.")
    return NumericIndexedVector(name, parameters, types, FLOAT64, state)
