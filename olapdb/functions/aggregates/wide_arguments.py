"""Aggregates of integers of 128 and 256 bits that compute in Float64, and quantiles that do not take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.functions.aggregates.combinators import SharedStateCombinator
from olapdb.functions.aggregates.signatures import ResolveAggregate, illegal_argument
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels.decimal_width import floats_of_decimals
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    DataType,
    WideNumber,
    is_nullable,
    make_nullable,
    plain,
    stored_type,
)

_OF_FLOATS = frozenset(
    {
        *("avgWeighted", "sumKahan", "simpleLinearRegression", "rankCorr", "histogram"),
        *("groupArrayMovingAvg", "quantile", "quantiles"),
        *("quantileExactWeightedInterpolated", "quantilesExactWeightedInterpolated"),
    }
)
"""Aggregates whose results are made of Float64, whatever the numbers."""

_DETERMINISTIC = frozenset({"quantileDeterministic", "quantilesDeterministic"})
_OF_64_BITS = ("TDigest", "Timing", "BFloat16", "DD")
"""The kinds of quantiles that ClickHouse has of numbers of up to 64 bits alone."""


@dataclass(frozen=True)
class OfFloats(SharedStateCombinator):
    """An aggregate computed in Float64 over arguments of which some are wide integers, which it converts to floats."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the states of the arguments as floats."""
        floats = [
            floats_of_decimals(values) if isinstance(plain(data_type), WideNumber) else values
            for values, data_type in zip(arguments, self.argument_types, strict=True)
        ]
        return self.inner.state(floats, groups)


def resolve_wide(
    name: str,
    parameters: tuple[object, ...],
    types: tuple[DataType, ...],
    factory: ResolveAggregate,
) -> Aggregate:
    """Resolve the aggregate that `factory` makes, for arguments of which some are wide integers: they become Float64.
    Raises IllegalTypeOfArgument for quantiles that take integers of at most 64 bits, as in ClickHouse."""
    kind = name.removeprefix("quantiles").removeprefix("quantile") if "quantile" in name else ""
    wide = next(t for t in types if isinstance(plain(t), WideNumber))
    if kind.startswith(_OF_64_BITS):
        raise illegal_argument(name, wide, "a number of up to 64 bits")
    if name in _DETERMINISTIC and not isinstance(plain(types[0]), WideNumber):
        raise illegal_argument(name, wide, "a determinator of up to 64 bits")
    if name not in _OF_FLOATS | _DETERMINISTIC:
        return factory(name, parameters, types)
    converted = tuple(map(_float_type, types))
    inner = factory(name, parameters, converted)
    state = replace(inner.state_type, arguments=tuple(map(stored_type, types)))
    return OfFloats(
        name,
        inner.parameters,
        types,
        inner.result_type,
        state,
        inner,
        merge_class=inner.merge_class,
    )


def _float_type(data_type: DataType) -> DataType:
    """Return Float64 for a wide integer, Nullable if that is, and any other type unchanged."""
    if not isinstance(plain(data_type), WideNumber):
        return data_type
    return make_nullable(FLOAT64) if is_nullable(data_type) else FLOAT64
