"""Expressions over the dictionaries of text columns: computed once for each text, taken by code."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array
from olapdb.config import tuning
from olapdb.errors import Error
from olapdb.functions.kernels import columns as arrow_columns
from olapdb.plan import expressions
from olapdb.plan.expressions import ColumnRef, Expression, columns_of, walk
from olapdb.records import dataclass
from olapdb.types import is_nullable
from olapdb.types.arrow_values import from_numpy

_DICTIONARIES_MAX = 32
"""Dictionaries whose values an operator keeps: those that its threads read now, and some more."""

_TEXTS_PER_ROW_MAX = 2
"""Compute the values of all texts of a dictionary where it has fewer for each row that asked for values so far."""

_SLICES_PER_THREAD = 2
"""The values of all texts are computed in so many slices for each thread."""

_OVER_TEXTS = (
    expressions.Call,
    expressions.Cast,
    expressions.InValues,
    expressions.InSubquery,
    expressions.ScalarSubquery,
    expressions.LambdaFunction,
    expressions.LambdaParameter,
    expressions.Constant,
    ColumnRef,
)
"""The expressions whose value depends on the columns that `columns_of` names alone, if no function is
volatile."""

_Identity: TypeAlias = tuple[int, int, int, int]


class TextValues:
    """The values of expressions for the texts that occur, by the dictionaries that batches have. For many
    threads."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._known: dict[_Identity, dict[Expression, _Computed]] = {}
        self._lock = threading.Lock()

    def of(self, expression: Expression, column: pa.DictionaryArray) -> pa.Array | None:
        """Return the values of an expression over one column, for each row of it: a dictionary of
        distinct values if they are texts.

        Returns None where it fails for a text: a condition before it may leave out its rows."""
        computed = self._computed(expression, column.dictionary)
        codes = column.indices
        if codes.null_count:
            codes = codes.fill_null(len(column.dictionary))
        numbers = arrow_columns.numpy_values(codes)
        lacks_null = column.null_count > 0 and computed.count == len(column.dictionary)
        if (lacks_null or not computed.known.has_all) and not self._compute(
            expression, computed, numbers, lacks_null=lacks_null
        ):
            return None
        return computed.known.at(numbers, lacks_null=lacks_null)

    def flags(self, condition: Expression, column: pa.DictionaryArray) -> np.ndarray | None:
        """Return for each code of a column whether a condition over it is true, then whether it is for
        NULL; uint8 of 0 and 1. Codes that do not occur may have any value.

        Returns None where the condition fails for a text, where it is no UInt8, and where the column
        has a NULL that its type has not."""
        if condition.type.arrow != pa.uint8():
            return None
        computed = self._computed(condition, column.dictionary)
        if column.null_count and computed.count == len(column.dictionary):
            return None
        if not computed.known.has_all:
            codes = column.indices
            if codes.null_count:
                codes = codes.fill_null(len(column.dictionary))
            numbers = arrow_columns.numpy_values(codes)
            if not self._compute(condition, computed, numbers, lacks_null=False):
                return None
        with self._lock:
            return computed.flags()

    def _compute(
        self, expression: Expression, computed: _Computed, numbers: np.ndarray, *, lacks_null: bool
    ) -> bool:
        """Make the values of an expression known for these codes; return False if it fails for a text of them.
        `lacks_null`: the code of NULL is among them and has no value yet. Once enough rows have asked, the values of
        all texts are computed at once, by all threads that ask, unless one fails."""
        with computed.computing:
            computed.rows += len(numbers)
            if computed.whole is None and computed.count <= _TEXTS_PER_ROW_MAX * computed.rows:
                computed.whole = _Whole(computed.count, self._context.threads)
            whole = computed.whole
        if whole is not None and not computed.known.has_all:
            values = whole.values(
                lambda start, stop: self._values(expression, computed.texts, np.arange(start, stop))
            )
            if values is not None:
                with self._lock:
                    computed.replace(values)
        if computed.known.has_all and not lacks_null:
            return True
        with computed.computing:
            missing = numbers[computed.known.positions[numbers] < 0]
            if not len(missing):
                return True
            occurs = np.zeros(len(computed.known.positions), bool)
            occurs[missing] = True
            new = np.flatnonzero(occurs)
            values = self._values(expression, computed.texts, new)
            if values is None:
                return False
            with self._lock:
                computed.add(new, values)
            return True

    def _values(
        self, expression: Expression, texts: pa.Array, codes: np.ndarray
    ) -> pa.Array | None:
        """Return the values of the expression for these codes; None where it fails."""
        if len(codes) and codes[-1] < len(texts) and codes[-1] - codes[0] == len(codes) - 1:
            inputs = texts.slice(int(codes[0]), len(codes))
        else:
            inputs = texts.take(from_numpy(codes, null=codes == len(texts)))
        batch = pa.RecordBatch.from_arrays([inputs], list(columns_of(expression)))
        try:
            return evaluate_array(
                expression, batch, self._context.environment, self._context.subqueries
            )
        except Error:
            return None

    def _computed(self, expression: Expression, texts: pa.Array) -> _Computed:
        """Return the record of the values of the expression over the dictionary `texts` that are known so far, a new
        one at first."""
        addresses = [0 if buffer is None else buffer.address for buffer in texts.buffers()[1:]]
        identity = (addresses[0], addresses[-1], texts.offset, len(texts))
        with self._lock:
            if identity not in self._known and len(self._known) >= _DICTIONARIES_MAX:
                self._known.clear()
            by_expression = self._known.setdefault(identity, {})
            if expression not in by_expression:
                by_expression[expression] = _Computed(texts, expression)
            return by_expression[expression]


class _Whole:
    """The values of all codes of a dictionary, computed slice by slice by the threads that need them."""

    def __init__(self, count: int, threads: int) -> None:
        step = max(-(-count // (threads * _SLICES_PER_THREAD)), tuning.SLICED_TEXTS_MIN)
        starts = range(0, count, step if threads > 1 else count)
        self._slices = [(start, min(start + starts.step, count)) for start in starts]
        self._waiting = self._slices[::-1]
        self._values: dict[int, pa.Array | None] = {}
        self._changed = threading.Condition()

    def values(self, compute: Callable[[int, int], pa.Array | None]) -> pa.Array | None:
        """Compute slices that no other thread has taken, then wait for those of others; return all values. Returns
        None where `compute(start, stop)` of a slice, which must not raise for a value, returns None."""
        while True:
            with self._changed:
                if not self._waiting:
                    break
                start, stop = self._waiting.pop()
            values = None
            try:
                values = compute(start, stop)
            finally:  # nobody may wait for ever for a slice that failed
                with self._changed:
                    self._values[start] = values
                    self._changed.notify_all()
        with self._changed:
            self._changed.wait_for(lambda: len(self._values) == len(self._slices))
        slices = [self._values[start] for start, _ in self._slices]
        if any(values is None for values in slices):
            return None
        return slices[0] if len(slices) == 1 else pa.concat_arrays(slices)


@dataclass(frozen=True)
class _Known:
    """The values of an expression for the texts of a dictionary, as far as they were computed.

    `positions[code]` is the position of a text's value in `values`, -1 where it was not computed; the last
    code is that of NULL. `has_all`: all values are known, each at the position of its code unless they are texts.

    Positions become known in place, but no known one changes: values of known codes may be read while another
    thread adds others."""

    positions: np.ndarray
    values: pa.Array
    has_all: bool = False

    def at(self, codes: np.ndarray, *, lacks_null: bool) -> pa.Array:
        """Return the values of the codes, which are known; texts, which are distinct, as a
        dictionary. `lacks_null`: the code of NULL, which is none of all, is among them."""
        values = self.values
        is_text = pa.types.is_string(values.type)
        by_code = self.has_all and not lacks_null and not is_text
        positions = codes if by_code else self.positions[codes]
        if is_text:
            return pa.DictionaryArray.from_arrays(from_numpy(positions), values, safe=False)
        if values.null_count or values.type != pa.uint8():
            return values.take(from_numpy(positions))
        # Clipping changes no position, and is the one mode of take that checks none.
        numbers = np.take(arrow_columns.numpy_values(values), positions, mode="clip")
        return arrow_columns.from_values(numbers, pa.uint8())


class _Computed:
    """The values of an expression over the texts of a dictionary that occurred so far, or over all."""

    def __init__(self, texts: pa.Array, expression: Expression) -> None:
        self.texts = texts  # keeps the addresses that identify the dictionary from being used again
        columns = (part for part in walk(expression) if isinstance(part, ColumnRef))
        self.count = len(texts) + any(is_nullable(column.type) for column in columns)
        """The codes that may occur: those of the texts, and that of NULL if there may be one."""
        self.known = _Known(
            np.full(len(texts) + 1, -1, np.int32), pa.nulls(0, expression.type.arrow)
        )
        self.rows = 0
        """The rows that asked for values while not all were known."""
        self.computing = threading.Lock()
        """Held by the thread that computes values of some codes."""
        self.whole: _Whole | None = None
        """The values of all texts, once so many rows asked that most of them are needed."""
        self._flags: tuple[pa.Array, np.ndarray] | None = None
        """The values, and the flags that `flags` made of them; None before its first call."""

    def replace(self, values: pa.Array) -> None:
        """Set the values of all codes, which replace those computed for some of them. Does nothing if
        another thread has set them."""
        if self.known.has_all:
            return
        positions = np.full(len(self.texts) + 1, -1, np.int32)
        null = int(self.known.positions[-1])
        if null >= 0 and len(values) < len(
            positions
        ):  # a thread may have computed it and read it next
            values = pa.concat_arrays([values, self.known.values.slice(null, 1)])
        if pa.types.is_string(values.type):
            encoded = values.dictionary_encode("encode")
            positions[: len(values)] = arrow_columns.numpy_values(encoded.indices)
            values = encoded.dictionary
        else:
            positions[: len(values)] = np.arange(len(values), dtype=np.int32)
        self.known = _Known(positions, values, has_all=True)

    def add(self, codes: np.ndarray, values: pa.Array) -> None:
        """Add the values of codes, unless another thread did."""
        known = self.known
        is_new = known.positions[codes] < 0
        if not is_new.all():
            codes, values = codes[is_new], values.filter(from_numpy(is_new))
        if not len(codes):
            return
        before = len(known.values)
        both = pa.concat_arrays([known.values, values]) if before else values
        if pa.types.is_string(values.type):
            encoded = both.dictionary_encode("encode")
            both = encoded.dictionary
            added = arrow_columns.numpy_values(encoded.indices)[before:]
        else:
            added = np.arange(before, len(both))
        has_all = known.has_all or (before == 0 and len(codes) == self.count)
        self.known = _Known(known.positions, both, has_all)
        known.positions[codes] = added

    def flags(self) -> np.ndarray:
        """Return for each code, that of NULL last, whether its value is true, 0 where it is not known;
        uint8. The values are UInt8, and no thread may add to them."""
        known = self.known
        cached = self._flags
        if cached is not None and cached[0] is known.values:
            return cached[1]
        values = known.values
        numbers = arrow_columns.numpy_values(values.fill_null(0) if values.null_count else values)
        flags: np.ndarray
        if known.has_all and len(values) == len(known.positions):
            flags = (numbers != 0).view(np.uint8)
        elif known.has_all:
            flags = np.append(numbers != 0, False).view(np.uint8)
        else:
            is_true = np.append(numbers != 0, False)
            flags = is_true[known.positions].astype(np.uint8)  # -1 is the False behind the values
        self._flags = values, flags
        return flags


def is_over_one_text(expression: Expression, texts: frozenset[str]) -> bool:
    """Return whether the value of the expression depends on one of the columns `texts` alone."""
    read = columns_of(expression)
    return (
        len(read) == 1
        and read <= texts
        and not isinstance(expression, ColumnRef)
        and all(isinstance(part, _OVER_TEXTS) for part in walk(expression))
        and expressions.is_repeatable(expression)
    )
