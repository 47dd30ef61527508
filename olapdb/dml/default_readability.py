"""Checks that every row can be read through the defaults that an ALTER gives.

A part that lacks a column computes its DEFAULT at each read.  One row whose DEFAULT is NULL for a
column that is not Nullable, or does not convert, would make the whole table unreadable. So the
ALTER first evaluates the default on all rows, unless each of its functions is known to have a value
for every row.  Only then is the ALTER a commit of the catalog alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from olapdb import types
from olapdb.engine.column_defaults import DefaultColumn, DefaultColumns
from olapdb.errors import DataError
from olapdb.ingest.read_parts import read_pieces
from olapdb.ingest.trigger import TriggerContext
from olapdb.model.columns import lacks
from olapdb.model.part import Part
from olapdb.model.schema import Column, Table
from olapdb.plan.expressions import Call, Cast, ColumnRef, Constant, Expression, walk
from olapdb.runtime.cache import Cache

ROWS_AT_ONCE = 1_000_000
_DIVISIONS = ("intDiv", "modulo", "%", "positiveModulo")
_NEVER_FAILING_SUFFIXES = ("OrNull", "OrZero", "OrDefault")
_FAILING_FOR_DECIMALS = frozenset({"plus", "minus", "multiply", "negate", "abs"})
"""Arithmetic that wraps in integers and overflows in decimals."""
_FAILING_FOR_TEXT = frozenset(
    [f"to{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + ["toFloat32", "toFloat64", "toDate", "toDate32", "toDateTime", "toString"]
)
"""Conversions that fail for some texts alone."""
_NEVER_FAILING = frozenset(
    [
        "equals",
        "notEquals",
        "less",
        "lessOrEquals",
        "greater",
        "greaterOrEquals",
        "and",
        "or",
        "not",
        "xor",
        "if",
        "multiIf",
        "ifNull",
        "coalesce",
        "nullIf",
        "isNull",
        "isNotNull",
        "toNullable",
        "concat",
        "length",
        "empty",
        "notEmpty",
        "lower",
        "upper",
        "reverse",
        "tuple",
        "array",
        "map",
        "tupleElement",
        "divide",
        "cityHash64",
        "sipHash64",
        "xxHash64",
        "now",
        "today",
        "yesterday",
        "rand",
        "rand64",
        "generateUUIDv4",
        "serverUUID",
        "toYear",
        "toQuarter",
        "toMonth",
        "toDayOfYear",
        "toDayOfMonth",
        "toDayOfWeek",
        "toHour",
        "toMinute",
        "toSecond",
        "toYYYYMM",
        "toYYYYMMDD",
        "toStartOfYear",
        "toStartOfQuarter",
        "toStartOfMonth",
        "toMonday",
        "toStartOfDay",
        "toStartOfHour",
        "toStartOfMinute",
    ]
)
"""Functions that have a value for every row, whatever its arguments of the right types are."""


def check_readable(
    before: Table, after: Table, parts: Sequence[Part], context: TriggerContext, checked: set[str]
) -> bool:
    """Raise the DataError of the first row for which a column of `after` has no value.

    `checked` holds parts whose rows can all be read; the check adds the parts that it reads.
    Returns whether the answer depends on just these parts, because some default may fail.
    """
    changed = {c.name for c in after.columns if not _is_unchanged(c, before)}
    lacking_columns = [
        c for c in after.stored_columns if c.default and any(lacks(p, c) for p in parts)
    ]
    if not changed or not lacking_columns:
        return False
    context = replace(context, cache=Cache())  # `after` may never be committed
    defaults = DefaultColumns.of(after, context.snapshot, context.environment, context.cache)
    risky = [c for c in lacking_columns if _may_fail(c, defaults, changed)]
    for part in parts if risky else ():
        names = [c.name for c in risky if lacks(part, c)]
        if not names or _checked_entry(part) in checked:
            continue
        try:
            for _ in read_pieces(context, after, part, ROWS_AT_ONCE, names):
                context.refuse_cancelled()
        except DataError as error:
            raise type(error)(
                f"ALTER TABLE {after.database}.{after.name}: a row of part {part.name} has no value"
                f" of its own for a new column. {error.message}",
                hint="Nothing was changed. UPDATE or DELETE such rows first, or give a DEFAULT that"
                " every row has: ifNull(…, …), toInt64OrZero(…), if(…).",
            ) from error
        checked.add(_checked_entry(part))
    return bool(risky)


def may_not_convert(before: types.DataType, after: types.DataType) -> bool:
    """Return whether some value of the old type has no value of the new one, NULL apart. Integers and
    floats wrap, as in CAST; a Decimal beyond an integer's range does not."""
    old, new = types.plain(before), types.plain(after)
    if old == new or isinstance(new, types.String):
        return False
    wraps = isinstance(old, types.Integer | types.Float) and isinstance(new, types.Integer)
    becomes_float = isinstance(new, types.Float) and isinstance(
        old, types.Integer | types.Float | types.Decimal
    )
    return not (wraps or becomes_float)


def _checked_entry(part: Part) -> str:
    """Return the entry by which the set of checked parts says that this part's defaults were read."""
    return f"defaults of {part.id}"


def _is_unchanged(column: Column, before: Table) -> bool:
    """Return whether `before` has this column by name, with the same id, type and default."""
    old = before.column(column.name)
    return old is not None and (old.id, old.type, old.default) == (
        column.id,
        column.type,
        column.default,
    )


def _may_fail(column: Column, defaults: DefaultColumns, changed: set[str]) -> bool:
    """Return whether the ALTER changes an input of the column's default that may fail for some
    row."""
    needed = defaults.needed_for([column.name], ())
    return bool(needed & changed) and any(
        _default_may_fail(default) for default in defaults.columns if default.name in needed
    )


def _default_may_fail(default: DefaultColumn) -> bool:
    """Return whether the default's expression or its conversion may fail for some row."""
    if default.expression is None:
        return False
    return _conversion_may_fail(default.expression.type, default.type) or any(
        _expression_may_fail(node) for node in walk(default.expression)
    )


def _conversion_may_fail(before: types.DataType, after: types.DataType) -> bool:
    """Return whether a value can fail to convert: a NULL without a place, or a lossy type."""
    loses_null = types.is_nullable(before) and not types.is_nullable(after)
    return loses_null or may_not_convert(before, after)


def _expression_may_fail(expression: object) -> bool:
    """Return whether this node of an expression may fail for some row; its children are not
    visited. Only nodes that are known to give a value for every row cannot."""
    match expression:
        case Constant() | ColumnRef():
            return False
        case Cast(type=target, argument=argument):
            return _conversion_may_fail(argument.type, target)
        case Call(name=name, arguments=(_, divisor)) if name in _DIVISIONS:
            return not (isinstance(divisor, Constant) and divisor.value.as_py())
        case Call(name=name) if name in _NEVER_FAILING or name.endswith(_NEVER_FAILING_SUFFIXES):
            return False
        case Call(name=name, arguments=arguments) if name in _FAILING_FOR_TEXT:
            return _parses_text(arguments, expression.type)
        case Call(name=name) if name in _FAILING_FOR_DECIMALS:
            return isinstance(types.plain(expression.type), types.Decimal)
        case _:
            return True


def _parses_text(arguments: Iterable[Expression], result: types.DataType) -> bool:
    """Return whether a function parses text into another type."""
    is_text = any(isinstance(types.plain(argument.type), types.String) for argument in arguments)
    return is_text and not isinstance(types.plain(result), types.String)
