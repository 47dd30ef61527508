"""Numbers as texts for people: formatReadableSize, …DecimalSize, …Quantity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.numeric.maths import floats
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, fixed_rule
from olapdb.types import STRING, Decimal, Float, Integer


def _readable(units: tuple[str, ...], step: float) -> Kernel:
    """Return a kernel that writes two digits after the point and the largest unit that fits."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Write each number with the largest unit of which it has at least one."""
        values = floats(arrays[0])
        power = np.zeros(len(values), np.int64)
        scaled = values.copy()
        for _ in range(len(units) - 1):
            large = np.abs(scaled) >= step
            scaled = np.where(large, scaled / step, scaled)
            power = power + large
        names = pa.array(units).take(pa.array(power))
        return pc.binary_join_element_wise(_two_digits(scaled), names, "")

    return kernel


def _two_digits(values: np.ndarray) -> pa.Array:
    """Return numbers as texts with two digits after the point."""
    return pa.array(np.char.mod("%.2f", values).astype(object), pa.string())


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


_RULE = fixed_rule(STRING, (Integer, Float, Decimal), "a number")

DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define(
        "formatReadableSize",
        _RULE,
        _readable(_BINARY, 1024.0),
        aliases=("FORMAT_BYTES",),
        insensitive=True,
    ),
    define("formatReadableDecimalSize", _RULE, _readable(_DECIMAL, 1000.0)),
    define("formatReadableQuantity", _RULE, _readable(_QUANTITY, 1000.0)),
)
