"""Functions that reduce an array to one value: arraySum, arrayAvg, arrayMin, arrayMax, arrayUniq."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.types import (
    FLOAT64,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    Nothing,
    is_nullable,
    make_nullable,
    plain,
)


def _require_numbers(name: str, inner: DataType) -> DataType:
    """Return the element type; raise IllegalTypeOfArgument unless it is a number, not Nullable."""
    number = plain(inner)
    if is_nullable(inner) or not isinstance(number, Integer | Float | Decimal | Boolean):
        raise IllegalTypeOfArgument(f"Illegal type Array({inner}) of argument of function {name}.")
    return number


def _aggregate_kernel(kind: str) -> scalar.Kernel:
    """Return the kernel that applies the aggregate `kind` (sum, avg, min or max) to each array."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Aggregate each array; the average of an empty array is 0."""
        container = call.types[0]
        assert isinstance(container, Array)
        offsets, elements = columns.elements_of(arrays[0])
        argument_type = container.inner if kind in ("min", "max") else plain(container.inner)
        aggregate = resolve_aggregate(kind, (), (argument_type,))
        groups = Groups(columns.parents_of(offsets), len(arrays[0]))
        values = aggregate.finalize(aggregate.state([elements], groups))
        if kind == "avg":  # of an empty array it is 0, while avg() gives NaN
            averages = columns.numpy_values(values)
            values = pa.array(np.where(np.diff(offsets) == 0, 0.0, averages))
        return values if values.type == call.result.arrow else values.cast(call.result.arrow)

    return kernel


def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return the type of the sum; raise IllegalTypeOfArgument unless the elements are numbers."""
    return sum_type(_require_numbers(name, element_type(name, types[0])))


def _avg_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return Float64; raise IllegalTypeOfArgument unless the elements are numbers."""
    _require_numbers(name, element_type(name, types[0]))
    return FLOAT64


def _extreme_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the element type; raise IllegalTypeOfArgument for elements without an order."""
    inner = plain(element_type(name, types[0]))
    if isinstance(inner, Nothing):
        raise scalar.illegal(name, types[0], "an Array of values")
    return make_nullable(inner) if is_nullable(element_type(name, types[0])) else inner


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("arraySum", _sum_rule, _aggregate_kernel("sum")),
    scalar.define("arrayAvg", _avg_rule, _aggregate_kernel("avg")),
    scalar.define("arrayMin", _extreme_rule, _aggregate_kernel("min")),
    scalar.define("arrayMax", _extreme_rule, _aggregate_kernel("max")),
)
