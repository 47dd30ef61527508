"""Functions of a Variant: each alternative's values are given to the function of their type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    CannotConvertType,
    DataError,
    IllegalTypeOfArgument,
    NoCommonType,
    NotSupportedError,
    ProgrammingError,
    TypeMismatch,
)
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.variants.casts import from_variant, place_for
from olapdb.functions.variants.values import NO_ALTERNATIVE, in_rows, numbers_of, of_one
from olapdb.types import (
    FLOAT64,
    Array,
    DataType,
    Geometry,
    Map,
    Nothing,
    Variant,
    is_nullable,
    make_nullable,
    plain,
    variant_of,
)
from olapdb.types.arrow_values import from_numpy

Resolve: TypeAlias = Callable[[Sequence[Argument]], ScalarCall]
"""A function from arguments without a Variant at one place to the call for them."""

_WHOLE = frozenset(
    [
        *("toTypeName", "toColumnTypeName", "variantElement", "variantType", "isNull", "isNotNull"),
        *("isNullable", "isConstant", "coalesce", "ifNull", "if", "multiIf", "assumeNotNull"),
        *("tuple", "array", "map", "materialize", "identity", "ignore", "CAST", "_CAST", "nullIf"),
        *("accurateCast", "accurateCastOrNull", "accurateCastOrDefault", "toNullable"),
        *("isDistinctFrom", "isNotDistinctFrom", "defaultValueOfArgumentType"),
        *("has", "indexOf", "countEqual", "arrayPushBack", "arrayPushFront", "arrayJoin"),
        *("greatest", "least", "tupleElement", "throwIf", "and", "or", "xor", "transform"),
        *("caseWithExpression", "isZeroOrNull", "blockSize", "rowNumberInBlock", "arrayResize"),
    ]
)
"""Functions that take a Variant as it is, or refuse it."""
_MEASURES = ("areaCartesian", "areaSpherical", "perimeterCartesian", "perimeterSpherical")
_AREAS = ("Ring", "Polygon", "MultiPolygon")
"""The shapes that the measures of a Geometry know; of others, and of NULL, they are 0."""
_NO_FORM = ("byteSize", "MD5", "MD4", "SHA", "BLAKE3", "CRC", "halfMD5", "ripeMD160")
UNFIT = (IllegalTypeOfArgument, TypeMismatch, CannotConvertType, NoCommonType)
"""Errors that say that a function is not for a type."""


def takes_alternatives(name: str, arguments: Sequence[Argument]) -> bool:
    """Return whether the function is computed for each alternative, since a Variant is among its arguments."""
    return name not in _WHOLE and any(isinstance(plain(a.type), Variant) for a in arguments)


def over_alternatives(name: str, arguments: Sequence[Argument], resolve: Resolve) -> ScalarCall:
    """Return the call that passes the values of each alternative of the first Variant to the function. Rows that are
    NULL are NULL.

    The result has the common type of all alternatives' results, else it is a Variant. If a row has an alternative
    that the function does not take, that is an error, or NULL under variant_throw_on_type_mismatch = 0. `resolve`
    takes the other arguments as they are. Raises IllegalTypeOfArgument if the function takes no alternative,
    NotSupportedError for a hash or byteSize."""
    at = next(i for i, a in enumerate(arguments) if isinstance(plain(a.type), Variant))
    variant = plain(arguments[at].type)
    assert isinstance(variant, Variant)
    if name.startswith(_NO_FORM) or "Hash" in name:
        raise NotSupportedError(
            f"Function {name} of {variant} is not supported: a Variant has other bytes here.",
            hint="Give it toString(v), or one type: variantElement(v, 'Type').",
        )
    measured = isinstance(variant, Geometry) and name in _MEASURES
    calls = _calls_of(name, arguments, at, variant, resolve)
    usable = [call for call in calls if isinstance(call, ScalarCall)]
    if not usable:
        raise IllegalTypeOfArgument(
            f"None of the types of {variant} is one that function {name} takes.",
            hint="Take one type by variantElement(v, 'Type'), or CAST.",
        )
    result = FLOAT64 if measured else _result_type([call.type for call in usable])
    if isinstance(variant, Geometry) and isinstance(result, Variant):
        result = variant if {*result.alternatives} == {*variant.alternatives} else result

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Call the function for the rows of each alternative."""
        constant = all(isinstance(value, pa.Scalar) for value in values)
        computed = _by_alternative(calls, result, values, at, 1 if constant else rows, environment)
        return computed[0] if constant else computed

    volatile = [call for call in usable if call.volatility != "pure"]
    return ScalarCall(name, result, kernel, (volatile or usable)[0].volatility)


def _by_alternative(
    calls: Sequence[ScalarCall | ProgrammingError | DataError],
    result: DataType,
    values: Sequence[Column],
    at: int,
    rows: int,
    environment: Environment,
) -> pa.Array:
    """Call the function of each alternative for its rows, as values of `result`; other rows are NULL, or the type's
    default.

    `values[at]` is the Variant; `calls` has each alternative's call, or the error that the function does not take it,
    which is raised where a row has it."""
    own = columns.as_array(values[at], rows)
    numbers = numbers_of(own)
    fields = columns.struct_fields(own)[1:]
    pieces: list[pa.Array] = []
    places: list[np.ndarray] = []
    for place in np.unique(numbers[numbers != NO_ALTERNATIVE]).tolist():
        call = calls[place]
        if not isinstance(call, ScalarCall):
            if "variant_throw_on_type_mismatch" in environment.changed:
                continue
            raise call
        chosen = np.flatnonzero(numbers == place)
        indices = from_numpy(chosen)
        inner = [v if isinstance(v, pa.Scalar) else v.take(indices) for v in values]
        inner[at] = fields[place].take(indices)
        array = computed_rows(call, inner, chosen, environment)
        pieces.append(as_alternative(array, call.type, result, environment))
        places.append(chosen)
    joined = in_rows(pieces, places, rows, result.arrow)
    if not is_nullable(result) and joined.null_count:
        joined = joined.fill_null(default_value(result))
    return joined


def _calls_of(
    name: str, arguments: Sequence[Argument], at: int, variant: Variant, resolve: Resolve
) -> list[ScalarCall | ProgrammingError | DataError]:
    """Return for each alternative of argument number `at` the call, or the error if the function does not take it.

    A function that measures shapes gives 0 for a shape without an area."""
    measured = isinstance(variant, Geometry) and name in _MEASURES
    calls: list[ScalarCall | ProgrammingError | DataError] = []
    for alternative in variant.alternatives:
        if measured and alternative.name not in _AREAS:
            calls.append(ScalarCall(name, FLOAT64, lambda v, rows, e: pa.scalar(0.0)))
            continue
        given = [*arguments]
        given[at] = Argument(alternative)
        try:
            calls.append(resolve(given))
        except UNFIT as error:
            calls.append(error)
        except BadArguments as error:
            if not isinstance(variant, Geometry):
                raise
            calls.append(error)  # functions of shapes say so of what is another shape
    return calls


def computed_rows(
    call: ScalarCall, values: Sequence[Column], rows: np.ndarray, environment: Environment
) -> pa.Array:
    """Call a function for the rows at the positions `rows`. An error that it raises gets the row's number in the
    block."""
    try:
        return columns.as_array(call.kernel(values, len(rows), environment), len(rows))
    except DataError as error:
        raise error if error.row is None else error.at_row(int(rows[error.row])) from None


def _result_type(types: Sequence[DataType]) -> DataType:
    """Return the type of results of several types: their common type, or a Variant of them.

    It is Nullable, except for arrays and maps, whose value in place of NULL is empty."""
    plains = list(dict.fromkeys(t if isinstance(t, Array | Map) else plain(t) for t in types))
    plains = [t for t in plains if not isinstance(t, Nothing)] or plains
    if len(plains) == 1:
        return make_nullable(plains[0])
    if all(_is_text(t) for t in plains):
        return make_nullable(common_type(plains))
    return variant_of(plains)


def _is_text(data_type: DataType) -> bool:
    """Return whether the type is String or FixedString."""
    return data_type.name.startswith(("String", "FixedString"))


def as_alternative(
    array: pa.Array, source: DataType, target: DataType, environment: Environment
) -> pa.Array:
    """Return values as those of a wider type. In a Variant values keep their type; there a text is not parsed."""
    variant = plain(target)
    if isinstance(variant, Variant) and not isinstance(plain(source), Variant | Nothing):
        place = place_for(source, variant)
        assert place is not None
        return of_one(variant, place, array)
    return columns.single(cast_column(array, source, target, environment, strict=False))


def widened(column: Column, source: DataType, target: DataType, environment: Environment) -> Column:
    """Return a column or a constant converted as `as_alternative` converts."""
    if isinstance(column, pa.Scalar):
        return as_alternative(columns.single(column), source, target, environment)[0]
    return as_alternative(column, source, target, environment)


def widening(source: DataType, target: DataType) -> ScalarCall:
    """Return the call that converts values of type `source` to the Variant `target`, of which it is an
    alternative."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Convert the values to the Variant."""
        return widened(values[0], source, target, environment)

    return ScalarCall("_asVariant", target, kernel)


def of_conversion(arguments: Sequence[Argument], call: ScalarCall) -> ScalarCall:
    """Return the call of a conversion of a Variant, such as toUInt64(v): it casts each alternative's values; NULL gives
    the default.

    `call` is the call for a String in place of the Variant."""
    variant, target = plain(arguments[0].type), plain(call.type)
    assert isinstance(variant, Variant)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Cast the values of the alternatives that occur in the column."""

        def cast(array: pa.Array, source: DataType, goal: DataType) -> pa.Array:
            """Cast the values of one alternative."""
            return columns.single(cast_column(array, source, goal, environment, strict=True))

        converted = from_variant(columns.single(values[0]), variant, target, cast)
        return converted[0] if isinstance(values[0], pa.Scalar) else converted

    return replace(call, type=target, kernel=kernel, monotonic=False)
