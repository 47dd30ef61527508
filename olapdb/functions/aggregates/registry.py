"""Resolves an aggregate's name with combinators, its parameters and argument types."""

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
from olapdb.functions.aggregates.arg_extreme_combinators import resolve_arg_extreme_combinator
from olapdb.functions.aggregates.array_combinators import (
    resolve_array_combinator,
    resolve_for_each_combinator,
    resolve_resample_combinator,
)
from olapdb.functions.aggregates.factories import FACTORIES
from olapdb.functions.aggregates.map_combinators import resolve_map_combinator
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    state_type_of,
)
from olapdb.functions.aggregates.tuple_combinator import resolve_tuple_combinator
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
        "ForEach": resolve_for_each_combinator,
        "Resample": resolve_resample_combinator,
        "Array": resolve_array_combinator,
        "Map": resolve_map_combinator,
        "Tuple": resolve_tuple_combinator,
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
        "any_value_respect_nulls": "any_respect_nulls",
        "anyRespectNulls": "any_respect_nulls",
        "first_value_respect_nulls": "any_respect_nulls",
        "anyLastRespectNulls": "anyLast_respect_nulls",
        "last_value_respect_nulls": "anyLast_respect_nulls",
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
        "medianExactLow": "quantileExactLow",
        "medianExactHigh": "quantileExactHigh",
        "medianDeterministic": "quantileDeterministic",
        "medianExactWeighted": "quantileExactWeighted",
        "medianTDigest": "quantileTDigest",
        "medianTiming": "quantileTiming",
        "covar_pop": "covarPop",
        "covar_samp": "covarSamp",
        "varPopStable": "varPop",
        "varSampStable": "varSamp",
        "stddevPopStable": "stddevPop",
        "stddevSampStable": "stddevSamp",
        "covarPopStable": "covarPop",
        "covarSampStable": "covarSamp",
        "corrStable": "corr",
        "group_concat": "groupConcat",
        "string_agg": "groupConcat",
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
        "group_concat",
        "string_agg",
    }
)


def aggregate_names() -> tuple[str, ...]:
    """Return all names without combinators, aliases included, sorted."""
    return tuple(sorted({*FACTORIES, *_CANONICAL}))


def aggregate_descriptions() -> list[tuple[str, bool, str]]:
    """Return (name, whether it is case-insensitive, the name it is an alias of or "") of all
    aggregates, sorted by name."""
    return [(n, n in _CASE_INSENSITIVE, _CANONICAL.get(n, "")) for n in aggregate_names()]


def canonical_name(name: str) -> str | None:
    """Return the canonical name of an aggregate's name without combinators, or None if unknown."""
    spelt = name.lower() if name.lower() in _CASE_INSENSITIVE else name
    spelt = _CANONICAL.get(spelt, spelt)
    return spelt if spelt in FACTORIES else None


def split_combinator(name: str) -> tuple[str, str] | None:
    """Split the last combinator off a name: ("sum", "If") for "sumIf", None for "sum"."""
    for suffix in _COMBINATORS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    return None


def is_aggregate(name: str) -> bool:
    """Return whether the name, with any combinators, is an aggregate's."""
    while canonical_name(name) is None:
        split = split_combinator(name)
        if split is None:
            return False
        name = split[0]
    return True


def respecting_nulls(name: str) -> str | None:
    """Return the name, combinators kept, of the aggregate that RESPECT NULLS makes of this one.

    None if NULL has no place in it."""
    combinators_of = ""
    while (base := canonical_name(name)) is None:
        split = split_combinator(name)
        if split is None:
            return None
        name, combinators_of = split[0], split[1] + combinators_of
    kept = _RESPECTING_NULLS.get(base)
    return None if kept is None else kept + combinators_of


_RESPECTING_NULLS = MappingProxyType(
    {
        "any": "any_respect_nulls",
        "first_value": "any_respect_nulls",
        "any_respect_nulls": "any_respect_nulls",
        "anyLast": "anyLast_respect_nulls",
        "last_value": "anyLast_respect_nulls",
        "anyLast_respect_nulls": "anyLast_respect_nulls",
    }
)


def joins_texts(name: str) -> bool:
    """Return whether the name is groupConcat's, with combinators that leave the value its first
    argument: not those of states, arrays and maps."""
    while (base := canonical_name(name)) is None:
        split = split_combinator(name)
        if split is None or split[1] in ("Merge", "MergeState", *_ELEMENT_COMBINATORS):
            return False
        name = split[0]
    return base == "groupConcat"


def resolve_aggregate(
    name: str, parameters: Sequence[object], argument_types: Sequence[DataType]
) -> Aggregate:
    """Return the aggregate of this name, combinators included, for these argument types.

    Raises UnknownAggregateFunction, NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument,
    BadArguments and ParameterOutOfBound.
    """
    if not is_aggregate(name):
        close = difflib.get_close_matches(name, aggregate_names(), 1)
        hint = f"Maybe you meant {close[0]}." if close else ""
        raise UnknownAggregateFunction(f"Unknown aggregate function {name}.", hint=hint)
    types = tuple(
        data_type.inner if isinstance(data_type, SimpleAggregateFunction) else data_type
        for data_type in argument_types
    )
    return _resolve(name, tuple(parameters), types)


def _resolve(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Return the aggregate of a known name; resolve its last combinator, then the rest by
    recursion. SimpleAggregateFunction types must be unwrapped already.
    """
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
        return resolve_arg_extreme_combinator(
            inner_name,
            parameters,
            types,
            _resolve,
            suffix=suffix,
            has_result_over_no_rows=_has_result_over_no_rows(inner_name),
        )
    inner = _resolve(inner_name, parameters, types)
    match suffix:
        case "State":
            return _wrap(combinators.State, inner, types, result=inner.state_type)
        case "SimpleState":
            return _simple_state(inner, types)
        case "Distinct":
            return _distinct(inner, types)
        case _:
            return _optional(inner, types, suffix)


def _nullable(base: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Return the aggregate without combinators, wrapped if it has to give NULL for groups whose
    Nullable arguments have no value."""
    if base not in _COUNTING_ANY_TYPE and any(isinstance(plain(t), Nothing) for t in types):
        state = state_type_of(base, parameters, types, UINT8)
        return combinators.NullAggregate(base, parameters, types, Nullable(NOTHING), state)
    aggregate = FACTORIES[base](base, parameters, types)
    if base in _HANDLING_NULLS or not any(is_nullable(t) for t in types):
        return aggregate
    if isinstance(aggregate.result_type, Array | Tuple):
        return aggregate
    state = state_type_of(
        base, parameters, types, Tuple((UINT8, aggregate.state_type.state), ("seen", "state"))
    )
    return combinators.SeenRowsCombinator(
        base,
        parameters,
        types,
        make_nullable(aggregate.result_type),
        state,
        aggregate,
        merge_class=aggregate.merge_class,
        additive=aggregate.additive,
        merge_function=aggregate.merge_function,
    )


def _has_result_over_no_rows(name: str) -> bool:
    """Return whether the aggregate has a result over no rows, so that NULLs never make the result
    Nullable: it counts values or gathers them."""
    split = split_combinator(name) if canonical_name(name) is None else None
    while split is not None:
        name = split[0]
        split = split_combinator(name) if canonical_name(name) is None else None
    return canonical_name(name) in _WITH_RESULT_OVER_NO_ROWS


_DISTINCT_COUNTS = frozenset({"uniq", "uniqExact", "uniqCombined", "uniqCombined64", "uniqHLL12"})
_COUNTING_ANY_TYPE = frozenset({"count", "uniq", "uniqExact"})
_GATHERING = frozenset({"groupArray", "groupUniqArray", "groupArraySorted", "groupArrayLast"})
_WITH_RESULT_OVER_NO_ROWS = _DISTINCT_COUNTS | _GATHERING | {"count", "topK", "regr_count"}

_HANDLING_NULLS = (
    _DISTINCT_COUNTS
    | _GATHERING
    | frozenset(
        {
            "count",
            "regr_count",
            "min",
            "max",
            "any",
            "argMin",
            "argMax",
            "anyLast",
            "any_respect_nulls",
            "anyLast_respect_nulls",
            "first_value",
            "last_value",
        }
    )
)
"""Aggregates that handle NULLs and groups without rows themselves."""


def _wrap(
    combinator: type[combinators.Combinator],
    inner: Aggregate,
    types: tuple[DataType, ...],
    *,
    result: DataType,
    suffix: str = "",
    state: AggregateFunction | None = None,
) -> Aggregate:
    """Return `combinator` around `inner`, with the type `result`, and `state` or the inner state
    type.

    `suffix` is added to the name; any other than "" and "If" makes finished values not mergeable.
    """
    mergeable = suffix in ("", "If")
    return combinator(
        inner.name + suffix,
        inner.parameters,
        types,
        result,
        state or inner.state_type,
        inner,
        merge_class=inner.merge_class,
        additive=inner.additive and mergeable,
        merge_function=inner.merge_function if mergeable else "",
    )


def _if(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Return -If of the aggregate `name`; the last argument is the condition."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name}If needs a condition.")
    if plain(types[-1]) not in (UINT8, BOOL, NOTHING):
        raise illegal_argument(f"{name}If", types[-1], "a condition (UInt8)")
    inner = _resolve(name, parameters, types[:-1])
    if isinstance(inner, combinators.State):
        return _wrap(combinators.If, inner, types, result=inner.result_type)
    state = state_type_of(f"{inner.name}If", inner.parameters, types, inner.state_type.state)
    return _wrap(combinators.If, inner, types, result=inner.result_type, suffix="If", state=state)


def _simple_state(inner: Aggregate, types: tuple[DataType, ...]) -> Aggregate:
    """Return -SimpleState; raise BadArguments unless finished values of `inner` merge."""
    if not inner.additive:
        raise BadArguments(
            f"Unsupported aggregate function {inner.name} for the combinator SimpleState.",
            hint=f"Use {inner.name}State and AggregateFunction.",
        )
    result = SimpleAggregateFunction(inner.merge_function, inner.result_type)
    return _wrap(combinators.SimpleState, inner, types, result=result)


def _distinct(inner: Aggregate, types: tuple[DataType, ...]) -> Aggregate:
    """Return -Distinct of `inner`, with a set of distinct values of `types` as state."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"{inner.name}Distinct needs an argument.")
    name = f"{inner.name}Distinct"
    state = state_type_of(name, inner.parameters, types, distinct_set_type(types))
    return _wrap(
        combinators.DistinctCombinator,
        inner,
        types,
        result=inner.result_type,
        suffix="Distinct",
        state=state,
    )


def _optional(inner: Aggregate, types: tuple[DataType, ...], suffix: str) -> Aggregate:
    """Return -OrNull or -OrDefault (`suffix`) of `inner`, with a flag for groups that saw rows as
    state.

    -OrNull makes the result Nullable, unless an aggregate that counts or gathers has a bare NULL.
    """
    result = inner.result_type
    has_result = _has_result_over_no_rows(inner.name)
    of_nothing = any(isinstance(plain(t), Nothing) for t in types)
    if suffix == "OrNull" and not (has_result and of_nothing):
        result = make_nullable(result)
    state = state_type_of(
        inner.name + suffix,
        inner.parameters,
        types,
        Tuple((UINT8, inner.state_type.state), ("seen", "state")),
    )
    wrapped = _wrap(
        combinators.SeenRowsCombinator, inner, types, result=result, suffix=suffix, state=state
    )
    assert isinstance(wrapped, combinators.SeenRowsCombinator)
    return replace(wrapped, counts=has_result or suffix == "OrDefault")


def _merge(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...], *, keep_state: bool
) -> Aggregate:
    """Return -Merge, or with `keep_state` -MergeState, of the aggregate `name` over a state column.

    Raises IllegalTypeOfArgument unless the argument holds states that `name` can read."""
    require_count(f"{name}Merge", types, 1)
    argument = types[0]
    if not isinstance(argument, AggregateFunction):
        raise IllegalTypeOfArgument(
            f"Illegal type {argument} of argument of {name}Merge: states of {name}, "
            f"AggregateFunction({name}, …), expected."
        )
    stored = argument.parameters
    merge_parameters = parameters or tuple(parse_parameter(p) for p in stored)
    inner = resolve_aggregate(name, merge_parameters, argument.arguments)
    if not _same_family(inner.state_type.function, argument.function):
        raise IllegalTypeOfArgument(
            f"{name}Merge cannot read the states of {argument.function} ({argument}).",
            hint=f"Use {argument.function}Merge. A {name} over what they merge to belongs in the "
            "query that reads: a state that comes in is not yet the value it merges to.",
        )
    other_buckets = "Resample" in argument.function and merge_parameters[-3:] != tuple(
        parse_parameter(p) for p in stored[-3:]
    )
    if inner.state_type.state.arrow != argument.state.arrow or other_buckets:
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
    return _wrap(combinators.State, merged, types, result=argument) if keep_state else merged


def _same_family(left: str, right: str) -> bool:
    """Return whether two aggregates, by name, have the same states: equal ones, or quantile and
    quantiles.
    """
    return left == right or {left, right} in ({"quantile", "quantiles"}, _EXACT_QUANTILES)


_EXACT_QUANTILES = {"quantileExact", "quantilesExact"}


def parse_parameter(text: str) -> object:
    """Return the value of a parameter from its SQL text: an int, a float or a string."""
    if text.startswith("'"):
        return text[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    try:
        return int(text)
    except ValueError:
        return float(text)


def state_representation(
    function: str, parameters: tuple[str, ...], arguments: tuple[DataType, ...]
) -> DataType:
    """Return the type that holds the states of `AggregateFunction(function(parameters),
    arguments…)`.
    """
    values = tuple(parse_parameter(p) for p in parameters)
    return resolve_aggregate(function, values, arguments).state_type.state
