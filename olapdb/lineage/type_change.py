"""Type changes of a source column that keep the result of a view.

A wider type holds the same values, but an expression may give another result: `ts` in another time
zone is another text and another day, `sumIf(v, c)` of a Nullable `v` is NULL where no row matched,
and `bitNot(v)` of a UInt16 is not that of a UInt8. So a view stays as it is only if each function
that it applies to integers is known to depend on their values alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from olapdb.model.schema import Table
from olapdb.plan.expressions import Call, Expression, columns_of, walk
from olapdb.plan.nodes import Aggregate, Node, Plan
from olapdb.plan.tree import expressions_of, subqueries_of, walk_nodes
from olapdb.storage.column_statistics import bounds_hold
from olapdb.types import (
    DataType,
    DateTime,
    DateTime64,
    Enum,
    Float,
    Integer,
    has_types_by_row,
    is_nullable,
    plain,
)

_OF_THE_TYPE = frozenset(
    re.findall(
        r"\w+",
        """blockSerializedSize byteSize defaultValueOfArgumentType dumpColumnStructure getSizeOfEnumType isNullable
    lowCardinalityIndices lowCardinalityKeys toColumnTypeName toTypeName""",
    )
)
"""Functions that tell the type of their arguments, or how these are stored."""
_BY_VALUE = frozenset(
    re.findall(
        r"\w+",
        """abs addDays addHours addMinutes addMonths addSeconds addWeeks addYears and array arrayElement arrayStringConcat
    assumeNotNull coalesce concat divide empty equals fromUnixTimestamp greater
    greaterOrEquals greatest has identity if ifNull isDistinctFrom isNotDistinctFrom isNotNull
    isNull least left leftPad length less lessOrEquals map materialize minus modulo moduloOrZero multiIf multiply
    not notEmpty notEquals nullIf or plus repeat right rightPad sign subString substring subtractDays
    subtractHours subtractMinutes subtractMonths subtractSeconds subtractWeeks subtractYears toDate toDateTime
    toDecimal32 toDecimal64 toDecimal128 toFloat32 toFloat64 toInt8 toInt16 toInt32 toInt64 toInt128 toInt256
    toIntervalDay toIntervalHour toIntervalMinute toIntervalMonth toIntervalSecond toIntervalWeek toIntervalYear
    toNullable toString toUInt8 toUInt16 toUInt32 toUInt64 toUInt128 toUInt256 tuple tupleElement xor""",
    )
)
"""Functions whose result for integers is the same however wide their types are."""
_AGGREGATES_BY_VALUE = frozenset(
    re.findall(
        r"\w+",
        """any anyLast argMax argMin avg count first_value groupArray groupBitOr groupBitXor groupUniqArray last_value max
    maxMap median min minMap quantile quantileExact quantiles stddevPop stddevSamp sum sumMap uniqExact varPop
    varSamp""",
    )
)
_COMBINATORS = re.compile(
    r"(If|State|SimpleState|Merge|MergeState|OrNull|OrDefault|Distinct|Array|ForEach|Map)+$"
)


def widened_only(before: DataType, after: DataType) -> bool:
    """Return whether the change only gives the same values another type: a wider integer, an Enum of
    more elements, a LowCardinality.

    Results are then the same unless the plan has a function that `depends_on_width` finds."""
    return before != after and same_result(before, after, joined=False)


def same_result(before: DataType, after: DataType, *, joined: bool) -> bool:
    """Return whether expressions over the column give the same results for the stored values.

    Widths of integers do not count, see `widened_only`.  A `joined` column also gives rows without
    a match its default, which is NULL where the type is Nullable."""
    old, new = plain(before), plain(after)
    if isinstance(old, Integer) and isinstance(new, Integer):
        # The result of UInt8 + UInt64 is a UInt64, that of Int16 + UInt64 an Int64.
        same = bounds_hold(before, after) and old.signed == new.signed
    elif isinstance(old, Enum) and isinstance(new, Enum) and old.bits == new.bits:
        # The first element is what stands where there is no value: rows without a partner, parts
        # that lack the column, minIf of no row.
        same = bounds_hold(before, after) and old.elements[0] == new.elements[0]
    else:
        same = old == new
    # FillNullsStep rewrites rows whose NULL becomes a value, and invalidates them one by one.
    return same and (
        is_nullable(before) == is_nullable(after) or (not joined and is_nullable(before))
    )


def same_stored(given: DataType, before: DataType, after: DataType) -> bool:
    """Return whether a column of type `after` stores each value of type `given` as one of type
    `before` does, where the ALTER from one to the other changes no stored value.

    A text or a Date is another instant in another zone. A Float64 keeps digits that a Float32 has
    lost."""
    value, old, new = plain(given), plain(before), plain(after)
    if isinstance(new, DateTime | DateTime64):
        return old == new or isinstance(value, DateTime | DateTime64)
    if isinstance(old, Float) and isinstance(new, Float):
        return old.bits == new.bits or (isinstance(value, Float) and value.bits <= old.bits)
    return True


def depends_on_width(root: Node) -> bool:
    """Return whether a function of the plan, in subqueries too, may depend on the type in which a
    column has its values, such as the width of integers."""
    for node in walk_nodes(root):
        if isinstance(node, Aggregate) and any(
            _reads_integers(call.arguments)
            and _COMBINATORS.sub("", call.name.partition("(")[0]) not in _AGGREGATES_BY_VALUE
            for _, call in node.aggregates
        ):
            return True
        for expression in expressions_of(node):
            if any(_may_depend(e) for e in walk(expression)):
                return True
        if any(depends_on_width(inner) for inner in subqueries_of(node)):
            return True
    return False


def stores_types(plan: Plan, target: Table) -> bool:
    """Return whether the target keeps, beside values that the plan computes, the type in which it does: in a
    column of type Dynamic, Variant or JSON."""
    columns = (
        (target.column(name), given) for name, given in zip(plan.names, plan.types, strict=True)
    )
    return any(
        column is not None and has_types_by_row(column.type) and not has_types_by_row(given)
        for column, given in columns
    )


def _may_depend(expression: Expression) -> bool:
    """Return whether the expression may depend on the types of its arguments, and not on values alone."""
    if has_types_by_row(expression.type) and any(
        columns_of(argument) and not has_types_by_row(argument.type)
        for argument in expression.children()
    ):
        return True  # a value of a Dynamic keeps the type that it had
    if not isinstance(expression, Call):
        return False
    if expression.name in _OF_THE_TYPE:
        return True
    return expression.name not in _BY_VALUE and _reads_integers(expression.arguments)


def _reads_integers(arguments: Iterable[Expression]) -> bool:
    """Return whether an argument has integers and is computed from a column."""
    return any(_has_integers(argument.type) and columns_of(argument) for argument in arguments)


def _has_integers(data_type: DataType) -> bool:
    """Return whether values of the type are integers, or contain some."""
    return re.search(r"\bU?Int(8|16|32|64)\b", data_type.name) is not None
