"""Expressions whose values may be much larger than what they read: repeat(s, 1000), range(n).

The rows of a batch are bounded by the bytes of its columns. A Project computes such expressions for as many rows at
a time as its values have room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    LambdaFunction,
    ScalarSubquery,
    columns_of,
    inputs_of,
    walk,
)
from olapdb.plan.nodes import Node
from olapdb.plan.tree import all_expressions
from olapdb.types import DataType, FixedString, plain

_SHORT_BYTES = 64
"""Values of so many bytes are about as large as what other functions make of a row."""
_LONG_TEXT_BYTES = 256
_LONG_ARRAY_VALUES = 32
_COMPUTED_COLUMNS_MAX = 24
"""A batch of more computed texts or arrays than this may be much larger than the columns that they read."""
_WIDENING = frozenset(
    {
        "arrayFold",
        "arrayResize",
        "arrayShingles",
        "arrayWithConstant",
        "bitmapToArray",
        "geohashesInBox",
        "h3HexRing",
        "h3Line",
        "h3ToChildren",
        "h3kRing",
        "leftPad",
        "leftPadUTF8",
        "ngrams",
        "randomFixedString",
        "randomPrintableASCII",
        "randomString",
        "randomStringUTF8",
        "range",
        "repeat",
        "replicate",
        "rightPad",
        "rightPadUTF8",
        "space",
        "sparseGrams",
        "sparseGramsHashes",
        "timeSeriesRange",
        "timeSlots",
    }
)
_SIZES = {
    "arrayResize": 1,
    "arrayWithConstant": 0,
    "leftPad": 1,
    "leftPadUTF8": 1,
    "randomFixedString": 0,
    "randomPrintableASCII": 0,
    "randomString": 0,
    "randomStringUTF8": 0,
    "repeat": 1,
    "rightPad": 1,
    "rightPadUTF8": 1,
    "space": 0,
}
"""The position of the argument that says how large the value is; of `repeat` how often the text is in it."""
OF_BLOCKS = frozenset(
    {
        "blockNumber",
        "blockSize",
        "neighbor",
        "rowNumberInBlock",
        "runningAccumulate",
        "runningConcurrency",
        "runningDifference",
        "runningDifferenceStartingWithFirstValue",
        "sleep",
    }
)
_REPEATS_MAX = 4
_REPLACING = frozenset({"replaceAll", "replaceOne", "replaceRegexpAll", "replaceRegexpOne"})


def may_be_wide(expressions: Sequence[Expression]) -> bool:
    """Return whether the values of expressions together may be much larger than the columns that they read."""
    computed = sum(
        1 for e in expressions if not isinstance(e, ColumnRef) and varies_in_size(e.type)
    )
    return computed > _COMPUTED_COLUMNS_MAX or any(map(may_widen, expressions))


def may_widen(expression: Expression) -> bool:
    """Return whether a value in the expression may be much larger than the columns that it reads."""
    if isinstance(expression, ColumnRef):
        return False
    return _is_long(expression) or any(map(_widens, walk(expression)))


def reads_blocks(root: Node) -> bool:
    """Return whether the plan has a call whose results depend on how its rows are cut into batches."""
    return any(isinstance(e, Call) and e.name in OF_BLOCKS for e in all_expressions(root))


def _widens(part: Expression) -> bool:
    """Return whether a part of an expression may make values much larger than its arguments."""
    match part:
        case Call(name=name, arguments=arguments):
            if _is_long_fixed(part.type):
                return True
            if name in _REPLACING:
                return not _is_short_text(arguments[-1])
            if name in _WIDENING:
                return not _has_short_size(name, arguments)
            if _is_of_subquery(part):  # computed once
                return False
            is_nested = pa.types.is_nested(part.type.arrow)
            return varies_in_size(part.type) and any(
                _is_long(a) and (is_nested or not pa.types.is_nested(a.type.arrow))
                for a in arguments
            )
        case Cast():
            return _is_long_fixed(part.type)
        case LambdaFunction(name=name, body=body, arguments=arguments):
            # Each row has elements of its own, and each of these a copy of the columns of its row.
            is_repeated = any(map(_is_long, arguments)) and bool(columns_of(body))
            return name in _WIDENING or is_repeated or any(True for _ in _copied(body))
        case _:
            return False


def _copied(body: Expression) -> Iterable[ColumnRef]:
    """Yield the columns of varying size that a lambda's body reads from the row of its element."""
    if columns_of(body):
        for part in walk(body):
            if isinstance(part, ColumnRef) and varies_in_size(part.type):
                yield part


def _has_short_size(name: str, arguments: Sequence[Expression]) -> bool:
    """Return whether a constant argument says that the values of a call are small."""
    at = _SIZES.get(name)
    if at is None or at >= len(arguments):
        return False
    size = arguments[at]
    if not isinstance(size, Constant) or not pa.types.is_integer(size.value.type):
        return False
    number = size.value.as_py()
    return number is not None and number <= (_REPEATS_MAX if name == "repeat" else _SHORT_BYTES)


def _is_short_text(expression: Expression) -> bool:
    """Return whether an expression is a short constant text."""
    return isinstance(expression, Constant) and _text_bytes(expression) <= _SHORT_BYTES


def _is_long(expression: Expression) -> bool:
    """Return whether an expression is a long constant text or array, which each row gets, or the text or array of a
    scalar subquery, which may be long."""
    if _is_of_subquery(expression):
        return True
    if not isinstance(expression, Constant):
        return False
    value = expression.value
    if pa.types.is_list(value.type) or pa.types.is_map(value.type):
        return value.is_valid and len(value.values) > _LONG_ARRAY_VALUES
    return _text_bytes(expression) > _LONG_TEXT_BYTES


def _is_of_subquery(expression: Expression) -> bool:
    """Return whether an expression is a text or array that all rows have in common, made of a scalar subquery."""
    return (
        varies_in_size(expression.type)
        and any(isinstance(part, ScalarSubquery) for part in walk(expression))
        and not inputs_of(expression)
    )


def _text_bytes(constant: Constant) -> int:
    """Return the bytes of a constant text; 0 for NULL and other values."""
    value = constant.value
    is_text = pa.types.is_string(value.type) or pa.types.is_binary(value.type)
    return value.as_buffer().size if is_text and value.is_valid else 0


def _is_long_fixed(data_type: DataType) -> bool:
    """Return whether the type is a FixedString of many bytes."""
    inner = plain(data_type)
    return isinstance(inner, FixedString) and inner.length > _SHORT_BYTES


def varies_in_size(data_type: DataType) -> bool:
    """Return whether values of the type may have any number of bytes."""
    arrow = data_type.arrow
    return bool(pa.types.is_string(arrow) or pa.types.is_binary(arrow) or pa.types.is_nested(arrow))
