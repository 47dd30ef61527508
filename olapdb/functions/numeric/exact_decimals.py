"""divideDecimal, multiplyDecimal and toDecimalString: exact decimal digits; see `by_value`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, Overflow

import pyarrow as pa

from olapdb.errors import (
    CannotPrintNumber,
    DecimalOverflow,
    IllegalColumn,
    IllegalDivision,
    IllegalTypeOfArgument,
)
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    custom,
    illegal,
    require,
    standard_call,
)
from olapdb.types import STRING, Float, Integer, Nothing, plain
from olapdb.types import Decimal as DecimalType

_WIDTH = 76
"""The digits of the results of divideDecimal and multiplyDecimal."""
_EXACT = Context(prec=400, Emax=10_000, Emin=-10_000, traps=[Overflow])
_FRACTION_MAX = 77
_FLOAT_FRACTION_MAX = 60


def _scale(name: str, arguments: Sequence[Argument]) -> int:
    """Return the scale of the result: the constant third argument, else the larger scale of both decimals. Raises
    IllegalTypeOfArgument."""
    scales = [t.scale for a in arguments[:2] if isinstance(t := plain(a.type), DecimalType)]
    if len(scales) < 2:
        raise illegal(name, arguments[0].type, "two Decimals")
    if len(arguments) < 3:
        return max(scales)
    constant = arguments[2].constant
    scale = None if constant is None else constant.as_py()
    if not isinstance(scale, int) or not 0 <= scale <= _WIDTH:
        raise IllegalTypeOfArgument(
            f"The third argument of {name}, the scale, is a constant integer from 0 to {_WIDTH}."
        )
    return scale


def _exact(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve divideDecimal or multiplyDecimal(a, b[, scale]): exact, then cut to the scale."""
    scale = _scale(name, arguments)
    result = DecimalType(_WIDTH, scale)
    step = Decimal(1).scaleb(-scale)

    def compute(left: Decimal, right: Decimal, *_: object) -> Decimal:
        """Return the product or quotient of one row, cut to the scale. Raises IllegalDivision and DecimalOverflow."""
        if name == "multiplyDecimal":
            value = _EXACT.multiply(left, right)
        elif not right:
            raise IllegalDivision("Division by zero.")
        else:
            value = _EXACT.divide(left, right)
        cut = value.quantize(step, ROUND_DOWN, _EXACT)
        if abs(cut.scaleb(scale, _EXACT)) >= Decimal(10) ** _WIDTH:
            raise DecimalOverflow(f"The result of {name} has more than {_WIDTH} digits.")
        return cut

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Compute each distinct pair of operands once."""
        return values_by_row(arrays[:2], compute, call.result.arrow)

    return standard_call(name, arguments, result, kernel)


def _decimal_string(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve toDecimalString(number, digits): the number as text with `digits` digits behind the point.

    Raises IllegalTypeOfArgument, IllegalColumn and CannotPrintNumber."""
    source, kind = (plain(argument.type) for argument in arguments)
    if isinstance(kind, Nothing):
        return standard_call(name, arguments, STRING, None)
    require(name, [source], (Integer, Float, DecimalType), "a number")
    require(name, [kind], (Integer,), "an integer")
    constant = arguments[1].constant
    digits = None if constant is None else constant.as_py()
    if not isinstance(digits, int) or digits < 0:
        raise IllegalColumn(f"The precision of {name} must be a constant integer, 0 or more.")
    largest = _FLOAT_FRACTION_MAX if isinstance(source, Float) else _FRACTION_MAX
    if not 0 <= digits <= largest:
        raise CannotPrintNumber(f"The precision of {name} of a {source} is at most {largest}.")
    step = Decimal(1).scaleb(-digits)

    def shown(value: int | float | Decimal) -> bytes:
        """Return the text of one number with that many digits; halves are rounded away from zero; NaN and infinity
        by name."""
        if isinstance(value, float) and not math.isfinite(value):
            return str(value).encode()
        rounded = Decimal(value).quantize(step, ROUND_HALF_UP, _EXACT)
        return f"{rounded:f}".encode()

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Write each distinct number once, with the constant number of digits."""
        return values_by_row(arrays[:1], shown, call.result.arrow)

    return standard_call(name, arguments, STRING, kernel)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("divideDecimal", _exact, count=(2, 3)),
    custom("multiplyDecimal", _exact, count=(2, 3)),
    custom("toDecimalString", _decimal_string, count=2, insensitive=True),
)
