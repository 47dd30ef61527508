"""approx_top_k and approx_top_sum: topK and topKWeighted with counts."""

from __future__ import annotations

from olapdb.errors import ArgumentOutOfBound, BadGet, CannotConvertType
from olapdb.functions.aggregates.counted_values import TopK, TopKWeighted
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate
from olapdb.types import UINT64, AggregateFunction, Array, DataType, Integer, Map, Tuple, plain


def approximate_top(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve approx_top_k(k[, reserved])(x), or approx_top_sum, whose weight is an integer.

    The counts are exact, so that what ClickHouse reserves changes nothing; of equal counts the
    smaller value comes first.

    Raises BadGet, CannotConvertType, ArgumentOutOfBound and IllegalTypeOfArgument."""
    weighted = name == "approx_top_sum"
    for place, parameter in enumerate(parameters):
        if place == 2:
            if parameter != "counts":
                raise BadGet(f"The third parameter of {name} is 'counts', not {parameter!r}.")
        elif not isinstance(parameter, int) or isinstance(parameter, bool):
            raise CannotConvertType(f"The parameters of {name} are integers, not {parameter!r}.")
        elif parameter < 1:
            raise ArgumentOutOfBound(f"Parameter {parameter} is illegal for {name}.")
    if len(parameters) > 3:
        raise ArgumentOutOfBound(f"Aggregate function {name} takes up to 3 parameters.")
    require_count(name, types, 2 if weighted else 1)
    value = plain(types[0])
    if isinstance(value, Map | AggregateFunction):
        raise illegal_argument(name, types[0], "a value that can be compared")
    if weighted and not isinstance(plain(types[1]), Integer):
        raise illegal_argument(name, types[1], "an integer weight")
    state = Tuple((Array(value), Array(UINT64)), ("values", "weights"))
    result = Array(Tuple((value, UINT64, UINT64), ("item", "count", "error")))
    limit = min(int(str(parameters[0])), 2**63 - 1) if parameters else 10
    kind = TopKWeighted if weighted else TopK
    made = state_type_of(name, parameters, types, state)
    return kind(name, parameters, types, result, made, limit, with_counts=True)
