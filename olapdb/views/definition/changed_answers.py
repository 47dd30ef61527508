"""Calls whose answers changed between releases: of which functions, for which arguments, under which rules.

Change an answer, and add the function to `_CHANGED` or `_AGGREGATES` under the next number of
`olapdb.views.provability.RULES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from olapdb import types
from olapdb.functions.kernels import calendar
from olapdb.plan.expressions import AggregateCall, Call, Cast, Constant, Expression, LambdaFunction
from olapdb.plan.expressions import walk as expression_parts

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
        inner = (getattr(types.plain(a.type), "inner", a.type) for a in call.arguments)
        return any(isinstance(types.plain(t), kinds) for t in inner)

    return concerns


def _has_nested_floats(call: Call, zone: str) -> bool:
    """Return whether an argument is an array, a map or a tuple with floats in it."""
    return any(_is_nested_float(argument.type) for argument in call.arguments)


def _is_nested_float(data_type: types.DataType) -> bool:
    """Return whether the type is an array, a map or a tuple with floats in it."""
    return types.has_floats(data_type) and isinstance(
        types.plain(data_type), types.Array | types.Map | types.Tuple
    )


def _mixes_bools(call: Call, zone: str) -> bool:
    """Return whether the result is a Bool, or has one in it, and an argument that may be the result is none."""
    given = call.arguments
    values = {
        "if": given[1:],
        "multiIf": (*given[1::2], given[-1]),
        "transform": given[2:],
        "arrayResize": given[::2],
    }.get(call.name, given)
    return types.any_part(call.type, (types.Boolean,)) and not all(
        types.any_part(value.type, (types.Boolean,)) for value in values
    )


def _makes_decimals(call: Call | Cast, zone: str) -> bool:
    """Return whether the call or cast makes Decimals of Float32s."""
    return types.any_part(call.type, (types.Decimal,)) and any(
        "Float32" in argument.type.name for argument in call.children()
    )


def _has_nan(call: Call, zone: str) -> bool:
    """Return whether an argument is the constant NaN, as a text is beside an integer that does not have its value."""
    return any(
        isinstance(a, Constant) and a.type == types.FLOAT64 and a.value.as_py() != a.value.as_py()
        for a in call.arguments
    )


def _zone_of(call: Call, zone: str) -> str:
    """Return the zone of the time that the call gives, `zone` for a type without one, "UTC" for anything else."""
    result = types.plain(call.type)
    own = result.zone if isinstance(result, types.DateTime | types.DateTime64) else "UTC"
    return own or zone


def _skips_hours(call: Call, zone: str) -> bool:
    """Return whether the result is a time in another zone than UTC, since its clocks may skip an
    hour. `zone` is that of a type without a zone."""
    return _zone_of(call, zone) not in ("UTC", "Etc/UTC")


def _moves_by_days(call: Call, zone: str) -> bool:
    """Return whether an argument is an interval and the result a time in another zone than UTC,
    since its clocks may skip an hour."""
    kinds = (types.plain(a.type) for a in call.arguments)
    return any(isinstance(k, types.Interval) for k in kinds) and _skips_hours(call, zone)


def _counts_seconds(call: Call, zone: str) -> bool:
    """Return whether the result is a time in a zone whose clocks were off UTC by seconds after 1970."""
    return calendar.counts_seconds(_zone_of(call, zone))


def _rounds_to_fewer_digits(call: Call, zone: str) -> bool:
    """Return whether the call rounds a DateTime64 from an origin to a unit with fewer digits than the time."""
    given, made = (getattr(types.plain(e.type), "precision", 0) for e in (call.arguments[0], call))
    return len(call.arguments) > 2 and made < given


def _makes_wide_integers(call: Call, zone: str) -> bool:
    """Return whether the call makes wide integers of Decimals."""
    has_decimals = any("Decimal" in argument.type.name for argument in call.arguments)
    return has_decimals and types.any_part(call.type, (types.WideNumber,))


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


_READS_DATES = re.compile(r"toDate(32)?Or|accurateCastOr|JSONExtract")
_TRIES = re.compile(r"Nullable\((Date|U?Int\d)")


def _reads_texts_together(part: Call | Cast) -> bool:
    """Return whether texts become dates or integers, or NULL or a default where they are none. Until rules 12 the other
    texts of a block decided: a text with a time was no date beside one that is none, and CAST made a number of digits
    beyond the type wrap unless it was beside a text that is no number."""
    given = [child.type.name for child in part.children()]
    if not any("String" in name or "JSON" in name or "Dynamic" in name for name in given):
        return False
    if isinstance(part, Cast):
        return bool(_TRIES.search(part.type.name))
    return bool(_READS_DATES.match(part.name)) and types.any_part(
        part.type, (types.Date, types.Date32)
    )


def _counts_nanoseconds(call: Call, zone: str) -> bool:
    """Return whether the call is a difference of times with nine digits, which wrapped around beyond 292 years."""
    result = types.plain(call.type)
    return (
        isinstance(result, types.Decimal)
        and result.scale == 9
        and any(isinstance(types.plain(a.type), types.DateTime64) for a in call.arguments)
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
_HOSTS = tuple(
    f"{name}{suffix}"
    for name in (
        *("domain", "domainWithoutWWW", "topLevelDomain", "port", "firstSignificantSubdomain"),
        *("cutToFirstSignificantSubdomain", "cutToFirstSignificantSubdomainWithWWW"),
    )
    for suffix in ("", "RFC")
)
_EXTRACTS = (
    "Raw",
    "ArrayRaw",
    "Keys",
    "KeysAndValues",
    "KeysAndValuesRaw",
    "String",
    "Bool",
    "Int",
    "UInt",
    "Float",
    "",
)
_OF_JSON = (
    *(f"JSONExtract{what}{case}" for what in _EXTRACTS for case in ("", "CaseInsensitive")),
    *("JSONHas", "JSONKey", "JSONLength", "JSONType", "JSONArrayLength", "JSONMergePatch"),
    *("JSON_EXISTS", "JSON_QUERY", "JSON_VALUE", "isValidJSON", "prettyPrintJSON"),
)
"""Functions of JSON texts, for which a number such as 1e1000, beyond Float64, was valid until rules 13."""
_CHANGED: tuple[tuple[int, Concerns, tuple[str, ...]], ...] = (
    (5, _any, ("visibleWidth", "levenshteinDistanceUTF8")),
    (5, _any, ("jaroSimilarity", "jaroWinklerSimilarity")),
    (5, _any, ("countMatches", "countMatchesCaseInsensitive", "compareSubstrings")),
    (5, _any, ("regexpQuoteMeta", "bitmaskToList", "upperUTF8", "lowerUTF8")),
    (5, _of_types(types.Float), ("roundToExp2", "roundDown", "arrayRemove")),
    (
        5,
        _of_types(types.Date32, types.DateTime64),
        ("toYearNumSinceEpoch", "toMonthNumSinceEpoch", "dateDiff"),
    ),
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
    (8, _of_types(types.Float), ("least", "greatest")),
    (8, _constant_with("S"), ("formatDateTimeInJodaSyntax",)),
    (8, _constant_with("zzzz"), ("formatDateTimeInJodaSyntax",)),
    (8, _of_types(types.DateTime64), ("age",)),
    (8, _counts_seconds, (*_MINUTES, "toStartOfInterval", "dateTrunc")),
    (9, _has_nested_floats, ("less", "greater", "lessOrEquals", "greaterOrEquals")),
    (9, _has_nested_floats, ("least", "greatest")),
    (10, _any, ("arrayROCAUC", "arrayAUCPR")),
    (
        10,
        _of_types(types.Date32, types.DateTime64),
        tuple(f"toRelative{unit}Num" for unit in _RELATIVE),
    ),
    (10, _of_types(types.UUID), ("toUInt128OrDefault", "toUInt128OrNull", "toUInt128OrZero")),
    (10, _of_types(types.UUID), ("accurateCastOrNull", "accurateCastOrDefault")),
    (10, _makes_decimals, tuple(f"toDecimal{bits}" for bits in _DECIMALS)),
    (10, _makes_decimals, tuple(f"toDecimal{bits}OrDefault" for bits in _DECIMALS)),
    (10, _makes_decimals, ("accurateCast", "accurateCastOrNull", "accurateCastOrDefault")),
    (10, _mixes_bools, ("if", "multiIf", "ifNull", "coalesce", "array", "map", "arrayConcat")),
    (10, _mixes_bools, ("greatest", "least", "clamp", "transform", "mapConcat")),
    (10, _mixes_bools, ("arrayPushBack", "arrayResize")),
    (11, _any, ("extractAllGroupsVertical", "extractAllGroupsHorizontal")),
    (11, _of_types(types.Date32, types.DateTime64), ("toStartOfISOYear",)),
    (11, _has_nan, ("equals", "notEquals", "less", "greater", "lessOrEquals", "greaterOrEquals")),
    (12, _any, ("exp10", "cbrt", "convertCharset", "minSampleSizeContinuous")),
    (12, _rounds_to_fewer_digits, ("toStartOfInterval",)),
    (12, _counts_to_64_bits, ("range", "mapPopulateSeries")),
    (12, _counts_nanoseconds, ("minus",)),
    (12, _any, ("replaceRegexpOne", *_HOSTS)),
    (12, _makes_wide_integers, ("intDiv", "intDivOrZero", "tupleIntDivByNumber")),
    (13, _of_types(types.Float, types.Decimal), ("YYYYMMDDToDate", "YYYYMMDDToDate32")),
    (13, _any, ("isIPv4String", "isIPAddressInRange", "toIPv6OrNull", "toIPv6OrZero")),
    (
        13,
        _any,
        tuple(f"IPv{n}StringToNum{end}" for n in "46" for end in ("", "OrNull", "OrDefault")),
    ),
    (13, _of_types(types.String), ("accurateCastOrDefault", "toIPv6", "toIPv6OrDefault")),
    (13, _of_types(types.String), _OF_JSON),
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


def always_changed(judged_by: int) -> Iterator[str]:
    """Yield the functions that may have another answer for any arguments since the rules `judged_by`."""
    for since, concerns, names in _CHANGED:
        if since > judged_by and concerns is _any:
            yield from names


def changed_aggregates(calls: Iterable[AggregateCall], judged_by: int) -> Iterator[str]:
    """Yield the names of the aggregates among `calls` whose results changed since the rules `judged_by`."""
    for call in calls:
        for name, since in _AGGREGATES.items():
            if since > judged_by and call.name.startswith(name):
                yield name
        if (judged_by < 9 and _chooses_floats(call)) or (
            judged_by < 10 and _skips_nulls_it_should_take(call)
        ):
            yield call.name.partition("(")[0]


def changed_calls(expressions: Iterable[Expression], judged_by: int, zone: str) -> Iterator[str]:
    """Yield the names of the calls among `expressions` whose answers changed since the rules `judged_by`.

    `zone` is that of times whose type names none."""
    by_name: dict[str, list[Concerns]] = {}
    for since, concerns, names in _CHANGED:
        if since > judged_by:
            for name in names:
                by_name.setdefault(name, []).append(concerns)
    for expression in expressions:
        if judged_by < 11 and _shows_logic(expression):
            yield "and"
        if (
            judged_by < 12
            and isinstance(expression, Call | Cast)
            and (_cuts_written_digits(expression) or _reads_texts_together(expression))
        ):
            yield expression.name if isinstance(expression, Call) else "CAST"
        if isinstance(expression, Call):
            if any(concerns(expression, zone) for concerns in by_name.get(expression.name, ())):
                yield expression.name
        elif isinstance(expression, Cast):
            if judged_by < 10 and _makes_decimals(expression, zone):
                yield "CAST"
        elif isinstance(expression, LambdaFunction) and expression.name in by_name:
            yield expression.name


def _shows_logic(expression: Expression) -> bool:
    """Return whether the expression gives texts and has in it an `and` or `or` with a Bool argument whose result is no
    Bool: before rules 11 the result was a Nullable(Bool), whose text is true or false instead of 1 or 0."""
    return types.any_part(expression.type, (types.String,)) and any(
        isinstance(part, Call)
        and part.name in ("and", "or")
        and not isinstance(types.plain(part.type), types.Boolean)
        and any(isinstance(types.plain(a.type), types.Boolean) for a in part.arguments)
        for part in expression_parts(expression)
    )


def _skips_nulls_it_should_take(call: AggregateCall) -> bool:
    """Return whether the call is an -OrNull or -OrDefault with RESPECT NULLS, which skipped NULLs until rules 10."""
    return "_respect_nulls" in call.name and any(s in call.name for s in ("OrNull", "OrDefault"))


def _chooses_floats(call: AggregateCall) -> bool:
    """Return whether the aggregate chooses one of values with floats, other than an extreme of single floats."""
    if not call.name.startswith(_CHOOSING):
        return False
    is_extreme = call.name.startswith(("min", "max", "any"))
    return any(
        _is_nested_float(argument.type) if is_extreme else types.has_floats(argument.type)
        for argument in call.arguments
    )
