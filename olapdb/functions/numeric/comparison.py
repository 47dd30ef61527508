"""equals, less and the other comparisons, and IS [NOT] DISTINCT FROM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    DataError,
    IllegalTypeOfArgument,
    NoCommonType,
    TypeMismatch,
    UnsupportedMethod,
)
from olapdb.functions.arrays.nested_equality import equal_rows
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts.cast import cast_column
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.nested_order import nested_ranks
from olapdb.functions.kernels.supertypes import (
    as_number,
    common_type,
    comparable_type,
    decimal_precision,
)
from olapdb.functions.numeric.mixed_comparison import compare_mixed
from olapdb.functions.scalar import Invocation, ScalarDefinition, custom, null_safe, standard_call
from olapdb.types import (
    FLOAT64,
    INT32,
    INT64,
    INT256,
    IPV6,
    UINT8,
    UINT32,
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
    FixedString,
    Float,
    Integer,
    Interval,
    IPv4,
    IPv6,
    Map,
    Nothing,
    String,
    Time,
    Time64,
    Tuple,
    Variant,
    WideNumber,
    is_nullable,
    make_nullable,
    plain,
)

_TEXT = (String, FixedString)
_DATES = (Date, Date32, DateTime, DateTime64)
_CLOCKS = (Time, Time64)
_NUMBERS = (Integer, Float, Decimal, Boolean)
_COUNTS = (Integer, Float, Decimal)
_ARROW = {
    "equals": pc.equal,
    "notEquals": pc.not_equal,
    "less": pc.less,
    "greater": pc.greater,
    "lessOrEquals": pc.less_equal,
    "greaterOrEquals": pc.greater_equal,
}


def comparison_type(name: str, left: Argument, right: Argument) -> DataType:
    """Return the type, not Nullable, at which two values are compared.

    Raises IllegalTypeOfArgument or NoCommonType if they are not comparable, and TypeMismatch for a text literal that
    is no number."""
    a, b = as_number(plain(left.type)), as_number(plain(right.type))
    if isinstance(a, AggregateFunction):
        raise _incomparable(name, left.type, right.type)
    if a == b:
        return a
    if {type(plain(left.type)), type(plain(right.type))} == {IPv4, IPv6}:
        return IPV6
    if isinstance(a, Enum) or isinstance(b, Enum):
        return _enum_type(name, left, right)
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        return _number_type(a, b)
    if isinstance(a, _TEXT) and isinstance(b, _TEXT):
        return String()
    if isinstance(a, _DATES) and isinstance(b, _DATES):
        return _date_type(a, b)
    for time, number in ((a, b), (b, a)):
        if isinstance(time, DateTime | DateTime64) and isinstance(number, _COUNTS):
            return _number_type(_seconds_type(time), number)
    if isinstance(a, _CLOCKS) or isinstance(b, _CLOCKS):
        shared = _clock_type(a, b) or _clock_type(b, a)
        if shared is not None:
            return shared
    for text, other in ((left, plain(right.type)), (right, plain(left.type))):
        if isinstance(plain(text.type), _TEXT) and not isinstance(other, _TEXT):
            if text.constant is not None and not isinstance(other, Tuple | Map):
                _check_number(text.constant, other)
                return _constant_type(text.constant, other)
            if isinstance(other, _NUMBERS):
                raise NoCommonType(
                    f"There is no supertype for {left.type} and {right.type}.",
                    hint="Convert one of them.",
                )
    if any(isinstance(a, kind) and isinstance(b, kind) for kind in (Array, Tuple, Map)):
        try:
            return plain(comparable_type([a, b]))
        except NoCommonType:
            raise _incomparable(name, left.type, right.type) from None
    if isinstance(a, Interval) and isinstance(b, Interval):
        return common_type([a, b])
    for interval, number in ((a, b), (b, a)):
        if isinstance(interval, Interval) and isinstance(number, _COUNTS):
            return _number_type(INT64, number)
    raise _incomparable(name, left.type, right.type)


def _enum_type(name: str, left: Argument, right: Argument) -> DataType:
    """Return the type at which an Enum is compared: the Enum itself with a text literal, String with other texts,
    else the type of the Enum's numbers."""
    sides = (left, right)
    for enum, other in (sides, sides[::-1]):
        kind = plain(enum.type)
        if isinstance(kind, Enum) and isinstance(plain(other.type), _TEXT):
            return String() if other.constant is None else kind
    return comparison_type(name, *(_numbered(side) for side in sides))


def _numbered(argument: Argument) -> Argument:
    """Return an Enum argument as one of its numbers' type, any other as given."""
    kind = plain(argument.type)
    return Argument(kind.number_type) if isinstance(kind, Enum) else argument


def _clock_type(clock: DataType, other: DataType) -> DataType | None:
    """Return the type to which a Time or Time64 and the other operand are cast to be compared.

    The other is a time of day, a DateTime or a number of seconds. Returns None for every other type: ClickHouse
    refuses it, or compares a text by parsing it."""
    match clock, other:
        case (Time() | Time64(), Time() | Time64()):
            return Time64(max(clock.precision, other.precision))
        case (Time() | Time64(), DateTime() | DateTime64()):
            digits = other.precision if isinstance(other, DateTime64) else 0
            return DateTime64(max(clock.precision, digits))
        case (Time(), Integer() | Float()):
            return _number_type(INT32, other)
        case (Time64(precision), Integer() | Float() | Decimal()):
            return _number_type(Decimal(18, precision), other)
    return None


def _seconds_type(time: DateTime | DateTime64) -> DataType:
    """Return the type of a time compared with a number: seconds since 1970."""
    return UINT32 if isinstance(time, DateTime) else Decimal(18, time.precision)


def _date_type(a: DataType, b: DataType) -> DataType:
    """Return a date type, or a time type, that holds the values of both without clamping: DateTime ends before Date
    does."""
    shared = common_type([a, b])
    return (
        DateTime64(0, shared.zone) if isinstance(shared, DateTime) and Date() in (a, b) else shared
    )


def _check_number(value: pa.Scalar, other: DataType) -> None:
    """Raise TypeMismatch if a text literal, compared with the number type `other`, is no number.

    Does nothing for NULL and for other types.
    """
    if not value.is_valid or not isinstance(other, Integer | Float | Decimal):
        return
    try:
        cast_column(value, String(), other, Environment(), strict=True)
    except DataError as error:
        raise TypeMismatch(
            f"Cannot convert string {value.as_py()!r} to type {other}.",
            hint="Write a number, or cast the other side to String.",
        ) from error


def _constant_type(value: pa.Scalar, other: DataType) -> DataType:
    """Return the type of a comparison with a text literal.

    A Date and a text with a time are compared as DateTime, a DateTime and a fraction as DateTime64.
    """
    text = value.as_py() if value.is_valid else ""
    if isinstance(other, Date | Date32) and isinstance(text, str) and len(text) > 10:
        return DateTime64(0) if isinstance(other, Date32) else DateTime()
    if isinstance(other, DateTime) and isinstance(text, str) and "." in text:
        return DateTime64(3, other.zone)
    return other


def _number_type(a: DataType, b: DataType) -> DataType:
    """Return the type at which numbers of two types are compared: Float64 beside a float, an integer or Decimal that
    holds both otherwise."""
    if isinstance(a, Float) or isinstance(b, Float):
        return FLOAT64
    if isinstance(a, Integer) and isinstance(b, Integer):
        return _integer_type(a, b)
    if all(isinstance(t, WideNumber | Integer) for t in (a, b)):
        return INT256
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        scale = max(t.scale if isinstance(t, Decimal) else 0 for t in (a, b))
        # As many digits as its bits may hold: a sum may have outgrown its precision.
        whole = max(
            decimal_precision(t.precision) + 1 - t.scale if isinstance(t, Decimal) else 20
            for t in (a, b)
        )
        return Decimal(min(whole + scale, 76), scale)
    return comparable_type([a, b])


def _integer_type(a: Integer, b: Integer) -> DataType:
    """Return the narrowest type that holds all values of both."""
    if a.signed == b.signed:
        return a if a.bits >= b.bits else b
    unsigned, signed = (b, a) if a.signed else (a, b)
    if signed.bits > unsigned.bits:
        return signed
    return INT64 if unsigned.bits < _WORD_BITS else INT256


def _incomparable(name: str, left: DataType, right: DataType) -> IllegalTypeOfArgument:
    """Return the error about two types that the function `name` cannot compare."""
    return IllegalTypeOfArgument(
        f"Illegal types of arguments of function {name}: {left} and {right}."
    )


def _cast_to(
    column: Column, source: DataType, target: DataType, environment: Environment
) -> Column:
    """Cast an operand to the type of the comparison; NULL stays NULL."""
    if plain(source) == target:
        return column
    if isinstance(plain(source), Integer) and isinstance(target, Integer):
        return column.cast(target.arrow)  # it holds all values of the source
    if isinstance(plain(source), IPv4) and isinstance(target, _NUMBERS):
        source = UINT32  # an address is its number
    if isinstance(plain(source), Interval) and isinstance(target, _NUMBERS):
        source = INT64  # an interval is the number of its units
    if isinstance(plain(source), Time) and isinstance(target, _NUMBERS):
        source = INT32  # a time is its seconds
    if isinstance(plain(source), Decimal | Integer) and isinstance(target, Decimal):
        wide = column if pa.types.is_decimal(column.type) else pc.cast(column, pa.decimal128(20, 0))
        return pc.cast(wide, target.arrow)
    return cast_column(column, source, make_nullable(target), environment, strict=True)


def _without_zeros(column: Column) -> Column:
    """Return texts without the zero bytes at their ends, which do not count beside a FixedString."""
    return pc.ascii_rtrim(column, characters="\0")  # bytes that are not UTF-8 are taken too


def _is_mixed(types: Sequence[DataType]) -> bool:
    """Return whether a 64-bit integer is compared with a float: Float64 does not hold all such integers."""
    return any(isinstance(t, Float) for t in types) and any(
        isinstance(t, Integer) and t.bits == _WORD_BITS for t in types
    )


_WORD_BITS = 64


def _compare(name: str, target: DataType) -> Callable[[list[Column], Invocation], Column]:
    """Return the kernel of a comparison at the type `target`."""

    def native(values: list[Column], call: Invocation) -> Column:
        """Compare two columns at the type `target`, integers with floats exactly: UInt8, NULL where either is NULL,
        a constant for two constants."""
        if isinstance(target, Enum) and name != "notEquals":
            beside = _beside_no_element(values, call.types, target)
            if beside is not None:
                none = pa.scalar(None, pa.uint8())
                return pc.if_else(pc.is_valid(beside), pa.scalar(0, pa.uint8()), none)
        if _is_mixed(call.types):
            constant = all(isinstance(v, pa.Scalar) for v in values)
            result = compare_mixed(name, values[0], values[1], 1 if constant else call.rows)
            return result[0] if constant else result
        pair = [
            _cast_to(v, t, target, call.environment)
            for v, t in zip(values, call.types, strict=True)
        ]
        if isinstance(target, String) and any(
            isinstance(plain(t), FixedString) for t in call.types
        ):
            pair = [_without_zeros(value) for value in pair]
        if isinstance(target, Array | Map | Variant):
            return null_safe(_container_comparison(name, target), pair, call)
        return pc.cast(_ARROW[name](*pair), pa.uint8())

    return native


def _beside_no_element(
    values: Sequence[Column], types: Sequence[DataType], target: Enum
) -> Column | None:
    """Return the Enum operand if the other operand is a constant text that the Enum lacks, else None.

    ClickHouse answers 0 to `=` and to each other comparison of such a text but `!=`, which fails."""
    for at, kind in enumerate(types):
        text, other = values[at], values[1 - at]
        if isinstance(kind, Enum) or not isinstance(text, pa.Scalar) or not text.is_valid:
            continue
        if text.as_py() not in target.texts.values():
            return other
    return None


def comparison_of_arrays(
    name: str, data_type: DataType, *, missing_low: bool = False
) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """Return a function that compares two columns of this type by `less` or another comparison, as Arrow booleans.

    Arrays, tuples and maps are compared element by element; NULL and NaN in them are greater than all else, or less
    with `missing_low`."""
    native: Callable[[pa.Array, pa.Array], pa.Array] = _ARROW[name]
    if not isinstance(plain(data_type), Array | Map | Tuple):
        return native

    def compare(left: pa.Array, right: pa.Array) -> pa.Array:
        """Rank the values of both columns in one order and compare the ranks."""
        lefts, rights = np.split(
            nested_ranks(pa.concat_arrays([left, right]), missing_low=missing_low), 2
        )
        return native(pa.array(lefts), pa.array(rights))

    return compare


def _container_comparison(
    name: str, data_type: DataType
) -> Callable[[list[pa.Array], Invocation], pa.Array]:
    """Return the kernel that compares arrays and maps element by element: a NULL in them equals a
    NULL and is greater than all else."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Compare the containers of each row; UInt8."""
        if name not in ("equals", "notEquals"):
            compare = comparison_of_arrays(name, data_type)
            return pc.cast(compare(*arrays), pa.uint8())
        holds = equal_rows(*arrays) == (name == "equals")
        return columns.from_values(holds, pa.uint8())

    return kernel


def comparison_resolver(name: str) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of `equals`, `less` or another comparison; tuples are compared element by element."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; a comparison with a bare NULL is NULL."""
        if any(isinstance(plain(a.type), Nothing) for a in arguments):
            return standard_call(spelt, arguments, UINT8, None)
        if all(isinstance(plain(a.type), Tuple) for a in arguments):
            return _resolve_tuples(name, spelt, arguments)
        target = comparison_type(spelt, *arguments)
        return standard_call(spelt, arguments, UINT8, None, _compare(name, target))

    return resolve


def resolve_comparison(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Return the call of `equals`, `less` or another comparison.

    Raises the errors of `comparison_type` for types that are not comparable."""
    if name == "isNotDistinctFrom":
        return _distinct_from(same=True)(name, arguments)
    return comparison_resolver(name)(name, arguments)


def _resolve_tuples(name: str, spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve a comparison of tuples, element by element in three-valued logic.

    `(1, n) < (2, 0)` is true and `(1, n) < (1, 0)` is NULL if n is a NULL: it is
    `1 < 2 OR (1 = 2 AND …)`. As in ClickHouse no order is known of a tuple with a NULL that has no
    type, and with a literal NULL no equality either.
    """
    pairs = _element_pairs(spelt, arguments)
    is_unknown = _is_literal_null if name in ("equals", "notEquals") else _is_untyped
    if any(is_unknown(a) for pair in pairs for a in pair):
        null: Column = pa.scalar(None, pa.uint8())
        return ScalarCall(spelt, make_nullable(UINT8), lambda values, rows, environment: null)
    first = {"lessOrEquals": "less", "greaterOrEquals": "greater"}.get(name, name)
    named = [first] * (len(pairs) - 1) + [name]
    calls = [comparison_resolver(n)(spelt, pair) for n, pair in zip(named, pairs, strict=True)]
    equal = [comparison_resolver("equals")(spelt, pair) for pair in pairs]
    types = [*(call.type for call in calls), *(argument.type for argument in arguments)]
    nullable = any(is_nullable(data_type) for data_type in types)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compare element by element, from the last to the first, and combine the answers in three-valued logic."""
        elements = list(zip(*(_elements(v, rows) for v in values), strict=True))

        def truth(call: ScalarCall, at: int) -> Column:
            """Return the result of `call` on the elements at `at` as Arrow booleans."""
            result = call.kernel(elements[at], rows, environment)
            return pc.cast(columns.as_array(result, rows), pa.bool_())

        result = truth(calls[-1], -1)
        for at in reversed(range(len(calls) - 1)):
            if name == "equals":
                result = pc.and_kleene(truth(calls[at], at), result)
            elif name == "notEquals":
                result = pc.or_kleene(truth(calls[at], at), result)
            else:
                later = pc.and_kleene(truth(equal[at], at), result)
                result = pc.or_kleene(truth(calls[at], at), later)
        return pc.cast(result, pa.uint8())

    return ScalarCall(spelt, make_nullable(UINT8) if nullable else UINT8, kernel)


def _element_pairs(spelt: str, arguments: Sequence[Argument]) -> list[tuple[Argument, Argument]]:
    """Return the pairs of elements of two tuple arguments.

    Raises IllegalTypeOfArgument if their numbers differ, UnsupportedMethod if both are empty.
    """
    left, right = (_element_arguments(a) for a in arguments)
    if len(left) != len(right):
        raise _incomparable(spelt, arguments[0].type, arguments[1].type)
    if not left:
        raise UnsupportedMethod("Tuples without elements cannot be compared.")
    return list(zip(left, right, strict=True))


def _element_arguments(argument: Argument) -> list[Argument]:
    """Return the elements of a tuple argument as arguments, constant if the tuple is."""
    tuple_type, value = plain(argument.type), argument.constant
    assert isinstance(tuple_type, Tuple)
    if value is None or not value.is_valid:
        return [Argument(t) for t in tuple_type.elements]
    return [Argument(t, value[at]) for at, t in enumerate(tuple_type.elements)]


def _is_untyped(argument: Argument) -> bool:
    """Return whether the argument is NULL without a type, constant or not."""
    return isinstance(plain(argument.type), Nothing)


def _is_literal_null(argument: Argument) -> bool:
    """Return whether the argument is the constant NULL without a type."""
    return _is_untyped(argument) and argument.constant is not None


def _elements(column: Column, rows: int) -> list[Column]:
    """Return the columns of a tuple's elements; a constant tuple gives constants, a column of tuples columns of
    `rows` rows."""
    if isinstance(column, pa.Scalar) and column.is_valid:
        return [column[at] for at in range(len(column.type))]
    return list(columns.struct_fields(columns.as_array(column, rows)))


def _distinct_from(*, same: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of a comparison in which NULL equals NULL; `same`: IS NOT DISTINCT FROM."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call for two values or two tuples; the result is never NULL."""
        if all(isinstance(plain(a.type), Tuple) for a in arguments):
            return _distinct_tuples(spelt, arguments, same)
        has_null_type = any(isinstance(plain(a.type), Nothing) for a in arguments)
        target = None if has_null_type else comparison_type(spelt, *arguments)
        types = tuple(plain(a.type) for a in arguments)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Compare two columns as equal or not; NULL equals only NULL."""
            arrays = [columns.as_array(v, rows) for v in values]
            left, right = (a.is_null() for a in arrays)
            both, either = pc.and_(left, right), pc.or_(left, right)
            equal: Column = pa.scalar(False)
            if target is not None:
                call = Invocation(types, UINT8, rows, environment)
                equal = columns.truth(_compare("equals", target)(list(arrays), call))
                equal = pc.fill_null(equal, False)
            alike = pc.if_else(either, both, equal)
            return pc.cast(alike if same else pc.invert(alike), pa.uint8())

        return ScalarCall(spelt, UINT8, kernel)

    return resolve


def _distinct_tuples(spelt: str, arguments: Sequence[Argument], same: bool) -> ScalarCall:
    """Resolve IS NOT DISTINCT FROM (`same`) or IS DISTINCT FROM of tuples, element by element."""
    pairs = _element_pairs(spelt, arguments)
    calls = [_distinct_from(same=same)(spelt, pair) for pair in pairs]
    combine = pc.and_ if same else pc.or_

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Compare tuples element by element; combine the answers by AND (`same`) or OR."""
        elements = zip(*(_elements(v, rows) for v in values), strict=True)
        each = [
            pc.cast(call.kernel(pair, rows, environment), pa.bool_())
            for call, pair in zip(calls, elements, strict=True)
        ]
        return pc.cast(reduce(combine, each), pa.uint8())

    return ScalarCall(spelt, UINT8, kernel)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    *(custom(name, comparison_resolver(name), count=2) for name in _ARROW),
    custom("isNotDistinctFrom", _distinct_from(same=True), count=2),
    custom("isDistinctFrom", _distinct_from(same=False), count=2),
)
