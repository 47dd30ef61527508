"""Functions whose answers changed between releases, and the views whose older rows have the older ones.

A view's rows stay as they were computed. Where a release gives another answer for the same arguments,
those rows differ from a recomputation, so that views which older rules judged are stale as a whole
(cause FUNCTION CHANGED) once the release opens the warehouse; a replay mends them. Change an answer, and
add the function here under the next number of `olapdb.views.provability.RULES`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from olapdb.bind.syntax import is_not_query, walk
from olapdb.functions import registry
from olapdb.functions.kernels import calendar
from olapdb.lineage.sorting_key import key_columns
from olapdb.model.schema import MaterializedView, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    Constant,
    Expression,
    InValues,
    LambdaFunction,
)
from olapdb.plan.expressions import walk as expression_parts
from olapdb.plan.nodes import ArrayJoin, Node, Plan, SetDifference, Sort, SortKey, Union, Window
from olapdb.plan.tree import all_aggregate_calls, all_expressions, all_nodes
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.types import (
    FLOAT64,
    UUID,
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Interval,
    Map,
    SimpleAggregateFunction,
    String,
    Tuple,
    WideNumber,
    any_part,
    has_floats,
    has_types_by_row,
    plain,
)
from olapdb.views.provability.rounding import merges_by_adding

Concerns: TypeAlias = Callable[[Call, str], bool]
"""A function from (call, the view's zone) to whether its answers may have changed."""


def _any(call: Call, zone: str) -> bool:
    """Return True: the function may answer differently for any arguments, in any zone."""
    return True


def _constant_with(part: str) -> Concerns:
    """Return a test of a call: whether one of its arguments is a constant text that contains
    `part`."""

    def concerns(call: Call, zone: str) -> bool:
        """Return whether a constant text among the arguments contains `part`."""
        texts = (a.value.as_py() for a in call.arguments if isinstance(a, Constant))
        return any(isinstance(text, str) and part in text for text in texts)

    return concerns


def _of_types(*kinds: type) -> Concerns:
    """Return a test of a call: whether an argument, or the elements of an array argument, have one
    of these types. Nullable and LowCardinality do not count."""

    def concerns(call: Call, zone: str) -> bool:
        """Return whether an argument, or the elements of an array argument, have one of the types."""
        inner = (getattr(plain(a.type), "inner", a.type) for a in call.arguments)
        return any(isinstance(plain(t), kinds) for t in inner)

    return concerns


def _has_nested_floats(call: Call, zone: str) -> bool:
    """Return whether an argument is an array, a map or a tuple with floats in it."""
    return any(_is_nested_float(argument.type) for argument in call.arguments)


def _is_nested_float(data_type: DataType) -> bool:
    """Return whether the type is an array, a map or a tuple with floats in it."""
    return has_floats(data_type) and isinstance(plain(data_type), Array | Map | Tuple)


def _mixes_bools(call: Call, zone: str) -> bool:
    """Return whether the result is a Bool, or has one in it, and an argument that may be the result is none."""
    given = call.arguments
    values = {
        "if": given[1:],
        "multiIf": (*given[1::2], given[-1]),
        "transform": given[2:],
        "arrayResize": given[::2],
    }.get(call.name, given)
    return any_part(call.type, (Boolean,)) and not all(
        any_part(value.type, (Boolean,)) for value in values
    )


def _makes_decimals(call: Call | Cast, zone: str) -> bool:
    """Return whether the call or cast makes Decimals of Float32s."""
    return any_part(call.type, (Decimal,)) and any(
        "Float32" in argument.type.name for argument in call.children()
    )


def _has_nan(call: Call, zone: str) -> bool:
    """Return whether an argument is the constant NaN, as a text is beside an integer that does not have its value."""
    return any(
        isinstance(a, Constant) and a.type == FLOAT64 and a.value.as_py() != a.value.as_py()
        for a in call.arguments
    )


def _zone_of(call: Call, zone: str) -> str:
    """Return the zone of the time that the call gives, `zone` for a type without one, "UTC" for anything else."""
    result = plain(call.type)
    own = result.zone if isinstance(result, DateTime | DateTime64) else "UTC"
    return own or zone


def _skips_hours(call: Call, zone: str) -> bool:
    """Return whether the result is a time in another zone than UTC, since its clocks may skip an
    hour. `zone` is that of a type without a zone."""
    return _zone_of(call, zone) not in ("UTC", "Etc/UTC")


def _moves_by_days(call: Call, zone: str) -> bool:
    """Return whether an argument is an interval and the result a time in another zone than UTC,
    since its clocks may skip an hour."""
    kinds = (plain(a.type) for a in call.arguments)
    return any(isinstance(k, Interval) for k in kinds) and _skips_hours(call, zone)


def _counts_seconds(call: Call, zone: str) -> bool:
    """Return whether the result is a time in a zone whose clocks were off UTC by seconds after 1970."""
    return calendar.counts_seconds(_zone_of(call, zone))


def _rounds_to_fewer_digits(call: Call, zone: str) -> bool:
    """Return whether the call rounds a DateTime64 from an origin to a unit with fewer digits than the time."""
    given, made = (getattr(plain(e.type), "precision", 0) for e in (call.arguments[0], call))
    return len(call.arguments) > 2 and made < given


def _makes_wide_integers(call: Call, zone: str) -> bool:
    """Return whether the call makes wide integers of Decimals."""
    has_decimals = any("Decimal" in argument.type.name for argument in call.arguments)
    return has_decimals and any_part(call.type, (WideNumber,))


def _counts_to_64_bits(call: Call, zone: str) -> bool:
    """Return whether the call makes a series of integers from one bound to another, with a UInt64 among them."""
    return len(call.arguments) > 1 and any("UInt64" in a.type.name for a in call.arguments)


_UNEVEN = re.compile(r"DateTime64\([124578]\b")


def _cuts_written_digits(part: Call | Cast) -> bool:
    """Return whether texts become a DateTime64 whose digits are no multiple of three: before 1970, the digits behind them
    made the last one one more until rules 12."""
    given = [child.type.name for child in part.children()]
    reads_texts = any("String" in name or "JSON" in name or "Dynamic" in name for name in given)
    return (
        reads_texts and bool(_UNEVEN.search(part.type.name)) and not any(map(_UNEVEN.search, given))
    )


def _counts_nanoseconds(call: Call, zone: str) -> bool:
    """Return whether the call is a difference of times with nine digits, which wrapped around beyond 292 years."""
    result = plain(call.type)
    return (
        isinstance(result, Decimal)
        and result.scale == 9
        and any(isinstance(plain(a.type), DateTime64) for a in call.arguments)
    )


_MINUTES = tuple(f"toStartOf{unit}" for unit in ("Minute", "FiveMinute", "FiveMinutes"))
_MINUTES += ("toStartOfTenMinutes", "toStartOfFifteenMinutes")
_RELATIVE = ("Week", "Day", "Hour", "Minute", "Second")
_DECIMALS = (32, 64, 128, 256)
_DAYS = ("Day", "Week", "Month", "Quarter", "Year")
_PARSING = tuple(
    f"{name}{suffix}"
    for name in ("parseDateTime", "parseDateTimeInJodaSyntax", "parseDateTime64")
    for suffix in ("", "OrNull", "OrZero")
)
_CHANGED: tuple[tuple[int, Concerns, tuple[str, ...]], ...] = (
    (5, _any, ("visibleWidth", "levenshteinDistanceUTF8")),
    (5, _any, ("jaroSimilarity", "jaroWinklerSimilarity")),
    (5, _any, ("countMatches", "countMatchesCaseInsensitive", "compareSubstrings")),
    (5, _any, ("regexpQuoteMeta", "bitmaskToList", "upperUTF8", "lowerUTF8")),
    (5, _of_types(Float), ("roundToExp2", "roundDown", "arrayRemove")),
    (5, _of_types(Date32, DateTime64), ("toYearNumSinceEpoch", "toMonthNumSinceEpoch", "dateDiff")),
    (5, _constant_with("xx"), ("formatDateTimeInJodaSyntax",)),
    (5, _constant_with("%D"), _PARSING),
    (5, _skips_hours, tuple(f"{verb}{u}s" for verb in ("add", "subtract") for u in _DAYS)),
    (5, _moves_by_days, ("plus", "minus", "dateAdd", "dateSub", "addDate", "subDate")),
    (5, _skips_hours, tuple(f"change{u}" for u in ("Hour", "Minute", "Second", "Day", "Month"))),
    (5, _skips_hours, ("changeYear", "makeDateTime", "YYYYMMDDhhmmssToDateTime", *_PARSING)),
    (8, _any, ("makeDateTime", "makeDateTime64", "printf", "formatReadableTimeDelta")),
    (8, _any, ("firstNonDefault", "widthBucket", "initcapUTF8", "overlay", "overlayUTF8")),
    (8, _any, ("decodeHTMLComponent", "decodeXMLComponent")),
    (8, _any, ("arrayWithConstant", "arrayDifference")),
    (8, _of_types(Float), ("least", "greatest")),
    (8, _constant_with("S"), ("formatDateTimeInJodaSyntax",)),
    (8, _constant_with("zzzz"), ("formatDateTimeInJodaSyntax",)),
    (8, _of_types(DateTime64), ("age",)),
    (8, _counts_seconds, (*_MINUTES, "toStartOfInterval", "dateTrunc")),
    (9, _has_nested_floats, ("less", "greater", "lessOrEquals", "greaterOrEquals")),
    (9, _has_nested_floats, ("least", "greatest")),
    (10, _any, ("arrayROCAUC", "arrayAUCPR")),
    (10, _of_types(Date32, DateTime64), tuple(f"toRelative{unit}Num" for unit in _RELATIVE)),
    (10, _of_types(UUID), ("toUInt128OrDefault", "toUInt128OrNull", "toUInt128OrZero")),
    (10, _of_types(UUID), ("accurateCastOrNull", "accurateCastOrDefault")),
    (10, _makes_decimals, tuple(f"toDecimal{bits}" for bits in _DECIMALS)),
    (10, _makes_decimals, tuple(f"toDecimal{bits}OrDefault" for bits in _DECIMALS)),
    (10, _makes_decimals, ("accurateCast", "accurateCastOrNull", "accurateCastOrDefault")),
    (10, _mixes_bools, ("if", "multiIf", "ifNull", "coalesce", "array", "map", "arrayConcat")),
    (10, _mixes_bools, ("greatest", "least", "clamp", "transform", "mapConcat")),
    (10, _mixes_bools, ("arrayPushBack", "arrayResize")),
    (11, _any, ("extractAllGroupsVertical", "extractAllGroupsHorizontal")),
    (11, _of_types(Date32, DateTime64), ("toStartOfISOYear",)),
    (11, _has_nan, ("equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals")),
    (12, _any, ("exp10", "convertCharset", "minSampleSizeContinuous")),
    (12, _rounds_to_fewer_digits, ("toStartOfInterval",)),
    (12, _counts_to_64_bits, ("range", "mapPopulateSeries")),
    (12, _counts_nanoseconds, ("minus",)),
    (12, _makes_wide_integers, ("intDiv", "intDivOrZero", "tupleIntDivByNumber")),
)
"""(rules since which a function has other answers, for which calls, functions)."""
_AGGREGATES: Mapping[str, int] = MappingProxyType(
    {
        "entropy": 5,
        "quantileTiming": 8,
        "sumMap": 8,
        "uniqUpTo": 9,
        "quantileInterpolatedWeighted": 10,
        "quantilesInterpolatedWeighted": 10,
        "largestTriangleThreeBuckets": 10,
        "lttb": 10,
    }
)
"""Aggregates whose results changed, by the rules since which they did."""
_CHOOSING = ("argMin", "argMax", "argAndMin", "argAndMax", "groupArraySorted", "min", "max", "any")
"""Aggregates that chose one of several values with zeros of two signs by their order, until rules 9."""


def changed_functions(
    view: MaterializedView, snapshot: Snapshot, plan: Plan | None
) -> tuple[str, ...]:
    """Return the functions of the view whose answers changed since the rules that judged it.

    `plan` is its bound query, None if that does not bind. Calls of constants alone are no longer in a
    plan: they count by their name if any arguments may have another answer."""
    functions: dict[str, None] = {}
    calls = () if plan is None else all_expressions(plan.root)
    for name in _changed_calls(calls, view):
        functions.setdefault(name)
    aggregates = () if plan is None else all_aggregate_calls(plan.root)
    for call in aggregates:
        for name, since in _AGGREGATES.items():
            if since > view.judged_by and call.name.startswith(name):
                functions.setdefault(name)
        if view.judged_by < 9 and _chooses_floats(call):
            functions.setdefault(call.name.partition("(")[0])
        if view.judged_by < 10 and _skips_nulls_it_should_take(call):
            functions.setdefault(call.name.partition("(")[0])
    if plan is not None and view.judged_by < 9 and any(map(_sorts_nested_nulls, _sort_keys(plan))):
        functions.setdefault("ORDER BY")
    if view.judged_by < 11:
        functions.update(dict.fromkeys(_changed_names(_queries(view, snapshot), plan)))
    if plan is not None and view.judged_by < 10:
        functions.update(dict.fromkeys(_changed_clauses(plan, snapshot.by_id(view.target_id))))
    written = _written_functions(view, snapshot)
    for since, concerns, names in _CHANGED:
        if since > view.judged_by and concerns is _any:
            functions.update(dict.fromkeys(name for name in names if name in written))
    return tuple(functions)


def loosely_judged_columns(view: MaterializedView, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the columns of the view's target in which older rules took other values for equal.

    Until rules 10, a comparison took floats that states keep, as those of max do, for equal to 1e-9, like
    sums, and nested values of rows and keys if their texts were, as those of a Variant's 1 and '1'. An
    ALTER of a type said nothing of values that keep the type that they had, as those of a Dynamic do.
    Until rules 11, a comparison took the keys of sumMap, the values that -Distinct keeps, and means beside
    sums of deviations from them for equal to 1e-9."""
    target = snapshot.by_id(view.target_id)
    if view.judged_by >= 11 or not isinstance(target, Table):
        return ()
    compared = any(check.verdict in ("equal", "retained") for check in snapshot.checks(view.id))
    by_rules_9 = view.judged_by < 10
    keys = set(key_columns(target))
    keeps_rows = not target.engine.combines or None in keys
    return tuple(
        column.name
        for column in target.stored_columns
        if (compared and _keeps_more_than_sums(column.type))
        or (by_rules_9 and has_types_by_row(column.type))
        or (by_rules_9 and compared and _keeps_floats(column.type))
        or (
            by_rules_9
            and compared
            and (keeps_rows or column.name in keys)
            and _has_nested_times(column.type)
        )
    )


_SUMS = re.compile(
    r"(sum|avg|sumCount|avgWeighted|sumWithOverflow|sumKahan)"
    r"(If|OrNull|OrDefault|State|ForEach|Array|Resample)*"
)
"""Aggregates whose states are nothing but sums and counts."""


def _keeps_more_than_sums(data_type: DataType) -> bool:
    """Return whether the type is one of sums of floats and of floats that are none: keys, distinct values, means."""
    if isinstance(data_type, SimpleAggregateFunction):
        inner = plain(data_type.inner)
        key = inner.key if isinstance(inner, Map) else getattr(inner, "elements", (inner,))[0]
        return data_type.function.startswith("sumMap") and has_floats(key)
    if not isinstance(data_type, AggregateFunction) or not merges_by_adding(data_type):
        return False
    return _SUMS.fullmatch(data_type.function) is None


def _keeps_floats(data_type: DataType) -> bool:
    """Return whether the type is that of states that keep floats and add none up."""
    if not isinstance(data_type, AggregateFunction) or merges_by_adding(data_type):
        return False
    return any(map(has_floats, data_type.arguments))


def _has_nested_times(data_type: DataType) -> bool:
    """Return whether the type has times within others: those of the hour that clocks repeat have one text."""
    is_nested = isinstance(plain(data_type), Array | Map | Tuple)
    return is_nested and any_part(data_type, (DateTime, DateTime64))


def _sort_keys(plan: Plan) -> Iterator[SortKey]:
    """Yield the keys by which the plan sorts rows, in queries and windows."""
    for node in all_nodes(plan.root):
        if isinstance(node, Sort):
            yield from node.keys
        elif isinstance(node, Window):
            yield from node.order_by


def _changed_clauses(plan: Plan, target: object) -> Iterator[str]:
    """Yield the clauses of the plan, and of the INSERT into its target, that have other answers since rules 10."""
    nodes = list(all_nodes(plan.root))
    expressions = list(all_expressions(plan.root))
    if any(map(_joins_a_part, nodes)):
        yield "ARRAY JOIN"
    if any(
        isinstance(e, InValues) and any_part(e.argument.type, (Array, Map)) for e in expressions
    ):
        yield "IN"  # an array or map of other numbers was equal where these wrapped to it
    if any(isinstance(n, Union | SetDifference) for n in nodes) and any(
        isinstance(e, Cast) and isinstance(plain(e.type), Boolean) for e in expressions
    ):
        yield "UNION"  # a Bool beside a UInt8 was a UInt8
    if isinstance(target, Table) and any(
        (column := target.column(name)) is not None
        and any_part(column.type, (Decimal,))
        and "Float32" in given.name
        for name, given in zip(plan.names, plan.types, strict=True)
    ):
        yield "INSERT"


def _skips_nulls_it_should_take(call: AggregateCall) -> bool:
    """Return whether the call is an -OrNull or -OrDefault with RESPECT NULLS, which skipped NULLs until rules 10."""
    return "_respect_nulls" in call.name and any(s in call.name for s in ("OrNull", "OrDefault"))


def _joins_a_part(node: Node) -> bool:
    """Return whether the node joins an array that is a part of a column, whose name meant the whole array until rules 10."""
    return isinstance(node, ArrayJoin) and any(
        isinstance(array, Call) and array.name in ("tupleElement", "mapKeys", "mapValues")
        for _, array in node.arrays
    )


def _sorts_nested_nulls(key: SortKey) -> bool:
    """Return whether the key may have NULL or NaN within an array or map, and sorts these otherwise since rules 9."""
    data_type = key.expression.type
    has_arrays = any_part(data_type, (Array, Map))
    has_nulls = "Nullable" in data_type.name or has_floats(data_type)
    return key.descending != key.nulls_first and has_arrays and has_nulls


def _chooses_floats(call: AggregateCall) -> bool:
    """Return whether the aggregate chooses one of values with floats, other than an extreme of single floats."""
    if not call.name.startswith(_CHOOSING):
        return False
    is_extreme = call.name.startswith(("min", "max", "any"))
    return any(
        _is_nested_float(argument.type) if is_extreme else has_floats(argument.type)
        for argument in call.arguments
    )


def _written_functions(view: MaterializedView, snapshot: Snapshot) -> set[str]:
    """Return the names of the functions in the view's query, in the plain views that it reads through,
    and in the columns of its tables that a read computes. SQL has none of a user's functions in these:
    they are written out where they are called."""
    texts = _queries(view, snapshot)
    computed: dict[str, list[str]] = {}
    for item in _objects_read(view, snapshot):
        for column in item.columns if isinstance(item, Table) else ():
            if column.default and (not column.stored or column.since > 1):
                computed.setdefault(column.name, []).append(column.default)
    functions: set[str] = set()
    while texts:
        for node in walk(texts.pop()):
            if isinstance(node, sql.Function):
                functions.add(_canonical(node.name))
            elif isinstance(node, sql.Identifier):
                for name in node.parts:
                    texts.extend(parse_expression(d) for d in computed.pop(name, ()))
    return functions


def _objects_read(view: MaterializedView, snapshot: Snapshot) -> list[object]:
    """Return the tables and plain views that the view reads."""
    ids = dict.fromkeys((view.source_id, *view.dimension_ids, *view.references))
    return [snapshot.by_id(object_id) for object_id in ids]


def _queries(view: MaterializedView, snapshot: Snapshot) -> list[sql.Node]:
    """Return the view's query, and those of the plain views that it reads through."""
    read = _objects_read(view, snapshot)
    return [
        parse_query(view.query),
        *(parse_query(item.query) for item in read if isinstance(item, View)),
    ]


def _changed_names(queries: list[sql.Node], plan: Plan | None) -> Iterator[str]:
    """Yield the clauses in the queries whose names and texts have another meaning since rules 11."""
    if any(map(_has_alias_in_on, queries)):
        yield "JOIN ON"
    if any(map(_has_alias_of_lambda, queries)):
        yield "AS in a lambda"
    if plan is not None and _has_narrow_in(plan) and any(map(_has_text_in, queries)):
        yield "IN"


def _changed_calls(
    expressions: Iterator[Expression] | tuple[()], view: MaterializedView
) -> Iterator[str]:
    """Yield the names of calls whose answers changed since the rules that judged the view."""
    by_name: dict[str, list[Concerns]] = {}
    for since, concerns, names in _CHANGED:
        if since > view.judged_by:
            for name in names:
                by_name.setdefault(name, []).append(concerns)
    for expression in expressions:
        if view.judged_by < 11 and _shows_logic(expression):
            yield "and"
        if (
            view.judged_by < 12
            and isinstance(expression, Call | Cast)
            and _cuts_written_digits(expression)
        ):
            yield expression.name if isinstance(expression, Call) else "CAST"
        if isinstance(expression, Call):
            if any(
                concerns(expression, view.zone) for concerns in by_name.get(expression.name, ())
            ):
                yield expression.name
        elif isinstance(expression, Cast):
            if view.judged_by < 10 and _makes_decimals(expression, view.zone):
                yield "CAST"
        elif isinstance(expression, LambdaFunction) and expression.name in by_name:
            yield expression.name


def _shows_logic(expression: Expression) -> bool:
    """Return whether a text is made of `and` or `or` of Nullable(Bool)s, which was true or false until rules 11."""
    return any_part(expression.type, (String,)) and any(
        isinstance(part, Call)
        and part.name in ("and", "or")
        and not isinstance(plain(part.type), Boolean)
        and any(isinstance(plain(a.type), Boolean) for a in part.arguments)
        for part in expression_parts(expression)
    )


def _has_alias_in_on(query: sql.Node) -> bool:
    """Return whether a condition of ON names an alias of its SELECT that is no column of that name: where a column had
    the alias's name, ON meant the column until rules 11."""
    for select in walk(query):
        if not isinstance(select, sql.Select):
            continue
        aliases = {
            node.name
            for column in select.columns
            for node in walk(column, is_not_query)
            if isinstance(node, sql.Alias)
            and not (
                isinstance(node.expression, sql.Identifier)
                and node.expression.parts[-1] == node.name
            )
        }
        conditions = [
            join.on
            for join in (walk(select.source) if select.source is not None else ())
            if isinstance(join, sql.Join) and join.on is not None
        ]
        for condition in conditions:
            if any(
                isinstance(name, sql.Identifier) and name.parts[0] in aliases
                for name in walk(condition)
            ):
                return True
    return False


def _has_alias_of_lambda(query: sql.Node) -> bool:
    """Return whether a name outside of a lambda is that of an alias within, which it meant until rules 11."""
    named = Counter(_names_in(query))
    return any(
        named[node.name] > Counter(_names_in(function.body))[node.name]
        for function in walk(query)
        if isinstance(function, sql.Lambda)
        for node in walk(function.body)
        if isinstance(node, sql.Alias)
    )


def _names_in(node: sql.Node) -> list[str]:
    """Return the first part of each name in a node, repeats included."""
    return [part.parts[0] for part in walk(node) if isinstance(part, sql.Identifier)]


def _has_narrow_in(plan: Plan) -> bool:
    """Return whether the plan has an IN of integers of fewer than 64 bits."""
    return any(
        isinstance(e, InValues)
        and isinstance(kind := plain(e.argument.type), Integer)
        and kind.bits < 64
        for e in all_expressions(plan.root)
    )


def _has_text_in(query: sql.Node) -> bool:
    """Return whether an IN may have a text of an integer beyond 8 bits, which wrapped until rules 11."""
    return any(
        re.fullmatch(r"[+-]?[0-9]{3,}", literal.value) is not None
        for node in walk(query)
        if isinstance(node, sql.In)
        for literal in walk(node.right)
        if isinstance(literal, sql.Literal) and isinstance(literal.value, str)
    )


def _canonical(name: str) -> str:
    """Return the main name of a function, for which it may be an alias."""
    function = registry.find(name)
    return name if function is None else function.name
