"""generateRandom: rows of random values, as a query over numbers(), so that nothing else runs it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from olapdb import errors, types
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.relation import Relation
from olapdb.bind.structures import parse_structure
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import Constant
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.sql.literals import quote_name, quote_string
from olapdb.sql.parser import parse_query
from olapdb.types import DataType

_LENGTH = 10
"""The default of the longest text, and of the longest array."""
_ONE_IN = 16
"""One of so many values of a Nullable column is NULL."""
_TWO_64 = 1 << 64
_DAYS = 146_097
_DIGITS = 18


def random_query(
    queries: QueryBinder, source: sql.TableFunction, context: BindContext
) -> sql.Query:
    """Return the query of `generateRandom('structure'[, seed[, length of texts[, of arrays]]])`.

    Raises NumberOfArgumentsDoesntMatch, BadArguments, and NotSupportedError without a structure or
    for a type without random values."""
    if len(source.arguments) > 4:
        raise errors.NumberOfArgumentsDoesntMatch(
            "generateRandom takes a structure, a seed, and the longest text and array."
        )
    empty = Relation((), lambda: plan.Values((), pa.table({})))
    binder = ExpressionBinder(queries, empty, context)
    values = [_constant(binder, argument) for argument in source.arguments]
    if not values or not isinstance(values[0], str):
        raise errors.NotSupportedError(
            "generateRandom without a structure is not supported.",
            hint="Name the columns: generateRandom('a UInt8, b String').",
            position=source.position,
        )
    rest: list[object] = [*values[1:], None, None, None]
    seed, longest_text, longest_array = rest[:3]
    columns = [
        f"{_Values(_seed(seed), at, _length(longest_text), _length(longest_array)).of(kind)}"
        f" AS {quote_name(name)}"
        for at, (name, kind) in enumerate(parse_structure(values[0], with_defaults=True))
    ]
    return parse_query(f"SELECT {', '.join(columns)} FROM numbers()")


def _constant(binder: ExpressionBinder, argument: sql.Expression) -> object:
    """Return the value of an argument. Raise BadArguments unless it is a constant."""
    bound = binder.bind(argument)
    if not isinstance(bound, Constant):
        raise errors.BadArguments("The arguments of generateRandom are constants.")
    return bound.value.as_py()


def _seed(value: object) -> str:
    """Return the seed as an SQL expression: a text, or for None rand64(), which differs from row to row. Raises
    BadArguments for a negative number and other values."""
    if value is None:
        return "rand64()"
    if not isinstance(value, int) or value < 0:
        raise errors.BadArguments("The seed of generateRandom is a number from 0 on.")
    return quote_string(str(value))


def _length(value: object) -> int:
    """Return the greatest length of texts or arrays, `_LENGTH` for None. Raises BadArguments for a negative number and
    other values."""
    if value is None:
        return _LENGTH
    if not isinstance(value, int) or value < 0:
        raise errors.BadArguments("The lengths of generateRandom are numbers from 0 on.")
    return value


@dataclass(frozen=True)
class _Values:
    """Random values of a column as expressions of SQL: each is a hash of the row, the place of the
    column, and the places within arrays, `within`."""

    seed: str
    place: int
    longest_text: int
    longest_array: int
    within: tuple[str, ...] = ()

    def hash(self, number: int = 0) -> str:
        """Return the SQL of a pseudo-random UInt64 for each row and place; another `number` gives another value."""
        inner = "".join(f", {argument}" for argument in self.within)
        return f"cityHash64({self.seed}, number, {self.place}, {number}{inner})"

    def inside(self, place: str) -> _Values:
        """Return the values of a member of this container; `place` is an SQL expression that tells members apart."""
        return replace(self, within=(*self.within, place))

    def of(self, data_type: DataType) -> str:
        """Return the SQL expression of random values of the type."""
        return f"CAST({self._bare(data_type)}, {quote_string(data_type.name)})"

    def _bare(self, data_type: DataType) -> str:
        """Return an SQL expression whose values CAST to the type. Raise NotSupportedError for a type without random
        values."""
        number = self.hash()
        match data_type:
            case types.Nullable(inner):
                return f"if({self.hash(9)} % {_ONE_IN} = 0, NULL, {self.of(inner)})"
            case types.LowCardinality(inner):
                return self.of(inner)
            case types.Boolean():
                return f"{number} % 2 = 1"
            case types.WideNumber():
                return " * ".join(f"to{data_type.name}({self.hash(at)})" for at in range(4))
            case types.Integer():
                return number
            case types.Float():
                return f"{number} / {_TWO_64}"
            case types.Decimal():
                return self._decimal(data_type)
            case types.Enum():
                names = ", ".join(quote_string(name) for name, _ in data_type.elements)
                return f"arrayElement([{names}], {number} % {len(data_type.elements)} + 1)"
            case types.String():
                return self._text(f"{number} % {self.longest_text + 1}")
            case types.FixedString(length):
                return self._text(str(length))
            case types.UUID() | types.IPv6() | types.IPv4():
                return self._address(data_type)
            case types.Array() | types.Map() | types.Tuple():
                return self._container(data_type)
            case _:
                return self._time(data_type)

    def _text(self, length: str) -> str:
        """Return the SQL of a random ASCII text; `length` is the SQL of its number of bytes."""
        letter = f"t{len(self.within)}"
        code = f"32 + {self.inside(letter).hash(1)} % 95"
        return f"arrayStringConcat(arrayMap({letter} -> char({code}), range({length})))"

    def _decimal(self, data_type: types.Decimal) -> str:
        """Return the text of a decimal."""
        whole = 10 ** min(data_type.precision - data_type.scale, _DIGITS)
        text = f"toString(toInt64({self.hash()} % {whole}))"
        if data_type.scale:
            digits = min(data_type.scale, _DIGITS)
            part = f"leftPad(toString({self.hash(1)} % {10**digits}), {digits}, '0')"
            text = f"concat({text}, '.', {part})"
        return f"if({self.hash(2)} % 2 = 0, {text}, concat('-', {text}))"

    def _address(self, data_type: DataType) -> str:
        """Return the text of a UUID or an address, an IPv4 as its number."""
        if isinstance(data_type, types.IPv4):
            return f"toIPv4(toUInt32({self.hash()} % {1 << 32}))"
        halves = (f"leftPad(lower(hex({self.hash(at)})), 16, '0')" for at in range(2))
        digits = f"concat({', '.join(halves)})"
        if isinstance(data_type, types.UUID):
            sizes, mark = [8, 4, 4, 4, 12], "-"
        else:
            sizes, mark = [4] * 8, ":"
        starts = [sum(sizes[:at]) + 1 for at in range(len(sizes))]
        parts = [f"substring({digits}, {s}, {n})" for s, n in zip(starts, sizes, strict=True)]
        return f"concat({f', {quote_string(mark)}, '.join(parts)})"

    def _container(self, data_type: types.Array | types.Map | types.Tuple) -> str:
        """Return an expression of random values of an array, a map or a tuple."""
        if isinstance(data_type, types.Tuple):
            members = (self.inside(str(at)).of(kind) for at, kind in enumerate(data_type.elements))
            return f"tuple({', '.join(members)})"
        size = f"range({self.hash(3)} % {self.longest_array + 1})"
        place = f"a{len(self.within)}"
        if isinstance(data_type, types.Array):
            return f"arrayMap({place} -> {self.inside(place).of(data_type.inner)}, {size})"
        parts = (
            f"arrayMap({place} -> {self.inside(place).inside(str(at)).of(kind)}, {size})"
            for at, kind in enumerate((data_type.key, data_type.value))
        )
        return f"({', '.join(parts)})"

    def _time(self, data_type: DataType) -> str:
        """Return a day or a time. Raise NotSupportedError for other types."""
        match data_type:
            case types.Date():
                return f"toUInt16({self.hash()} % 65536)"
            case types.Date32():
                return f"toDate32('1900-01-01') + {self.hash()} % {_DAYS}"
            case types.DateTime():
                return f"toUInt32({self.hash()} % {1 << 32})"
            case types.DateTime64():
                seconds = f"toDateTime64(toUInt32({self.hash()} % {1 << 32}), 6)"
                return f"addMicroseconds({seconds}, {self.hash(1)} % 1000000)"
            case _:
                raise errors.NotSupportedError(f"generateRandom has no values of type {data_type}.")
