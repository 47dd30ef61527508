"""Resolves an aggregate's name with combinators, its parameters and argument types."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.errors import (
    BadArguments,
    IllegalAggregation,
    IllegalTypeOfArgument,
    NotSupportedError,
    NumberOfArgumentsDoesntMatch,
    UnknownAggregateFunction,
)
from olapdb.functions.aggregates.factories import FACTORIES
from olapdb.functions.aggregates.name_parts import (
    ARG_EXTREMES,
    ELEMENT_COMBINATORS,
    aggregate_names,
    base_name,
    canonical_name,
    split_combinator,
)
from olapdb.functions.aggregates.names import MAPPED_ARRAYS, REFUSED
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    state_type_of,
)
from olapdb.functions.base import Aggregate
from olapdb.lazy import lazy_modules
from olapdb.types import (
    BOOL,
    NOTHING,
    UINT8,
    AggregateFunction,
    Array,
    DataType,
    FixedString,
    Integer,
    LowCardinality,
    Nothing,
    Nullable,
    SimpleAggregateFunction,
    String,
    Tuple,
    WideNumber,
    is_nullable,
    make_nullable,
    plain,
    without_inner_low_cardinality,
)

if TYPE_CHECKING:
    from olapdb.functions.aggregates import (
        arg_extreme_combinators,
        array_combinators,
        combinators,
        map_combinators,
        mapped_arrays,
        set_operations,
        tuple_combinator,
        wide_arguments,
    )
else:
    (
        combinators,
        set_operations,
        arg_extreme_combinators,
        array_combinators,
        map_combinators,
        mapped_arrays,
        tuple_combinator,
        wide_arguments,
    ) = lazy_modules(
        "olapdb.functions.aggregates",
        "combinators",
        "set_operations",
        "arg_extreme_combinators",
        "array_combinators",
        "map_combinators",
        "mapped_arrays",
        "tuple_combinator",
        "wide_arguments",
    )


def _argument_type(data_type: DataType) -> DataType:
    """Return the type of an argument as an aggregate sees it: of a SimpleAggregateFunction the type of
    its values; of a LowCardinality the inner type, unless that is of texts: then it stays."""
    if isinstance(data_type, SimpleAggregateFunction):
        return data_type.inner
    if isinstance(data_type, LowCardinality):
        return data_type if isinstance(plain(data_type), String | FixedString) else data_type.inner
    return data_type


def resolve_aggregate(
    name: str, parameters: Sequence[object], argument_types: Sequence[DataType]
) -> Aggregate:
    """Return the aggregate of this name, combinators included, for these argument types.

    Raises UnknownAggregateFunction, NumberOfArgumentsDoesntMatch, IllegalTypeOfArgument,
    BadArguments, ParameterOutOfBound and IllegalAggregation.
    Also raises NotSupportedError.
    """
    if base_name(name) is not None:
        check_combinators(name)
    return _resolve_stored(name, parameters, argument_types)


def _resolve_stored(
    name: str, parameters: Sequence[object], argument_types: Sequence[DataType]
) -> Aggregate:
    """Resolve an aggregate as `resolve_aggregate` does, and also names that only a stored type can have, so that
    every warehouse can be opened."""
    base = base_name(name)
    if base is None:
        close = difflib.get_close_matches(name, aggregate_names(), 1)
        hint = f"Maybe you meant {close[0]}." if close else ""
        raise UnknownAggregateFunction(f"Unknown aggregate function {name}.", hint=hint)
    if base in REFUSED:
        raise NotSupportedError(f"Aggregate function {name} is not supported: {REFUSED[base]}.")
    types = tuple(map(_argument_type, argument_types))
    aggregate = _resolve(name, tuple(parameters), types)
    if argument_types and isinstance(argument_types[0], SimpleAggregateFunction):
        return _with_simple_type(aggregate, base, argument_types[0])
    inside = tuple(map(without_inner_low_cardinality, types))
    if inside == types or isinstance(aggregate.result_type, AggregateFunction):
        return aggregate
    return _resolve(name, tuple(parameters), inside)


_KEEPING_TYPES = frozenset(
    [*("any", "anyLast", "first_value", "last_value"), *("min", "max", "argMin", "argMax")]
)
"""Aggregates whose result is one of their arguments."""


def _with_simple_type(
    aggregate: Aggregate, base: str, argument_type: SimpleAggregateFunction
) -> Aggregate:
    """Return the aggregate with the type of its first argument as the type of its result, where the result is one of
    the argument's values: as in ClickHouse, `max(m)` of a SimpleAggregateFunction is one too, unless it may be
    NULL."""
    names = (base, f"{base}If", f"{base}Distinct", f"{base}OrDefault")
    keeps = base in _KEEPING_TYPES and aggregate.name in names
    if keeps and not is_nullable(argument_type) and aggregate.result_type == argument_type.inner:
        return replace(aggregate, result_type=argument_type)
    return aggregate


_REPEATABLE = frozenset({"Array", "OrNull", "OrDefault"})


def check_combinators(name: str) -> None:
    """Raise IllegalAggregation for a name with a combinator directly behind itself, as in sumIfIf."""
    while canonical_name(name) is None and (split := split_combinator(name)) is not None:
        name, suffix = split
        inner = None if canonical_name(name) is not None else split_combinator(name)
        if suffix not in _REPEATABLE and inner is not None and inner[1] == suffix:
            raise IllegalAggregation(
                f"The combinator {suffix} cannot be applied twice in a row to {inner[0]}.",
                hint="Join the two conditions by AND." if suffix == "If" else "",
            )


def _resolve(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Return the aggregate of a known name; resolve its last combinator, then the rest by
    recursion. SimpleAggregateFunction types must be unwrapped already.
    """
    base = canonical_name(name)
    if base is not None and base in MAPPED_ARRAYS:
        return mapped_arrays.resolve_mapped_arrays(base, parameters, types, _resolve)
    if base is not None:
        return _nullable(base, parameters, types)
    split = split_combinator(name)
    assert split is not None
    inner_name, suffix = split
    if suffix in ("Merge", "MergeState"):
        return _merge(inner_name, parameters, types, keep_state=suffix == "MergeState")
    if suffix == "If":
        return _if(inner_name, parameters, types)
    if suffix in ELEMENT_COMBINATORS:
        return _of_elements(suffix)(inner_name, parameters, types, _resolve)
    if suffix in ARG_EXTREMES:
        return arg_extreme_combinators.resolve_arg_extreme_combinator(
            inner_name,
            parameters,
            types,
            _resolve,
            suffix=suffix,
            has_result_over_no_rows=_has_result_over_no_rows(inner_name),
        )
    inner = _resolve(inner_name, parameters, types)
    match suffix:
        case "State" if isinstance(inner, set_operations.SetAggregate) and isinstance(
            inner.result_type, Integer
        ):
            return inner.as_state(types)
        case "State":
            return _wrap(combinators.StateCombinator, inner, types, result=inner.state_type)
        case "SimpleState":
            return _simple_state(inner, types)
        case "Distinct":
            return _distinct(inner, types)
        case _:
            return _optional(inner, types, suffix)


def _of_elements(suffix: str) -> Callable[..., Aggregate]:
    """Return the function that resolves the combinator `suffix`, one of ELEMENT_COMBINATORS."""
    match suffix:
        case "ForEach":
            return array_combinators.resolve_for_each_combinator
        case "Resample":
            return array_combinators.resolve_resample_combinator
        case "Array":
            return array_combinators.resolve_array_combinator
        case "Map":
            return map_combinators.resolve_map_combinator
        case _:
            return tuple_combinator.resolve_tuple_combinator


def _nullable(base: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve an aggregate without combinators. With Nullable arguments it is wrapped so that groups without values
    give NULL, where ClickHouse does that."""
    if base not in _COUNTING_ANY_TYPE and any(isinstance(plain(t), Nothing) for t in types):
        state = state_type_of(base, parameters, types, UINT8)
        return combinators.NullAggregate(base, parameters, types, Nullable(NOTHING), state)
    factory = FACTORIES[base]
    if any(isinstance(plain(t), WideNumber) for t in types):
        aggregate = wide_arguments.resolve_wide(base, parameters, types, factory)
    else:
        aggregate = factory(base, parameters, types)
    if base in _HANDLING_NULLS or not any(is_nullable(t) for t in types):
        return aggregate
    if isinstance(aggregate.result_type, Array | Tuple) and base not in _WITH_NULLABLE_TUPLE:
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
    """Return whether the aggregate counts or gathers values, so that groups without rows have a result (0 or an empty
    array) and NULLs never make the result Nullable."""
    split = split_combinator(name) if canonical_name(name) is None else None
    while split is not None:
        name = split[0]
        split = split_combinator(name) if canonical_name(name) is None else None
    return canonical_name(name) in _WITH_RESULT_OVER_NO_ROWS


_DISTINCT_COUNTS = frozenset({"uniq", "uniqExact", "uniqHLL12", "uniqUpTo"})
_COUNTING_ANY_TYPE = frozenset({"count", "uniq", "uniqExact", "uniqHLL12", "uniqUpTo"})
_GATHERING = frozenset(
    {
        "groupArray",
        "groupUniqArray",
        "groupArraySorted",
        "groupArrayLast",
        "groupArrayInsertAt",
        "groupArraySample",
        "groupArrayIntersect",
    }
)
_WITH_NULLABLE_TUPLE = frozenset(
    {
        "argAndMin",
        "argAndMax",
        "studentTTest",
        "welchTTest",
        "meanZTest",
        "mannWhitneyUTest",
        "kolmogorovSmirnovTest",
        "analysisOfVariance",
        "studentTTestOneSample",
        "simpleLinearRegression",
    }
)
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
            "singleValueOrNull",
            "deltaSum",
            "deltaSumTimestamp",
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
    """Return -If of the aggregate `name`; the last argument is the condition.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name}If needs a condition.")
    if plain(types[-1]) not in (UINT8, BOOL, NOTHING):
        raise illegal_argument(f"{name}If", types[-1], "a condition (UInt8)")
    inner = _resolve(name, parameters, types[:-1])
    if isinstance(inner, combinators.StateCombinator):
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
    """Return -Distinct of `inner`, with a set of distinct values of `types` as state.

    Raises NumberOfArgumentsDoesntMatch."""
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
    """Return -OrNull or -OrDefault (`suffix`) of `inner`; the state has a flag for groups that saw rows. -OrNull
    makes the result Nullable, except that of an aggregate that counts or gathers over a bare NULL."""
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
        additive=inner.additive,
        merge_function=inner.merge_function,
    )
    return (
        _wrap(combinators.StateCombinator, merged, types, result=argument) if keep_state else merged
    )


def _same_family(left: str, right: str) -> bool:
    """Return whether two aggregates, by name, have the same states: equal ones, or quantile and
    quantiles.
    """
    return left == right or {left, right} in ({"quantile", "quantiles"}, _EXACT_QUANTILES)


_EXACT_QUANTILES = {"quantileExact", "quantilesExact"}


def parse_parameter(text: str) -> object:
    """Return the value of a parameter from its SQL text: an int, a float, a string or a list."""
    if text.startswith("["):
        value: object = ast.literal_eval(text)
        return value
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
    return _resolve_stored(function, values, arguments).state_type.state
