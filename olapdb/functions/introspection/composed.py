"""Small functions that are compositions of others: dates and identifiers from digits and bits,
changes of arrays, maps and tuples."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalTypeOfArgument, ZeroIndex
from olapdb.functions.base import Column, Environment
from olapdb.functions.composition import Term, call, compose, literal
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.supertypes import NULL_TYPE
from olapdb.functions.scalar import ScalarDefinition
from olapdb.types import (
    INT64,
    STRING,
    UINT8,
    UINT64,
    Array,
    Boolean,
    DateTime,
    DateTime64,
    FixedString,
    Integer,
    Map,
    String,
    Tuple,
    make_nullable,
    plain,
)

_SNOWFLAKE_SHIFT = 22
"""Bits of a Snowflake ID below its milliseconds: machine and sequence."""


def _require(name: str, part: Term, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise IllegalTypeOfArgument unless the part's type is of `kinds`; `wanted` names the kinds in the error."""
    if not isinstance(plain(part.type), kinds):
        raise IllegalTypeOfArgument(
            f"Illegal type {part.type} of argument of function {name}: {wanted} expected."
        )


# --- dates and times


def _id_of(milliseconds: Term, *epoch: Term) -> Term:
    """Compose the smallest Snowflake ID for a time in milliseconds since 1970; `epoch` is subtracted first."""
    since = milliseconds
    if epoch:
        since = call("minus", milliseconds, call("toInt64", epoch[0]))
    shifted = call("bitShiftLeft", call("toUInt64", since), literal(_SNOWFLAKE_SHIFT, UINT8))
    return call("toUInt64", shifted)


def _id_of_seconds(moment: Term, *epoch: Term) -> Term:
    """Compose the smallest Snowflake ID for a DateTime."""
    _require("dateTimeToSnowflakeID", moment, DateTime, "a DateTime")
    seconds = call("toInt64", call("toUnixTimestamp", moment))
    return _id_of(call("multiply", seconds, literal(1000, INT64)), *epoch)


def _id_of_fraction(moment: Term, *epoch: Term) -> Term:
    """Compose the smallest Snowflake ID for a DateTime64."""
    _require("dateTime64ToSnowflakeID", moment, DateTime64, "a DateTime64")
    return _id_of(call("toUnixTimestamp64Milli", moment), *epoch)


def _milliseconds_of(name: str, number: Term, epoch: tuple[Term, ...]) -> Term:
    """Compose the milliseconds since 1970 that a Snowflake ID contains."""
    if plain(number.type) != UINT64:
        raise IllegalTypeOfArgument(
            f"Illegal type {number.type} of argument of function {name}: a UInt64 expected."
        )
    since = call("bitShiftRight", call("toUInt64", number), literal(_SNOWFLAKE_SHIFT, UINT8))
    milliseconds = call("toInt64", since)
    return call("plus", milliseconds, call("toInt64", epoch[0])) if epoch else milliseconds


def _seconds_of_id(number: Term, *rest: Term) -> Term:
    """Compose the DateTime of a Snowflake ID; epoch and zone may follow as arguments."""
    milliseconds = _milliseconds_of("snowflakeIDToDateTime", number, rest[:1])
    seconds = call("intDiv", milliseconds, literal(1000, INT64))
    return call("toDateTime", seconds, *rest[1:])


def _fraction_of_id(number: Term, *rest: Term) -> Term:
    """Compose the DateTime64(3) of a Snowflake ID; epoch and zone may follow as arguments."""
    milliseconds = _milliseconds_of("snowflakeIDToDateTime64", number, rest[:1])
    return call("fromUnixTimestamp64Milli", milliseconds, *rest[1:])


# --- bits, arrays, maps, tuples, texts


def _not_has(array: Term, value: Term) -> Term:
    """Return whether an array lacks a value."""
    return call("not", call("has", array, value))


def _null() -> Term:
    """Return a NULL without a type."""
    return literal(None, NULL_TYPE)


def _zip_unaligned(*arrays: Term) -> Term:
    """Compose arrayZipUnaligned: tuples of the elements at equal positions; NULL where an array is shorter. Raises
    IllegalTypeOfArgument."""
    sizes = [call("length", part) for part in arrays]
    longest = call("greatest", *sizes) if len(sizes) > 1 else sizes[0]
    wide = []
    for part in arrays:
        container = plain(part.type)
        if not isinstance(container, Array) or isinstance(container.inner, Array | Map):
            raise IllegalTypeOfArgument(
                f"Illegal type {part.type} of argument of function arrayZipUnaligned: an Array whose"
                " elements may be NULL expected."
            )
        nullable = Array(make_nullable(container.inner))
        wide.append(call("CAST", part, literal(nullable.name, STRING)))
    return call("arrayZip", *(call("arrayResize", part, longest, _null()) for part in wide))


def _map_concat(*maps: Term) -> Term:
    """Return the entries of all maps, one after the other."""
    for part in maps:
        _require("mapConcat", part, Map, "a Map")
    keys = call("arrayConcat", *(call("mapKeys", part) for part in maps))
    values = call("arrayConcat", *(call("mapValues", part) for part in maps))
    return call("mapFromArrays", keys, values)


def _tuple_concat(*tuples: Term) -> Term:
    """Return one tuple of the elements of all."""
    elements = []
    for part in tuples:
        _require("tupleConcat", part, Tuple, "a Tuple")
        elements += _elements(part)
    return call("tuple", *elements)


def _elements(part: Term) -> list[Term]:
    """Compose the list of a tuple's elements."""
    kind = plain(part.type)
    assert isinstance(kind, Tuple)
    return [call("tupleElement", part, literal(i + 1, UINT8)) for i in range(len(kind.elements))]


def _tuple_hamming(left: Term, right: Term) -> Term:
    """Compose the number of positions at which two tuples of equal size differ. Raises IllegalTypeOfArgument."""
    for part in (left, right):
        _require("tupleHammingDistance", part, Tuple, "a Tuple")
    lefts, rights = _elements(left), _elements(right)
    if len(lefts) != len(rights):
        raise IllegalTypeOfArgument("The tuples of tupleHammingDistance have one size.")
    differences = [call("notEquals", a, b) for a, b in zip(lefts, rights, strict=True)]
    return functools.reduce(lambda total, difference: call("plus", total, difference), differences)


def _cut_to_zero(text: Term) -> Term:
    """Compose the text up to its first zero byte, excluded."""
    _require("toStringCutToZero", text, (String, FixedString), "a String or FixedString")
    text = call("toString", text)
    end = call("position", text, literal("\0", STRING))
    head = call("substring", text, literal(1, UINT8), call("minus", end, literal(1, UINT8)))
    return call("if", call("equals", end, literal(0, UINT8)), text, head)


def _json_array_length(text: Term) -> Term:
    """Return the number of elements of a JSON array; NULL for any other text."""
    _require("JSONArrayLength", text, String, "a String")
    is_array = call("equals", call("JSONType", text), literal("Array", STRING))
    size = call("toNullable", call("JSONLength", text))
    return call("if", is_array, size, _null())


def _digits(number: Term, offset: Term, *length: Term) -> Term:
    """Compose the digits of an integer from `offset` on, at most `length`, counted as by substring()."""
    for part in (number, offset, *length):
        _require("digits", part, (Integer, Boolean), "an integer")
    text = call("toString", call("abs", number))
    first, *counts = (
        call("toUInt8", part) if isinstance(plain(part.type), Boolean) else part
        for part in (offset, *length)
    )
    places = [_place(first, from_one=True), *map(_place, counts)]
    return call("toUInt64OrZero", call("substring", text, *places))


def _place(part: Term, *, from_one: bool = False) -> Term:
    """Compose a position in a text, at most 2^62; with `from_one` the value 0 raises ZeroIndex."""

    def compute(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Evaluate the position, capped at 2^62; with `from_one` raise ZeroIndex for a 0."""
        column = part.compute(values, rows, environment)
        if from_one and pc.any(pc.equal(columns.single(column), pa.scalar(0, column.type))).as_py():
            raise ZeroIndex("The digits of a number are counted from 1.")
        if pa.types.is_uint64(column.type):
            column = pc.min_element_wise(column, pa.scalar(2**62, pa.uint64()), skip_nulls=False)
        return column

    return Term(part.type, None, compute, part.volatility)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    compose("toDateTime32", lambda *parts: call("toDateTime", *parts), count=(1, 2)),
    compose("dateTimeToSnowflakeID", _id_of_seconds, count=(1, 2)),
    compose("dateTime64ToSnowflakeID", _id_of_fraction, count=(1, 2)),
    compose("snowflakeIDToDateTime", _seconds_of_id, count=(1, 3)),
    compose("snowflakeIDToDateTime64", _fraction_of_id, count=(1, 3)),
    compose("digits", _digits, count=(2, 3)),
    compose("notHas", _not_has, count=2),
    compose("arrayZipUnaligned", _zip_unaligned, count=(1, None)),
    compose("indexOfAssumeSorted", lambda a, v: call("indexOf", a, v), count=2),
    compose("mapConcat", _map_concat, count=(1, None)),
    compose("tupleConcat", _tuple_concat, count=(1, None)),
    compose("tupleHammingDistance", _tuple_hamming, count=2),
    compose("toStringCutToZero", _cut_to_zero, count=1),
    compose(
        "JSONArrayLength",
        _json_array_length,
        count=1,
        aliases=("JSON_ARRAY_LENGTH",),
        insensitive=True,
    ),
)
