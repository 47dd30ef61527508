"""What `PARTITION value` and `PARTITION ID 'x'` say, read strictly: a value that the key cannot
hold names no partition, so nothing is dropped that was not meant (-3 is not 4294967293, 5.5 not 5)."""

from __future__ import annotations

import decimal
import re
from typing import TYPE_CHECKING

from olapdb.errors import (
    ArgumentOutOfBound,
    CannotParseDate,
    CannotParseDateTime,
    DataError,
    InvalidPartitionValue,
    SyntaxError,
    TypeMismatch,
)
from olapdb.functions.casts.times import DATE32_RANGE
from olapdb.sql import nodes
from olapdb.types import (
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
    Map,
    Tuple,
    plain,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from olapdb.bind import BindScope
    from olapdb.plan.expressions import Constant

_NUMBERS = (Integer, Float, Decimal, Boolean)
_OPERATORS = frozenset({"plus", "minus", "multiply", "divide", "modulo", "negate"})
_DATE_CHARACTERS = len("2024-01-05")


def partition_id_of(reference: nodes.PartitionReference) -> str:
    """The id of `PARTITION ID 'x'`. InvalidPartitionValue where no partition can have it."""
    given = str(reference.id)
    if not re.fullmatch(r"[A-Za-z0-9-]+", given):
        raise InvalidPartitionValue(
            f"{given!r} is no partition id." if given else "The partition id is empty.",
            hint="system.parts.partition_id has them; PARTITION without ID takes a value.",
            position=reference.position,
        )
    return given


def partition_value(given: nodes.Expression, key: DataType, scope: BindScope) -> pa.Scalar:
    """The value of one element of a partition key, in its type.

    Raises TypeMismatch where it is of another kind, ArgumentOutOfBound where it is a number that
    the type does not have."""
    from olapdb.bind import bind_constant, bind_value

    value = bind_value(given, scope)
    _check_kind(given, value, key)
    _check_number(given, value, plain(key))
    try:
        return bind_constant(given, key, scope, lossy=True)  # it names a partition, stores nothing
    except (CannotParseDate, CannotParseDateTime):
        raise
    except DataError as error:
        raise TypeMismatch(error.message, position=given.position) from error


def refuse_arithmetic(given: nodes.Expression) -> None:
    """SyntaxError for arithmetic on numbers: 2024-01-01 is a date without its quotes, not the
    partition 2022."""
    elements = given.elements if isinstance(given, nodes.TupleLiteral) else (given,)
    if any(isinstance(one, nodes.Function) and _is_arithmetic(one) for one in elements):
        raise SyntaxError(
            "A partition is named by a value, not by arithmetic on numbers.",
            hint="Put a date in quotes: '2024-01-01'.",
            position=given.position,
        )


def _is_arithmetic(given: nodes.Expression) -> bool:
    """Whether it is made of numbers and + - * / % alone."""
    if isinstance(given, nodes.Function) and given.name in _OPERATORS:
        return all(_is_arithmetic(one) for one in given.arguments)
    return isinstance(given, nodes.Literal) and isinstance(given.value, int | float)


def _check_kind(given: nodes.Expression, value: Constant, key: DataType) -> None:
    kind = plain(value.type)
    text = value.value.as_py()
    wrong = isinstance(kind, Array | Map | Tuple) and type(kind) is not type(plain(key))
    if isinstance(plain(key), Date | Date32) and isinstance(text, str):
        wrong = len(text) > _DATE_CHARACTERS
    if isinstance(plain(key), Date | Date32 | DateTime | DateTime64):
        wrong = wrong or isinstance(kind, Float)
    if wrong:
        raise TypeMismatch(
            f"A {plain(key)} of the partition key cannot be {text!r}.", position=given.position
        )


def _check_number(given: nodes.Expression, value: Constant, key: DataType) -> None:
    number, bounds = _number(value, key), _bounds(key)
    if number is None or bounds is None:
        return
    if number != number or number % 1 or not bounds[0] <= number <= bounds[1]:
        raise ArgumentOutOfBound(
            f"Cannot convert value {number}: it cannot be represented as {key}.",
            hint="system.parts.partition has the values there are.",
            position=given.position,
        )


def _number(value: Constant, key: DataType) -> int | float | decimal.Decimal | None:
    """The number that is given, by itself or as the text of a whole one; None for anything else."""
    held = value.value.as_py()
    if isinstance(held, str) and isinstance(key, Integer):
        sign = "[+-]?" if key.signed else "[+]?"
        return int(held) if re.fullmatch(sign + "[0-9]+", held) else None
    return held if isinstance(plain(value.type), _NUMBERS) else None


def _bounds(key: DataType) -> tuple[int, int] | None:
    """The least and the largest number that stands for a value of the type; None where any does."""
    match key:
        case Integer():
            return key.minimum, key.maximum
        case Boolean():
            return 0, 1
        case Date():
            return 0, (1 << 16) - 1
        case Date32():
            return DATE32_RANGE
        case DateTime():
            return 0, (1 << 32) - 1
        case _:
            return None
