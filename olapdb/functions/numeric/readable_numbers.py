"""Numbers as texts for people: formatReadableSize, …DecimalSize, …Quantity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalColumn, IllegalTypeOfArgument
from olapdb.functions.base import Argument
from olapdb.functions.numeric.maths import floats
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, fixed_rule
from olapdb.types import STRING, UINT8, DataType, Decimal, Float, Integer


def _readable(units: tuple[str, ...], step: float) -> Kernel:
    """Return a kernel that divides numbers by `step` while they are at least `step`, and writes them with the unit
    reached.

    There are two digits after the point, or as many as the second argument says."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Write each number with the largest of the units of which it has at least one."""
        values = floats(arrays[0])
        digits = _digits(call)
        power = np.zeros(len(values), np.int64)
        scaled = values.copy()
        for _ in range(len(units) - 1):
            large = np.abs(scaled) >= step
            scaled = np.where(large, scaled / step, scaled)
            power = power + large
        names = pa.array(units).take(pa.array(power))
        return pc.binary_join_element_wise(_written(scaled, digits), names, "")

    return kernel


def _digits(call: Invocation) -> int:
    """Return the digits after the point that the second argument asks for; 2 without it."""
    digits = call.constant(1)
    return int(digits) if isinstance(digits, int) else 2


def _written(values: np.ndarray, digits: int) -> pa.Array:
    """Return numbers as texts with `digits` digits after the point."""
    return pa.array(np.char.mod(f"%.{digits}f", values).astype(object), pa.string())


_BINARY = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", " ZiB", " YiB")


_DECIMAL = (" B", " KB", " MB", " GB", " TB", " PB", " EB", " ZB", " YB")


_QUANTITY = (
    "",
    " thousand",
    " million",
    " billion",
    " trillion",
    " quadrillion",
    " quintillion",
    " sextillion",
    " septillion",
    " octillion",
    " nonillion",
    " decillion",
    " undecillion",
    " duodecillion",
    " tredecillion",
    " quattuordecillion",
    " quindecillion",
    " sexdecillion",
    " septendecillion",
    " octodecillion",
    " novemdecillion",
    " vigintillion",
)


_NUMBER = fixed_rule(STRING, (Integer, Float, Decimal), "a number", checked=1)


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String.

    Raises IllegalTypeOfArgument unless a number is given, and digits that are a constant from 0 to 60; IllegalColumn
    for digits that are no constant."""
    if len(types) == 2:
        digits = arguments[1].constant
        if digits is None and types[1] == UINT8:
            raise IllegalColumn(
                f"The digits after the point, argument 2 of {name}, are a constant."
            )
        value = digits.as_py() if digits is not None else None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 60:
            raise IllegalTypeOfArgument(
                f"The digits after the point, argument 2 of {name}, are a constant from 0 to 60."
            )
    return _NUMBER(name, types, arguments)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define(
        "formatReadableSize",
        _rule,
        _readable(_BINARY, 1024.0),
        count=(1, 2),
        aliases=("FORMAT_BYTES",),
        insensitive=True,
    ),
    define("formatReadableDecimalSize", _rule, _readable(_DECIMAL, 1000.0), count=(1, 2)),
    define("formatReadableQuantity", _rule, _readable(_QUANTITY, 1000.0), count=(1, 2)),
)
