"""Which arguments ClickHouse takes as constants only, by function.

A column in such a place is refused when a user's query is bound, before any row is read. Definitions that are
stored (views, defaults, keys, constraints) are not refused: olapdb computes such calls row by row, and what a
warehouse has goes on working."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from olapdb import errors
from olapdb.functions.base import ScalarCall
from olapdb.functions.registry import find
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InSubquery,
    LambdaParameter,
    ScalarSubquery,
    walk,
)
from olapdb.types import Date, DateTime, FixedString, Time, plain

_COLUMN_REFUSED: Mapping[tuple[int, ...], str] = MappingProxyType(
    {
        (0,): """concatWithSeparator format getMacro randBernoulli
            randChiSquared randPoisson randStudentT""",
        (
            0,
            1,
        ): "randBinomial randFisherF randLogNormal randNegativeBinomial randNormal randUniform",
        (0, 2): "splitByChar splitByRegexp",
        (1,): """appendTrailingCharIfAbsent alphaTokens arrayRandomSample arrayStringConcat
            countMatches countMatchesCaseInsensitive extract extractAll extractURLParameter
            generateSerialID
            LpNorm LpNormalize multiFuzzyMatchAllIndices multiFuzzyMatchAny multiFuzzyMatchAnyIndex
            ngrams port regexpExtract reverseBySeparator roundDown splitByNonAlpha
            splitByWhitespace substringIndex substringIndexUTF8 toLastDayOfWeek toStartOfInterval
            toStartOfWeek trimBoth trimLeft trimRight""",
        (1, 2): "convertCharset toDayOfWeek transform translate translateUTF8",
        (1, 2, 3): "minSampleSizeConversion",
        (2,): "divideDecimal leftPad leftPadUTF8 LpDistance multiplyDecimal rightPad rightPadUTF8",
        (2, 3, 4): "compareSubstrings minSampleSizeContinuous",
        (3,): "bar",
    }
)
"""Functions by the places, counted from 0, in which a column is ILLEGAL_COLUMN. splitByString is not among them:
dbt's `split_part` may have a column between the parts."""
_TYPE_REFUSED: Mapping[tuple[int, ...], str] = MappingProxyType(
    {
        (0,): "arrayReduce arrayReduceInRanges dateTrunc now64",
        (1,): "CAST financialInternalRateOfReturn reinterpret toInterval",
        (2,): "financialNetPresentValue",
        (2, 3): "financialInternalRateOfReturnExtended",
        (3,): "financialNetPresentValueExtended",
        (5,): "proportionsZTest",
    }
)
"""Functions by the places in which ClickHouse calls a column an illegal type."""


def _places_by_name(table: Mapping[tuple[int, ...], str]) -> Mapping[str, tuple[int, ...]]:
    """Return by function name the places of arguments that must be constants, from a table of names by places."""
    return MappingProxyType({n: places for places, names in table.items() for n in names.split()})


_REFUSALS = (
    (_places_by_name(_COLUMN_REFUSED), errors.IllegalColumn),
    (_places_by_name(_TYPE_REFUSED), errors.IllegalTypeOfArgument),
)


_NO_TIMES = ("moduloLegacy", "moduloOrNull", "positiveModuloOrNull")
"""Functions that refuse a time as the dividend, which modulo and positiveModulo take."""


def is_constant(expression: Expression) -> bool:
    """Return whether an expression has one value in a statement: constants and calls of functions that do not differ
    by row, such as now()."""
    return all(
        isinstance(e, Constant | Cast | ScalarSubquery)
        or (isinstance(e, Call) and e.name != "materialize" and e.function.volatility != "row")
        for e in walk(expression)
    )


def is_constant_column(expression: Expression) -> bool:
    """Return whether isConstant says that an expression is one: `is_constant`, or a call whose value follows from the
    types of its arguments, as toTypeName(x), ignore(x) and the length of a FixedString."""
    if is_constant(expression):
        return True
    match expression:
        case Call(name="materialize"):
            return False
        case Call(name="ignore") | Call(function=ScalarCall(reads_values=False)):
            return True
        case Call(name="length", arguments=(Expression(type=FixedString()),)):
            return True
        case Call(function=ScalarCall(volatility="row")):
            return False
        case Call(arguments=arguments) | InSubquery(arguments=arguments) if arguments:
            return all(map(is_constant_column, arguments))
        case _:
            return False


def require_numbers(name: str, arguments: Sequence[Expression]) -> None:
    """Raise IllegalTypeOfArgument where a function that takes the remainder of numbers alone has a time."""
    definition = find(name)
    if definition is None or definition.name not in _NO_TIMES or not arguments:
        return
    if isinstance(plain(arguments[0].type), Date | DateTime | Time):
        raise errors.IllegalTypeOfArgument(
            f"Function {name} takes numbers, not {arguments[0].type}.",
            hint="modulo and positiveModulo take dates and times.",
        )


def require_constants(name: str, arguments: Sequence[Expression]) -> None:
    """Raise IllegalColumn or IllegalTypeOfArgument where a call of the function `name` has a column in place
    of a constant. A scalar subquery and a function of the session, as currentDatabase(), are constants."""
    definition = find(name)
    if definition is None or len(arguments) < definition.minimum:
        return
    for places_by_name, error in _REFUSALS:
        for at in places_by_name.get(definition.name, ()):
            if at < len(arguments) and _differs_by_row(arguments[at]):
                raise error(
                    f"Argument {at + 1} of function {name} must be a constant.",
                    hint="Write its value into the query; it cannot differ by row.",
                )


def _differs_by_row(argument: Expression) -> bool:
    """Return whether an argument reads a column, a parameter of a lambda, or a function that differs by row;
    materialize() makes a column of a constant."""
    return any(
        isinstance(e, ColumnRef | LambdaParameter)
        or (isinstance(e, Call) and (e.name == "materialize" or e.function.volatility == "row"))
        for e in walk(argument)
    )
