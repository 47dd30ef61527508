"""if, multiIf, CASE, coalesce, nullIf, isNull, greatest, least and transform."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    BadArguments,
    IllegalColumn,
    IllegalTypeOfArgument,
    NoCommonType,
    NumberOfArgumentsDoesntMatch,
    TooFewArguments,
    TypeMismatch,
)
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.nested_order import places_in
from olapdb.functions.kernels.supertypes import (
    NULL_TYPE,
    common_type,
    common_type_or_variant,
    is_decimal_beside_float,
    low_cardinality_result,
)
from olapdb.functions.numeric import comparison
from olapdb.functions.scalar import ScalarDefinition, custom, illegal, with_count_errors
from olapdb.lazy import LazyModule
from olapdb.types import (
    BOOL,
    EXACT_FLOAT,
    FLOAT64,
    INT64,
    STRING,
    UINT8,
    UINT64,
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    Decimal,
    Enum,
    ExactFloat,
    FixedString,
    Float,
    Integer,
    LowCardinality,
    Map,
    Nothing,
    Nullable,
    String,
    Tuple,
    Variant,
    WideInteger,
    is_nullable,
    make_nullable,
    plain,
)
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.functions.variants import calls as variant_calls
else:
    variant_calls = LazyModule("olapdb.functions.variants.calls")


def without_null(data_type: DataType) -> DataType:
    """Return T for Nullable(T), LowCardinality(T) for LowCardinality(Nullable(T)), any other type as given."""
    if isinstance(data_type, LowCardinality):
        return LowCardinality(without_null(data_type.inner))
    return data_type.inner if isinstance(data_type, Nullable) else data_type


def plain_lc(data_type: DataType) -> DataType:
    """Return the type without LowCardinality; Nullable stays."""
    return data_type.inner if isinstance(data_type, LowCardinality) else data_type


def _common(arguments: Sequence[Argument], *, or_variant: bool = False) -> DataType:
    """Return the common type of the arguments.

    If they differ only in LowCardinality or Nullable, it has no LowCardinality. Raises NoCommonType
    if there is none, unless `or_variant`: then it is the Variant of all.
    """
    types = [a.type for a in arguments]
    alike = all(plain(t) == plain(types[0]) for t in types)
    if alike and not all(t == types[0] for t in types):
        types = [make_nullable(plain(t)) if is_nullable(t) else plain(t) for t in types]
    return common_type_or_variant(types) if or_variant else common_type(types)


def _hinted(result: DataType, arguments: Sequence[Argument]) -> DataType:
    """Return `result` as LowCardinality if the only argument that is not a constant is one."""
    fixed = [a.constant is not None for a in arguments]
    return low_cardinality_result(result, [a.type for a in arguments], fixed)


def choose(conditions: Sequence[Column], branches: Sequence[Column], rows: int) -> Column:
    """Return for each row the first branch whose condition holds, else the last.

    Branches have one type.
    """
    if all(isinstance(c, pa.Scalar) for c in conditions):
        for condition, branch in zip(conditions, branches, strict=False):
            if condition.is_valid and condition.as_py():
                return branch
        return branches[-1]
    arrays = [columns.as_array(c, rows) for c in conditions]
    filled = [pc.fill_null(a, False) if a.null_count else a for a in arrays]
    nested = pa.types.is_nested(branches[0].type)
    if len(filled) == 1 and not nested:
        return pc.if_else(filled[0], branches[0], branches[1])
    if nested:
        return _choose_rows(filled, branches, rows)
    struct = pa.StructArray.from_arrays(filled, [str(i) for i in range(len(filled))])
    return pc.case_when(struct, *branches)


def _choose_rows(conditions: Sequence[pa.Array], branches: Sequence[Column], rows: int) -> pa.Array:
    """Return for each row the first branch whose condition holds, else the last, for nested types.

    Arrow's case_when does not support these. A constant branch is copied for the rows that choose it alone.
    """
    chosen = np.full(rows, len(branches) - 1)
    for at in range(len(conditions) - 1, -1, -1):
        chosen[np.asarray(conditions[at])] = at
    arrays = [columns.single(branch) for branch in branches]
    starts = np.cumsum([0, *(len(array) for array in arrays[:-1])])
    varies = np.array([isinstance(branch, pa.Array) for branch in branches])
    places = starts[chosen] + np.where(varies[chosen], np.arange(rows), 0)
    return pa.concat_arrays(arrays).take(from_numpy(places))


def _unified(
    column: Column, source: DataType, target: DataType, environment: Environment
) -> Column:
    """Cast a branch to the common type in the way of `if`, `ifNull` and `coalesce`.

    A FixedString that becomes a String keeps its zero bytes, which a CAST drops, also in a tuple.
    """
    if isinstance(plain(target), Variant):
        return variant_calls.widened(column, source, target, environment)
    if isinstance(source, Tuple) and isinstance(target, Tuple) and target.elements:
        if source.goes_by_name(target):
            return cast_column(column, source, target, environment, strict=False)
        return _unified_tuple(column, source, target, environment)
    if not (isinstance(plain(source), FixedString) and isinstance(plain(target), String)):
        return cast_column(column, source, target, environment, strict=False)
    if isinstance(column, pa.Scalar):
        return columns.text(columns.single(column))[0]
    return columns.text(column)


def _unified_tuple(
    column: Column, source: Tuple, target: Tuple, environment: Environment
) -> Column:
    """Cast each element of tuples to the element of `target` at its place, as `_unified` does."""
    tuples = columns.single(column)
    elements = [
        columns.single(_unified(values, of, wanted, environment))
        for values, of, wanted in zip(
            tuples.flatten(), source.elements, target.elements, strict=True
        )
    ]
    unified = pa.StructArray.from_arrays(elements, list(target.field_names))
    return unified[0] if isinstance(column, pa.Scalar) else unified


def _cases(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve if and multiIf of (condition, value, …, otherwise).

    The result is the value of the first true condition, else the last argument, cast to the common
    type. The values are evaluated lazily. Raises an error if any condition is not an
    integer, float, Bool or NULL.
    """
    conditions = [arguments[i] for i in range(0, len(arguments) - 1, 2)]
    branches = [*(arguments[i] for i in range(1, len(arguments), 2)), arguments[-1]]
    for condition in conditions:
        if not isinstance(plain(condition.type), Integer | Boolean | Float | Nothing):
            raise illegal(name, condition.type, "a condition (UInt8)")
    result = _common([Argument(plain_lc(b.type), b.constant) for b in branches], or_variant=True)
    convert = _unified if len(branches) == _BRANCHES_OF_IF else _cast_branch

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the values to the common type and choose one for each row."""
        truths = [columns.truth(values[i]) for i in range(0, len(values) - 1, 2)]
        outcomes = [values[i] for i in range(1, len(values), 2)] + [values[-1]]
        if isinstance(plain(result), ExactFloat):
            return _exact_floats(truths, outcomes, [b.type for b in branches], result, environment)
        converted = [
            convert(v, b.type, result, environment) for v, b in zip(outcomes, branches, strict=True)
        ]
        return choose(truths, converted, rows)

    return ScalarCall(name, result, kernel, lazy=True)


def _exact_floats(
    truths: Sequence[Column],
    outcomes: Sequence[Column],
    types: Sequence[DataType],
    result: DataType,
    environment: Environment,
) -> Column:
    """Choose each row's value among `outcomes` by the conditions `truths`, as a float. An integer without an exact
    Float64 is an error only if it is chosen."""
    rows = max((len(c) for c in (*truths, *outcomes) if isinstance(c, pa.Array)), default=1)
    chosen = None
    for at, (outcome, data_type) in enumerate(zip(outcomes, types, strict=True)):
        if isinstance(plain(data_type), Nothing):
            continue
        others: list[Column] = [pa.scalar(None, data_type.arrow)] * len(outcomes)
        others[at] = outcome
        own_values = columns.as_array(choose(truths, others, rows), rows)
        source = make_nullable(data_type)
        cast = cast_column(
            own_values, source, make_nullable(EXACT_FLOAT), environment, strict=False
        )
        chosen = cast if chosen is None else pc.coalesce(chosen, cast)
    assert chosen is not None
    constant = all(isinstance(c, pa.Scalar) for c in (*truths, *outcomes))
    return chosen[0] if constant else chosen


_BRANCHES_OF_IF = 2
"""A multiIf with as many branches as `if`, one condition and ELSE, casts its branches like `if`."""


def _cast_branch(
    column: Column, source: DataType, target: DataType, environment: Environment
) -> Column:
    """Cast a branch to the common type in the way of `multiIf`: as CAST."""
    if isinstance(plain(target), Variant):
        return variant_calls.widened(column, source, target, environment)
    return cast_column(column, source, target, environment, strict=False)


def _multi_if(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve multiIf; raise NumberOfArgumentsDoesntMatch unless the number of arguments is odd."""
    if len(arguments) % 2 == 0:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes an odd number of arguments.")
    return _cases(name, arguments)


def _case_with_expression(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve CASE x WHEN a THEN b … ELSE c END; NULL equals NULL.

    Raises NumberOfArgumentsDoesntMatch unless the number of arguments is even.
    """
    if len(arguments) % 2:
        raise NumberOfArgumentsDoesntMatch(f"Function {name} takes an even number of arguments.")
    subject, keys = arguments[0], [arguments[i] for i in range(1, len(arguments) - 1, 2)]
    branches = [*(arguments[i] for i in range(2, len(arguments) - 1, 2)), arguments[-1]]
    equals = [comparison.resolve_comparison("isNotDistinctFrom", [subject, key]) for key in keys]
    result = _hinted(_common(branches), arguments)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Choose for each row the value of the first equal key; NULL equals NULL."""
        truths = [
            columns.truth(call.kernel([values[0], values[1 + 2 * i]], rows, environment))
            for i, call in enumerate(equals)
        ]
        outcomes = [values[2 + 2 * i] for i in range(len(keys))] + [values[-1]]
        cast = [
            cast_column(v, b.type, result, environment, strict=False)
            for v, b in zip(outcomes, branches, strict=True)
        ]
        return choose(truths, cast, rows)

    return ScalarCall(name, result, kernel)


def _coalesce(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve coalesce and ifNull: the first value that is not NULL.

    Arguments behind one that is never NULL are ignored.
    """
    used: list[int] = []
    for at, argument in enumerate(arguments):
        if isinstance(plain(argument.type), Nothing):
            continue
        used.append(at)
        if not is_nullable(argument.type):
            break
    if not used:
        return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
    candidates = [arguments[i] for i in used]
    result = _common(
        [Argument(without_null(a.type), a.constant) for a in candidates], or_variant=True
    )
    result = _hinted(plain_lc(result), candidates)
    if is_nullable(candidates[-1].type):
        result = make_nullable(result)
    target = make_nullable(result)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return for each row the first value that is not NULL."""
        cast = [_unified(values[i], arguments[i].type, target, environment) for i in used]
        if len(cast) == 1:
            return cast[0]
        if pa.types.is_nested(target.arrow):
            present = [columns.is_present(c, rows) for c in cast[:-1]]
            return _choose_rows(present, cast, rows)
        return pc.coalesce(*cast)

    return ScalarCall(name, result, kernel)


def _null_if(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve nullIf(a, b): NULL where both are equal, else the first; the first also if either is the constant NULL.

    Raises NoCommonType for a text beside anything else, IllegalTypeOfArgument if the first is a Variant."""
    texts = [isinstance(plain(a.type), String | FixedString | Enum) for a in arguments]
    if any(texts) and not any(isinstance(plain(a.type), Nothing) for a in arguments):
        common_type([plain(a.type) for a in arguments])
    if isinstance(arguments[0].type, Variant):
        raise illegal(name, arguments[0].type, "a type that may be Nullable")
    result = make_nullable(arguments[0].type)
    if any(isinstance(plain(a.type), Nothing) for a in arguments):
        return ScalarCall(name, result, lambda v, r, e: v[0])
    result = _hinted(plain_lc(result), arguments)
    equals = comparison.comparison_resolver("equals")("equals", arguments)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Replace the first argument by NULL where both are equal."""
        same = columns.truth(equals.kernel(values, rows, environment))
        null = pa.scalar(None, result.arrow)
        return choose([same], [null, values[0]], rows)

    return ScalarCall(name, result, kernel)


def _is_null(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve isNull, or isNotNull if `name` is not "isNull"."""
    for_null = name == "isNull"

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return 1 where the value is NULL (isNull) or is not (isNotNull), else 0."""
        if isinstance(values[0], pa.Scalar):
            return pa.scalar(int(values[0].is_valid != for_null), pa.uint8())
        return pc.cast(values[0].is_null() if for_null else values[0].is_valid(), pa.uint8())

    return ScalarCall(name, UINT8, kernel)


def _assume_not_null(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve assumeNotNull: NULL becomes the type's default; ClickHouse leaves it undefined.

    Raises IllegalColumn for the constant NULL, which has no type."""
    if isinstance(plain(arguments[0].type), Nothing):
        raise IllegalColumn(f"{name} of NULL has no value: NULL has no type.")
    result = without_null(arguments[0].type)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Fill NULLs with the type's default."""
        missing = default_value(result)
        if isinstance(values[0], pa.Scalar):
            return values[0] if values[0].is_valid else missing
        return pc.fill_null(values[0], missing) if values[0].null_count else values[0]

    return ScalarCall(name, result, kernel)


def _to_nullable(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toNullable(x): the same values under a Nullable type.

    Raises IllegalTypeOfArgument for a type that has no NULL."""
    if isinstance(plain(arguments[0].type), Array | Map | Variant | AggregateFunction):
        raise illegal(name, arguments[0].type, "a type that may be Nullable")
    return ScalarCall(name, make_nullable(arguments[0].type), lambda v, r, e: v[0])


def _extreme(*, largest: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of greatest or least, which ignore NULL."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call in the arguments' common type; bare NULLs are ignored."""
        used = [i for i, a in enumerate(arguments) if not isinstance(plain(a.type), Nothing)]
        if not used:
            return ScalarCall(name, NULL_TYPE, lambda v, r, e: pa.scalar(None, pa.null()))
        as_floats = is_decimal_beside_float([a.type for a in arguments])
        wide: DataType = FLOAT64 if as_floats else _common([arguments[i] for i in used])
        if wide == BOOL and len(arguments) == 2:
            wide = UINT8
        result = wide
        if isinstance(plain(wide), Decimal | WideInteger):
            result = _narrowed([arguments[i].type for i in used], wide, largest)
        if len(used) < len(arguments):
            wide, result = make_nullable(wide), make_nullable(result)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Return the greatest or least value of each row; NULL only if all are NULL."""
            cast = [
                cast_column(values[i], arguments[i].type, wide, environment, strict=False)
                for i in used
            ]
            if len(cast) == 1:
                return cast[0]
            constant = all(isinstance(c, pa.Scalar) for c in cast)
            arrays = [columns.as_array(c, 1 if constant else rows) for c in cast]
            compare = comparison.comparison_of_arrays(
                "greater" if largest else "less", wide, missing_low=largest
            )
            if len(arrays) == 2 and not is_nullable(result):
                best = pc.if_else(compare(*arrays), *arrays)
            else:
                best = reduce(partial(_better, compare), arrays)
            best = cast_column(best, wide, result, environment, strict=False)
            return best[0] if constant else best

        return ScalarCall(name, _hinted(result, arguments), kernel)

    return resolve


def _narrowed(types: Sequence[DataType], wide: DataType, largest: bool) -> DataType:
    """Return the result type of greatest or least; `wide` is the arguments' common type.

    It is `wide`, but of UInt64 and Int64 greatest is UInt64 and least is Int64, and a Decimal that
    holds the integers beside it stays."""
    kinds = {plain(t) for t in types}
    narrow: DataType | None = None
    if kinds == {INT64, UINT64}:
        narrow = UINT64 if largest else INT64
    elif type(plain(wide)) is Decimal:  # no integer of many bits, which Arrow holds as one
        narrow = _decimal_that_holds(kinds)
    if narrow is None:
        return wide
    return make_nullable(narrow) if is_nullable(wide) else narrow


def _decimal_that_holds(kinds: Collection[DataType]) -> Decimal | None:
    """Return the only Decimal among the types if it has digits enough for all integers beside it; None if there are
    several or it has not."""
    decimals = [kind for kind in kinds if type(kind) is Decimal]
    if len(decimals) != 1:
        return None
    (decimal,) = decimals
    least = Decimal(max(decimal.scale, 1), decimal.scale)
    needed = common_type([least if kind == decimal else kind for kind in kinds])
    fits = isinstance(needed, Decimal) and needed.precision <= decimal.precision
    return decimal if fits else None


def _better(
    compare: Callable[[pa.Array, pa.Array], pa.Array], best: pa.Array, other: pa.Array
) -> pa.Array:
    """Return for each row the value that `compare` prefers, `best` if they are equal; NULL and NaN lose to every
    other value."""
    better = pc.fill_null(compare(other, best), False)
    if pa.types.is_floating(other.type):
        better = pc.or_(better, pc.fill_null(pc.is_nan(best), False))
    take = pc.and_(pc.or_(better, best.is_null()), other.is_valid())
    return pc.if_else(take, other, best)


def _key_type(subject: DataType, key: DataType) -> DataType:
    """Return the type at which transform compares x with the elements of `from`: x's type; String for texts of two
    types; the elements' type if x is a bare NULL."""
    if isinstance(plain(subject), Nothing):
        return key
    texts = isinstance(plain(subject), String | FixedString) and isinstance(
        plain(key), String | FixedString
    )
    return STRING if texts and plain(subject) != plain(key) else subject


def _untransformed(name: str, count: int, result: DataType) -> ScalarCall:
    """Return the call of transform without a key: its default, the last of `count` arguments, or x if there are three;
    in the type that this has."""
    place = 3 if count > 3 else 0
    return ScalarCall(name, result, lambda given, rows, environment: given[place])


def _require_pairs(name: str, keys: Column, values: Column) -> tuple[pa.Array, pa.Array]:
    """Return the elements of the second and the third argument of transform, which are one value each for all rows.

    Raises BadArguments for arrays of different sizes."""
    pairs = [
        given.values if isinstance(given, pa.Scalar) else given.slice(0, 1).flatten()
        for given in (keys, values)
    ]
    if len(pairs[0]) != len(pairs[1]):
        raise BadArguments(f"The arrays of {name} have different sizes.")
    return pairs[0], pairs[1]


def _transform(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve transform(x, from, to[, default]): the element of `to` at x's position in `from`.

    Without x in `from` it is the default, or x. Raises BadArguments unless `from` and `to` are constants, or scalar
    subqueries, of one length, IllegalTypeOfArgument unless they are arrays of types that fit."""
    subject, keys, values = arguments[:3]
    key_type, value_type = plain(keys.type), plain(values.type)
    if any(given.constant is None and not given.of_subquery for given in (keys, values)):
        raise BadArguments(f"The second and third argument of {name} must be constant arrays.")
    if not isinstance(key_type, Array) or not isinstance(value_type, Array):
        raise illegal(name, keys.type, "an array")
    otherwise = arguments[3] if len(arguments) > 3 else subject
    if isinstance(key_type.inner, Nothing) and isinstance(value_type.inner, Nothing):
        return _untransformed(name, len(arguments), otherwise.type)
    try:
        result = _common([Argument(value_type.inner), otherwise])
        compared = _key_type(subject.type, key_type.inner)
    except (NoCommonType, TypeMismatch) as error:
        raise IllegalTypeOfArgument(
            f"{name} takes (x, array of x's type, array, default of its type): {error}"
        ) from error
    if len(arguments) < 4 or otherwise.constant is not None:
        result = low_cardinality_result(result, [subject.type], [False])
    if isinstance(key_type.inner, Nothing):
        return _untransformed(name, len(arguments), otherwise.type)
    if keys.constant is not None and values.constant is not None:
        _require_pairs(name, keys.constant, values.constant)

    def kernel(columns_given: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Replace each value that is in the array `from` by the one at its place in `to`.

        Other values give the default, or stay if there is none.
        """
        fallback_column = columns_given[3] if len(columns_given) > 3 else columns_given[0]
        varying = (columns_given[0], fallback_column)
        is_constant = all(isinstance(column, pa.Scalar) for column in varying)
        array = columns.as_array(columns_given[0], 1 if is_constant else rows)
        found_keys, found_values = _require_pairs(
            name,
            columns_given[1] if keys.constant is None else keys.constant,
            columns_given[2] if values.constant is None else values.constant,
        )
        lookup_keys = _unified(found_keys, key_type.inner, make_nullable(compared), environment)
        array = _unified(array, subject.type, make_nullable(compared), environment)
        places = places_in(array, lookup_keys)
        if pa.types.is_floating(array.type):  # NaN is equal to nothing
            places = pc.if_else(pc.is_nan(array), pa.scalar(None, places.type), places)
        mapped = cast_column(
            found_values, value_type.inner, result, environment, strict=False
        ).take(places)
        fallback = cast_column(fallback_column, otherwise.type, result, environment, strict=False)
        chosen = choose([places.is_valid()], [mapped, fallback], len(array))
        return chosen[0] if is_constant else chosen

    fixed = [argument.constant is not None for argument in arguments]
    outer = low_cardinality_result(result, [argument.type for argument in arguments], fixed)
    return ScalarCall(name, outer, kernel)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("if", _cases, count=3, insensitive=True),
    custom(
        "multiIf",
        _multi_if,
        count=(3, None),
        aliases=("caseWithoutExpression", "caseWithoutExpr"),
        insensitive=True,
    ),
    *with_count_errors(
        (
            custom(
                "caseWithExpression",
                _case_with_expression,
                count=(4, None),
                aliases=("caseWithExpr",),
            ),
        ),
        few=TooFewArguments,
    ),
    custom("coalesce", _coalesce, count=(0, None), insensitive=True),
    custom("ifNull", _coalesce, count=2, insensitive=True),
    custom("nullIf", _null_if, count=2, insensitive=True),
    custom("isNull", _is_null, insensitive=True),
    custom("isNotNull", _is_null),
    custom("assumeNotNull", _assume_not_null),
    custom("toNullable", _to_nullable),
    custom("greatest", _extreme(largest=True), count=(1, None), insensitive=True),
    custom("least", _extreme(largest=False), count=(1, None), insensitive=True),
    custom("transform", _transform, count=(3, 4)),
)
