"""LIMIT without ORDER BY over GROUP BY: rows of other groups than the first ones are dropped before they are grouped.

Groups come in the order of their first rows, so those of the first batch come first.  Once it has had as many as
the limit, no other group is in the answer.  Rows are dropped by one key, the one that tells most of these groups
apart; groups that share its values with them are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.batches import filter_rows
from olapdb.compute.hash_table import Lookup
from olapdb.execute.operators.partials import Partial
from olapdb.plan.expressions import ColumnRef
from olapdb.plan.nodes import Aggregate
from olapdb.types.arrow_values import FALSE, from_numpy, to_numpy


class FirstGroups:
    """The first groups of a GROUP BY, as many as a limit. For many threads."""

    def __init__(self, node: Aggregate, limit: int) -> None:
        self._names = [key.name if isinstance(key, ColumnRef) else "" for _, key in node.keys]
        self._limit = limit
        self._is_first = True
        self._keys: list[pa.Array] | None = None
        """The keys of the first groups, once a batch has had enough of them."""
        self._wanted: tuple[str, pa.Array] | None = None
        """The column of the key by which rows are dropped, and the values that are kept."""

    def learn(self, partial: Partial) -> None:
        """Take the groups of a batch. If it is the first one and has at least the limit's number of groups, these first
        ones are the wanted groups; the rows and groups of all other keys may then be dropped."""
        if not self._is_first or not partial.groups:
            return
        self._is_first = False
        if partial.groups < self._limit:
            return
        self._keys = [_plain(key.slice(0, self._limit)) for key in partial.keys]
        candidates = [
            (name, values.unique())
            for name, values in zip(self._names, self._keys, strict=True)
            if name and not values.null_count and not pa.types.is_nested(values.type)
        ]
        self._wanted = max(candidates, key=lambda candidate: len(candidate[1]), default=None)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches without rows that cannot be of the wanted groups, judged by one key; unchanged while the
        wanted groups are not known. Empty batches are left out."""
        for batch in batches:
            wanted = self._wanted
            if wanted is None:
                yield batch
                continue
            name, values = wanted
            mask = _is_among(batch.column(name), values)
            if mask.true_count:
                yield filter_rows(batch, mask)

    def groups(self, partials: Iterable[Partial]) -> Iterator[Partial]:
        """Yield of each partial the wanted groups, or all where the wanted groups are not known."""
        lookup = None
        for partial in partials:
            if self._keys is None:
                yield partial
                continue
            if lookup is None:
                lookup = Lookup(self._keys, self._limit, matches_null=True)
            is_known = lookup.find([_plain(key) for key in partial.keys], partial.groups) >= 0
            positions = from_numpy(np.flatnonzero(is_known))
            yield Partial(
                [key.take(positions) for key in partial.keys],
                [states.take(positions) for states in partial.states],
                len(positions),
            )


def _plain(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _is_among(column: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Return a mask of the rows whose value is among the values, without NULL; of a dictionary each value is looked
    up once."""
    if not isinstance(column, pa.DictionaryArray):
        return pc.is_in(column, value_set=values)
    flags = to_numpy(pc.is_in(column.dictionary, value_set=values))
    codes = column.indices
    if codes.null_count:
        return pc.fill_null(from_numpy(flags).take(codes), FALSE)
    return from_numpy(flags[to_numpy(codes)])
