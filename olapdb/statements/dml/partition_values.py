"""The values of `PARTITION value` and `PARTITION ID 'x'`, read strictly.

A value that the key cannot hold names no partition, so no statement drops rows by mistake: -3 is
not 4294967293, 5.5 is not 5.
"""

from __future__ import annotations

import decimal
import re
from typing import TYPE_CHECKING

from olapdb import errors, types
from olapdb.bind import bind_constant, bind_value
from olapdb.functions.kernels.calendar import DATE32_RANGE
from olapdb.sql import nodes

if TYPE_CHECKING:
    import pyarrow as pa

    from olapdb.bind import BindScope
    from olapdb.plan.expressions import Constant

_NUMBERS = (types.Integer, types.Float, types.Decimal, types.Boolean)
_OPERATORS = frozenset({"plus", "minus", "multiply", "divide", "modulo", "negate"})
_DATE_CHARACTERS = len("2024-01-05")


def partition_id_of(reference: nodes.PartitionReference) -> str:
    """Return the id of `PARTITION ID 'x'`. Raise InvalidPartitionValue if no partition can have
    it."""
    partition_id = str(reference.id)
    if not re.fullmatch(r"[A-Za-z0-9-]+", partition_id):
        raise errors.InvalidPartitionValue(
            f"{partition_id!r} is no partition id."
            if partition_id
            else "The partition id is empty.",
            hint="system.parts.partition_id has them; PARTITION without ID takes a value.",
            position=reference.position,
        )
    return partition_id


def partition_value(given: nodes.Expression, key: types.DataType, scope: BindScope) -> pa.Scalar:
    """Return the value that the statement gives for one element of a partition key, in its type.

    `key` is the element's type. Raises TypeMismatch for a value of another kind, ArgumentOutOfBound
    for a number that the type cannot represent, CannotParseDate or CannotParseDateTime for a text
    that is no date or time.
    """
    value = bind_value(given, scope)
    _check_kind(given, value, key)
    _check_number(given, value, types.plain(key))
    try:
        return bind_constant(given, key, scope, lossy=True)  # lossy: nothing is stored
    except (errors.CannotParseDate, errors.CannotParseDateTime):
        raise
    except errors.DataError as error:
        raise errors.TypeMismatch(error.message, position=given.position) from error


def refuse_arithmetic(given: nodes.Expression) -> None:
    """Raise SyntaxError for arithmetic on numbers: 2024-01-01 is a date without its quotes, not the
    partition 2022."""
    elements = given.elements if isinstance(given, nodes.TupleLiteral) else (given,)
    if any(isinstance(element, nodes.Function) and _is_arithmetic(element) for element in elements):
        raise errors.SyntaxError(
            "A partition is named by a value, not by arithmetic on numbers.",
            hint="Put a date in quotes: '2024-01-01'.",
            position=given.position,
        )


def _is_arithmetic(given: nodes.Expression) -> bool:
    """Return whether the expression contains only numbers and + - * / %."""
    if isinstance(given, nodes.Function) and given.name in _OPERATORS:
        return all(_is_arithmetic(argument) for argument in given.arguments)
    return isinstance(given, nodes.Literal) and isinstance(given.value, int | float)


def _check_kind(given: nodes.Expression, value: Constant, key: types.DataType) -> None:
    """Raise TypeMismatch if the value is of another kind than the key: an array, map or tuple, a
    text with a time of day for a date, a float for a date or time."""
    kind = types.plain(value.type)
    text = value.value.as_py()
    is_wrong_kind = isinstance(kind, types.Array | types.Map | types.Tuple) and type(
        kind
    ) is not type(types.plain(key))
    if isinstance(types.plain(key), types.Date | types.Date32) and isinstance(text, str):
        is_wrong_kind = len(text) > _DATE_CHARACTERS
    if isinstance(types.plain(key), types.Date | types.Date32 | types.DateTime | types.DateTime64):
        is_wrong_kind = is_wrong_kind or isinstance(kind, types.Float)
    if is_wrong_kind:
        raise errors.TypeMismatch(
            f"A {types.plain(key)} of the partition key cannot be {text!r}.",
            position=given.position,
        )


def _check_number(given: nodes.Expression, value: Constant, key: types.DataType) -> None:
    """Raise ArgumentOutOfBound for a number that is not whole, or that the type cannot
    represent."""
    number, bounds = _numeric_value(value, key), _type_range(key)
    if number is None or bounds is None:
        return
    if number != number or number % 1 or not bounds[0] <= number <= bounds[1]:
        raise errors.ArgumentOutOfBound(
            f"Cannot convert value {number}: it cannot be represented as {key}.",
            hint="system.parts.partition has the values there are.",
            position=given.position,
        )


def _numeric_value(value: Constant, key: types.DataType) -> int | float | decimal.Decimal | None:
    """Return the given number, or the number that a text of digits has for an integer key; None for
    other values."""
    number = value.value.as_py()
    if isinstance(number, str) and isinstance(key, types.Integer):
        sign = "[+-]?" if key.signed else "[+]?"
        return int(number) if re.fullmatch(sign + "[0-9]+", number) else None
    return number if isinstance(types.plain(value.type), _NUMBERS) else None


def _type_range(key: types.DataType) -> tuple[int, int] | None:
    """Return the least and the largest number that the type represents; None if it has no such
    bounds."""
    match key:
        case types.Integer():
            return key.minimum, key.maximum
        case types.Boolean():
            return 0, 1
        case types.Date():
            return 0, (1 << 16) - 1
        case types.Date32():
            return DATE32_RANGE
        case types.DateTime():
            return 0, (1 << 32) - 1
        case _:
            return None
