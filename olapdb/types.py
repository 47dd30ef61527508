"""ClickHouse's data types, their names and their Arrow form.

A `DataType` is a frozen value; `str(t)` is ClickHouse's name of it, `t.arrow` the Arrow type that
columns of it have in memory and in parts.  The Arrow form is chosen so that any Parquet reader
opens a part: no dictionaries, no extension types; a `LowCardinality(T)` is a plain `T`, a
`Nullable(T)` the same Arrow type with nulls, a `DateTime` a timestamp in seconds with its zone.
Everything that is not inside `Nullable` holds no null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    IllegalTypeOfArgument,
    SyntaxError,
    UnexpectedAstStructure,
    UnknownType,
)

if TYPE_CHECKING:
    import pyarrow as pa

UTC = "UTC"


@dataclass(frozen=True)
class DataType:
    """Base of all types. Equality and hash are by value."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column; nullability is not part of it."""
        import pyarrow as pa

        return self._arrow(pa)

    def _arrow(self, pa_module: object) -> pa.DataType:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Integer(DataType):
    """UInt8…UInt64, Int8…Int64."""

    bits: int
    signed: bool

    @property
    def name(self) -> str:
        return f"{'' if self.signed else 'U'}Int{self.bits}"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        made: pa.DataType = getattr(pa, self.name.lower())()
        return made

    @property
    def minimum(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


@dataclass(frozen=True)
class Float(DataType):
    bits: int

    @property
    def name(self) -> str:
        return f"Float{self.bits}"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.float32() if self.bits == 32 else pa.float64()


@dataclass(frozen=True)
class Decimal(DataType):
    """Decimal(P, S), P up to 76."""

    precision: int
    scale: int

    @property
    def name(self) -> str:
        return f"Decimal({self.precision}, {self.scale})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        if self.precision <= 38:
            return pa.decimal128(self.precision, self.scale)
        return pa.decimal256(self.precision, self.scale)


@dataclass(frozen=True)
class Boolean(DataType):
    @property
    def name(self) -> str:
        return "Bool"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.bool_()


@dataclass(frozen=True)
class String(DataType):
    """Bytes by ClickHouse's meaning, mostly UTF-8; ordered and compared bytewise."""

    @property
    def name(self) -> str:
        return "String"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.string()


@dataclass(frozen=True)
class FixedString(DataType):
    """Exactly `length` bytes, shorter values padded with zero bytes."""

    length: int

    @property
    def name(self) -> str:
        return f"FixedString({self.length})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.binary(self.length)


@dataclass(frozen=True)
class Date(DataType):
    """Days from 1970-01-01 to 2149-06-06."""

    @property
    def name(self) -> str:
        return "Date"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.date32()


@dataclass(frozen=True)
class Date32(DataType):
    """Days from 1900-01-01 to 2299-12-31."""

    @property
    def name(self) -> str:
        return "Date32"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.date32()


@dataclass(frozen=True)
class DateTime(DataType):
    """Seconds from 1970-01-01 to 2106-02-07; `zone` None means the warehouse's zone."""

    zone: str | None = None

    @property
    def name(self) -> str:
        return "DateTime" if self.zone is None else f"DateTime('{self.zone}')"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.timestamp("s", tz=self.zone or UTC)


@dataclass(frozen=True)
class DateTime64(DataType):
    """Ticks of 10^-precision seconds; stored in the next unit of s, ms, us, ns that holds it."""

    precision: int
    zone: str | None = None

    @property
    def name(self) -> str:
        zone = "" if self.zone is None else f", '{self.zone}'"
        return f"DateTime64({self.precision}{zone})"

    @property
    def unit(self) -> str:
        return ("s", "ms", "us", "ns")[-(-self.precision // 3)]

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.timestamp(self.unit, tz=self.zone or UTC)


@dataclass(frozen=True)
class UUID(DataType):
    """16 bytes, big-endian as printed."""

    @property
    def name(self) -> str:
        return "UUID"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.binary(16)


@dataclass(frozen=True)
class Nothing(DataType):
    """The type of NULL and of the elements of `[]`."""

    @property
    def name(self) -> str:
        return "Nothing"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.null()


@dataclass(frozen=True)
class Interval(DataType):
    """A number of `unit`s ("Second", "Minute", … "Year"); only inside expressions."""

    unit: str

    @property
    def name(self) -> str:
        return f"Interval{self.unit}"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.int64()


@dataclass(frozen=True)
class Nullable(DataType):
    inner: DataType

    @property
    def name(self) -> str:
        return f"Nullable({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


@dataclass(frozen=True)
class LowCardinality(DataType):
    """A hint only: the values are those of `inner`; Parquet's own dictionaries do the rest."""

    inner: DataType

    @property
    def name(self) -> str:
        return f"LowCardinality({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


@dataclass(frozen=True)
class Array(DataType):
    inner: DataType

    @property
    def name(self) -> str:
        return f"Array({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(self.inner.arrow)


@dataclass(frozen=True)
class Tuple(DataType):
    """`names` is empty for an unnamed tuple; its Arrow fields are then called 1, 2, …"""

    elements: tuple[DataType, ...]
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if self.names:
            inner = ", ".join(
                f"{quote_identifier(n)} {t.name}"
                for n, t in zip(self.names, self.elements, strict=True)
            )
        else:
            inner = ", ".join(t.name for t in self.elements)
        return f"Tuple({inner})"

    @property
    def field_names(self) -> tuple[str, ...]:
        return self.names or tuple(str(i + 1) for i in range(len(self.elements)))

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.struct(
            [pa.field(n, t.arrow) for n, t in zip(self.field_names, self.elements, strict=True)]
        )


@dataclass(frozen=True)
class Map(DataType):
    key: DataType
    value: DataType

    @property
    def name(self) -> str:
        return f"Map({self.key.name}, {self.value.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        # {} is a Map(Nothing, …), but Arrow's keys cannot be of its null type
        key = pa.string() if isinstance(self.key, Nothing) else self.key.arrow
        return pa.map_(key, self.value.arrow)


@dataclass(frozen=True)
class AggregateFunction(DataType):
    """A partial aggregate as a value.

    `function` with combinators ("sumIf"), `parameters` as SQL literals ("0.9"), `arguments` its
    argument types.  `state` is the plain type that represents it (avg: `Tuple(sum, count)`),
    given by the aggregate itself, see `olapdb.functions`; two equal names have equal states.
    """

    function: str
    parameters: tuple[str, ...]
    arguments: tuple[DataType, ...]
    state: DataType = field(compare=False)

    @property
    def name(self) -> str:
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        rest = "".join(f", {a.name}" for a in self.arguments)
        return f"AggregateFunction({self.function}{parameters}{rest})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.state.arrow


@dataclass(frozen=True)
class SimpleAggregateFunction(DataType):
    """A value that merges with itself: `sum`, `min`, `max`, `any`, …; reads as its `inner` type."""

    function: str
    inner: DataType

    @property
    def name(self) -> str:
        return f"SimpleAggregateFunction({self.function}, {self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


UINT8, UINT16, UINT32, UINT64 = (Integer(b, False) for b in (8, 16, 32, 64))
INT8, INT16, INT32, INT64 = (Integer(b, True) for b in (8, 16, 32, 64))
FLOAT32, FLOAT64 = Float(32), Float(64)
BOOL, STRING, DATE, DATE32, DATETIME = Boolean(), String(), Date(), Date32(), DateTime()
UUID_TYPE, NOTHING = UUID(), Nothing()


def is_nullable(data_type: DataType) -> bool:
    """True for Nullable(T), LowCardinality(Nullable(T)), SimpleAggregateFunction(f, Nullable(T))
    and Nothing."""
    match data_type:
        case Nullable() | Nothing():
            return True
        case LowCardinality(inner) | SimpleAggregateFunction(inner=inner):
            return is_nullable(inner)
        case _:
            return False


def plain(data_type: DataType) -> DataType:
    """Without Nullable, LowCardinality and SimpleAggregateFunction around it."""
    while isinstance(data_type, Nullable | LowCardinality | SimpleAggregateFunction):
        data_type = data_type.inner
    return data_type


def make_nullable(data_type: DataType) -> DataType:
    """Nullable(T); unchanged where it is nullable, or cannot be (Array, Map, states)."""
    if is_nullable(data_type) or isinstance(data_type, Array | Map | AggregateFunction):
        return data_type
    if isinstance(data_type, LowCardinality):
        return LowCardinality(make_nullable(data_type.inner))
    if isinstance(data_type, SimpleAggregateFunction):
        return make_nullable(data_type.inner)
    return Nullable(data_type)


def is_number(data_type: DataType) -> bool:
    """Integers, floats, decimals and Bool, whatever is around them."""
    return isinstance(plain(data_type), Integer | Float | Decimal | Boolean)


def quote_identifier(name: str) -> str:
    """Backquoted unless it is a plain word."""
    if name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit():
        return name
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


StateOf = Callable[[str, tuple[str, ...], tuple[DataType, ...]], DataType]
"""(function, parameters as SQL, argument types) -> the type that represents the state."""

_BY_NAME: dict[str, DataType] = {
    **{t.name: t for t in (UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64)},
    **{t.name: t for t in (FLOAT32, FLOAT64, BOOL, STRING, DATE, DATE32, DATETIME)},
    **{t.name: t for t in (UUID_TYPE, NOTHING)},
}
_ALIASES: dict[str, DataType] = {
    "INT": INT32, "INTEGER": INT32, "BIGINT": INT64, "SMALLINT": INT16, "TINYINT": INT8,
    "SIGNED": INT64, "UNSIGNED": UINT64, "DOUBLE": FLOAT64, "REAL": FLOAT32, "FLOAT": FLOAT32,
    "DOUBLE PRECISION": FLOAT64, "VARCHAR": STRING, "TEXT": STRING, "CHAR": STRING,
    "BLOB": STRING, "LONGTEXT": STRING, "CHARACTER": STRING, "BOOL": BOOL, "BOOLEAN": BOOL,
    "TIMESTAMP": DATETIME, "DATE": DATE, "DATETIME": DATETIME, "UUID": UUID_TYPE,
}  # fmt: skip
_WRAPPED = (Nullable, LowCardinality)
_UNITS = ("Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "Day", "Week",
          "Month", "Quarter", "Year")  # fmt: skip
_LATER = frozenset(
    {"Int128", "UInt128", "Int256", "UInt256", "IPv4", "IPv6", "JSON", "Variant", "Dynamic",
     "Time", "Time64", "BFloat16", "Enum8", "Enum16", "Enum", "Nested", "Point", "Ring",
     "Polygon", "MultiPolygon", "QBit", "Object"}
)  # fmt: skip


_PARAMETRIC = (
    "AggregateFunction", "Array", "DateTime64", "Decimal32", "Decimal64", "Decimal128",
    "Decimal256", "FixedString", "LowCardinality", "Map", "Nullable", "SimpleAggregateFunction",
    "Tuple",
)  # fmt: skip


def type_families() -> tuple[tuple[str, int, str], ...]:
    """(name, whether any case is understood, what it is another name of or "") of all types."""
    own = (*_BY_NAME, *_PARAMETRIC, *(f"Interval{unit}" for unit in _UNITS))
    insensitive = {"DATE", "DATETIME", "BOOL", "UUID"}
    families = {name: (name, int(name.upper() in insensitive), "") for name in own}
    families["Decimal"] = ("Decimal", 1, "")
    for name, target in {**_ALIASES, "DEC": Decimal(10, 0), "NUMERIC": Decimal(10, 0)}.items():
        if name not in insensitive:
            shown = "Decimal" if isinstance(target, Decimal) else target.name
            families[name] = (name, 1, shown)
    return tuple(families[name] for name in sorted(families))


def known_zone(zone: str) -> str:
    """The zone, if there is one of that name; BadArguments otherwise."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:  # the last is ZoneInfoNotFoundError
        raise BadArguments(
            f"Cannot load time zone {zone}.", hint="SELECT * FROM system.time_zones lists them."
        ) from error
    return zone


def parse_type(text: str, state_of: StateOf) -> DataType:
    """The type that a ClickHouse type name denotes.

    `state_of` gives the representation of aggregate states; callers use
    `olapdb.functions.parse_type`, which passes the real one.  Raises UnknownType or SyntaxError.
    """
    parser = _TypeParser(text, state_of)
    parsed = parser.parse()
    parser.expect_end()
    return parsed


class _TypeParser:
    """Recursive descent over the few characters that type names have."""

    def __init__(self, text: str, state_of: StateOf) -> None:
        self.text, self.at, self.state_of = text, 0, state_of

    def parse(self) -> DataType:
        name = self._word()
        upper = name.upper()
        if upper == "DOUBLE" and self._peek_word().upper() == "PRECISION":
            self._word()
        if upper in ("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT"):
            follow = self._peek_word().upper()
            if follow in ("SIGNED", "UNSIGNED"):
                self._word()
                signed = _ALIASES[upper]
                if isinstance(signed, Integer):
                    return Integer(signed.bits, follow == "SIGNED")
        if not self._take("("):
            return self._simple(name)
        parsed = self._parametric(name)
        self._expect(")")
        return parsed

    def _simple(self, name: str) -> DataType:
        if name in _BY_NAME:
            return _BY_NAME[name]
        if name.upper() in _ALIASES:
            return _ALIASES[name.upper()]
        if name.upper() in ("DECIMAL", "NUMERIC", "DEC"):
            return Decimal(10, 0)
        if name == "DateTime64":
            return DateTime64(3)
        if name.startswith("Interval") and name[8:] in _UNITS:
            return Interval(name[8:])
        raise self._unknown(name)

    def _parametric(self, name: str) -> DataType:
        upper = name.upper()
        match name:
            case "Nullable":
                return Nullable(self._inside(name, self.parse(), (Array, Map, *_WRAPPED)))
            case "LowCardinality":
                inner = self.parse()
                self._inside(name, plain(inner), (Array, Map, Tuple, Decimal, AggregateFunction))
                return LowCardinality(inner)
            case "Array":
                return Array(self.parse())
            case "Map":
                key = self.parse()
                self._expect(",")
                return Map(key, self.parse())
            case "Tuple":
                return self._tuple()
            case "FixedString":
                length = self._integer()
                if length < 1:
                    raise UnexpectedAstStructure("FixedString needs a length of at least 1.")
                return FixedString(length)
            case "DateTime":
                return DateTime(known_zone(self._string()))
            case "DateTime64":
                precision = self._integer()
                if not 0 <= precision <= 9:
                    raise ArgumentOutOfBound(
                        f"DateTime64 has a precision of 0 to 9, not {precision}."
                    )
                zone = known_zone(self._string()) if self._take(",") else None
                return DateTime64(precision, zone)
            case "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256":
                width = {"32": 9, "64": 18, "128": 38, "256": 76}[name[7:]]
                return self._decimal(width, self._integer())
            case "AggregateFunction":
                return self._aggregate()
            case "SimpleAggregateFunction":
                function = self._word()
                self._expect(",")
                return SimpleAggregateFunction(function, self.parse())
            case _ if upper in ("DECIMAL", "NUMERIC", "DEC"):
                precision = self._integer()
                return self._decimal(precision, self._integer() if self._take(",") else 0)
            case _ if upper in ("VARCHAR", "CHAR", "CHARACTER", "TEXT", "BLOB"):
                self._integer()
                return STRING
            case _ if upper == "TIMESTAMP":
                return DateTime64(self._integer())
            case _:
                raise self._unknown(name)

    def _inside(self, name: str, inner: DataType, refused: tuple[type[DataType], ...]) -> DataType:
        if isinstance(inner, refused):
            raise IllegalTypeOfArgument(f"The type {inner} cannot be inside of {name}.")
        return inner

    def _decimal(self, precision: int, scale: int) -> Decimal:
        if not 1 <= precision <= 76 or not 0 <= scale <= precision:
            raise ArgumentOutOfBound(
                f"Decimal({precision}, {scale}): precision is 1 to 76, scale 0 to the precision."
            )
        return Decimal(precision, scale)

    def _tuple(self) -> DataType:
        names: list[str] = []
        elements: list[DataType] = []
        while True:
            start = self.at
            word = self._word()
            follows = self._peek()
            if follows and follows not in "(,)":
                names.append(word)
                elements.append(self.parse())
            else:
                self.at = start
                elements.append(self.parse())
            if not self._take(","):
                break
        if names and len(names) != len(elements):
            raise SyntaxError(f"Either all or no elements of a tuple have names: {self.text}")
        return Tuple(tuple(elements), tuple(names))

    def _aggregate(self) -> DataType:
        function = self._word()
        parameters: list[str] = []
        if self._take("("):
            while not self._take(")"):
                parameters.append(self._literal())
                self._take(",")
        arguments: list[DataType] = []
        while self._take(","):
            arguments.append(self.parse())
        state = self.state_of(function, tuple(parameters), tuple(arguments))
        return AggregateFunction(function, tuple(parameters), tuple(arguments), state)

    def _unknown(self, name: str) -> UnknownType:
        if name in _LATER:
            return UnknownType(f"The type {name} is ClickHouse's, but olapdb does not have it yet.")
        return UnknownType(f"Unknown data type {name!r} in {self.text!r}.")

    # --- characters

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _peek(self) -> str:
        self._skip()
        return self.text[self.at : self.at + 1]

    def _take(self, symbol: str) -> bool:
        if self._peek() == symbol:
            self.at += 1
            return True
        return False

    def _expect(self, symbol: str) -> None:
        if not self._take(symbol):
            raise SyntaxError(
                f"Expected {symbol!r} at character {self.at + 1} of type {self.text!r}."
            )

    def expect_end(self) -> None:
        if self._peek():
            raise SyntaxError(
                f"Unexpected {self.text[self.at :]!r} after the type in {self.text!r}."
            )

    def _peek_word(self) -> str:
        start = self.at
        self._skip()
        word = self._word() if self._peek().isalpha() else ""
        self.at = start
        return word

    def _word(self) -> str:
        self._skip()
        if self._peek() == "`":
            end = self.text.index("`", self.at + 1)
            word, self.at = self.text[self.at + 1 : end], end + 1
            return word
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] == "_"
        ):
            self.at += 1
        if start == self.at:
            raise SyntaxError(f"Expected a type name at character {start + 1} of {self.text!r}.")
        return self.text[start : self.at]

    def _integer(self) -> int:
        word = self._word()
        if not word.isdigit():
            raise SyntaxError(f"Expected a number, found {word!r} in type {self.text!r}.")
        return int(word)

    def _string(self) -> str:
        literal = self._literal()
        if not literal.startswith("'"):
            raise SyntaxError(f"Expected a quoted string, found {literal} in type {self.text!r}.")
        return literal[1:-1]

    def _literal(self) -> str:
        self._skip()
        start = self.at
        if self._take("'"):
            self.at = self.text.index("'", self.at) + 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",() ":
                self.at += 1
        return self.text[start : self.at]


def arrow_schema(names: Sequence[str], data_types: Sequence[DataType]) -> pa.Schema:
    """An Arrow schema whose fields carry their ClickHouse type in the metadata, under
    `olapdb.type`; nullable only where the type is."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(n, t.arrow, nullable=is_nullable(t), metadata={"olapdb.type": t.name})
            for n, t in zip(names, data_types, strict=True)
        ]
    )
