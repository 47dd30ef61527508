"""argAndMin and argAndMax: the extreme key of a group together with its value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.functions.aggregates.extremes import ExtremeArgument
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    optional_type,
    require_count,
    require_no_parameters,
    state_type_of,
    unboxed,
)
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.records import dataclass
from olapdb.types import AggregateFunction, DataType, Tuple, plain
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class ArgAndExtreme(ExtremeArgument):
    """argAndMin(value, key) and argAndMax: Tuple(value, key) of the row with the extreme key."""

    @property
    def largest(self) -> bool:
        """Return whether the aggregate takes the largest key, not the smallest."""
        return self.state_type.function == "argAndMax"

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the pairs; a group without rows has the defaults of their types."""
        assert isinstance(self.result_type, Tuple)
        fields = zip(columns.struct_fields(states), self.result_type.elements, strict=True)
        return columns.structs_from(
            [_filled(unboxed(field, of), of) for field, of in fields], self.result_type.arrow
        )


def _filled(values: pa.Array, data_type: DataType) -> pa.Array:
    """Return the values with each null replaced by the default of `data_type`."""
    if not values.null_count:
        return values
    missing = columns.retype(columns.single(default_value(data_type)), values.type)
    rows = np.where(np.asarray(values.is_null()), len(values), np.arange(len(values)))
    return pa.concat_arrays([values, missing]).take(from_numpy(rows))


def arg_and_extreme(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve argAndMin or argAndMax of a value and a key; both must have an order.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type in types:
        if isinstance(plain(data_type), AggregateFunction):
            raise illegal_argument(name, data_type, "a value, not a state,")
    result = Tuple(tuple(plain(data_type) for data_type in types))
    fields = (optional_type(types[0]), optional_type(types[1]))
    state = state_type_of(name, (), types, Tuple(fields, ("value", "key")))
    return ArgAndExtreme(name, (), types, result, state)
