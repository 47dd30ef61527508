"""Functions that reduce an array to one value: arraySum, arrayAvg, arrayMin, arrayMax, arrayUniq."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions import scalar
from olapdb.functions.arrays.ordering import first_occurrences
from olapdb.functions.arrays.search import count_marked, ranks_with_null
from olapdb.functions.base import Argument, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.types import (
    FLOAT64,
    UINT32,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    Map,
    Nothing,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)


def _array_rule(
    result: Callable[[Array], DataType],
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        first = types[0]
        if not isinstance(first, Array):
            raise scalar.illegal(name, first, "an Array")
        return result(first)

    return rule


def _numeric(name: str, inner: DataType) -> DataType:
    one = plain(inner)
    if is_nullable(inner) or not isinstance(one, Integer | Float | Decimal | Boolean):
        raise IllegalTypeOfArgument(f"Illegal type Array({inner}) of argument of function {name}.")
    return one


def _folding(kind: str) -> scalar.Kernel:
    """arraySum, arrayAvg, arrayMin, arrayMax: the aggregate of each array."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        from olapdb.functions.aggregates.registry import resolve_aggregate

        container = call.types[0]
        assert isinstance(container, Array)
        offsets, elements = columns.elements_of(arrays[0])
        taken = container.inner if kind in ("min", "max") else plain(container.inner)
        aggregate = resolve_aggregate(kind, (), (taken,))
        groups = Groups(columns.parents_of(offsets), len(arrays[0]))
        values = aggregate.finalize(aggregate.state([elements], groups))
        if kind == "avg":  # of nothing is 0 here, unlike avg()
            known = columns.numpy_values(values)
            values = pa.array(np.where(np.diff(offsets) == 0, 0.0, known))
        return values if values.type == call.result.arrow else values.cast(call.result.arrow)

    return kernel


def _uniq(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    offsets, elements = columns.elements_of(arrays[0])
    kept = first_occurrences(columns.parents_of(offsets), ranks_with_null(elements))
    return columns.from_values(count_marked(offsets, kept, call.rows), pa.uint32())


def _sum_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    return sum_type(_numeric(name, _inner(name, types[0])))


def _avg_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    _numeric(name, _inner(name, types[0]))
    return FLOAT64


def _extreme_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    inner = plain(_inner(name, types[0]))
    if isinstance(inner, Array | Tuple | Map | Nothing):
        raise scalar.illegal(name, types[0], "an Array of single values")
    return make_nullable(inner) if is_nullable(_inner(name, types[0])) else inner


def _inner(name: str, data_type: DataType) -> DataType:
    if not isinstance(data_type, Array):
        raise scalar.illegal(name, data_type, "an Array")
    return data_type.inner


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("arraySum", _sum_rule, _folding("sum")),
    scalar.define("arrayAvg", _avg_rule, _folding("avg")),
    scalar.define("arrayMin", _extreme_rule, _folding("min")),
    scalar.define("arrayMax", _extreme_rule, _folding("max")),
    scalar.define("arrayUniq", _array_rule(lambda a: UINT32), _uniq),
)
