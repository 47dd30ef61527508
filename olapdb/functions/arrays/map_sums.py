"""mapAdd and mapSubtract: the values of each key, added up over several maps of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalTypeOfArgument
from olapdb.functions.base import Argument, Groups, ScalarCall
from olapdb.functions.casts.cast import cast_column, map_from
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import sum_type
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, illegal, standard_call
from olapdb.types import Boolean, DataType, Decimal, Float, Integer, Map, is_nullable, plain

_NUMBERS = (Integer, Float, Decimal, Boolean)


def _result(name: str, types: Sequence[DataType]) -> Map:
    """Keys of one type, values that add up in one type."""
    maps = [one for one in types if isinstance(one, Map)]
    if len(maps) < len(types):
        raise illegal(name, next(one for one in types if one not in maps), "a Map")
    for one in maps:
        if is_nullable(one.value) or not isinstance(one.value, _NUMBERS):
            raise illegal(name, one, "a Map of numbers")
    made = Map(maps[0].key, sum_type(maps[0].value))
    other = next((m for m in maps if Map(m.key, sum_type(m.value)) != made), None)
    if other is not None:
        raise IllegalTypeOfArgument(
            f"{name} of {maps[0]} and {other}: keys are of one type, and values all unsigned, all"
            " signed or all floats.",
            hint="Cast one of them.",
        )
    return made


def _summing(*, subtracts: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        result = _result(name, [plain(a.type) for a in arguments])

        def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
            from olapdb.functions.aggregates.registry import resolve_aggregate

            environment = call.environment
            maps = [
                columns.single(cast_column(one, source, result, environment, strict=False))
                for one, source in zip(arrays, call.types, strict=True)
            ]
            if subtracts:
                maps[1:] = [_negated(one, result) for one in maps[1:]]
            rows = len(maps[0])
            groups = Groups(np.tile(np.arange(rows), len(maps)), rows)
            aggregate = resolve_aggregate("sumMap", (), (result,))
            made = aggregate.finalize(aggregate.state([pa.concat_arrays(maps)], groups))
            return made if made.type == call.result.arrow else made.cast(call.result.arrow)

        return standard_call(name, arguments, result, kernel)

    return resolve


def _negated(array: pa.Array, result: Map) -> pa.Array:
    """The map with its values times -1; unsigned ones wrap, as a difference of them would."""
    offsets = columns.offsets_of(array)
    start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    values = array.items.slice(start, count)
    if pa.types.is_decimal(values.type):
        less = pc.negate(values)
    else:
        with np.errstate(over="ignore"):
            less = columns.from_values(0 - columns.numpy_values(values), values.type)
    return map_from(offsets - start, array.keys.slice(start, count), less, result)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("mapAdd", _summing(subtracts=False), count=(2, None)),
    custom("mapSubtract", _summing(subtracts=True), count=(2, None)),
)
