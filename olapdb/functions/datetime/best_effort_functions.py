"""parseDateTimeBestEffort, …US, of 32 and 64 bits, with …OrNull and …OrZero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.casts import timestamps
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import (
    Definition,
    Invocation,
    constant_integer,
    constant_zone,
    custom,
    require,
    usual,
)
from olapdb.types import (
    DateTime,
    DateTime64,
    FixedString,
    Integer,
    Nothing,
    String,
    make_nullable,
    plain,
)

_PRECISION = 3
_PRECISION_MAX = 9


def _target(name: str, arguments: Sequence[Argument], sized: bool) -> DateTime | DateTime64:
    """(text[, zone]), or `sized` (text, precision[, zone]), which is a DateTime64."""
    zone = 2 if sized else 1
    own = constant_zone(name, arguments, zone) if len(arguments) > zone else None
    if not sized:
        return DateTime(own)
    precision = _PRECISION
    if len(arguments) > 1:
        precision = constant_integer(name, arguments, 1, "the precision")
    if not 0 <= precision <= _PRECISION_MAX:
        raise ArgumentOutOfBound(f"DateTime64 has a precision of 0 to 9, not {precision}.")
    return DateTime64(precision, own)


def _definition(bits: str, order: str, otherwise: str) -> Definition:
    american = order == "US"

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        second = plain(arguments[1].type) if len(arguments) > 1 else None
        sized = bits == "64" or (not bits and not american and isinstance(second, Integer))
        if any(isinstance(plain(a.type), Nothing) for a in arguments):
            return usual(name, arguments, DateTime(None), _none)
        require(name, [plain(arguments[0].type)], (String, FixedString), "a String")
        target = _target(name, arguments, sized)

        def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
            texts = columns.unpadded(arrays[0])
            zone = call.environment.zone
            if not otherwise:
                return timestamps.parse_datetimes(texts, target, zone, american=american)
            found = timestamps.moments_or_null(texts, target, zone, american=american)
            return found if otherwise == "OrNull" else found.fill_null(_zero(target))

        made = usual(name, arguments, target, kernel)
        return replace(made, type=make_nullable(made.type)) if otherwise == "OrNull" else made

    longest = 3 if bits == "64" or not (bits or american) else 2
    return custom(f"parseDateTime{bits}BestEffort{order}{otherwise}", resolve, count=(1, longest))


def _none(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    raise AssertionError("A call of NULL is answered without its kernel.")


def _zero(target: DateTime | DateTime64) -> pa.Scalar:
    return pa.scalar(0, pa.int64()).cast(target.arrow)


DEFINITIONS: tuple[Definition, ...] = tuple(
    _definition(bits, order, otherwise)
    for bits, order in (("", ""), ("", "US"), ("32", ""), ("64", ""), ("64", "US"))
    for otherwise in ("", "OrNull", "OrZero")
)
