"""From a name with combinators, parameters and argument types to an Aggregate."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from olapdb.errors import (
    AggregateDoesntAllowParameters,
    BadArguments,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
    ParameterOutOfBound,
    UnknownAggregateFunction,
)
from olapdb.functions.aggregates import combinators, nested
from olapdb.functions.aggregates.distinct import GroupUniqArray, Uniq, UniqExact
from olapdb.functions.aggregates.extremes import Extreme, ExtremeArgument
from olapdb.functions.aggregates.moments import Deviation
from olapdb.functions.aggregates.ordered import GroupArray, Positional
from olapdb.functions.aggregates.parts import expect, illegal, optional_value, state_of
from olapdb.functions.aggregates.quantile import Quantiles
from olapdb.functions.aggregates.sums import Average, Bitwise, Count, Sum
from olapdb.functions.base import Aggregate
from olapdb.functions.supertypes import sum_type
from olapdb.types import (
    BOOL,
    FLOAT64,
    INT32,
    NOTHING,
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
    Float,
    Integer,
    LowCardinality,
    Map,
    SimpleAggregateFunction,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

Maker = Callable[[str, tuple[object, ...], tuple[DataType, ...]], Aggregate]

_COMBINATORS = (
    "MergeState",
    "SimpleState",
    "OrDefault",
    "OrNull",
    "Distinct",
    "Merge",
    "State",
    "If",
    *nested.SUFFIXES,
)
_CANONICAL = MappingProxyType(
    {
        "any_value": "any", "median": "quantile", "std": "stddevPop",
        "stddev_pop": "stddevPop", "stddev_samp": "stddevSamp", "var_pop": "varPop",
        "var_samp": "varSamp", "stddev": "stddevSamp", "array_agg": "groupArray",
        "bit_and": "groupBitAnd", "bit_or": "groupBitOr", "bit_xor": "groupBitXor",
    }
)  # fmt: skip
_CASE_INSENSITIVE = frozenset(
    {"count", "sum", "min", "max", "avg", "any", "any_value", "median", "std", "stddev_pop",
     "stddev_samp", "var_pop", "var_samp", "first_value", "last_value", "array_agg", "bit_and",
     "bit_or", "bit_xor"}
)  # fmt: skip


def aggregate_names() -> tuple[str, ...]:
    """The names without combinators, aliases included, sorted."""
    return tuple(sorted({*_MAKERS, *_CANONICAL}))


def aggregate_descriptions() -> list[tuple[str, bool, str]]:
    """(name, whether any case is understood, what it is an alias of or "") of all, by name."""
    return [(n, n in _CASE_INSENSITIVE, _CANONICAL.get(n, "")) for n in aggregate_names()]


def canonical(name: str) -> str | None:
    """The aggregate that a name without combinators denotes, or None."""
    spelt = name.lower() if name.lower() in _CASE_INSENSITIVE else name
    spelt = _CANONICAL.get(spelt, spelt)
    return spelt if spelt in _MAKERS else None


def split_combinator(name: str) -> tuple[str, str] | None:
    """("sum", "If") of "sumIf"; None where the name has none."""
    for suffix in _COMBINATORS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    return None


def is_aggregate(name: str) -> bool:
    """Whether the name, with combinators in any order, is an aggregate's."""
    while canonical(name) is None:
        split = split_combinator(name)
        if split is None:
            return False
        name = split[0]
    return True


def resolve_aggregate(
    name: str, parameters: Sequence[object], argument_types: Sequence[DataType]
) -> Aggregate:
    """The aggregate for these argument types.

    Raises UnknownAggregateFunction, NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument,
    BadArguments and ParameterOutOfBound.
    """
    if not is_aggregate(name):
        close = difflib.get_close_matches(name, aggregate_names(), 1)
        hint = f"Maybe you meant {close[0]}." if close else ""
        raise UnknownAggregateFunction(f"Unknown aggregate function {name}.", hint=hint)
    return _resolve(name, tuple(parameters), tuple(_settled(t) for t in argument_types))


def _settled(data_type: DataType) -> DataType:
    return data_type.inner if isinstance(data_type, SimpleAggregateFunction) else data_type


def _resolve(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    base = canonical(name)
    if base is not None:
        return _nullable(base, parameters, types)
    split = split_combinator(name)
    assert split is not None
    inner_name, suffix = split
    if suffix in ("Merge", "MergeState"):
        return _merge(inner_name, parameters, types, keep_state=suffix == "MergeState")
    if suffix == "If":
        return _if(inner_name, parameters, types)
    if suffix in nested.SUFFIXES:
        return nested.resolve_nested(suffix, inner_name, parameters, types, _resolve)
    inner = _resolve(inner_name, parameters, types)
    match suffix:
        case "State":
            return _around(combinators.State, inner, types, result=inner.state_type)
        case "SimpleState":
            return _simple_state(inner, types)
        case "Distinct":
            return _distinct(inner, types)
        case _:
            return _optional(inner, types, suffix)


def _nullable(base: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Aggregates that end in a number give NULL over no rows of Nullable arguments, by a flag."""
    made = _MAKERS[base](base, parameters, types)
    if base in _ABOVE_NULLS or not any(is_nullable(t) for t in types):
        return made
    if isinstance(made.result_type, Array | Tuple):
        return made
    state = state_of(
        base, parameters, types, Tuple((UINT8, made.state_type.state), ("seen", "state"))
    )
    return combinators.Optional(
        base, parameters, types, make_nullable(made.result_type), state, made,
        merge_class=made.merge_class, additive=made.additive, merge_function=made.merge_function,
    )  # fmt: skip


_ABOVE_NULLS = frozenset(
    {"count", "uniq", "uniqExact", "groupArray", "groupUniqArray", "min", "max", "any", "argMin",
     "argMax", "anyLast", "first_value", "last_value"}
)  # fmt: skip
"""Those that know themselves what NULLs and no rows mean."""


def _around(
    kind: type[combinators.Wrapped], inner: Aggregate, types: tuple[DataType, ...], *,
    result: DataType, suffix: str = "", state: AggregateFunction | None = None,
) -> Aggregate:  # fmt: skip
    kept = suffix in ("", "If")
    return kind(
        inner.name + suffix, inner.parameters, types, result, state or inner.state_type, inner,
        merge_class=inner.merge_class, additive=inner.additive and kept,
        merge_function=inner.merge_function if kept else "",
    )  # fmt: skip


def _if(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name}If needs a condition.")
    if plain(types[-1]) not in (UINT8, BOOL, NOTHING):
        raise illegal(f"{name}If", types[-1], "a condition (UInt8)")
    inner = _resolve(name, parameters, types[:-1])
    if isinstance(inner, combinators.State):
        return _around(combinators.If, inner, types, result=inner.result_type)
    state = state_of(f"{inner.name}If", inner.parameters, types, inner.state_type.state)
    return _around(combinators.If, inner, types, result=inner.result_type, suffix="If", state=state)


def _simple_state(inner: Aggregate, types: tuple[DataType, ...]) -> Aggregate:
    if not inner.additive:
        raise BadArguments(
            f"Unsupported aggregate function {inner.name} for the combinator SimpleState.",
            hint=f"Use {inner.name}State and AggregateFunction.",
        )
    result = SimpleAggregateFunction(inner.merge_function, inner.result_type)
    return _around(combinators.SimpleState, inner, types, result=result)


def _distinct(inner: Aggregate, types: tuple[DataType, ...]) -> Aggregate:
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"{inner.name}Distinct needs an argument.")
    name = f"{inner.name}Distinct"
    state = state_of(name, inner.parameters, types, _set_type(types))
    return _around(
        combinators.Distinct, inner, types, result=inner.result_type, suffix="Distinct", state=state
    )


def _set_type(types: Sequence[DataType]) -> Array:
    elements = tuple(plain(t) for t in types)
    return Array(elements[0] if len(elements) == 1 else Tuple(elements))


def _optional(inner: Aggregate, types: tuple[DataType, ...], suffix: str) -> Aggregate:
    result = inner.result_type
    if suffix == "OrNull":
        result = make_nullable(result)
    state = state_of(
        inner.name + suffix, inner.parameters, types,
        Tuple((UINT8, inner.state_type.state), ("seen", "state")),
    )  # fmt: skip
    return _around(combinators.Optional, inner, types, result=result, suffix=suffix, state=state)


def _merge(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], *, keep_state: bool
) -> Aggregate:
    expect(f"{name}Merge", types, 1)
    argument = types[0]
    if not isinstance(argument, AggregateFunction):
        raise IllegalTypeOfArgument(
            f"Illegal type {argument} of argument of {name}Merge: states of {name}, "
            f"AggregateFunction({name}, …), expected."
        )
    stored = argument.parameters
    given = parameters or tuple(parse_parameter(p) for p in stored)
    inner = resolve_aggregate(name, given, argument.arguments)
    if not _same_family(inner.state_type.function, argument.function):
        raise IllegalTypeOfArgument(
            f"{name}Merge cannot read the states of {argument.function} ({argument}).",
            hint=f"Use {argument.function}Merge. A {name} over what they merge to belongs in the "
            "query that reads: a state that comes in is not yet the value it merges to.",
        )
    if inner.state_type.state.arrow != argument.state.arrow:
        raise IllegalTypeOfArgument(f"{name}Merge cannot read the states of {argument}.")
    merged = combinators.Merge(
        inner.name, inner.parameters, types, inner.result_type, argument, inner,
        merge_class=inner.merge_class,
    )  # fmt: skip
    return _around(combinators.State, merged, types, result=argument) if keep_state else merged


def _same_family(left: str, right: str) -> bool:
    return left == right or {left, right} == {"quantile", "quantiles"}


def parse_parameter(text: str) -> object:
    """The value of a parameter from its SQL text: int, float, or string without quotes."""
    if text.startswith("'"):
        return text[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    try:
        return int(text)
    except ValueError:
        return float(text)


def state_representation(
    function: str, parameters: tuple[str, ...], arguments: tuple[DataType, ...]
) -> DataType:
    """The type behind `AggregateFunction(function(parameters), arguments…)`."""
    values = tuple(parse_parameter(p) for p in parameters)
    return resolve_aggregate(function, values, arguments).state_type.state


# --- makers -------------------------------------------------------------------------------------


def _no_parameters(name: str, parameters: tuple[object, ...]) -> None:
    if parameters:
        raise AggregateDoesntAllowParameters(f"Aggregate function {name} takes no parameters.")


def _count(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    state = state_of(name, (), types, UINT64)
    return Count(name, (), types, UINT64, state, additive=True, merge_function="sum")


def _sum(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal(name, types[0], "a number")
    result = argument if name == "sumWithOverflow" else sum_type(argument)
    return Sum(
        name, (), types, result, state_of(name, (), types, result),
        merge_class="float" if isinstance(argument, Float) else "exact",
        additive=True, merge_function=name,
    )  # fmt: skip


def _avg(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal(name, types[0], "a number")
    state = Tuple((sum_type(argument), UINT64), ("sum", "count"))
    merge_class = "float" if isinstance(argument, Float) else "exact"
    return Average(
        name, (), types, FLOAT64, state_of(name, (), types, state),
        merge_class="float" if merge_class == "float" else "exact",
    )  # fmt: skip


def _bitwise(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer):
        raise illegal(name, types[0], "an integer")
    state = state_of(name, (), types, argument)
    return Bitwise(name, (), types, argument, state, additive=True, merge_function=name)


def _value_type(name: str, data_type: DataType) -> DataType:
    """The type of a chosen value: without LowCardinality, NULLs as they were."""
    if isinstance(plain(data_type), AggregateFunction):
        raise illegal(name, data_type, "a value, not a state,")
    return data_type.inner if isinstance(data_type, LowCardinality) else data_type


def _orderable(name: str, data_type: DataType) -> None:
    if isinstance(plain(data_type), Array | Map | Tuple | AggregateFunction):
        raise illegal(name, data_type, "a number, string, date or another single value")


def _extreme(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    _orderable(name, types[0])
    result = _value_type(name, types[0])
    state = state_of(name, (), types, optional_value(types[0]))
    return Extreme(name, (), types, result, state, additive=True, merge_function=name)


def _extreme_argument(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 2)
    for one in types:
        _orderable(name, one)
    result = _value_type(name, types[0])
    if is_nullable(types[1]):
        result = make_nullable(result)
    fields = (make_nullable(plain(types[0])), make_nullable(plain(types[1])))
    state = state_of(name, (), types, Tuple(fields, ("value", "key")))
    return ExtremeArgument(name, (), types, result, state)


def _positional(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    if isinstance(plain(types[0]), Array | Map):
        raise illegal(name, types[0], "a value that can be NULL inside a state")
    result = _value_type(name, types[0])
    state = state_of(name, (), types, optional_value(types[0]))
    return Positional(
        name, (), types, result, state, merge_class="ordered", additive=True, merge_function=name
    )


def _uniq(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for one in types:
        if isinstance(plain(one), Map | AggregateFunction):
            raise illegal(name, one, "a value that can be compared")
    if name == "uniqExact":
        return UniqExact(name, (), types, UINT64, state_of(name, (), types, _set_type(types)))
    state = Tuple((UINT8, Array(UINT64)), ("skip", "hashes"))
    return Uniq(name, (), types, UINT64, state_of(name, (), types, state), merge_class="sketch")


def _limit(name: str, parameters: tuple[object, ...]) -> tuple[object, ...]:
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(
            f"Aggregate function {name} takes one parameter, its limit."
        )
    for one in parameters:
        if not isinstance(one, int) or one <= 0:
            raise BadArguments(f"The limit of {name} is a positive integer, not {one!r}.")
    return parameters


def _group_array(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    expect(name, types, 1)
    limit = _limit(name, parameters)
    array = Array(plain(types[0]))
    state = state_of(name, limit, types, array)
    whole = not limit  # what a limit kept of two sets is not what it keeps of both
    merged = f"{name}Array" if whole else ""
    if name == "groupUniqArray":
        return GroupUniqArray(
            name, limit, types, array, state, additive=whole, merge_function=merged
        )
    return GroupArray(
        name, limit, types, array, state, merge_class="ordered", additive=whole,
        merge_function=merged,
    )  # fmt: skip


def _deviation(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    _no_parameters(name, parameters)
    expect(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Float | Decimal | Boolean):
        raise illegal(name, types[0], "a number")
    result = argument if isinstance(argument, Float) else FLOAT64
    state = Tuple((UINT64, FLOAT64, FLOAT64), ("count", "mean", "squares"))
    return Deviation(name, (), types, result, state_of(name, (), types, state), merge_class="float")


def _quantile(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    expect(name, types, 1)
    if name == "quantiles" and not parameters:
        raise NumberOfArgumentsDoesntMatch(
            "Aggregate function quantiles needs levels as parameters."
        )
    if name == "quantile" and len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(
            "Aggregate function quantile takes one level; use quantiles."
        )
    levels = tuple(_level(name, p) for p in parameters) or (0.5,)
    argument = plain(types[0])
    if isinstance(argument, Integer | Float | Boolean):
        result: DataType = FLOAT64
    elif isinstance(argument, Decimal | Date | Date32 | DateTime | DateTime64):
        result = argument
    else:
        raise illegal(name, types[0], "a number, decimal or date")
    state = Tuple((Array(FLOAT64), Array(INT32), Array(UINT64)), ("values", "buckets", "counts"))
    return Quantiles(
        name, parameters, types, Array(result) if name == "quantiles" else result,
        state_of(name, parameters, types, state), levels, merge_class="sketch",
    )  # fmt: skip


def _level(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ParameterOutOfBound(f"The level of {name} is a number from 0 to 1, not {value!r}.")
    return float(value)


_MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "count": _count, "sum": _sum, "sumWithOverflow": _sum, "avg": _avg,
        "min": _extreme, "max": _extreme, "any": _extreme,
        "argMin": _extreme_argument, "argMax": _extreme_argument,
        "anyLast": _positional, "first_value": _positional, "last_value": _positional,
        "uniq": _uniq, "uniqExact": _uniq, "groupArray": _group_array,
        "groupUniqArray": _group_array, "quantile": _quantile, "quantiles": _quantile,
        "stddevPop": _deviation, "stddevSamp": _deviation, "varPop": _deviation,
        "varSamp": _deviation, "groupBitAnd": _bitwise, "groupBitOr": _bitwise,
        "groupBitXor": _bitwise,
    }
)  # fmt: skip
