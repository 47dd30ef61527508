"""ASOF JOIN: each left row with the nearest right row of its key, by a binary search per key.

The right rows of a key are sorted by their value; a row without a value (NULL, NaN) is dropped:

    l.t >= r.t     r.t of the key: 2 5 5 9      l.t 1: none, 4: 2, 5: the first 5, 10: 9
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.compute.hash_table import Lookup, build_bytes
from olapdb.compute.memory import MemoryAccount
from olapdb.compute.row_buffer import RowBuffer, evaluate_in_batches
from olapdb.errors import InternalError
from olapdb.execute.operators.join_pairs import Pairs, missing_value, pair_rows, sides
from olapdb.plan.expressions import Call, Expression
from olapdb.plan.nodes import Join
from olapdb.types.arrow_values import to_numpy

_BYTES_PER_ROW = 24
"""What sorting needs for each right row: a code, a value and a position."""


def asof_join_batches(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Yield each left row, in order, with its nearest right row; LEFT keeps rows without one.

    Of equally near rows it takes the first. Raises MemoryLimitExceeded if the right side is too
    large."""
    with context.memory.account("JOIN") as account:
        buffer = RowBuffer(node.right.schema, account)
        for batch in right:
            context.check()
            buffer.add(batch)
        nearest = _Nearest(node, buffer, context, account)
        yield from context.parallel(nearest.joined, (b for b in left if b.num_rows))


class _Nearest:
    """The right side, sorted by key and value; thread-safe once it is built."""

    def __init__(
        self, node: Join, buffer: RowBuffer, context: ExecutionContext, account: MemoryAccount
    ) -> None:
        self._node, self._context = node, context
        condition = node.residual
        if not isinstance(condition, Call):
            raise InternalError("An ASOF JOIN has no inequality.")
        self._operator = condition.name
        self._left_value, right_value = condition.arguments
        rows = self._no_partner = buffer.rows
        fields = zip(sides(node)[1], node.right.schema, strict=True)
        extra_row = [missing_value(field).cast(own.type.arrow) for field, own in fields]
        self._right = buffer.concatenate(extra_row)
        own_rows = self._right.slice(0, rows)
        keys = [evaluate_in_batches(key, own_rows, context, account) for key in node.right_keys]
        account.grow(build_bytes(keys, rows) + _BYTES_PER_ROW * rows)
        self._lookup = Lookup(keys, rows, threads=context.threads)
        codes = self._lookup.find(keys, rows)
        values = _comparable(evaluate_in_batches(right_value, own_rows, context, account))
        kept = np.flatnonzero((codes >= 0) & values.valid)
        order = kept[np.lexsort((kept, values.numbers[kept], codes[kept]))]
        self._rows, self._values = order, values.numbers[order]
        sizes = np.bincount(codes[order], minlength=self._lookup.count)
        self._ends = np.cumsum(sizes)
        self._starts = self._ends - sizes

    def joined(self, left: pa.RecordBatch) -> pa.RecordBatch:
        """Return the left rows of a batch, each with its nearest right row."""
        keys = [self._evaluated(key, left) for key in self._node.left_keys]
        codes = self._lookup.find(keys, left.num_rows)
        values = _comparable(self._evaluated(self._left_value, left))
        partners = self._partners(np.where(values.valid, codes, -1), values.numbers)
        left_rows = np.arange(left.num_rows)
        if self._node.kind == "INNER":
            left_rows = np.flatnonzero(partners != self._no_partner)
        pairs = Pairs(left_rows, partners[left_rows], in_order=len(left_rows) == left.num_rows)
        return pair_rows(self._node, left, self._right, pairs)

    def _evaluated(self, expression: Expression, left: pa.RecordBatch) -> pa.Array:
        """Return the values of an expression for the left rows."""
        context = self._context
        return evaluate_array(expression, left, context.environment, context.subqueries)

    def _partners(self, codes: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the nearest right row of each left row, "no partner" where there is none."""
        if not len(self._rows):
            return np.full(len(codes), self._no_partner)
        at = np.maximum(codes, 0)
        starts, ends = self._starts[at], self._ends[at]
        ends = np.where(codes < 0, starts, ends)  # a key that the right side lacks has no rows
        if self._operator in ("less", "lessOrEquals"):
            position = self._search(starts, ends, values, behind_equal=self._operator == "less")
            has_partner = position < ends
        else:
            behind = self._operator == "greaterOrEquals"
            last = self._search(starts, ends, values, behind_equal=behind) - 1
            has_partner = last >= starts
            equal = self._values[np.maximum(last, 0)]
            position = self._search(starts, ends, equal, behind_equal=False)
        safe = np.where(has_partner, position, 0)
        partners: np.ndarray = np.where(has_partner, self._rows[safe], self._no_partner)
        return partners

    def _search(
        self, starts: np.ndarray, ends: np.ndarray, values: np.ndarray, *, behind_equal: bool
    ) -> np.ndarray:
        """Return for each value the first position of start…end whose value is not less than it,
        or with `behind_equal` greater: a binary search of all rows at once."""
        low, high = starts.copy(), ends.copy()
        for _ in range(int((ends - starts).max(initial=0)).bit_length()):
            middle = (low + high) // 2
            there = self._values[np.minimum(middle, len(self._values) - 1)]
            goes_right = (there <= values) if behind_equal else (there < values)
            goes_right &= low < high
            low = np.where(goes_right, middle + 1, low)
            high = np.where(goes_right, high, np.minimum(middle, high))
        return low


class _Comparable:
    """Numbers in the order of a column's values, and which rows have a value: not NULL, not NaN."""

    def __init__(self, numbers: np.ndarray, valid: np.ndarray) -> None:
        self.numbers, self.valid = numbers, valid


def _comparable(column: pa.Array) -> _Comparable:
    """Return the column's values as numbers that compare as they do."""
    valid = to_numpy(column.is_valid())
    arrow = column.type
    if pa.types.is_decimal(arrow):
        return _Comparable(_decimal_numbers(column), valid)
    if pa.types.is_temporal(arrow):
        width = arrow.bit_width
        column = column.cast(pa.int32() if width == 32 else pa.int64())
    elif pa.types.is_boolean(arrow):
        column = column.cast(pa.uint8())
    numbers = to_numpy(pc.fill_null(column, 0))
    if pa.types.is_floating(column.type):
        valid = valid & ~np.isnan(numbers)
    return _Comparable(numbers, valid)


def _decimal_numbers(column: pa.Array) -> np.ndarray:
    """Return Decimals as unscaled integers, shape (rows,); a NULL becomes 0.

    They are int64 up to 18 digits, else Python's integers, which numpy compares one by one."""
    filled = pc.fill_null(column, pa.scalar(Decimal(0), column.type))
    words = np.frombuffer(filled.buffers()[1], np.int64)
    count = column.type.byte_width // 8
    words = words[filled.offset * count : (filled.offset + len(filled)) * count].reshape(-1, count)
    if column.type.precision <= 18:
        return words[:, 0]
    unscaled = words[:, -1].astype(object)
    for word in reversed(range(count - 1)):
        unscaled = unscaled * 2**64 + words[:, word].astype(np.uint64).astype(object)
    return np.asarray(unscaled, object)
