"""mapAdd and mapSubtract: sums of the values of each key over several maps of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.aggregates.registry import resolve_aggregate
from olapdb.functions.base import Argument, Groups, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.composition import as_call, call, literal, parts_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested import map_parts
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, illegal, standard_call
from olapdb.types import (
    UINT8,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    Map,
    Tuple,
    is_nullable,
    plain,
)

_NUMBERS = (Integer, Float, Decimal, Boolean)


def _result_type(name: str, types: Sequence[DataType]) -> Map:
    """Return the type of the summed map. Raises IllegalTypeOfArgument unless the keys have a common type and the
    values a type of their sum."""
    maps = [data_type for data_type in types if isinstance(data_type, Map)]
    if len(maps) < len(types):
        raise illegal(
            name, next(t for t in types if t not in maps), "a Map, or all tuples of arrays"
        )
    for map_type in maps:
        if is_nullable(map_type.value) or not isinstance(map_type.value, _NUMBERS):
            raise illegal(name, map_type, "a Map of numbers")
    result = Map(maps[0].key, sum_type(maps[0].value))
    other = next((m for m in maps if Map(m.key, sum_type(m.value)) != result), None)
    if other is not None:
        raise IllegalTypeOfArgument(
            f"{name} of {maps[0]} and {other}: keys are of one type, and values all unsigned, all"
            " signed or all floats.",
            hint="Cast one of them.",
        )
    return result


def _map_sum(*, subtracts: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of mapAdd, or of mapSubtract, which negates every map except the first."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for the types of the maps, or of tuples of arrays in place of maps."""
        if all(_pair_of_arrays(a.type) for a in arguments):
            return _of_arrays(name, arguments)
        result = _result_type(name, [plain(a.type) for a in arguments])

        def kernel(arrays: list[pa.Array], invocation: Invocation) -> pa.Array:
            """Cast the maps to the result type and add up the values of each key."""
            environment = invocation.environment
            maps = [
                columns.single(cast_column(array, source, result, environment, strict=False))
                for array, source in zip(arrays, invocation.types, strict=True)
            ]
            if subtracts:
                maps[1:] = [_negated(array, result) for array in maps[1:]]
            rows = len(maps[0])
            groups = Groups(np.tile(np.arange(rows), len(maps)), rows)
            aggregate = resolve_aggregate("sumMap", (), (result,))
            sums = aggregate.finalize(aggregate.state([pa.concat_arrays(maps)], groups))
            return (
                sums if sums.type == invocation.result.arrow else sums.cast(invocation.result.arrow)
            )

        return standard_call(name, arguments, result, kernel)

    return resolve


def _pair_of_arrays(data_type: DataType) -> Tuple | None:
    """Return the type of a tuple of two arrays, the keys and the values; None for other types."""
    container = plain(data_type)
    if not isinstance(container, Tuple) or len(container.elements) != 2:
        return None
    return container if all(isinstance(t, Array) for t in container.elements) else None


def _of_arrays(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve the call for tuples of keys and values: the sum of the maps, as such a tuple."""
    maps = []
    for part in parts_of(arguments):
        keys, values = (call("tupleElement", part, literal(at, UINT8)) for at in (1, 2))
        maps.append(call("mapFromArrays", keys, values))
    total = call(name, *maps)
    return as_call(name, call("tuple", call("mapKeys", total), call("mapValues", total)))


def _negated(array: pa.Array, result: Map) -> pa.Array:
    """Return the maps with negated values. Unsigned values wrap, as their differences do."""
    offsets, keys, values = map_parts(array)
    if pa.types.is_decimal(values.type):
        negated = pc.negate(values)
    else:
        with np.errstate(over="ignore"):
            negated = columns.from_values(0 - columns.numpy_values(values), values.type)
    return columns.maps_from(offsets, keys, negated, result.arrow)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("mapAdd", _map_sum(subtracts=False), count=(2, None)),
    custom("mapSubtract", _map_sum(subtracts=True), count=(2, None)),
)
