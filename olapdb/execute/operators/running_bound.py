"""The running bound of ORDER BY … LIMIT: the first key of the worst row that can still be in the answer."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.ordering import OrderColumn, rows_within
from olapdb.config import tuning
from olapdb.execute.operators.sort import is_bound
from olapdb.functions.kernels.columns import single
from olapdb.functions.kernels.decimal_width import is_short, shortened
from olapdb.native import selection
from olapdb.native.library import library
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import SortKey
from olapdb.types.arrow_values import from_numpy

_DICTIONARIES_MAX = 8
"""The dictionaries of which a bound keeps what it says of their texts."""


class RunningBound:
    """The bound on the first sort key, which becomes better while rows are read. For many threads.

    Where the key is a column, a scan takes the bound as a condition: it reads other columns only of rows that do
    not come after it. The key's column may have its compact form there."""

    def __init__(self, key: SortKey, limit: int = 0) -> None:
        """Bound the rows by `key`, of which the first `limit` are wanted. Where a batch has more, the mask leaves out
        those that are not among its best `limit` rows, too; with 0, and above BEST_ROWS_MAX, it does not."""
        self._key = key
        self._limit = limit if limit <= tuning.BEST_ROWS_MAX else 0
        self._lock = threading.Lock()
        self._flags: dict[tuple[int, int, int, pa.Scalar], tuple[pa.Array, np.ndarray]] = {}
        self.value: pa.Scalar | None = None
        """The bound; None as long as there is none."""

    @property
    def column(self) -> str | None:
        """Return the unique name of the column that is the key; None where the key is computed."""
        expression = self._key.expression
        return expression.name if isinstance(expression, ColumnRef) else None

    def tighten(self, value: pa.Scalar) -> None:
        """Take this value as the bound if it sorts before the present one. NULL, NaN and nested values are ignored."""
        if not is_bound(value):
            return
        is_better = pc.greater if self._key.descending else pc.less
        with self._lock:
            if self.value is None or is_better(value, self.value).as_py():
                self.value = value

    def mask(
        self, batch: pa.RecordBatch, kept: pa.BooleanArray | None = None
    ) -> pa.BooleanArray | None:
        """Return a mask of the rows of `kept` (None: all) that do not come after the bound; `kept` where there is
        no bound."""
        bound = self.value
        if self.column is None:
            return kept
        column = batch.column(self.column)
        if self._limit and len(column) > self._limit:
            best = self._best_rows(column, bound, kept)
            if best is not None:
                return best
        if bound is None:
            return kept
        if isinstance(column, pa.DictionaryArray):
            within = self._mask_of_texts(column, bound, kept)
            if within is not None:
                return within
            column = column.dictionary_decode()
        limit = _bound_of_type(bound, column.type)
        if library() is not None and not self._key.nulls_first:
            words = selection.kept_rows(kept, len(column))
            if selection.keep_not_after(column, limit, words, descending=self._key.descending):
                return selection.as_mask(words, len(column))
        flags = np.zeros(len(column), bool)
        flags[rows_within(self._ordered(column), limit[0])] = True
        within = from_numpy(flags)
        return within if kept is None else pc.and_(kept, within)

    def _best_rows(
        self, column: pa.Array, bound: pa.Scalar | None, kept: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        """Return the mask of rows that come after neither the bound nor the last of the `limit` best rows of the batch;
        None where no kernel finds these."""
        if library() is None or isinstance(column, pa.DictionaryArray):
            return None
        limit = None if bound is None else _bound_of_type(bound, column.type)
        words = selection.kept_rows(kept, len(column))
        if not selection.keep_best(
            column, limit, self._limit, words, descending=self._key.descending
        ):
            return None
        return selection.as_mask(words, len(column))

    def _ordered(self, values: pa.Array) -> OrderColumn:
        """Return values as a column to sort by."""
        return OrderColumn(values, self._key.descending, self._key.nulls_first)

    def _mask_of_texts(
        self, column: pa.DictionaryArray, bound: pa.Scalar, kept: pa.BooleanArray | None
    ) -> pa.BooleanArray | None:
        """Return the mask, judged once for each text; None where no kernel takes the codes."""
        texts = column.dictionary
        if library() is None or texts.null_count:
            return None
        key = (texts.buffers()[1].address, texts.offset, len(texts), bound)
        known = self._flags.get(key)
        if known is None:
            flags = np.zeros(len(texts) + 1, np.uint8)
            flags[rows_within(self._ordered(texts), bound)] = 1
            flags[-1] = self._key.nulls_first
            with self._lock:
                if len(self._flags) >= _DICTIONARIES_MAX:
                    self._flags.clear()
                self._flags[key] = known = (texts, flags)  # the texts keep their address
        words = selection.kept_rows(kept, len(column))
        selection.keep_flagged(column.indices, known[1], words)
        return selection.as_mask(words, len(column))


def _bound_of_type(bound: pa.Scalar, arrow: pa.DataType) -> pa.Array:
    """Return the bound as an array of one value, in the short form if a column of type `arrow` has it."""
    limit = single(bound)
    return shortened(limit) if is_short(arrow) else limit
