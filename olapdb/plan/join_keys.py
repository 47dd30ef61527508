"""The type at which a hash join compares two keys."""

from __future__ import annotations

from olapdb import functions
from olapdb.errors import NoCommonType
from olapdb.functions.base import Argument
from olapdb.functions.numeric.comparison import comparison_type
from olapdb.plan.expressions import Expression
from olapdb.types import DataType, ExactFloat, is_nullable, is_number, make_nullable, plain


def key_type(left: DataType, right: DataType) -> DataType:
    """Return the type at which to compare two keys.

    Numbers without a common type (Int64 and UInt64) get one that compares them exactly. Raises
    NoCommonType for other types."""
    try:
        common = left if left == right else functions.comparable_type([left, right])
    except NoCommonType:
        if not (is_number(left) and is_number(right)):
            raise
        common = None
    if common is not None and not isinstance(plain(common), ExactFloat):
        return common
    return comparison_type("equals", Argument(left), Argument(right))


def with_nulls_of(expression: Expression, target: DataType) -> DataType:
    """Return the plain `target`, nullable if the expression is nullable."""
    return make_nullable(plain(target)) if is_nullable(expression.type) else plain(target)
