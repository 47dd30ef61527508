"""Type rules: least supertypes, types of literals, result types of arithmetic.

The rules are ClickHouse's (`NumberTraits`, `getLeastSupertype`), with two exceptions. For UInt64
and a signed integer ClickHouse has an Int128 or a Variant, olapdb a WideInteger, which holds both.
For a 64-bit integer and a float ClickHouse has a Variant, olapdb an ExactFloat. Where ClickHouse
returns another Variant, NoCommonType is raised.
"""

from __future__ import annotations

from collections.abc import Sequence

from olapdb.errors import DecimalOverflow, NoCommonType
from olapdb.types import (
    BOOL,
    DATE32,
    EXACT_FLOAT,
    FLOAT32,
    FLOAT64,
    INT64,
    NOTHING,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    UUID,
    WIDE_INTEGER,
    WIDE_SUM,
    Array,
    BFloat16,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Dynamic,
    Enum,
    ExactFloat,
    FixedString,
    Float,
    Integer,
    Interval,
    IPv4,
    IPv6,
    LowCardinality,
    Map,
    Nothing,
    Nullable,
    Point,
    Shape,
    SimpleAggregateFunction,
    String,
    Time,
    Time64,
    Tuple,
    Variant,
    WideInteger,
    WideNumber,
    is_nullable,
    make_nullable,
    plain,
    variant_of,
    wide_number,
    with_elements,
    with_inner,
    with_parts,
)

DECIMAL_DIGITS = (9, 18, 38, 76)
"""The digits that Decimal32, 64, 128 and 256 hold."""
NULL_TYPE = Nullable(NOTHING)
IN_DICTIONARIES = (
    String
    | FixedString
    | Integer
    | WideNumber
    | Float
    | Boolean
    | Date
    | Date32
    | DateTime
    | Time
    | Interval
    | UUID
    | IPv4
    | IPv6
)
"""Types that a LowCardinality may have."""
_DIGITS_OF_BITS = {8: 3, 16: 5, 32: 10, 64: 20}


def literal_type(value: bool | int | float | str | None, text: str = "") -> DataType:
    """Return the type of a literal: the smallest integer type, Float64, String, Bool or NULL's
    type.

    `text`, the literal as written, is not used: a number with a point is always Float64.
    """
    if value is None:
        return NULL_TYPE
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return integer_literal_type(value)
    return FLOAT64 if isinstance(value, float) else STRING


def integer_literal_type(value: int) -> DataType:
    """Return the smallest integer type that holds the value, or Float64."""
    for bits in (8, 16, 32, 64):
        candidate = Integer(bits, value < 0)
        if candidate.minimum <= value <= candidate.maximum:
            return candidate
    return FLOAT64


def common_type(types: Sequence[DataType]) -> DataType:
    """Return the least type that holds all values of these types.

    Raise NoCommonType if none does.
    """
    distinct = list(dict.fromkeys(_unwrap_simple(t) for t in types))
    if not distinct:
        return NOTHING
    if len(distinct) == 1:
        return distinct[0]
    dynamics = [t for t in distinct if isinstance(t, Dynamic)]
    if dynamics:
        return max(dynamics, key=lambda t: t.types_max)
    if all(isinstance(t, LowCardinality) for t in distinct):
        inner = common_type([t.inner for t in distinct if isinstance(t, LowCardinality)])
        return LowCardinality(inner)
    nullable = any(is_nullable(t) for t in distinct)
    plains = list(dict.fromkeys(plain(t) for t in distinct))
    plains = [t for t in plains if not isinstance(t, Nothing)]
    if not plains:
        return NULL_TYPE if nullable else NOTHING
    shared = plains[0]
    for other in plains[1:]:
        shared = _pair(shared, other)
    return make_nullable(shared) if nullable else shared


def comparable_type(types: Sequence[DataType]) -> DataType:
    """Return the least type at which to compare values of these types: the common type, but UInt8 for Bool beside
    UInt8, so that 3 is not true. Raise NoCommonType if there is none."""
    alike = all(t == types[0] for t in types)
    return common_type(types if alike else [without_bool(t) for t in types])


def without_bool(data_type: DataType) -> DataType:
    """Return the type with UInt8 for each Bool in it."""
    match data_type:
        case Boolean():
            return UINT8
        case Nullable(inner):
            return Nullable(without_bool(inner))
        case LowCardinality(inner):
            return LowCardinality(without_bool(inner))
    return with_parts(data_type, without_bool)


def common_type_or_variant(types: Sequence[DataType]) -> DataType:
    """Return the common type of these types, or the Variant of them if there is none or one of them is a
    Variant."""
    plains = [plain(t) for t in types]
    if not any(isinstance(t, Variant) for t in plains):
        try:
            return common_type(types)
        except NoCommonType:
            pass
    return variant_of([t for t in plains if not isinstance(t, Nothing)])


def _unwrap_simple(data_type: DataType) -> DataType:
    """Return the value type of a SimpleAggregateFunction; other types unchanged."""
    return data_type.inner if isinstance(data_type, SimpleAggregateFunction) else data_type


def _pair(left: DataType, right: DataType) -> DataType:
    """Return the supertype of two types; raise NoCommonType if no rule covers them.

    Bool is a UInt8 by another name: of both the first is the supertype."""
    if {left, right} == {BOOL, UINT8}:
        return left
    for a, b in ((left, right), (right, left)):
        shared = _ordered_pair(a, b)
        if shared is not None:
            return shared
    raise NoCommonType(
        f"There is no supertype for types {left}, {right}.", hint="CAST one side to the other."
    )


def _ordered_pair(left: DataType, right: DataType) -> DataType | None:
    """Return the supertype if a rule covers the two types in this order, else None."""
    if left == right:
        return left
    match left, right:
        case (Point() | Shape(), Tuple() | Array()) if left.arrow == right.arrow:
            return left
        case (Enum(), String() | FixedString()):
            return STRING
        case (Enum(), Enum()):
            return _integers(left.number_type, right.number_type)
        case (Enum(), Integer() | Float() | Decimal()):
            return _pair(left.number_type, right)
        case (String(), FixedString()) | (FixedString(), FixedString()):
            return STRING
        case (Interval(), Interval()):
            (of_months, size), (other_of_months, other_size) = map(interval_size, (left, right))
            finer = left if size <= other_size else right
            return finer if of_months == other_of_months else None
    return (
        _ordered_numbers(left, right) or _ordered_times(left, right) or _ordered_nested(left, right)
    )


def _ordered_numbers(left: DataType, right: DataType) -> DataType | None:
    """Return the supertype of two different types of numbers and Bool in this order; None without a
    rule."""
    match left, right:
        case (Boolean(), Integer() | Float()):
            return _ordered_pair(UINT8, right) or _ordered_pair(right, UINT8)
        case (WideNumber(), Integer() | WideNumber()):
            return _wide_numbers(left, right)
        case (WideNumber(), Boolean()):
            return left
        case (WideNumber(), _) | (_, WideNumber()):
            return None
        case (Integer(), Integer()):
            return _integers(left, right)
        case (WideInteger(), WideInteger()):
            return max(left, right, key=lambda t: t.precision)
        case (WideInteger(), Integer() | Boolean()):
            return left
        case (ExactFloat(), Float() | Integer() | Boolean() | WideInteger()):
            return EXACT_FLOAT
        case (BFloat16(), Float(32)) | (Float(32), BFloat16()):
            return FLOAT32
        case (Float(), Float()):
            return FLOAT64
        case (Float(), WideInteger()) | (Float(), Integer(64)):
            return EXACT_FLOAT
        case (Integer(bits), Float(width)) if bits < 64:
            if width == 16 and bits == 8:
                return right
            return FLOAT32 if width <= 32 and bits <= 16 else FLOAT64
        case (Decimal(), Decimal()):
            return _decimals(left, right)
        case (Decimal(), Integer(bits, signed)):
            digits = 19 if bits == 64 and signed else _DIGITS_OF_BITS[bits]
            least = max(left.precision, digits + left.scale)
            return Decimal(decimal_precision(least), left.scale)
    return None


def _ordered_times(left: DataType, right: DataType) -> DataType | None:
    """Return the supertype of two different types of dates and times in this order; None without a
    rule."""
    match left, right:
        case (Date(), Date32()):
            return DATE32
        case (Date() | Date32(), DateTime(zone)):
            return DateTime(zone) if isinstance(left, Date) else DateTime64(0)
        case (Date() | Date32(), DateTime64()):
            return right
        case (DateTime(), DateTime()):
            return left
        case (DateTime(), DateTime64()):
            return right
        case (DateTime64(), DateTime64()):
            return right if right.precision > left.precision else left
        case (Time(), Time64()):
            return right
        case (Time64(), Time64()):
            return right if right.precision > left.precision else left
        case (Time() | Time64(), DateTime(zone)):
            return DateTime64(left.precision, zone)
        case (Time() | Time64(), DateTime64(precision, zone)):
            return DateTime64(max(left.precision, precision), zone)
    return None


def _ordered_nested(left: DataType, right: DataType) -> DataType | None:
    """Return the supertype of two arrays, maps or tuples; None for other types."""
    match left, right:
        case (Array(a), Array(b)):
            return with_inner(left, _common_element(a, b))
        case (Map(k1, v1), Map(k2, v2)):
            return Map(_common_element(k1, k2), _common_element(v1, v2))
        case (Tuple(), Tuple()) if len(left.elements) == len(right.elements):
            elements = zip(left.elements, right.elements, strict=True)
            common = tuple(common_type(pair) for pair in elements)
            return with_elements(left, common) if left.names == right.names else Tuple(common)
    return None


_NANOSECONDS = {
    "Nanosecond": 1,
    "Microsecond": 1_000,
    "Millisecond": 1_000_000,
    "Second": 1_000_000_000,
    "Minute": 60 * 1_000_000_000,
    "Hour": 3_600 * 1_000_000_000,
    "Day": 86_400 * 1_000_000_000,
    "Week": 7 * 86_400 * 1_000_000_000,
}
_MONTHS = {"Month": 1, "Quarter": 3, "Year": 12}


def interval_size(interval: Interval) -> tuple[bool, int]:
    """Return whether the interval's unit is one of months, and its size in months or nanoseconds."""
    if interval.unit in _MONTHS:
        return True, _MONTHS[interval.unit]
    return False, _NANOSECONDS[interval.unit]


def _common_element(left: DataType, right: DataType) -> DataType:
    """Return the common type of the elements of two containers. The elements of an empty literal fit any type and do
    not make it Nullable."""
    typed = [t for t in (left, right) if not isinstance(t, Nothing)]
    return common_type(typed or [NOTHING])


def _decimals(left: Decimal, right: Decimal) -> Decimal:
    """Return the common type of two Decimals: the maximal precision of the wider one's width, and the larger scale.
    If width and scale agree, it is the one with more digits."""
    digits = max(left.precision, right.precision)
    alike = decimal_precision(left.precision) == decimal_precision(right.precision)
    if not alike or left.scale != right.scale:
        digits = decimal_precision(digits)
    return Decimal(digits, max(left.scale, right.scale))


def _integers(left: Integer, right: Integer) -> Integer | WideInteger:
    """Return the common type of two integers; WideInteger if one of 64 bits is too small."""
    if left.signed == right.signed:
        return Integer(max(left.bits, right.bits), left.signed)
    signed, unsigned = (left, right) if left.signed else (right, left)
    bits = max(signed.bits, 2 * unsigned.bits)
    return Integer(bits, True) if bits <= 64 else WIDE_INTEGER


def _wide_numbers(left: WideNumber, right: Integer | WideNumber) -> WideNumber | None:
    """Return the common type of integers of which one is wide; None beyond 256 bits."""
    if left.signed == right.signed:
        return wide_number(max(left.bits, right.bits), left.signed)
    signed, unsigned = (left, right) if left.signed else (right, left)
    bits = max(signed.bits, 2 * unsigned.bits)
    return wide_number(max(bits, 128), True) if bits <= 256 else None


def wide_arithmetic_type(operation: str, left: DataType, right: DataType) -> DataType | None:
    """Return the result type of an operation on two integers of which one is wide.

    None for other operands, which ClickHouse refuses beside a wide integer."""
    if not all(isinstance(t, Integer | WideNumber) for t in (left, right)):
        return None
    assert isinstance(left, Integer | WideNumber)
    assert isinstance(right, Integer | WideNumber)
    signed = left.signed or right.signed or operation == "minus"
    bits = max(left.bits, right.bits)
    if operation == "divide":
        return FLOAT64
    if operation == "intDiv":
        bits = left.bits
    elif operation == "modulo":
        signed = left.signed
        bits = min(2 * right.bits, 256) if left.signed and right.bits < 64 else right.bits
    elif operation == "positiveModulo":
        signed, bits = False, right.bits
    return Integer(bits, signed) if bits <= 64 else wide_number(bits, signed)


def decimal_precision(digits: int) -> int:
    """Return the least of 9, 18, 38, 76 that holds so many digits.

    Raise DecimalOverflow beyond 76.
    """
    for precision in DECIMAL_DIGITS:
        if digits <= precision:
            return precision
    raise DecimalOverflow(f"A decimal of {digits} digits is needed, 76 is the most.")


def as_number(data_type: DataType) -> DataType:
    """Return the number type that stands for a type in arithmetic: UInt8 for Bool, UInt32 for IPv4, any other type
    unchanged."""
    if isinstance(data_type, IPv4):
        return UINT32
    return UINT8 if isinstance(data_type, Boolean) else data_type


def _construct(signed: bool, floating: bool, size: int) -> DataType:
    """Return the number type of `size` bytes; sizes above 8 count as 8. With `floating` it is Float32 up to 4 bytes,
    else Float64."""
    if floating:
        return FLOAT32 if size <= 4 else FLOAT64
    return Integer(min(size, 8) * 8, signed)


def _traits(data_type: DataType) -> tuple[bool, bool, int]:
    """Return (signed, floating, bytes) of a number type."""
    if isinstance(data_type, Float):
        return True, True, data_type.bits // 8
    assert isinstance(data_type, Integer)
    return data_type.signed, False, data_type.bits // 8


def arithmetic_type(operation: str, left: DataType, right: DataType) -> DataType:
    """Return the result type of an operation on two numbers that are not decimals.

    As `NumberTraits`: plus and multiply widen by one step, minus also becomes signed, `/` is
    Float64, intDiv keeps the dividend's width, modulo takes the divisor's.
    """
    (signed_a, float_a, size_a), (signed_b, float_b, size_b) = _traits(left), _traits(right)
    signed, floating = signed_a or signed_b, float_a or float_b
    match operation:
        case "plus" | "multiply":
            return _construct(signed, floating, 2 * max(size_a, size_b))
        case "minus":
            return _construct(True, floating, 2 * max(size_a, size_b))
        case "divide":
            return FLOAT64
        case "intDiv":
            return _construct(signed, False, size_a)
        case "modulo":
            if floating:
                return FLOAT64
            return _construct(signed_a, False, 2 * size_b if signed_a else size_b)
        case "positiveModulo":
            return FLOAT64 if floating else _construct(False, False, size_b)
        case "bit":
            return _construct(signed, False, max(size_a, size_b))
        case _:
            raise AssertionError(operation)


def sum_type(data_type: DataType) -> DataType:
    """Return the type of sum() over a type: 64-bit integer, Float64, or Decimal(38 or 76, S). Raises NoCommonType for
    types that are not numbers."""
    match data_type:
        case Integer(signed=True) | Enum():
            return INT64
        case Integer() | Boolean():
            return UINT64
        case Float():
            return FLOAT64
        case WideNumber():
            return data_type
        case WideInteger():
            return WIDE_SUM
        case Decimal(precision, scale):
            return Decimal(38 if precision <= 38 else 76, scale)
        case _:
            raise NoCommonType(f"{data_type} has no sum.")


def low_cardinality_result(
    result: DataType, types: Sequence[DataType], constant: Sequence[bool]
) -> DataType:
    """Return LowCardinality(result) where that is possible and either the only argument that is not constant is a
    LowCardinality, or all arguments are constants and one is. Otherwise return `result` unchanged."""
    varying = [t for t, fixed in zip(types, constant, strict=True) if not fixed]
    hinted = len(varying) == 1 and isinstance(varying[0], LowCardinality)
    hinted |= not varying and any(isinstance(t, LowCardinality) for t in types)
    holds = isinstance(plain(result), IN_DICTIONARIES)
    wrap = hinted and holds and not isinstance(result, LowCardinality)
    return LowCardinality(result) if wrap else result


def is_decimal_beside_float(types: Sequence[DataType]) -> bool:
    """Return whether the types are two, a Decimal and a Float, neither of them Nullable: greatest and least compare
    them as Float64."""
    if len(types) != 2 or any(is_nullable(t) for t in types):
        return False
    kinds = [plain(t) for t in types]
    return any(
        type(one) is Decimal and isinstance(other, Float) for one, other in (kinds, kinds[::-1])
    )
