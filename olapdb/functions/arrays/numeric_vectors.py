"""Functions of numeric indexed vectors, the states of groupNumericIndexedVector."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.aggregates.numeric_vectors import (
    NAME,
    Layout,
    layout_of,
    parts_of,
    sums_of,
    vector_type,
    vectors_from,
)
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, wide_numbers
from olapdb.functions.kernels.nested import map_parts
from olapdb.types import (
    FLOAT64,
    STRING,
    UINT64,
    AggregateFunction,
    DataType,
    Decimal,
    Float,
    Integer,
    Map,
)

Operation = Callable[[np.ndarray, np.ndarray, Layout], np.ndarray]
"""(left, right fixed-point numbers, their layout) -> fixed-point numbers, which may be too wide."""


def _vector(name: str, data_type: DataType) -> AggregateFunction:
    """Return the type of a vector; raise IllegalTypeOfArgument for another type."""
    if isinstance(data_type, AggregateFunction) and data_type.function == NAME:
        return data_type
    raise scalar.illegal(name, data_type, "a NumericIndexedVector")


def _rule(result: Callable[[AggregateFunction], DataType]) -> scalar.TypeRule:
    """Return the type rule of a function of a vector and an optional index; `result` maps the vector's type to the
    result type."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the result's type; raise IllegalTypeOfArgument for other arguments."""
        vector = _vector(name, types[0])
        scalar.require(name, types[1:], (Integer, Float), "an index")
        return result(vector)

    return rule


def _build_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of the vector of a map; raise IllegalTypeOfArgument for other arguments."""
    scalar.require(name, types, Map, "a Map")
    assert isinstance(types[0], Map)
    return vector_type(types[0].key, types[0].value)


def _build(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the vector of each map; values of equal keys add up."""
    assert isinstance(call.result, AggregateFunction)
    layout = layout_of(call.result)
    offsets, keys, values = map_parts(arrays[0])
    numbers = layout.scaled(columns.numpy_values(values))
    indexes = columns.numpy_values(keys).astype(np.int64)
    return _typed(
        vectors_from(columns.parents_of(offsets), indexes, numbers, len(arrays[0]), layout), call
    )


def _typed(vectors: pa.Array, call: scalar.Invocation) -> pa.Array:
    """Cast vectors to the result type of the call."""
    return columns.retype(vectors, call.result.arrow)


def _layout(call: scalar.Invocation) -> Layout:
    """Return the layout of the vector type of the call's first argument."""
    return layout_of(_vector("", call.types[0]))


def _to_map(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return each vector as a map from index to value."""
    layout = _layout(call)
    offsets, indexes, numbers = parts_of(arrays[0])
    keys = columns.from_values(indexes, layout.index.arrow)
    items = layout.column(numbers)
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items).cast(
        call.result.arrow
    )


def _cardinality(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the number of indexes of each vector."""
    return columns.from_values(np.diff(parts_of(arrays[0])[0]), pa.uint64())


def _sum(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the sum of the values of each vector."""
    return sums_of(arrays[0], _layout(call))


def _value(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the value at an index of each vector; 0 where it has none."""
    layout = _layout(call)
    offsets, indexes, numbers = parts_of(arrays[0])
    asked = columns.from_values(columns.numpy_values(arrays[1]), layout.index.arrow)
    wanted = columns.numpy_values(asked).astype(np.int64)
    owners = columns.parents_of(offsets)
    hits = np.flatnonzero(indexes == wanted[owners])
    values_by_row = np.zeros(len(arrays[0]), np.int64)
    values_by_row[owners[hits]] = numbers[hits]
    return layout.column(values_by_row)


# --- pointwise operations


def _pointwise_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the vector's type; raise IllegalTypeOfArgument unless a number or a like vector follows."""
    vector = _vector(name, types[0])
    if isinstance(types[1], AggregateFunction):
        other = _vector(name, types[1])
        if (other.arguments, other.parameters) != (vector.arguments, vector.parameters):
            raise scalar.illegal(name, other, f"a vector of type {vector}")
    else:
        scalar.require(name, types[1:], (Integer, Float, Decimal), "a number or a vector")
    return vector


def _pointwise(of_vectors: Operation, of_number: Operation | None = None) -> scalar.Kernel:
    """Return the kernel of an elementwise operation on two vectors, or on a vector and a number. An index that only
    one vector has counts as 0 in the other. `of_number`, for vectors of floats, takes the left values and the number
    as floats."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Apply the operation and return the vectors of the results."""
        layout = _layout(call)
        offsets, indexes, numbers = parts_of(arrays[0])
        owners = columns.parents_of(offsets)
        if isinstance(call.types[1], AggregateFunction):
            owners, indexes, numbers, other = _aligned(arrays, layout)
            results = of_vectors(numbers, other, layout)
        else:
            narrowed = _narrowed(arrays[1], call.types[1], layout)
            if of_number is not None and isinstance(layout.value, Float):
                right = narrowed.astype(np.float64)[owners]
                results = of_number(layout.floats(numbers), right, layout)
            else:
                results = of_vectors(numbers, layout.scaled(narrowed)[owners], layout)
        return _typed(
            vectors_from(owners, indexes, layout.wrapped(results), len(arrays[0]), layout), call
        )

    return kernel


def _narrowed(array: pa.Array, data_type: DataType, layout: Layout) -> np.ndarray:
    """Convert numbers to fixed-point values of the vector: integers wrap around, floats are truncated."""
    if isinstance(data_type, Decimal):
        array = array.cast(pa.float64())
    return columns.numpy_values(
        columns.from_values(columns.numpy_values(array), layout.value.arrow)
    )


def _aligned(
    arrays: Sequence[pa.Array], layout: Layout
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Align two vectors: return (owners, indexes, left numbers, right numbers) over all indexes that either one has;
    0 for a missing number."""
    parts = [parts_of(array) for array in arrays[:2]]
    owners = [columns.parents_of(offsets) for offsets, _, _ in parts]
    merged = vectors_from(
        np.concatenate(owners),
        np.concatenate([indexes for _, indexes, _ in parts]),
        np.zeros(sum(len(numbers) for _, _, numbers in parts), np.int64),
        len(arrays[0]),
        layout,
    )
    offsets, indexes, _ = parts_of(merged)
    all_owners = columns.parents_of(offsets)
    least = int(indexes.min()) if len(indexes) else 0
    keys = all_owners * (1 << 33) + (indexes - least)
    sides = []
    for own, (_, places, numbers) in zip(owners, parts, strict=True):
        side = np.zeros(len(indexes), np.int64)
        side[np.searchsorted(keys, own * (1 << 33) + (places - least))] = numbers
        sides.append(side)
    return all_owners, indexes, sides[0], sides[1]


def _product(left: np.ndarray, right: np.ndarray, layout: Layout) -> np.ndarray:
    """Multiply fixed-point numbers; digits after the last fraction bit are truncated."""
    if not layout.fraction_bits:
        return np.asarray(left * right)
    limbs = [
        wide_numbers.magnitudes(wide_numbers.extended(side.view(np.uint64).reshape(-1, 1)))
        for side in (left, right)
    ]
    whole = wide_numbers.multiplied(*limbs)
    shift = np.uint64(layout.fraction_bits)
    size = (whole[:, 0] >> shift) | (whole[:, 1] << (np.uint64(64) - shift))
    return np.where((left < 0) != (right < 0), -size.view(np.int64), size.view(np.int64))


def _quotient(left: np.ndarray, right: np.ndarray, layout: Layout) -> np.ndarray:
    """Divide fixed-point numbers, rounded towards zero; 0 where the divisor is 0."""
    divisible = right != 0
    raised = wide_numbers.extended(left.view(np.uint64).reshape(-1, 1))
    factor = np.zeros((1, wide_numbers.LIMBS), np.uint64)
    factor[0, 0] = 1 << layout.fraction_bits
    safe = np.where(divisible, right, 1)
    whole, _ = wide_numbers.divided(
        wide_numbers.multiplied(raised, factor),
        wide_numbers.extended(safe.view(np.uint64).reshape(-1, 1)),
    )
    return np.where(divisible, whole[:, 0].view(np.int64), 0)


def _float_product(left: np.ndarray, right: np.ndarray, layout: Layout) -> np.ndarray:
    """Return products of floats as fixed-point numbers."""
    return layout.fixed(left * right)


def _float_quotient(left: np.ndarray, right: np.ndarray, layout: Layout) -> np.ndarray:
    """Return quotients of floats as fixed-point numbers; 0 where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return layout.fixed(np.where(right != 0, left / right, 0.0))


_ARITHMETIC: dict[str, scalar.Kernel] = {
    "Add": _pointwise(lambda left, right, layout: left + right),
    "Subtract": _pointwise(lambda left, right, layout: left - right),
    "Multiply": _pointwise(_product, _float_product),
    "Divide": _pointwise(_quotient, _float_quotient),
}

_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


def _compared(comparison: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> scalar.Kernel:
    """Return the kernel that compares two vectors, or a vector and a number, elementwise: indexes for which the
    comparison holds get the value 1, the others are dropped."""
    ones = _pointwise(
        lambda left, right, layout: (
            comparison(left, right).astype(np.int64) << np.int64(layout.fraction_bits)
        )
    )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compare the values and keep the indexes for which the comparison holds, with the value 1."""
        compared = ones(arrays, call)
        offsets, indexes, numbers = parts_of(compared)
        keep = numbers != 0
        owners = columns.parents_of(offsets)[keep]
        layout = _layout(call)
        return _typed(
            vectors_from(owners, indexes[keep], numbers[keep], len(compared), layout), call
        )

    return kernel


# --- numericIndexedVectorShortDebugString

_TYPE_NAMES = {
    "UInt8": "char8_t",
    "Int8": "_BitInt(8)",
    "UInt16": "unsigned short",
    "Int16": "short",
    "UInt32": "unsigned int",
    "Int32": "int",
    "UInt64": "unsigned long",
    "Int64": "long",
    "Float32": "float",
    "Float64": "double",
}


def _debug_text(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return a JSON text that describes the vector as bitmaps: for each bit of the values, how many indexes have it."""
    layout = _layout(call)
    offsets, _, numbers = parts_of(arrays[0])
    owners, rows = columns.parents_of(offsets), len(arrays[0])
    zeros = np.bincount(owners[numbers == 0], minlength=rows).tolist()
    sums = columns.numpy_values(sums_of(arrays[0], layout)).tolist()
    words = numbers.view(np.uint64)
    by_bit = [
        np.bincount(owners[(words >> np.uint64(bit)) & np.uint64(1) == 1], minlength=rows).tolist()
        for bit in range(layout.bits)
    ]
    sizes = np.diff(offsets).tolist()
    texts = []
    for row in range(rows):
        total = sums[row]
        described = {
            "vector_type": "BSI",
            "index_type": _TYPE_NAMES[layout.index.name],
            "value_type": _TYPE_NAMES[layout.value.name],
            "integer_bit_num": layout.integer_bits,
            "fraction_bit_num": layout.fraction_bits,
            "zero_indexes_info": {"cardinality": zeros[row]},
            "non_zero_indexes_info": {
                "total_cardinality": sizes[row],
                "all_value_sum": int(total) if total == int(total) else total,
                "number_of_bitmaps": layout.bits,
                "bitmap_info": {
                    "cardinality": {str(bit): counts[row] for bit, counts in enumerate(by_bit)}
                },
            },
        }
        texts.append(json.dumps(described, separators=(",", ":")))
    return pa.array(texts, pa.string())


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("numericIndexedVectorBuild", _build_rule, _build),
    scalar.define(
        "numericIndexedVectorToMap",
        _rule(lambda vector: Map(vector.arguments[0], vector.arguments[1])),
        _to_map,
    ),
    scalar.define("numericIndexedVectorCardinality", _rule(lambda vector: UINT64), _cardinality),
    scalar.define("numericIndexedVectorAllValueSum", _rule(lambda vector: FLOAT64), _sum),
    scalar.define(
        "numericIndexedVectorGetValue", _rule(lambda vector: vector.arguments[1]), _value, count=2
    ),
    scalar.define("numericIndexedVectorShortDebugString", _rule(lambda v: STRING), _debug_text),
    *(
        scalar.define(f"numericIndexedVectorPointwise{name}", _pointwise_rule, kernel, count=2)
        for name, kernel in _ARITHMETIC.items()
    ),
    *(
        scalar.define(
            f"numericIndexedVectorPointwise{name}", _pointwise_rule, _compared(comparison), count=2
        )
        for name, comparison in _COMPARISONS.items()
    ),
)
