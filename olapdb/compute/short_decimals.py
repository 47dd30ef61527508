"""Sums, differences and products of Decimals of at most 18 digits: a whole expression in one pass over the rows.

    price * (1 - discount)  ->  COLUMN price, CONSTANT 100, COLUMN discount, SUBTRACT, TIMES

The pass works on integers of 64 bits, without the decimal point, and gives up where one overflows.  Then
`functions/numeric/decimals.py` computes the expression, and says which value does not fit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions.kernels.decimal_width import decimal_bits, has_short_form, short_form
from olapdb.native import decimals
from olapdb.native.decimals import COLUMN, CONSTANT, DEPTH_MAX, SCALE
from olapdb.native.library import library
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression
from olapdb.records import dataclass
from olapdb.types import DataType, Decimal, Integer, plain

_INT64_BITS = 63


@dataclass(frozen=True)
class ShortProgram:
    """A compiled expression: its steps as the kernel takes them, the columns that it reads by number, and the
    short type of its result."""

    steps: np.ndarray
    columns: tuple[str, ...]
    result: pa.DataType

    def run(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the values for a batch, as Decimals of 64 bits. None where the kernel gives up: a value does not
        fit 64 bits, or its type. The batch may have its Decimals with 64 or 128 bits."""
        inputs = [batch.column(name) for name in self.columns]
        values = decimals.compute(self.steps, inputs, batch.num_rows)
        if values is None:
            return None
        valid: pa.BooleanArray | None = None
        for column in inputs:
            if column.null_count:
                is_valid = column.is_valid()
                valid = is_valid if valid is None else pc.and_(valid, is_valid)
        bitmap = None if valid is None else valid.buffers()[1]
        return pa.Array.from_buffers(
            self.result, batch.num_rows, [bitmap, pa.py_buffer(values)], offset=0
        )


def program_of(expression: Expression) -> ShortProgram | None:
    """Compile a sum, difference or product of Decimals; return None for expressions that the kernel cannot
    compute, and without the kernels."""
    if library() is None or not isinstance(expression, Call):
        return None
    compiler = _Compiler()
    if not compiler.add(expression) or not compiler.columns:
        return None
    steps = np.array(compiler.steps, np.int64)
    return ShortProgram(steps, tuple(compiler.columns), short_form(expression.type.arrow))


class _Compiler:
    """The steps of a program that is being compiled, and the columns that they read."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int]] = []
        self.columns: list[str] = []
        self._depth = 0

    def add(self, expression: Expression) -> bool:
        """Append the steps that push the expression's value; return whether that is possible."""
        kind = plain(expression.type)
        if not _is_short_number(kind):
            return False
        match expression:
            case ColumnRef(name=name):
                if name not in self.columns:
                    self.columns.append(name)
                return self._push(COLUMN, self.columns.index(name))
            case Constant(value=value):
                number = _unscaled(value)
                return number is not None and self._push(CONSTANT, number)
            case Call(name=name, arguments=(left, right)):
                operation = decimals.operation_of(name)
                if operation is None or not isinstance(kind, Decimal):
                    return False
                scale = None if name == "multiply" else kind.scale
                if not self._scaled(left, scale) or not self._scaled(right, scale):
                    return False
                self._depth -= 1
                self.steps.append((operation, 0, decimal_bits(kind.arrow)))
                return True
            case _:
                return False

    def _scaled(self, expression: Expression, scale: int | None) -> bool:
        """Append the steps of an operand, and one that brings it to the scale, unless that is None."""
        if not self.add(expression):
            return False
        kind = plain(expression.type)
        own = kind.scale if isinstance(kind, Decimal) else 0
        if scale is not None and scale > own:
            self.steps.append((SCALE, 10 ** (scale - own), 0))
        return True

    def _push(self, operation: int, operand: int) -> bool:
        """Append a step that pushes a value; return whether there is room for it."""
        self._depth += 1
        self.steps.append((operation, operand, 0))
        return self._depth <= DEPTH_MAX


def _is_short_number(kind: DataType) -> bool:
    """Return whether all values of the type are integers of 64 bits, after their Decimal point is removed."""
    if isinstance(kind, Decimal):
        return has_short_form(kind.arrow)
    return isinstance(kind, Integer)


def _unscaled(value: pa.Scalar) -> int | None:
    """Return a constant Decimal or integer as the integer without its point; None for NULL and for integers beyond 64
    bits."""
    if not value.is_valid:
        return None
    number = value.as_py()
    if pa.types.is_decimal(value.type):
        number = number.scaleb(value.type.scale)
    number = int(number)
    return number if abs(number) >> _INT64_BITS == 0 else None
