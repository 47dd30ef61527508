"""Judges one random statement: the answers of olapdb and ClickHouse, and why they may differ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import olapdb
from olapdb.functions import display
from olapdb.types import Array, DataType, Map, Tuple, plain
from tests.harness.oracle import Oracle, OracleError, _unescape

Outcome: TypeAlias = Literal["same", "both_refuse", "explained", "different", "refused", "accepted"]
"""`refused`: only olapdb refuses; `accepted`: only ClickHouse does."""
Rows: TypeAlias = list[tuple[str | None, ...]]

_INTEGER, _FLOAT = r"Int(?:8|16|32|64)", r"Float(?:32|64)"
_ALIKE = (
    (re.compile(r"LowCardinality\(((?:Nullable\()?\w+(?:\(\d+\))?\)?)\)"), r"\1"),
    (re.compile(rf"Variant\((?:{_FLOAT}, )+U?Int64(?:, U?Int\d+)*\)"), "Exact"),
    (re.compile(rf"Variant\({_INTEGER}, UInt64\)|Nullable\(Int128\)|Int128"), "Wide"),
    (re.compile(r"Nullable\(Decimal\((?:20|38), 0\)\)|Decimal\((?:20|38), 0\)"), "Wide"),
)
"""Types that differ as docs/differences.md says: LowCardinality is a hint, and where ClickHouse has
a Variant (UInt64 beside a signed integer, a 64-bit integer beside a float) olapdb has one type."""
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+|-?\d+")


@dataclass(frozen=True)
class Answer:
    """Type names and printed rows."""

    types: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True)
class Refusal:
    """An error's code and message."""

    code: int
    message: str


@dataclass(frozen=True)
class Verdict:
    """The outcome of a comparison, the rule that explains it, and both answers."""

    outcome: Outcome
    rule: str
    ours: str
    theirs: str
    ours_answered: bool
    theirs_answered: bool


class Comparison:
    """A comparison of the two engines, statement by statement."""

    def __init__(self, connection: olapdb.Connection, oracle: Oracle) -> None:
        self.connection, self.oracle = connection, oracle

    def judge(self, statement: str, typed: str = "") -> Verdict:
        """Run the statement on both and compare. `typed` is the statement with its columns' types,
        which rules may match."""
        ours, theirs = self._ours(statement), self._theirs(statement)
        outcome = _outcome(ours, theirs)
        alike = outcome in ("same", "both_refuse")
        rule = "" if alike else explanation(typed or statement, ours, theirs)
        return Verdict(
            "explained" if rule else outcome,
            rule,
            str(ours)[:400],
            str(theirs)[:400],
            isinstance(ours, Answer),
            isinstance(theirs, Answer),
        )

    def _ours(self, statement: str) -> Answer | Refusal:
        try:
            result = self.connection.session.execute(statement)
            table = result.read_all()
        except olapdb.Error as error:
            if isinstance(error, olapdb.InternalError):
                raise AssertionError(f"{statement}: {error}") from error
            return Refusal(error.code, str(error))
        columns = [
            _texts(display(c.combine_chunks(), t), t)
            for c, t in zip(table.columns, result.types, strict=True)
        ]
        return Answer(tuple(str(t) for t in result.types), list(zip(*columns, strict=True)))

    def _theirs(self, statement: str) -> Answer | Refusal:
        try:
            result = self.oracle.query(statement)
        except OracleError as error:
            return Refusal(error.code, str(error))
        return Answer(result.types, result.rows)


def _texts(shown: Sequence[str | None], data_type: DataType) -> list[str | None]:
    """Unescape texts within arrays, tuples and maps too, as the oracle's reader does."""
    if not isinstance(plain(data_type), Array | Tuple | Map):
        return list(shown)
    return [None if s is None else _unescape(s.encode("utf-8", "surrogateescape")) for s in shown]


def _outcome(ours: Answer | Refusal, theirs: Answer | Refusal) -> Outcome:
    if isinstance(ours, Refusal):
        return "both_refuse" if isinstance(theirs, Refusal) else "refused"
    if isinstance(theirs, Refusal):
        return "accepted"
    if not _alike_types(ours.types, theirs.types):
        return "different"
    return "same" if _same_rows(ours, theirs) else "different"


def _alike_types(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return len(ours) == len(theirs) and all(
        _is_alike(_plainly(a), _plainly(b)) for a, b in zip(ours, theirs, strict=True)
    )


def _is_alike(ours: str, theirs: str) -> bool:
    if "Variant(" in theirs:
        # arrays or maps for which olapdb has a common type: only the values are compared
        return True
    if ("Bool" in theirs) != ("Bool" in ours):
        return ours.replace("Bool", "UInt8") == theirs.replace("Bool", "UInt8")
    if "Exact" in theirs:
        floats = ours.replace("Nullable(Float64)", "Exact").replace("Float64", "Exact")
        return floats == theirs.replace("Float64", "Exact")
    return ours == theirs


def _plainly(name: str) -> str:
    for pattern, plain_name in _ALIKE:
        name = pattern.sub(plain_name, name)
    return name


def _same_rows(ours: Answer, theirs: Answer) -> bool:
    if len(ours.rows) != len(theirs.rows):
        return False
    flags = [("Bool" in a) != ("Bool" in b) for a, b in zip(ours.types, theirs.types, strict=True)]
    if any(flags):
        ours, theirs = (Answer(a.types, _as_flags(a.rows, flags)) for a in (ours, theirs))
    if sorted(ours.rows, key=str) == sorted(theirs.rows, key=str):
        return True
    floats = [("Float" in name) for name in theirs.types]
    if not any(floats):
        return False
    pairs = zip(_rounded(ours.rows, floats), _rounded(theirs.rows, floats), strict=True)
    return all(_near(a, b) for a, b in pairs)


def _as_flags(rows: Rows, flags: Sequence[bool]) -> Rows:
    """Return the rows with numbers and Bools of these columns as 0 or 1.

    ClickHouse turns a UInt8 into a Bool in places where olapdb keeps the number."""

    def flag(value: str | None) -> str | None:
        if value is None:
            return None
        return re.sub(
            r"\b\d+\b",
            lambda m: str(int(m.group() != "0")),
            value.replace("true", "1").replace("false", "0"),
        )

    return [tuple(flag(v) if one else v for v, one in zip(row, flags, strict=True)) for row in rows]


def _rounded(rows: Rows, floats: Sequence[bool]) -> Rows:
    """Sort the rows by their exact columns, then by their floats rounded to few digits."""

    def key(row: tuple[str | None, ...]) -> str:
        exact = [value for value, inexact in zip(row, floats, strict=True) if not inexact]
        near = [
            _NUMBER.sub(_short, value or "")
            for value, inexact in zip(row, floats, strict=True)
            if inexact
        ]
        return str((exact, near))

    return sorted(rows, key=key)


def _short(match: re.Match[str]) -> str:
    return f"{float(match.group()):.6g}"


def _near(ours: tuple[str | None, ...], theirs: tuple[str | None, ...]) -> bool:
    for one, other in zip(ours, theirs, strict=True):
        if one == other:
            continue
        if one is None or other is None:
            return False
        if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
            return False
        numbers = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
        if not all(
            math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=1e-9) for a, b in numbers
        ):
            return False
    return True


@dataclass(frozen=True)
class Rule:
    """A documented difference: it explains an outcome if all its patterns match."""

    name: str
    outcome: Outcome
    message: str = ""
    statement: str = ""
    types: str = ""
    answers: str = ""

    def explains(
        self, statement: str, outcome: Outcome, message: str, types: str, answers: str
    ) -> bool:
        return (
            outcome == self.outcome
            and re.search(self.message, message) is not None
            and re.search(self.statement, statement) is not None
            and re.search(self.types, types) is not None
            and re.search(self.answers, answers) is not None
        )


_ENDS = r"1970-?01-?01|2149-?0|2106-?02|2105-|2148-|1900-|2299-|9999-|0001-|0000-|-62135596800"
_MOVES = r"(?i)interval|fromUnix|to(Date|DateTime)\w*\(|add[A-Z]|subtract|plus|minus|dateSub|[-+]"
_FLAT = r"(?:[^()\[]|\[[^\]]*\])*"
"""Arguments that call no function, with the types of columns in brackets."""
_MOVED_DATE = r"(plus|minus|add[A-Z]\w+|subtract[A-Z]\w+)\(+to(Date|DateTime)\("
_MOVED_FIRST_DAY = r"(plus|minus|add[A-Z]\w+|subtract[A-Z]\w+)\(+toDate(Time)?\('1970-01-0"
"""A date of the first days of its type, moved: it may be moved before the first one, and on."""
_FLOATING = r"(sin|cos|tan|log|sqrt|divide|exp|pow|hypot|Float)"
_NANS = rf"{_FLOATING}.* IN \(SELECT|IN \(SELECT.*{_FLOATING}"
RULES = (
    # ClickHouse refuses
    Rule("no Variant", "accepted", r"Variant"),
    Rule(
        "no Variant",
        "accepted",
        r"requires at least one argument of type Map",
        statement=r"\b(if|multiIf)\(.*\bmap",
    ),
    Rule("NOT is a function in BETWEEN", "accepted", r"Syntax error", statement=r"BETWEEN not\("),
    Rule(
        "a condition may be any number",
        "accepted",
        r"\(condition\)|Illegal type .* of (first )?argument",
    ),
    Rule(
        "a common type that ClickHouse lacks",
        "accepted",
        r"There is no supertype|different Decimal scales|Illegal types .*of arguments",
    ),
    Rule(
        "states of NULL are states",
        "accepted",
        r"It must be AggregateFunction|must have type AggregateFunction",
    ),
    Rule("NULL without a type has a default", "accepted", r"with type Nothing"),
    Rule("transform takes values of any types", "accepted", r"Function transform has signature"),
    Rule(
        "Decimals are compared exactly",
        "accepted",
        r"Can't compare decimal number|Decimal math overflow",
    ),
    Rule("a limit of ClickHouse's planner", "accepted", r"TOO_MANY_QUERY_PLAN_OPTIMIZATIONS"),
    Rule(
        "a FixedString is a text",
        "accepted",
        r"Illegal column FixedString|got: FixedString|FixedString haystack",
    ),
    Rule("moments stop at the ends of their type", "accepted", r"Numeric overflow"),
    Rule(
        "a length beyond the text is its end",
        "accepted",
        r"Overflow in length|out of bound|Indices in strings",
    ),
    Rule("intDiv of a Decimal(38) is an Int64", "accepted", r"Illegal type Int128"),
    Rule("branches of tuples with a constant", "accepted", r"ColumnTuple cannot have ColumnConst"),
    Rule(
        "a constant of the first SELECT of a UNION",
        "accepted",
        r"values of constants are different in source and result",
        statement=r"UNION|EXCEPT|INTERSECT",
    ),
    Rule(
        "a value that no row needs is computed, or is not",
        "accepted",
        r"Unexpected inf or nan to integer conversion",
        answers=r"^Answer\(types=\(.*Nullable.*None",
    ),
    # olapdb refuses
    Rule("an integer that no Float64 is", "refused", r"no Float64 is this integer"),
    Rule("no Variant", "refused", types=r"Variant\("),
    Rule(
        "a branch that is never taken is checked",
        "refused",
        r"Map cannot have a key|Illegal type Array\(Nullable|it is too long",
        statement=r"if\(",
    ),
    Rule("text that is not UTF-8", "refused", r"not UTF-8"),
    Rule("zero bytes are no number", "refused", statement=r"toDecimal\w+\(.*toFixedString\(''"),
    Rule("a Decimal that overflows", "refused", r"DECIMAL_OVERFLOW"),
    Rule(
        "a value that no row needs is computed, or is not",
        "refused",
        r"Cannot convert NULL value",
        statement=r"\(CAST\(.*\) IS (NOT )?NULL",
    ),
    Rule(
        "a value that no row needs is computed, or is not",
        "refused",
        r"it is too long",
        statement=r"WHERE x\d\S* IS (NOT )?NULL",
    ),
    Rule("bits of integers beyond 64 bits", "refused", r"groupBit", types=r"Int128"),
    # both answer
    Rule(
        "ties are the smallest value",
        "different",
        statement=r"\b(any|argM|first_value|last_value)\w*\(",
    ),
    Rule(
        "a state knows whether a row matched",
        "different",
        statement=r"IfOr(Null|Default)(State|Merge|Array)",
    ),
    Rule("moments stop at the ends of their type", "different", statement=_MOVES, answers=_ENDS),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"(WHERE|GROUP BY|IN).*toDateTime\(",
    ),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"(WHERE|HAVING|IN).*(add|subtract|INTERVAL|toInterval)",
    ),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"(to(Week|Year|Month|Day|YYYY|Hour|Minute|Second)\w*|dateName)\(.*(add|subtract|INTERVAL|minus|plus|toDateTime\()",
    ),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"toDateTime\(+(toDateTime64|\w+\[(Nullable\()?Date)",
    ),
    Rule(
        "moments stop at the ends of their type", "different", statement=rf"{_MOVED_DATE}.*\bIN \('"
    ),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=rf"minus\(.*{_MOVED_DATE}",
        answers=r"-655[0-3]\d",
    ),
    Rule("moments stop at the ends of their type", "different", statement=_MOVED_FIRST_DAY),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"(plus|minus)\(+(add|subtract)\w+\(",
    ),
    Rule(
        "moments stop at the ends of their type",
        "different",
        statement=r"toUnixTimestamp64\w+\(+fromUnixTimestamp64",
    ),
    Rule(
        "least and greatest of Decimals do not overflow",
        "different",
        statement=r"(least|greatest)\(",
        types="Decimal",
    ),
    Rule(
        "least and greatest of Decimals do not overflow",
        "different",
        statement=r"(least|greatest)\(.*Decimal.* IN \(",
    ),
    Rule(
        "IfOrDefault of a Nullable condition is not Nullable",
        "different",
        statement=r"IfOrDefault\(",
        types="Nullable",
    ),
    Rule("intDiv of two signs is exact", "different", statement=r"\bintDiv(OrZero)?\("),
    Rule(
        "equal numbers of a Variant are equal",
        "different",
        statement=r"EXCEPT|INTERSECT|DISTINCT",
        types=r"Variant\(",
    ),
    Rule(
        "IN of Decimals compares exactly",
        "different",
        statement=r"Decimal.*\bIN \(SELECT|IN \(SELECT .*[Dd]ecimal",
    ),
    Rule(
        "a Variant is sorted by type",
        "different",
        statement=r"(?i)sort|min|max|order",
        types=r"Variant\(",
    ),
    Rule(
        "min and max of no rows are the default",
        "different",
        statement=r"\b(min|max)\(.*( [-+*/] |\b(plus|minus|multiply|divide)\().*WHERE (false|0\b)",
    ),
    Rule("states of NULL are states", "different", statement=r"State\(.*NULL"),
    Rule("moments of two zones are instants", "different", statement=r"(?i)(date_?diff|age)\("),
    Rule("assumeNotNull of NULL is the default", "different", statement=r"assumeNotNull\("),
    Rule("NaN of either sign is one value of a set", "different", statement=_NANS),
    Rule(
        "has and its like tell NULL from 0",
        "different",
        statement=r"\bhas(Any|All)\(.*(Nullable|NULL)",
    ),
    Rule("integers rounded beyond their type", "different", statement=r"(round|floor|ceil)\(.*-\d"),
    Rule(
        "the last digit of a float",
        "different",
        statement=r"(hex|toString)\(.*(sin|cos|tan|exp|log|sqrt|cbrt|pow|divide)",
    ),
    Rule(
        "variances of numbers near 2^53", "different", statement=r"\b(corr|covar|stddev|var)\w*\("
    ),
    Rule(
        "a number of a NULL Variant is NULL",
        "different",
        statement=r"\bto(U?Int|Float)\d+\(+(if|multiIf|coalesce|ifNull|CASE)\b",
        answers=r"^Answer\(.*Nullable\(((?:U?Int|Float)\d+)\)'.*None.* Answer\(.*'\1'",
    ),
    Rule(
        "a group of NULL is one group",
        "different",
        statement=rf"\bif\({_FLAT}, NULL, {_FLAT}\) AS k\d.* GROUP BY",
    ),
    Rule(
        "branches of times keep the first zone",
        "different",
        statement=r"\bif\((true|false|1|0), .*'(Asia|America)/",
        types=r"DateTime",
    ),
    Rule(
        "arrayIntersect compares exactly",
        "different",
        statement=r"arrayIntersect\(.*(Float|\d\.\d)",
    ),
    Rule(
        "characters of bytes that are not UTF-8",
        "different",
        statement=r"(left|right|substring)UTF8\(+(substring|left|right|reverse)\(",
        answers=r"\\udc",
    ),
)
"""Each rule has a line in docs/differences.md."""


def explanation(statement: str, ours: Answer | Refusal, theirs: Answer | Refusal) -> str:
    """Return the name of the documented difference that explains these answers, or ""."""
    outcome = _outcome(ours, theirs)
    refused = ours if isinstance(ours, Refusal) else theirs
    message = refused.message if isinstance(refused, Refusal) else ""
    branches = re.search(r"(?i)\b(if|multiif|case|and|or|coalesce|ifnull)\b", statement) is not None
    if isinstance(refused, Refusal) and refused.code in DATA_ERRORS:
        if _is_empty(ours, theirs):
            return "a value that no row needs is computed, or is not"
        if outcome == "accepted" and (branches or "In scope" in message):
            return "a branch, or a constant, is computed where it is needed"
    if branches and _same_values(ours, theirs):
        return "a function of a Variant is Nullable"
    types = ", ".join(theirs.types) if isinstance(theirs, Answer) else ""
    answers = f"{ours} {theirs}"
    found = (r.name for r in RULES if r.explains(statement, outcome, message, types, answers))
    return next(found, "")


def _same_values(ours: Answer | Refusal, theirs: Answer | Refusal) -> bool:
    if not isinstance(ours, Answer) or not isinstance(theirs, Answer):
        return False
    return sorted(ours.rows, key=str) == sorted(theirs.rows, key=str)


DATA_ERRORS = frozenset({6, 27, 32, 38, 41, 53, 69, 70, 72, 131, 153, 349, 376, 407})


def _is_empty(ours: Answer | Refusal, theirs: Answer | Refusal) -> bool:
    return any(isinstance(a, Answer) and not a.rows for a in (ours, theirs))
