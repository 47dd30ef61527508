"""The conversion functions by name: the type that each converts to, and what it takes behind the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb import types
from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalColumn, NotSupportedError
from olapdb.functions.base import Argument
from olapdb.functions.datetime.zones import own_zone
from olapdb.functions.scalar import constant_integer, constant_zone
from olapdb.records import dataclass

Target = Callable[[str, Sequence[Argument]], types.DataType]


@dataclass(frozen=True)
class ConversionFunction:
    """A conversion function: `target` computes its target type from the arguments.

    `extra` has the least and the greatest number of arguments after the first."""

    target: Target
    extra: tuple[int, int]
    aliases: tuple[str, ...] = ()


def _fixed(data_type: types.DataType) -> Target:
    """Return a function that gives `data_type` as the target, whatever the arguments."""
    return lambda name, arguments: data_type


def _zoned(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the target of toDateTime(x[, zone]): a DateTime with that zone, else with the zone of x if it has one."""
    if len(arguments) > 1:
        return types.DateTime(constant_zone(name, arguments, 1))
    return types.DateTime(own_zone(arguments[0].type))


def _zoned64(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the DateTime64 of toDateTime64(x, precision[, zone]); without a zone it has the
    source's.

    The precision is 3 if absent. Raises ArgumentOutOfBound unless it is from 0 to 9.
    """
    precision = constant_integer(name, arguments, 1, "the precision") if len(arguments) > 1 else 3
    if not 0 <= precision <= 9:
        raise ArgumentOutOfBound(f"DateTime64 has a precision of 0 to 9, not {precision}.")
    if len(arguments) > 2:
        return types.DateTime64(precision, constant_zone(name, arguments, 2))
    return types.DateTime64(precision, own_zone(arguments[0].type))


def _time64(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the Time64 of toTime64(x, precision); the precision is 3 if absent.

    Raises BadArguments for a precision above 9, and ArgumentOutOfBound below 0."""
    precision = constant_integer(name, arguments, 1, "the precision") if len(arguments) > 1 else 3
    if precision < 0:
        raise ArgumentOutOfBound(f"Time64 has a precision of 0 to 9, not {precision}.")
    if precision > 9:
        raise BadArguments(f"Time64 has a precision of 0 to 9, not {precision}.")
    return types.Time64(precision)


def _decimal(precision: int) -> Target:
    """Return the function that gives the Decimal type, with `precision` digits, of toDecimal…(x, scale)."""

    def target(name: str, arguments: Sequence[Argument]) -> types.DataType:
        """Return the Decimal; raise ArgumentOutOfBound for a scale outside 0 … precision."""
        scale = constant_integer(name, arguments, 1, "the scale")
        if not 0 <= scale <= precision:
            raise ArgumentOutOfBound(f"The scale of {name} is 0 to {precision}, not {scale}.")
        return types.Decimal(precision, scale)

    return target


def fixed_string_type(name: str, arguments: Sequence[Argument]) -> types.DataType:
    """Return the type of toFixedString(x, length).

    Raises ArgumentOutOfBound for a length that no FixedString has, NotSupportedError unless x is a
    text."""
    if not isinstance(
        types.plain(arguments[0].type), types.String | types.FixedString | types.Nothing
    ):
        raise NotSupportedError(
            f"{name} takes a text, not {arguments[0].type}: toString(x) is one."
        )
    length_type = types.plain(arguments[1].type)
    unsigned = isinstance(length_type, types.Integer) and not length_type.signed
    if not unsigned and not isinstance(length_type, types.Nothing):
        raise IllegalColumn(f"The length of {name} is an unsigned integer, not {length_type}.")
    length = constant_integer(name, arguments, 1, "the length")
    longest = types.FIXED_STRING_BYTES_MAX
    if not 1 <= length <= longest:
        raise ArgumentOutOfBound(f"A FixedString has 1 to {longest} bytes, not {length}.")
    return types.FixedString(length)


_NO_EXTRA = (0, 0)
CONVERSIONS: dict[str, ConversionFunction] = {
    **{
        f"to{t.name}": ConversionFunction(_fixed(t), _NO_EXTRA)
        for t in (
            types.UINT8,
            types.UINT16,
            types.UINT32,
            types.UINT64,
            types.INT8,
            types.INT16,
            types.INT32,
            types.INT64,
            types.INT128,
            types.UINT128,
            types.INT256,
            types.UINT256,
            types.BFLOAT16,
            types.FLOAT32,
            types.FLOAT64,
            types.DATE32,
        )
    },
    "toDate": ConversionFunction(_fixed(types.DATE), (0, 1)),
    "toDateTime": ConversionFunction(_zoned, (0, 1)),
    "toDateTime64": ConversionFunction(_zoned64, (1, 2)),
    "toDecimal32": ConversionFunction(_decimal(9), (1, 1)),
    "toDecimal64": ConversionFunction(_decimal(18), (1, 1)),
    "toDecimal128": ConversionFunction(_decimal(38), (1, 1)),
    "toDecimal256": ConversionFunction(_decimal(76), (1, 1)),
    "toTime": ConversionFunction(_fixed(types.TIME), _NO_EXTRA),
    "toTime64": ConversionFunction(_time64, (1, 1)),
    "toUUID": ConversionFunction(_fixed(types.UUID_TYPE), _NO_EXTRA),
    "toIPv4": ConversionFunction(_fixed(types.IPV4), _NO_EXTRA),
    "toIPv6": ConversionFunction(_fixed(types.IPV6), _NO_EXTRA),
}
