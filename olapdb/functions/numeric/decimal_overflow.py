"""isDecimalOverflow: whether a decimal has more digits than a precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.types import UINT8, DataType, Decimal


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt8; raise IllegalTypeOfArgument unless a Decimal and a constant UInt8."""
    scalar.require(name, types[:1], Decimal, "a Decimal")
    if len(types) > 1 and (types[1] != UINT8 or arguments[1].constant is None):
        raise scalar.illegal(name, types[1], "a constant UInt8")
    return UINT8


def _kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 where a decimal has more digits, without its point, than the second argument allows, else 0."""
    given = call.types[0]
    assert isinstance(given, Decimal)
    chosen = call.constant(1)
    precision = chosen if isinstance(chosen, int) else given.precision
    wide = pa.types.is_decimal256(arrays[0].type)
    most = 76 if wide else 38
    if precision >= most:
        return columns.from_values(np.zeros(call.rows, np.uint8), pa.uint8())
    whole = pa.decimal256(76, 0) if wide else pa.decimal128(38, 0)
    digits = pc.abs(columns.view(arrays[0], whole))
    return pc.greater_equal(digits, pa.scalar(10**precision, whole)).cast(pa.uint8())


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("isDecimalOverflow", _rule, _kernel, count=(1, 2)),
)
