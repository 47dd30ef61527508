"""Random expressions over typed columns: templates of every class of function, nested.

Templates come from `function_expressions`, with each column replaced by a place for any expression
of its kind. More are below: conditions, IN, CASE, casts, tuples, maps. The kind of a template's
result is its type in olapdb over the typed table."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from olapdb import functions
from olapdb.errors import Error
from olapdb.functions import Environment
from olapdb.types import (
    UUID,
    Array,
    Boolean,
    DataType,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    FixedString,
    Float,
    Integer,
    Map,
    String,
    Tuple,
    plain,
)
from tests.harness import typed_table
from tests.harness.expressions import Reader
from tests.oracle.function_expressions import FAMILIES, KNOWN_DIFFERENCES
from tests.oracle.random_values import Column

_KINDS: tuple[tuple[type[DataType], str], ...] = (
    (Boolean, "bool"),
    (Integer, "int"),
    (Float, "float"),
    (Decimal, "decimal"),
    (String, "string"),
    (FixedString, "fixed"),
    (Date, "date"),
    (Date32, "date32"),
    (DateTime, "datetime"),
    (DateTime64, "datetime64"),
    (UUID, "uuid"),
    (Map, "map"),
)
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "int": (
        "0",
        "1",
        "-1",
        "3",
        "255",
        "-128",
        "65536",
        "toInt8(5)",
        "toUInt64(7)",
        "toInt64(-7)",
        "toUInt64('18446744073709551615')",
        "toInt64('-9223372036854775808')",
        "toNullable(2)",
    ),
    "float": ("0.5", "-2.5", "toFloat32(0.1)", "1e10", "toNullable(1.5)"),
    "decimal": ("toDecimal32(1.5, 2)", "toDecimal64(-3, 4)", "toDecimal128(7, 1)"),
    "string": ("''", "'a'", "'hello world'", "'x\\ny'", "'Ä'", "'12'", "toNullable('b')"),
    "fixed": ("toFixedString('ab', 3)", "toFixedString('', 2)"),
    "date": ("toDate('2024-03-01')", "toDate('1970-01-02')"),
    "date32": ("toDate32('1960-02-03')", "toDate32('2024-03-01')"),
    "datetime": (
        "toDateTime('2024-03-01 10:20:30')",
        "toDateTime('2020-01-01 00:00:00', 'Asia/Tokyo')",
    ),
    "datetime64": (
        "toDateTime64('2024-03-01 10:20:30.125', 3)",
        "toDateTime64('1969-12-31 23:59:59.5', 1, 'UTC')",
    ),
    "uuid": ("toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')",),
    "map": ("map('a', toUInt64(1))",),
    "tuple": ("(toUInt8(1), 'a')",),
    "triple": ("(toInt64(-1), 0.5, 'a')",),
    "array int": ("[1, 2]", "[toInt64(-1), 5]", "[toUInt64(1)]"),
    "array string": ("['a', 'b']", "['']"),
    "array float": ("[0.5, 2]",),
}
_COMPARABLE = ("int", "float", "decimal", "string", "date", "datetime", "datetime64", "date32")
_MORE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "int",
        (
            "if({bool}, {int}, {int})",
            "coalesce({int}, {int}, 0)",
            "ifNull({int}, {int})",
            "CASE WHEN {bool} THEN {int} WHEN {bool} THEN {int} ELSE {int} END",
            "CASE {int} WHEN 1 THEN 10 WHEN {int} THEN 20 END",
            "least({int}, {int})",
            "greatest({int}, {int})",
            "has({array int}, {int})",
            "indexOf({array int}, {int})",
            "countEqual({array string}, {string})",
            "{int} % 7",
            "intDiv({int}, 3)",
            "-{int}",
            "{array int}[1]",
            "{map}['a']",
            "length({map})",
            "tupleElement({tuple}, 1)",
            "CAST({int} AS Int64)",
            "CAST({int} AS Nullable(UInt64))",
            "{decimal}::Int64",
            "toInt32OrNull({string})",
            "toUInt8OrZero({string})",
            "length({fixed})",
            "accurateCastOrNull({int}, 'Int8')",
            "length(if({bool}, {fixed}, {string}))",
            "transform({int}, [0, 1, 5], [7, 8, 9], 3)",
            "nullIf({int}, {int})",
            "toRelativeDayNum({date32})",
            "toInt64({datetime64})",
            "toUInt32({date})",
        ),
    ),
    (
        "bool",
        (
            "{int} IN (0, 1, 255, -1, -9007199254740993)",
            "{int} NOT IN (1, 3, 18446744073709551615)",
            "{string} IN ('a', 'x', '')",
            "{date} IN ('2024-02-29', '1970-01-01')",
            "{float} IN (0.1, 2.5, 0)",
            "{decimal} IN (1.5, 3)",
            "{fixed} IN ('a', 'abc')",
            "({int}, {string}) IN ((1, 'a'), (255, ''))",
            "{int} IN (SELECT number FROM numbers(4))",
            "{int} IN (SELECT toInt8(number) - 2 FROM numbers(4))",
            "{int} BETWEEN {int} AND {int}",
            "{string} LIKE '%a%'",
            "{string} NOT LIKE 'h_llo%'",
            "{string} ILIKE 'A%'",
            "match({string}, 'x.y')",
            "{int} IS NULL",
            "{string} IS NOT NULL",
            "NOT {bool}",
            "{bool} AND {bool}",
            "{bool} OR {bool}",
            "xor({bool}, {bool})",
            "{int} = {int}",
            "{int} < {float}",
            "{float} >= {int}",
            "{int} != {decimal}",
            "{date} < {datetime}",
            "{datetime} <= {datetime64}",
            "{string} > {string}",
            "{fixed} = {string}",
            "{uuid} = {uuid}",
            "({int}, {string}) < ({int}, {string})",
            "{array int} = {array int}",
            "hasAny({array int}, {array int})",
            "hasAll({array string}, ['a'])",
            "{date} = '2024-02-29'",
            "{int} IS NOT DISTINCT FROM {int}",
            "empty({string})",
            "isNaN({float})",
            "mapContains({map}, 'a')",
            "{int} > 0",
            "{int} <= 5",
        ),
    ),
    (
        "string",
        (
            "if({bool}, {string}, {string})",
            "if({bool}, {fixed}, {string})",
            "multiIf({bool}, {string}, {bool}, {fixed}, 'z')",
            "coalesce({string}, {string})",
            "CASE {int} WHEN 0 THEN {string} ELSE 'none' END",
            "toString({int})",
            "toString({datetime})",
            "toString({array int})",
            "{string} || {string}",
            "concat({string}, '-', {int})",
            "transform({string}, ['a', 'x'], ['A', 'X'], 'other')",
            "replaceRegexpAll({string}, '.', '*')",
            "extract({string}, '.+')",
            "CAST({fixed} AS String)",
            "{array string}[1]",
            "{array string}[-1]",
            "tupleElement({tuple}, 2)",
            "least({string}, {string})",
            "leftPad({fixed}, 5, '*')",
            "toString({decimal})",
            "toString({float})",
            "hex({fixed})",
            "toTypeName({int})",
            "toString({tuple})",
            "toString({map})",
            "ifNull({fixed}, {string})",
        ),
    ),
    (
        "float",
        (
            "if({bool}, {float}, {float})",
            "{int} / {int}",
            "{decimal} * 1.5",
            "toFloat64({int})",
            "coalesce({float}, 0)",
            "toFloat64OrNull({string})",
            "least({float}, {float})",
            "{array float}[1]",
            "{float} + {int}",
            "round({float}, 1)",
            "CAST({decimal} AS Float64)",
        ),
    ),
    (
        "decimal",
        (
            "if({bool}, {decimal}, {decimal})",
            "{decimal} + {int}",
            "{decimal} - {decimal}",
            "coalesce({decimal}, 0)",
            "CAST({int} AS Decimal(18, 2))",
            "toDecimal64OrNull({string}, 2)",
            "least({decimal}, {int})",
            "round({decimal}, 1)",
            "-{decimal}",
        ),
    ),
    (
        "date",
        (
            "if({bool}, {date}, {date})",
            "toDate({datetime})",
            "toDate({datetime64})",
            "{date} + 1",
            "{date} - INTERVAL 1 MONTH",
            "toDateOrNull({string})",
            "greatest({date}, {date})",
            "coalesce({date}, toDate('2024-01-01'))",
            "toDate({date32})",
        ),
    ),
    ("date32", ("if({bool}, {date32}, {date})", "toDate32({datetime64})", "toDate32({string})")),
    (
        "datetime",
        (
            "if({bool}, {datetime}, {datetime})",
            "toDateTime({datetime64})",
            "{datetime} + 60",
            "toDateTime({datetime})",
            "if({bool}, {date}, {datetime})",
            "least({datetime}, {datetime})",
            "toTimeZone({datetime}, 'Europe/Berlin')",
            "CAST({datetime} AS DateTime)",
            "{datetime} - INTERVAL 1 DAY",
            "toStartOfHour({datetime})",
            "greatest({date}, {datetime})",
        ),
    ),
    (
        "datetime64",
        (
            "if({bool}, {datetime64}, {datetime})",
            "toDateTime64({datetime}, 3)",
            "least({datetime64}, {datetime})",
            "CAST({datetime64} AS DateTime64(1))",
            "{datetime64} + INTERVAL 1 SECOND",
            "toTimeZone({datetime64}, 'America/New_York')",
        ),
    ),
    (
        "array int",
        (
            "[{int}, {int}]",
            "arraySort({array int})",
            "arrayConcat({array int}, {array int})",
            "arrayDistinct({array int})",
            "if({bool}, {array int}, {array int})",
            "range(3)",
            "arrayIntersect({array int}, {array int})",
            "arrayPushBack({array int}, {int})",
            "mapValues({map})",
            "arrayReverse({array int})",
            "arraySlice({array int}, 1, 2)",
        ),
    ),
    (
        "array string",
        (
            "[{string}, {string}]",
            "splitByChar(',', {string})",
            "mapKeys({map})",
            "if({bool}, {array string}, {array string})",
            "extractAll({string}, '[a-z]+')",
        ),
    ),
    ("array float", ("[{float}, {float}]", "arraySort({array float})", "[{int}, {float}]")),
    ("map", ("map('a', {int}, 'b', {int})", "map({string}, {int})", "if({bool}, {map}, {map})")),
    ("triple", ("tuple({int}, {float}, {string})", "if({bool}, {triple}, {triple})")),
    ("tuple", ("({int}, {string})", "if({bool}, ({int}, 'a'), ({int}, {string}))")),
    ("uuid", ("if({bool}, {uuid}, {uuid})", "coalesce({uuid}, {uuid})", "toUUIDOrNull({string})")),
    ("fixed", ("toFixedString(substring({string}, 1, 1), 3)", "if({bool}, {fixed}, {fixed})")),
)
_PLACE = re.compile(r"\{([a-z0-9]+(?: [a-z0-9]+)?)\}")
_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*')")
_SMALL = {"small": ("1", "2", "3", "6"), "step": ("1", "-2", "3", "-4")}
EXCLUDED = re.compile(
    r"\b(gcd|lcm|now|today|yesterday|rand\w*|generateUUID\w*|uptime|version|currentDatabase|hostName"
    r"|serverTimezone|timezone|database|queryID|throwIf|revision|toInt256|ignore|age|addDays\(s"
    r"|parseDateTime\w*)\b"
)
"""Functions without a fixed value, and those whose differences docs/differences.md lists."""
_FORMATTED_SECONDS = re.compile(r"\b(fromUnixTimestamp|FROM_UNIXTIME)\(\{int\}(?=, ')")
"""Their answers differ beyond the years 1 and 9999, and for integers other than Int64."""


_TUPLES = {("int", "string"): "tuple", ("int", "float", "string"): "triple"}


def kind_of(data_type: DataType) -> str:
    """Return the kind of a type's values, "" for those that no template takes."""
    inner = plain(data_type)
    if isinstance(inner, Tuple):
        return _TUPLES.get(tuple(kind_of(e) for e in inner.elements), "")
    if isinstance(inner, Array):
        return f"array {kind_of(inner.inner)}"
    return next((kind for one, kind in _KINDS if isinstance(inner, one)), "")


@dataclass(frozen=True)
class Template:
    """An expression with places for arguments, and the kind of its result."""

    text: str
    """The expression with a place for each argument: `plus({int}, {int})`."""
    kind: str


@cache
def templates() -> Mapping[str, Sequence[Template]]:
    """Return the templates by the kind of their result."""
    made: dict[str, list[Template]] = defaultdict(list)
    for kind, texts in _MORE:
        made[kind] += [Template(text, kind) for text in texts for _ in range(2)]
    reader = Reader(typed_table.values(), typed_table.ROWS, Environment(database="t"))
    kinds = {n: kind_of(v.type) for n, v in reader.table.items()}
    for family, texts in FAMILIES.items():
        if family in ("columns", "errors"):
            continue
        for text in texts:
            if text in KNOWN_DIFFERENCES or EXCLUDED.search(text) or "if(modulo" in text:
                continue
            try:
                kind = kind_of(reader.evaluate(text).type)
            except Error:
                continue
            if kind and kind in CONSTANTS:
                made[kind].append(Template(_with_places(text, kinds), kind))
    return made


def _with_places(text: str, kinds: Mapping[str, str]) -> str:
    def place(match: re.Match[str]) -> str:
        name = match.group()
        if name in _SMALL:
            return f"{{{name}}}"
        return f"{{{kinds[name]}}}" if name in kinds else name

    pieces = _QUOTED.split(text)
    text = "".join(
        piece if at % 2 else re.sub(r"\b\w+\b(?!\()", place, piece)
        for at, piece in enumerate(pieces)
    )
    return _FORMATTED_SECONDS.sub(r"\1(modulo(toInt64({int}), 60000000000)", text)


class Expressions:
    """A generator of expressions over the columns in scope."""

    def __init__(self, draw: random.Random, columns: Sequence[Column]) -> None:
        self.draw = draw
        self.columns: dict[str, list[str]] = defaultdict(list)
        for column in columns:
            self.columns[kind_of(functions.parse_type(column.type_name))].append(column.name)

    def any(self, depth: int) -> str:
        """Draw an expression of any kind."""
        return self.of(self.draw.choice(tuple(CONSTANTS)), depth)

    def of(self, kind: str, depth: int) -> str:
        """Draw an expression of the kind, nested at most `depth` times."""
        draw, known = self.draw, self.columns.get(kind, [])
        chosen = templates().get(kind, ())
        if kind == "int" and draw.random() < 0.05:
            return "NULL"
        if depth <= 0 or not chosen or draw.random() < 0.2:
            if known and draw.random() < 0.8:
                return draw.choice(known)
            return draw.choice(CONSTANTS[kind])
        template = draw.choice(chosen)
        return _PLACE.sub(lambda m: self._argument(m.group(1), depth - 1), template.text)

    def _argument(self, kind: str, depth: int) -> str:
        if kind in _SMALL:
            return self.draw.choice(_SMALL[kind])
        if kind not in CONSTANTS:
            return "NULL"
        if kind == "array int" and self.draw.random() < 0.1:
            kind = "array float"
        made = self.of(kind, depth)
        return f"({made})" if " " in made and made[0] != "(" else made
