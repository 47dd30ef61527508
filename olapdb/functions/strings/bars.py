"""bar: a number as a bar of block characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import STRING, Boolean, Decimal, Float, Integer, plain

_WIDTH = 80
_WIDTH_MAX = 1_000
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_NUMBERS = (Integer, Float, Decimal, Boolean)


def _bar(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve bar(x, min, max[, width]): a bar of `width` blocks where x reaches max, empty at min, in between in
    proportion.

    Raises ArgumentOutOfBound."""
    constant = arguments[3].constant if len(arguments) > 3 else None
    if len(arguments) > 3 and not isinstance(plain(arguments[3].type), _NUMBERS):
        raise scalar.illegal(name, arguments[3].type, "a number")
    width = float(constant.as_py()) if constant is not None else float(_WIDTH)
    if not 1 <= width <= _WIDTH_MAX:
        raise ArgumentOutOfBound(
            f"The width of {name} is from 1 to {_WIDTH_MAX} characters, not {width:g}."
        )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Return the bars as texts of eighths of blocks; draw each distinct length once."""
        value, low, high = (
            columns.numpy_values(a.cast(pa.float64(), safe=False)) for a in arrays[:3]
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip((value - low) / (high - low), 0.0, 1.0)
        eighths = np.floor(np.where(np.isfinite(share), share, 0.0) * width * 8 + 1e-9)
        distinct, rows = np.unique(eighths.astype(np.int64), return_inverse=True)
        drawn = pa.array(["█" * (n // 8) + _EIGHTHS[n % 8] for n in distinct.tolist()], pa.string())
        return drawn.take(pa.array(rows))

    rule = scalar.fixed_rule(STRING, _NUMBERS, "a number")
    return scalar.standard_call(name, arguments, rule, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (scalar.custom("bar", _bar, count=(3, 4)),)
