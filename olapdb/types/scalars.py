"""Types of single values: numbers, texts, dates and times."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from olapdb.records import dataclass
from olapdb.types.base import DataType, quote_string

DECIMAL128_DIGITS = 38
"""The most digits that Arrow's 128-bit decimals hold."""


@dataclass(frozen=True)
class Integer(DataType):
    """UInt8 to UInt64, Int8 to Int64."""

    bits: int
    signed: bool

    @property
    def name(self) -> str:
        """The name: "UInt8", "Int64"."""
        return f"{'' if self.signed else 'U'}Int{self.bits}"

    @property
    def minimum(self) -> int:
        """The least value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """The greatest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


@dataclass(frozen=True)
class Float(DataType):
    """Float32 or Float64."""

    bits: int

    @property
    def name(self) -> str:
        """The name: "Float32" or "Float64"."""
        return f"Float{self.bits}"


@dataclass(frozen=True)
class BFloat16(Float):
    """A 16-bit float: the upper half of a Float32, with its range but only 8 bits of precision. Arrow holds each
    value as Float32."""

    bits: int = 16

    @property
    def name(self) -> str:
        """The name: "BFloat16"."""
        return "BFloat16"


@dataclass(frozen=True)
class ExactFloat(Float):
    """Float64 as the common type of a 64-bit integer and a float, where ClickHouse has a Variant. Casting an integer
    that no Float64 holds exactly is an error."""

    bits: int = 64


@dataclass(frozen=True)
class Decimal(DataType):
    """Decimal(P, S): P digits, 1 to 76, of which S are after the decimal point."""

    precision: int
    scale: int

    @property
    def name(self) -> str:
        """The name: "Decimal(9, 2)"."""
        return f"Decimal({self.precision}, {self.scale})"


@dataclass(frozen=True)
class WideInteger(Decimal):
    """An integer type beyond 64 bits: the common type of UInt64 and a signed integer. ClickHouse has Int128 or
    Variant(Int64, UInt64) here. Arrow and tables hold it as the Decimal in its name; arithmetic treats it as an
    integer, so that a quotient is a Float64."""

    precision: int = 20
    scale: int = 0


@dataclass(frozen=True)
class WideNumber(Decimal):
    """Int128, UInt128, Int256 or UInt256. Arrow holds the integer as the bytes of a decimal (decision 014)."""

    precision: int = 38
    scale: int = 0
    bits: int = 128
    signed: bool = True

    @property
    def name(self) -> str:
        """The name: "Int128"."""
        return f"{'' if self.signed else 'U'}Int{self.bits}"


def wide_number(bits: int, signed: bool) -> WideNumber:
    """Return the integer type of 128 or 256 bits."""
    precision = DECIMAL128_DIGITS if bits == 128 and signed else 2 * DECIMAL128_DIGITS
    return WideNumber(precision, 0, bits, signed)


@dataclass(frozen=True)
class Boolean(DataType):
    """Bool."""

    @property
    def name(self) -> str:
        """The name: "Bool"."""
        return "Bool"


@dataclass(frozen=True)
class String(DataType):
    """A string of any bytes, mostly UTF-8; ordered and compared bytewise."""

    @property
    def name(self) -> str:
        """The name: "String"."""
        return "String"


FIXED_STRING_BYTES_MAX = 0xFF_FF_FF


@dataclass(frozen=True)
class FixedString(DataType):
    """A string of exactly `length` bytes; shorter values are padded with zero bytes."""

    length: int

    @property
    def name(self) -> str:
        """The name: "FixedString(16)"."""
        return f"FixedString({self.length})"


@dataclass(frozen=True)
class Date(DataType):
    """A day from 1970-01-01 to 2149-06-06."""

    @property
    def name(self) -> str:
        """The name: "Date"."""
        return "Date"


@dataclass(frozen=True)
class Date32(DataType):
    """A day from 0001-01-01 to 9999-12-31."""

    @property
    def name(self) -> str:
        """The name: "Date32"."""
        return "Date32"


@dataclass(frozen=True)
class DateTime(DataType):
    """A second from 1970-01-01 to 2106-02-07; `zone` None means the warehouse's zone."""

    zone: str | None = None

    @property
    def name(self) -> str:
        """The name: "DateTime", or with a zone "DateTime('UTC')"."""
        return "DateTime" if self.zone is None else f"DateTime('{self.zone}')"


@dataclass(frozen=True)
class DateTime64(DataType):
    """A timestamp with `precision` digits of a second, 0 to 9.

    Arrow stores it in the coarsest unit of s, ms, us, ns that has the precision.
    """

    precision: int
    zone: str | None = None

    @property
    def name(self) -> str:
        """The name: "DateTime64(3)", or with a zone "DateTime64(3, 'UTC')"."""
        zone = "" if self.zone is None else f", '{self.zone}'"
        return f"DateTime64({self.precision}{zone})"

    @property
    def unit(self) -> str:
        """Arrow's unit of a value: "s", "ms", "us" or "ns"."""
        return ("s", "ms", "us", "ns")[-(-self.precision // 3)]


@dataclass(frozen=True)
class Time(DataType):
    """A span of whole seconds, -999:59:59 to 999:59:59, shown as a clock: a time of day or longer.

    Arrow holds the seconds as int32; users get a duration of seconds (`exported` in `arrow`).
    """

    precision: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """The name: "Time"."""
        return "Time"


@dataclass(frozen=True)
class Time64(DataType):
    """A Time with `precision` digits of a second, 0 to 9: -999:59:59.9… to 999:59:59.9….

    Arrow holds 10 ** precision ticks of a second as int64; users get a duration in the coarsest
    unit of s, ms, us, ns that has the precision.
    """

    precision: int

    @property
    def name(self) -> str:
        """The name: "Time64(3)"."""
        return f"Time64({self.precision})"


def duration_unit(data_type: Time | Time64) -> str:
    """Return Arrow's unit of the durations that users get: "s", "ms", "us" or "ns"."""
    return ("s", "ms", "us", "ns")[-(-data_type.precision // 3)]


@dataclass(frozen=True)
class UUID(DataType):
    """A UUID: 16 bytes in the order of its text."""

    @property
    def name(self) -> str:
        """The name: "UUID"."""
        return "UUID"


@dataclass(frozen=True)
class IPv4(DataType):
    """An IPv4 address: a number of 32 bits, shown as 10.0.0.1."""

    @property
    def name(self) -> str:
        """The name: "IPv4"."""
        return "IPv4"


@dataclass(frozen=True)
class IPv6(DataType):
    """An IPv6 address: 16 bytes in the order of its text."""

    @property
    def name(self) -> str:
        """The name: "IPv6"."""
        return "IPv6"


@dataclass(frozen=True)
class Enum(DataType):
    """Enum8 or Enum16: texts that are kept, compared and sorted as numbers.

    `elements` are (text, number), sorted by number; neither repeats. `bits` is 8 or 16.
    """

    bits: int
    elements: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """The name: "Enum8('a' = 1, 'b' = 2)"."""
        inner = ", ".join(f"{quote_string(text)} = {number}" for text, number in self.elements)
        return f"Enum{self.bits}({inner})"

    @property
    def number_type(self) -> Integer:
        """The type of the numbers: Int8 or Int16."""
        return Integer(self.bits, True)

    @cached_property
    def texts(self) -> dict[int, str]:
        """The text of each number."""
        return {number: text for text, number in self.elements}


@dataclass(frozen=True)
class Nothing(DataType):
    """The type of NULL and of the elements of `[]`."""

    @property
    def name(self) -> str:
        """The name: "Nothing"."""
        return "Nothing"


@dataclass(frozen=True)
class Interval(DataType):
    """A number of units `unit`, one of `INTERVAL_UNITS`; only inside expressions."""

    unit: str

    @property
    def name(self) -> str:
        """The name: "IntervalDay"."""
        return f"Interval{self.unit}"


INTERVAL_UNITS = (
    "Nanosecond",
    "Microsecond",
    "Millisecond",
    "Second",
    "Minute",
    "Hour",
    "Day",
    "Week",
    "Month",
    "Quarter",
    "Year",
)

UINT8, UINT16, UINT32, UINT64 = (Integer(b, False) for b in (8, 16, 32, 64))
INT8, INT16, INT32, INT64 = (Integer(b, True) for b in (8, 16, 32, 64))
FLOAT32, FLOAT64, BFLOAT16 = Float(32), Float(64), BFloat16()
INT128, INT256 = wide_number(128, True), wide_number(256, True)
UINT128, UINT256 = wide_number(128, False), wide_number(256, False)
BOOL, STRING, DATE, DATE32, DATETIME = Boolean(), String(), Date(), Date32(), DateTime()
UUID_TYPE, IPV4, IPV6, NOTHING, TIME = UUID(), IPv4(), IPv6(), Nothing(), Time()
WIDE_INTEGER, WIDE_SUM, EXACT_FLOAT = WideInteger(), WideInteger(38), ExactFloat()
