"""parseDateTimeBestEffort and …US, of 32 and 64 bits, with …OrNull and …OrZero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb import types
from olapdb.errors import ArgumentOutOfBound
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.casts import parse_timestamps
from olapdb.functions.kernels import columns

_PRECISION = 3
_PRECISION_MAX = 9


def _target(
    name: str, arguments: Sequence[Argument], sized: bool
) -> types.DateTime | types.DateTime64:
    """Return the result type of (text[, zone]), or with `sized` of (text, precision[, zone]), which gives a
    DateTime64. Raises ArgumentOutOfBound for a bad precision."""
    zone_at = 2 if sized else 1
    zone = scalar.constant_zone(name, arguments, zone_at) if len(arguments) > zone_at else None
    if not sized:
        return types.DateTime(zone)
    precision = _PRECISION
    if len(arguments) > 1:
        precision = scalar.constant_integer(name, arguments, 1, "the precision")
    if not 0 <= precision <= _PRECISION_MAX:
        raise ArgumentOutOfBound(f"DateTime64 has a precision of 0 to 9, not {precision}.")
    return types.DateTime64(precision, zone)


def _definition(bits: str, order: str, otherwise: str) -> scalar.ScalarDefinition:
    """Define parseDateTime{bits}BestEffort{order}{otherwise}.

    `bits` is "", "32" or "64"; `order` "US" reads the month first; `otherwise` is "", "OrNull" or
    "OrZero".
    """
    american = order == "US"

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call. A bare NULL gives NULL. Raises an error for other first arguments than texts."""
        second_type = types.plain(arguments[1].type) if len(arguments) > 1 else None
        sized = bits == "64" or (
            not bits and not american and isinstance(second_type, types.Integer)
        )
        if any(isinstance(types.plain(a.type), types.Nothing) for a in arguments):
            return scalar.standard_call(name, arguments, types.DateTime(None), _not_called)
        scalar.require(
            name, [types.plain(arguments[0].type)], (types.String, types.FixedString), "a String"
        )
        target = _target(name, arguments, sized)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Parse the texts; a text that is no timestamp raises an error, gives NULL (OrNull), or gives 1970-01-01
            UTC (OrZero)."""
            texts = columns.unpadded(arrays[0])
            zone = call.environment.zone
            if not otherwise:
                return parse_timestamps.parse_datetimes(texts, target, zone, american=american)
            parsed = parse_timestamps.timestamps_or_null(texts, target, zone, american=american)
            return parsed if otherwise == "OrNull" else parsed.fill_null(_zero(target))

        resolved = scalar.standard_call(name, arguments, target, kernel)
        return (
            replace(resolved, type=types.make_nullable(resolved.type))
            if otherwise == "OrNull"
            else resolved
        )

    longest = 3 if bits == "64" or not (bits or american) else 2
    return scalar.custom(
        f"parseDateTime{bits}BestEffort{order}{otherwise}", resolve, count=(1, longest)
    )


def _not_called(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Raise AssertionError: a call with a bare NULL is answered without its kernel."""
    raise AssertionError("A call of NULL is answered without its kernel.")


def _zero(target: types.DateTime | types.DateTime64) -> pa.Scalar:
    """Return 1970-01-01 00:00:00 UTC as the target type."""
    return pa.scalar(0, pa.int64()).cast(target.arrow)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    _definition(bits, order, otherwise)
    for bits, order in (("", ""), ("", "US"), ("32", ""), ("64", ""), ("64", "US"))
    for otherwise in ("", "OrNull", "OrZero")
)
