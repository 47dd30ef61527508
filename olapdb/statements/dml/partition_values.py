"""What `PARTITION value` and `PARTITION ID 'x'` say, read strictly: a value that the key cannot
hold names no partition, so nothing is dropped that was not meant (-3 is not 4294967293, 5.5 not 5)."""

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
    """The id of `PARTITION ID 'x'`. InvalidPartitionValue where no partition can have it."""
    given = str(reference.id)
    if not re.fullmatch(r"[A-Za-z0-9-]+", given):
        raise errors.InvalidPartitionValue(
            f"{given!r} is no partition id." if given else "The partition id is empty.",
            hint="system.parts.partition_id has them; PARTITION without ID takes a value.",
            position=reference.position,
        )
    return given


def partition_value(given: nodes.Expression, key: types.DataType, scope: BindScope) -> pa.Scalar:
    """The value of one element of a partition key, in its type.

    Raises TypeMismatch where it is of another kind, ArgumentOutOfBound where it is a number that
    the type does not have."""

    value = bind_value(given, scope)
    _check_kind(given, value, key)
    _check_number(given, value, types.plain(key))
    try:
        return bind_constant(given, key, scope, lossy=True)  # it names a partition, stores nothing
    except (errors.CannotParseDate, errors.CannotParseDateTime):
        raise
    except errors.DataError as error:
        raise errors.TypeMismatch(error.message, position=given.position) from error


def refuse_arithmetic(given: nodes.Expression) -> None:
    """SyntaxError for arithmetic on numbers: 2024-01-01 is a date without its quotes, not the
    partition 2022."""
    elements = given.elements if isinstance(given, nodes.TupleLiteral) else (given,)
    if any(isinstance(one, nodes.Function) and _is_arithmetic(one) for one in elements):
        raise errors.SyntaxError(
            "A partition is named by a value, not by arithmetic on numbers.",
            hint="Put a date in quotes: '2024-01-01'.",
            position=given.position,
        )


def _is_arithmetic(given: nodes.Expression) -> bool:
    """Whether it is made of numbers and + - * / % alone."""
    if isinstance(given, nodes.Function) and given.name in _OPERATORS:
        return all(_is_arithmetic(one) for one in given.arguments)
    return isinstance(given, nodes.Literal) and isinstance(given.value, int | float)


def _check_kind(given: nodes.Expression, value: Constant, key: types.DataType) -> None:
    kind = types.plain(value.type)
    text = value.value.as_py()
    wrong = isinstance(kind, types.Array | types.Map | types.Tuple) and type(kind) is not type(
        types.plain(key)
    )
    if isinstance(types.plain(key), types.Date | types.Date32) and isinstance(text, str):
        wrong = len(text) > _DATE_CHARACTERS
    if isinstance(types.plain(key), types.Date | types.Date32 | types.DateTime | types.DateTime64):
        wrong = wrong or isinstance(kind, types.Float)
    if wrong:
        raise errors.TypeMismatch(
            f"A {types.plain(key)} of the partition key cannot be {text!r}.",
            position=given.position,
        )


def _check_number(given: nodes.Expression, value: Constant, key: types.DataType) -> None:
    number, bounds = _number(value, key), _bounds(key)
    if number is None or bounds is None:
        return
    if number != number or number % 1 or not bounds[0] <= number <= bounds[1]:
        raise errors.ArgumentOutOfBound(
            f"Cannot convert value {number}: it cannot be represented as {key}.",
            hint="system.parts.partition has the values there are.",
            position=given.position,
        )


def _number(value: Constant, key: types.DataType) -> int | float | decimal.Decimal | None:
    """The number that is given, by itself or as the text of a whole one; None for anything else."""
    held = value.value.as_py()
    if isinstance(held, str) and isinstance(key, types.Integer):
        sign = "[+-]?" if key.signed else "[+]?"
        return int(held) if re.fullmatch(sign + "[0-9]+", held) else None
    return held if isinstance(types.plain(value.type), _NUMBERS) else None


def _bounds(key: types.DataType) -> tuple[int, int] | None:
    """The least and the largest number that stands for a value of the type; None where any does."""
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
