"""Types of single values: numbers, texts, dates and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from olapdb.types.base import UTC, DataType

if TYPE_CHECKING:
    import pyarrow as pa


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
class ExactFloat(Float):
    """The common type of a 64-bit integer and a float, where ClickHouse has a Variant.

    A Float64 to which an integer converts only where the Float64 holds it exactly; a cast of
    another one is an error.
    """

    bits: int = 64


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
class WideInteger(Decimal):
    """Integers beyond 64 bits: the common type of UInt64 and a signed integer.

    ClickHouse has Int128 or Variant(Int64, UInt64) here.  Arrow and tables hold it as the Decimal
    that its name says; arithmetic treats it as an integer, so that a quotient is a Float64.
    """

    precision: int = 20
    scale: int = 0


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
    """Days from 0001-01-01 to 9999-12-31."""

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


UINT8, UINT16, UINT32, UINT64 = (Integer(b, False) for b in (8, 16, 32, 64))
INT8, INT16, INT32, INT64 = (Integer(b, True) for b in (8, 16, 32, 64))
FLOAT32, FLOAT64 = Float(32), Float(64)
BOOL, STRING, DATE, DATE32, DATETIME = Boolean(), String(), Date(), Date32(), DateTime()
UUID_TYPE, NOTHING = UUID(), Nothing()
WIDE_INTEGER, WIDE_SUM, EXACT_FLOAT = WideInteger(), WideInteger(38), ExactFloat()
