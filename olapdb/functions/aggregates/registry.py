"""From a name with combinators, parameters and argument types to an Aggregate."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from olapdb.errors import (
    BadArguments,
    IllegalTypeOfArgument,
    NumberOfArgumentsDoesntMatch,
    UnknownAggregateFunction,
)
from olapdb.functions.aggregates import combinators
from olapdb.functions.aggregates.arg_extreme_combinators import resolve_arg_extreme
from olapdb.functions.aggregates.array_combinators import (
    resolve_array,
    resolve_for_each,
    resolve_resample,
)
from olapdb.functions.aggregates.factories import FACTORIES
from olapdb.functions.aggregates.map_combinators import resolve_map
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    state_type_of,
)
from olapdb.functions.aggregates.tuple_combinator import resolve_tuple
from olapdb.functions.base import Aggregate
from olapdb.types import (
    BOOL,
    NOTHING,
    UINT8,
    AggregateFunction,
    Array,
    DataType,
    Nothing,
    Nullable,
    SimpleAggregateFunction,
    Tuple,
    is_nullable,
    make_nullable,
    plain,
)

_ELEMENT_COMBINATORS = MappingProxyType(
    {
        "ForEach": resolve_for_each,
        "Resample": resolve_resample,
        "Array": resolve_array,
        "Map": resolve_map,
        "Tuple": resolve_tuple,
    }
)
_ARG_EXTREMES = ("ArgMin", "ArgMax")
_COMBINATORS = (
    "MergeState",
    "SimpleState",
    "OrDefault",
    "OrNull",
    "Distinct",
    "Merge",
    "State",
    "If",
    *_ELEMENT_COMBINATORS,
    *_ARG_EXTREMES,
)
_CANONICAL = MappingProxyType(
    {
        "any_value": "any",
        "median": "quantile",
        "std": "stddevPop",
        "stddev_pop": "stddevPop",
        "stddev_samp": "stddevSamp",
        "var_pop": "varPop",
        "var_samp": "varSamp",
        "stddev": "stddevSamp",
        "array_agg": "groupArray",
        "bit_and": "groupBitAnd",
        "bit_or": "groupBitOr",
        "bit_xor": "groupBitXor",
        "max_by": "argMax",
        "min_by": "argMin",
        "medianExact": "quantileExact",
        "covar_pop": "covarPop",
        "covar_samp": "covarSamp",
    }
)
_CASE_INSENSITIVE = frozenset(
    {
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "any",
        "any_value",
        "median",
        "std",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "first_value",
        "last_value",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "max_by",
        "min_by",
        "corr",
        "covar_pop",
        "covar_samp",
    }
)


def aggregate_names() -> tuple[str, ...]:
    """The names without combinators, aliases included, sorted."""
    return tuple(sorted({*FACTORIES, *_CANONICAL}))


def aggregate_descriptions() -> list[tuple[str, bool, str]]:
    """(name, whether any case is understood, what it is an alias of or "") of all, by name."""
    return [(n, n in _CASE_INSENSITIVE, _CANONICAL.get(n, "")) for n in aggregate_names()]


def canonical_name(name: str) -> str | None:
    """The aggregate that a name without combinators denotes, or None."""
    spelt = name.lower() if name.lower() in _CASE_INSENSITIVE else name
    spelt = _CANONICAL.get(spelt, spelt)
    return spelt if spelt in FACTORIES else None


def split_combinator(name: str) -> tuple[str, str] | None:
    """("sum", "If") of "sumIf"; None where the name has none."""
    for suffix in _COMBINATORS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    return None


def is_aggregate(name: str) -> bool:
    """Whether the name, with combinators in any order, is an aggregate's."""
    while canonical_name(name) is None:
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
    base = canonical_name(name)
    if base is not None:
        return _nullable(base, parameters, types)
    split = split_combinator(name)
    assert split is not None
    inner_name, suffix = split
    if suffix in ("Merge", "MergeState"):
        return _merge(inner_name, parameters, types, keep_state=suffix == "MergeState")
    if suffix == "If":
        return _if(inner_name, parameters, types)
    if suffix in _ELEMENT_COMBINATORS:
        return _ELEMENT_COMBINATORS[suffix](inner_name, parameters, types, _resolve)
    if suffix in _ARG_EXTREMES:
        return resolve_arg_extreme(
            inner_name,
            parameters,
            types,
            _resolve,
            suffix=suffix,
            above_nulls=_is_above_nulls(inner_name),
        )
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
    if base not in _OF_ANY_ROW and any(isinstance(plain(t), Nothing) for t in types):
        state = state_type_of(base, parameters, types, UINT8)
        return combinators.NullAggregate(base, parameters, types, Nullable(NOTHING), state)
    made = FACTORIES[base](base, parameters, types)
    if base in _ABOVE_NULLS or not any(is_nullable(t) for t in types):
        return made
    if isinstance(made.result_type, Array | Tuple):
        return made
    state = state_type_of(
        base, parameters, types, Tuple((UINT8, made.state_type.state), ("seen", "state"))
    )
    return combinators.SeenRowsCombinator(
        base,
        parameters,
        types,
        make_nullable(made.result_type),
        state,
        made,
        merge_class=made.merge_class,
        additive=made.additive,
        merge_function=made.merge_function,
    )


def _is_above_nulls(name: str) -> bool:
    """Whether NULLs do not make the aggregate's result Nullable: it counts, or gathers."""
    split = split_combinator(name) if canonical_name(name) is None else None
    while split is not None:
        name = split[0]
        split = split_combinator(name) if canonical_name(name) is None else None
    return canonical_name(name) in _COUNTING


_OF_ANY_ROW = frozenset({"count", "uniq", "uniqExact"})
_COUNTING = frozenset({"count", "uniq", "uniqExact", "groupArray", "groupUniqArray"})

_ABOVE_NULLS = frozenset(
    {
        "count",
        "uniq",
        "uniqExact",
        "groupArray",
        "groupUniqArray",
        "min",
        "max",
        "any",
        "argMin",
        "argMax",
        "anyLast",
        "first_value",
        "last_value",
    }
)
"""Those that know themselves what NULLs and no rows mean."""


def _around(
    kind: type[combinators.Combinator],
    inner: Aggregate,
    types: tuple[DataType, ...],
    *,
    result: DataType,
    suffix: str = "",
    state: AggregateFunction | None = None,
) -> Aggregate:
    kept = suffix in ("", "If")
    return kind(
        inner.name + suffix,
        inner.parameters,
        types,
        result,
        state or inner.state_type,
        inner,
        merge_class=inner.merge_class,
        additive=inner.additive and kept,
        merge_function=inner.merge_function if kept else "",
    )


def _if(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name}If needs a condition.")
    if plain(types[-1]) not in (UINT8, BOOL, NOTHING):
        raise illegal_argument(f"{name}If", types[-1], "a condition (UInt8)")
    inner = _resolve(name, parameters, types[:-1])
    if isinstance(inner, combinators.State):
        return _around(combinators.If, inner, types, result=inner.result_type)
    state = state_type_of(f"{inner.name}If", inner.parameters, types, inner.state_type.state)
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
    state = state_type_of(name, inner.parameters, types, distinct_set_type(types))
    return _around(
        combinators.DistinctCombinator,
        inner,
        types,
        result=inner.result_type,
        suffix="Distinct",
        state=state,
    )


def _optional(inner: Aggregate, types: tuple[DataType, ...], suffix: str) -> Aggregate:
    result = inner.result_type
    counts = _is_above_nulls(inner.name)
    of_nothing = any(isinstance(plain(t), Nothing) for t in types)
    if suffix == "OrNull" and not (counts and of_nothing):
        result = make_nullable(result)
    state = state_type_of(
        inner.name + suffix,
        inner.parameters,
        types,
        Tuple((UINT8, inner.state_type.state), ("seen", "state")),
    )
    made = _around(
        combinators.SeenRowsCombinator, inner, types, result=result, suffix=suffix, state=state
    )
    assert isinstance(made, combinators.SeenRowsCombinator)
    return replace(made, counts=counts or suffix == "OrDefault")


def _merge(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], *, keep_state: bool
) -> Aggregate:
    require_count(f"{name}Merge", types, 1)
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
        inner.name,
        inner.parameters,
        types,
        inner.result_type,
        argument,
        inner,
        merge_class=inner.merge_class,
    )
    return _around(combinators.State, merged, types, result=argument) if keep_state else merged


def _same_family(left: str, right: str) -> bool:
    return left == right or {left, right} in ({"quantile", "quantiles"}, _EXACT)


_EXACT = {"quantileExact", "quantilesExact"}


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
