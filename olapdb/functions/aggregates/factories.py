"""Factories of the aggregates without combinators: from name, parameters and argument types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from olapdb.errors import (
    AggregateDoesntAllowParameters,
    ArgumentOutOfBound,
    BadArguments,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
)
from olapdb.functions.aggregates.concatenation import GroupConcat
from olapdb.functions.aggregates.counted_values import Entropy, TopK, TopKWeighted
from olapdb.functions.aggregates.covariance import Covariance
from olapdb.functions.aggregates.distinct import GroupUniqArray, Uniq, UniqExact
from olapdb.functions.aggregates.events import delta_sum, retention, window_funnel
from olapdb.functions.aggregates.exact_quantile import ExactQuantiles, InterpolatedQuantiles
from olapdb.functions.aggregates.extremes import Extreme, ExtremeArgument
from olapdb.functions.aggregates.gathered import intervals, moving_sum, rank_correlation
from olapdb.functions.aggregates.higher_moments import HigherMoment
from olapdb.functions.aggregates.limited_arrays import limited_array
from olapdb.functions.aggregates.ordered import GroupArray, Positional, PositionalWithNulls
from olapdb.functions.aggregates.quantile import Quantiles, Rule, Timings
from olapdb.functions.aggregates.regression import REGRESSIONS, regression
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    optional_type,
    optional_value_type,
    quantile_levels,
    require_count,
    state_type_of,
)
from olapdb.functions.aggregates.sums import Average, Bitwise, Count, Sum, SumCount, WeightedAverage
from olapdb.functions.aggregates.variance import Variance
from olapdb.functions.aggregates.weighted_quantile import weighted_quantile
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels.supertypes import as_number, sum_type
from olapdb.types import (
    FLOAT32,
    FLOAT64,
    INT32,
    STRING,
    UINT8,
    UINT64,
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Enum,
    Float,
    Integer,
    LowCardinality,
    Map,
    Nullable,
    String,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
    stored_type,
)

AggregateFactory = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]


def _require_no_parameters(name: str, parameters: tuple[object, ...]) -> None:
    """Raise AggregateDoesntAllowParameters if there are any parameters."""
    if parameters:
        raise AggregateDoesntAllowParameters(f"Aggregate function {name} takes no parameters.")


def _count(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve count() or count(x)."""
    _require_no_parameters(name, parameters)
    if types:
        require_count(name, types, 1)
    state = state_type_of(name, (), types, UINT64)
    return Count(name, (), types, UINT64, state, additive=True, merge_function="sum")


def _sum(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve sum, in the widest type of the argument's kind, or sumWithOverflow, in its own type."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if isinstance(argument, Enum):
        argument = argument.number_type
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    result = as_number(argument) if name == "sumWithOverflow" else sum_type(argument)
    return Sum(
        name,
        (),
        types,
        result,
        state_type_of(name, (), types, result),
        merge_class="float" if isinstance(argument, Float) else "exact",
        additive=True,
        merge_function=name,
    )


def _avg(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve avg or sumCount of numbers."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    state = Tuple((sum_type(argument), UINT64), ("sum", "count"))
    aggregate, result = (Average, FLOAT64) if name == "avg" else (SumCount, Tuple(state.elements))
    return aggregate(
        name,
        (),
        types,
        result,
        state_type_of(name, (), types, state),
        merge_class="float" if isinstance(argument, Float) else "exact",
    )


def _weighted_average(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve avgWeighted(x, weight) of numbers that are not decimals."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    state = Tuple((FLOAT64, FLOAT64), ("sum", "weight"))
    return WeightedAverage(
        name, (), types, FLOAT64, state_type_of(name, (), types, state), merge_class="float"
    )


def _bitwise(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve groupBitAnd, groupBitOr or groupBitXor of an integer."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer):
        raise illegal_argument(name, types[0], "an integer")
    state = state_type_of(name, (), types, argument)
    return Bitwise(name, (), types, argument, state, additive=True, merge_function=name)


def _value_type(name: str, data_type: DataType) -> DataType:
    """Return the type of a value that the aggregate picks: without LowCardinality, Nullable kept."""
    if isinstance(plain(data_type), AggregateFunction):
        raise illegal_argument(name, data_type, "a value, not a state,")
    return data_type.inner if isinstance(data_type, LowCardinality) else data_type


def _require_orderable(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument if values of the type have no order: states."""
    if isinstance(plain(data_type), AggregateFunction):
        raise illegal_argument(name, data_type, "a value, not a state,")


def _extreme(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve min, max or any."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    _require_orderable(name, types[0])
    result = _value_type(name, types[0])
    state = state_type_of(name, (), types, optional_value_type(types[0]))
    return Extreme(name, (), types, result, state, additive=True, merge_function=name)


def _extreme_argument(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve argMin or argMax of a value and a key; both must have an order.

    A Nullable key makes the result Nullable.
    """
    _require_no_parameters(name, parameters)
    require_count(name, types, 2)
    for data_type in types:
        _require_orderable(name, data_type)
    result = _value_type(name, types[0])
    if is_nullable(types[1]):
        result = make_nullable(result)
    fields = (optional_type(types[0]), optional_type(types[1]))
    state = state_type_of(name, (), types, Tuple(fields, ("value", "key")))
    return ExtremeArgument(name, (), types, result, state)


def _positional(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve first_value, last_value or anyLast."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    result = _value_type(name, types[0])
    state = state_type_of(name, (), types, optional_value_type(types[0]))
    return Positional(
        name, (), types, result, state, merge_class="ordered", additive=True, merge_function=name
    )


def _positional_with_nulls(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve any_respect_nulls or anyLast_respect_nulls."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    result = _value_type(name, types[0])
    box = Nullable(Tuple((stored_type(result),), ("value",)))
    state = state_type_of(name, (), types, Tuple((box,), ("value",)))
    return PositionalWithNulls(name, (), types, result, state, merge_class="ordered", additive=True)


def _uniq(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve uniq, its kin or uniqExact of one or more arguments; maps and states are refused.

    uniqCombined, uniqCombined64 and uniqHLL12 are uniq, whose estimate is as close as theirs."""
    if name.startswith("uniqCombined"):
        _require_precision(name, parameters)
    else:
        _require_no_parameters(name, parameters)
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    if name == "uniqExact":
        return UniqExact(
            name, (), types, UINT64, state_type_of(name, (), types, distinct_set_type(types))
        )
    state = Tuple((UINT8, Array(UINT64)), ("skip", "hashes"))
    state_type = state_type_of(name, parameters, types, state)
    return Uniq(name, parameters, types, UINT64, state_type, merge_class="sketch")


def _require_precision(name: str, parameters: tuple[object, ...]) -> None:
    """Raise ArgumentOutOfBound unless there is no parameter or one integer from 12 to 20."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes one parameter.")
    for precision in parameters:
        if not isinstance(precision, int) or not 12 <= precision <= 20:
            raise ArgumentOutOfBound(
                f"The precision of {name} is an integer from 12 to 20, not {precision!r}."
            )


def _group_bitmap(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupBitmap of integers: their number without repetitions."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    if not isinstance(plain(types[0]), Integer):
        raise illegal_argument(name, types[0], "an integer")
    state = state_type_of(name, (), types, distinct_set_type(types))
    return UniqExact(name, (), types, UINT64, state)


def _limit(name: str, parameters: tuple[object, ...]) -> tuple[object, ...]:
    """Return the parameters of groupArray, empty or one positive limit, cut to 64 bits."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes one parameter, its limit."
        )
    for parameter in parameters:
        if not isinstance(parameter, int) or parameter <= 0:
            raise BadArguments(f"The limit of {name} is a positive integer, not {parameter!r}.")
    return tuple(
        min(parameter, 2**63 - 1) for parameter in parameters if isinstance(parameter, int)
    )


def _group_array(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupArray or groupUniqArray, with an optional limit.

    Finished values merge only without a limit.
    """
    require_count(name, types, 1)
    limit = _limit(name, parameters)
    array = Array(plain(types[0]))
    state = state_type_of(name, limit, types, array)
    unlimited = not limit  # arrays that a limit cut do not merge to the array it would cut
    merge_function = f"{name}Array" if unlimited else ""
    if name == "groupUniqArray":
        return GroupUniqArray(
            name, limit, types, array, state, additive=unlimited, merge_function=merge_function
        )
    return GroupArray(
        name,
        limit,
        types,
        array,
        state,
        int(str(limit[0])) if limit else None,
        merge_class="ordered",
        additive=unlimited,
        merge_function=merge_function,
    )


def _group_concat(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupConcat([delimiter[, limit]]) of texts."""
    require_count(name, types, 1)
    if not isinstance(plain(types[0]), String):
        raise illegal_argument(name, types[0], "a String")
    if len(parameters) > 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes two parameters, the delimiter and the limit."
        )
    delimiter = parameters[0] if parameters else ""
    if not isinstance(delimiter, str):
        raise IllegalTypeOfArgument(f"The delimiter of {name} is a String, not {delimiter!r}.")
    limit = _limit(name, parameters[1:])
    state = state_type_of(name, (delimiter, *limit) if parameters else (), types, Array(STRING))
    return GroupConcat(
        name,
        parameters,
        types,
        STRING,
        state,
        delimiter=delimiter,
        limit=int(str(limit[0])) if limit else None,
        merge_class="ordered",
    )


def _top_k(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve topK or topKWeighted with parameters (k = 10, load factor, 'counts')."""
    weighted = name == "topKWeighted"
    require_count(name, types, 2 if weighted else 1)
    if isinstance(plain(types[0]), Map | AggregateFunction):
        raise illegal_argument(name, types[0], "a value that can be compared")
    if weighted and not isinstance(plain(types[1]), Integer):
        raise illegal_argument(name, types[1], "an integer weight")
    limit, with_counts = _top_k_parameters(name, parameters)
    value = plain(types[0])
    state = Tuple((Array(value), Array(UINT64)), ("values", "weights"))
    element = Tuple((value, UINT64, UINT64), ("item", "count", "error")) if with_counts else value
    aggregate = TopKWeighted if weighted else TopK
    state_type = state_type_of(name, parameters, types, state)
    return aggregate(name, parameters, types, Array(element), state_type, limit, with_counts)


def _top_k_parameters(name: str, parameters: tuple[object, ...]) -> tuple[int, bool]:
    """Return k and whether counts are part of the result. The load factor changes nothing, since
    the counts are exact. Raises ArgumentOutOfBound, NumberOfArgumentsDoesntMatch, BadArguments.
    """
    if len(parameters) > 3:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes up to 3 parameters.")
    for parameter in parameters[:2]:
        if not isinstance(parameter, int) or isinstance(parameter, bool) or parameter <= 0:
            raise ArgumentOutOfBound(
                f"Parameter {parameter!r} is illegal for aggregate function {name}: a positive "
                "integer expected."
            )
    if len(parameters) == 3 and parameters[2] != "counts":
        raise BadArguments(f"The third parameter of {name} is 'counts', not {parameters[2]!r}.")
    limit = min(int(str(parameters[0])), 2**63 - 1) if parameters else 10
    return limit, len(parameters) == 3


def _entropy(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve entropy of one or more values; maps and states are refused."""
    _require_no_parameters(name, parameters)
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    values = distinct_set_type(types)
    state = Tuple((values, Array(UINT64)), ("values", "weights"))
    return Entropy(name, (), types, FLOAT64, state_type_of(name, (), types, state))


def _variance(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve varPop, varSamp, stddevPop or stddevSamp; Float32 arguments give Float32."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    result = argument if isinstance(argument, Float) else FLOAT64
    state = Tuple((UINT64, FLOAT64, FLOAT64), ("count", "mean", "squares"))
    return Variance(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )


def _higher_moment(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve skewPop, skewSamp, kurtPop or kurtSamp; Float32 arguments give Float32."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    fields = ["count", "mean", "squares", "cubes", *(["fourths"] if "kurt" in name else [])]
    result = argument if isinstance(argument, Float) else FLOAT64
    state = Tuple((UINT64, *[FLOAT64] * (len(fields) - 1)), tuple(fields))
    return HigherMoment(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )


def _covariance(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve covarPop, covarSamp or corr; two Float32 arguments give Float32."""
    _require_no_parameters(name, parameters)
    require_count(name, types, 2)
    arguments = [plain(data_type) for data_type in types]
    for data_type in arguments:
        if not isinstance(data_type, Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    narrow = all(isinstance(data_type, Float) and data_type.bits == 32 for data_type in arguments)
    names: tuple[str, ...] = ("count", "left", "right", "products")
    if name == "corr":
        names = (*names, "left_squares", "right_squares")
    state = Tuple((UINT64, *[FLOAT64] * (len(names) - 1)), names)
    result = arguments[0] if narrow else FLOAT64
    return Covariance(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )


def _quantile(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve quantile(s), quantile(s)TDigest or quantile(s)Timing, the last two in Float32."""
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    argument, kind = plain(types[0]), name.removeprefix("quantiles").removeprefix("quantile")
    result: DataType = FLOAT64 if not kind else FLOAT32
    if isinstance(argument, Date | Date32 | DateTime | DateTime64):
        result = result if kind == "Timing" else argument
    elif isinstance(argument, Decimal) and not kind:
        result = argument
    elif not isinstance(argument, Integer | Float | Boolean):
        raise illegal_argument(name, types[0], "a number or date" if kind else _NUMBER_OR_DATE)
    state = Tuple((Array(FLOAT64), Array(INT32), Array(UINT64)), ("values", "buckets", "counts"))
    aggregate = Timings if kind == "Timing" else Quantiles
    return aggregate(
        name,
        parameters,
        types,
        Array(result) if name.startswith("quantiles") else result,
        state_type_of(name, parameters, types, state),
        levels,
        _QUANTILE_RULES[kind],
        merge_class="sketch",
    )


def _deterministic_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)Deterministic(x, determinator): quantile, whose states need no draws."""
    require_count(name, types, 2)
    if isinstance(plain(types[0]), Decimal) or not isinstance(plain(types[1]), Integer):
        raise illegal_argument(name, types[0], "a number or date and an integer")
    plain_name = name.replace("Deterministic", "")
    aggregate = _quantile(plain_name, parameters, types[:1])
    state = state_type_of(name, parameters, types, aggregate.state_type.state)
    return replace(aggregate, name=name, argument_types=types, state_type=state)


_QUANTILE_RULES: Mapping[str, Rule] = MappingProxyType(
    {"": "interpolated", "TDigest": "ranked", "Timing": "floored"}
)
_NUMBER_OR_DATE = "a number, decimal or date"


def _exact_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)Exact, …ExactLow and …ExactHigh."""
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    argument = plain(types[0])
    numeric_types = Integer | Float | Boolean | Decimal
    if not isinstance(argument, numeric_types | Date | Date32 | DateTime | DateTime64):
        raise illegal_argument(name, types[0], _NUMBER_OR_DATE)
    result = Array(argument) if name.startswith("quantiles") else argument
    state = state_type_of(name, parameters, types, Array(argument))
    return ExactQuantiles(name, parameters, types, result, state, levels)


def _interpolated_quantile(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve quantile(s)ExactInclusive and …Exclusive of numbers and dates."""
    require_count(name, types, 1)
    levels = quantile_levels(name, parameters)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Boolean | Date | Date32 | DateTime | DateTime64):
        raise illegal_argument(name, types[0], "a number or date")
    if name.endswith("Exclusive") and not all(0 < level < 1 for level in levels):
        raise BadArguments(f"The levels of {name} lie between 0 and 1, both excluded.")
    result = Array(FLOAT64) if name.startswith("quantiles") else FLOAT64
    state = state_type_of(name, parameters, types, Array(argument))
    return InterpolatedQuantiles(name, parameters, types, result, state, levels)


_QUANTILE_KINDS: Mapping[str, AggregateFactory] = MappingProxyType(
    {
        "": _quantile,
        "TDigest": _quantile,
        "Timing": _quantile,
        "Exact": _exact_quantile,
        "ExactLow": _exact_quantile,
        "ExactHigh": _exact_quantile,
        "ExactInclusive": _interpolated_quantile,
        "ExactExclusive": _interpolated_quantile,
        "ExactWeighted": weighted_quantile,
        "Deterministic": _deterministic_quantile,
    }
)
"""What follows `quantile` or `quantiles` in a name."""

FACTORIES: Mapping[str, AggregateFactory] = MappingProxyType(
    {
        "count": _count,
        "sum": _sum,
        "sumWithOverflow": _sum,
        "avg": _avg,
        "min": _extreme,
        "max": _extreme,
        "any": _extreme,
        "argMin": _extreme_argument,
        "argMax": _extreme_argument,
        "anyLast": _positional,
        "any_respect_nulls": _positional_with_nulls,
        "anyLast_respect_nulls": _positional_with_nulls,
        "first_value": _positional,
        "last_value": _positional,
        "uniq": _uniq,
        "uniqExact": _uniq,
        "groupArray": _group_array,
        "groupUniqArray": _group_array,
        "groupConcat": _group_concat,
        "topK": _top_k,
        "topKWeighted": _top_k,
        "entropy": _entropy,
        "uniqCombined": _uniq,
        "uniqCombined64": _uniq,
        "uniqHLL12": _uniq,
        "groupBitmap": _group_bitmap,
        "stddevPop": _variance,
        "stddevSamp": _variance,
        "varPop": _variance,
        "varSamp": _variance,
        "skewPop": _higher_moment,
        "skewSamp": _higher_moment,
        "kurtPop": _higher_moment,
        "kurtSamp": _higher_moment,
        "groupBitAnd": _bitwise,
        "groupBitOr": _bitwise,
        "groupBitXor": _bitwise,
        "sumCount": _avg,
        "avgWeighted": _weighted_average,
        "covarPop": _covariance,
        "covarSamp": _covariance,
        "corr": _covariance,
        "retention": retention,
        "windowFunnel": window_funnel,
        "deltaSum": delta_sum,
        **dict.fromkeys(("groupArrayMovingSum", "groupArrayMovingAvg"), moving_sum),
        **dict.fromkeys(
            ("maxIntersections", "maxIntersectionsPosition", "intervalLengthSum"), intervals
        ),
        "rankCorr": rank_correlation,
        "groupArraySorted": limited_array,
        "groupArrayLast": limited_array,
        **dict.fromkeys(REGRESSIONS, regression),
        **{
            f"{plural}{kind}": factory
            for plural in ("quantile", "quantiles")
            for kind, factory in _QUANTILE_KINDS.items()
        },
    }
)
