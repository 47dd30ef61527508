"""The pairs of a hash join: a left batch looked up in the built right side, a batch of them at a time.

codes of left rows   2 -1 0      the rows of code 0: 4 6, of code 2: 5
sizes                1  0 2      LEFT: 1 1 2
left                 0 2 2             0 1 2 2
right                5 4 6             5 n 4 6       n: the extra row, for "no partner"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array, evaluate_predicate, true_positions
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import Lookup
from olapdb.errors import InternalError
from olapdb.functions import default_value
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Field, Join
from olapdb.types import is_nullable

LEFT_ROWS_MAX = 1_048_576
"""Left batches are joined up to this, where looking rows up costs a pass over the right side's keys
each time."""
MADE_BYTES = 1 << 26
"""About the most that a batch of pairs takes, where rows are wide."""
MADE_ROWS_MIN = 1_024


@dataclass(frozen=True)
class _Pairs:
    """Row numbers on both sides; the right side's number of rows stands for "no partner".
    `in_order`: the left rows follow one another, each once."""

    left: np.ndarray
    right: np.ndarray
    in_order: bool = False


@dataclass(frozen=True)
class Found:
    """A left chunk, the code of each of its rows, how many pairs each gives at first, and the
    pieces that its pairs are made in; or else what became of it."""

    left: pa.RecordBatch
    codes: np.ndarray
    sizes: np.ndarray
    pieces: list[tuple[int, int]]
    made: pa.RecordBatch | None = None


class Joiner:
    """The built right side, `right` with a row for "no partner" at the end where one is needed.
    All but `unmatched_right` may run in many threads unless `stateful`."""

    def __init__(
        self,
        node: Join,
        right: pa.RecordBatch,
        right_rows: int,
        lookup: Lookup,
        context: ExecutionContext,
    ) -> None:
        self._node = node
        self._context = context
        self._nobody = right_rows
        self._lookup = lookup
        self._left_fields, self._right_fields = sides(node)
        self._right = right
        self._right_width: int = right.nbytes // max(right_rows, 1)
        self._keeps_left = node.kind in ("LEFT", "FULL")
        self._keeps_right = node.kind in ("RIGHT", "FULL")
        self._is_any = node.strictness == "ANY"
        # ANY needs one partner of a left row only, unless right rows are looked at one by one
        self._takes_one = self._is_any and node.residual is None and not self._keeps_right
        self._matched_right = np.zeros(right_rows + 1 if self._keeps_right else 0, bool)
        uses_codes = self._is_any and node.kind == "INNER"
        self._used_codes = np.zeros(lookup.count if uses_codes else 0, bool)
        self.stateful = self._keeps_right or uses_codes
        """Whether what a row gives depends on the rows before it."""

    @property
    def nbytes(self) -> int:
        """Without the lookup and the right side."""
        return self._matched_right.nbytes + self._used_codes.nbytes

    @property
    def left_rows_wanted(self) -> int:
        if not self._lookup.rescans_for_each_batch:
            return 1
        return min(LEFT_ROWS_MAX, self._nobody // 4)

    def find(self, left: pa.RecordBatch) -> Found:
        """The first half of the work on a chunk; and the second, where it is a piece or none."""
        keys = [self._value(key, left) for key in self._node.left_keys]
        codes = self._lookup.find(keys, left.num_rows)
        sizes = self._sizes(codes)
        found = Found(left, codes, sizes, list(self._pieces(left, sizes)))
        if self._node.strictness in ("SEMI", "ANTI"):
            return Found(left, codes, sizes, [], self._semi(found))
        if len(found.pieces) == 1 and not self._is_long(found, found.pieces[0]):
            return Found(left, codes, sizes, [], self._piece(found, *found.pieces[0]))
        return found

    def made(self, found: Found) -> Iterator[pa.RecordBatch]:
        """The batches of a chunk, none of them empty."""
        if found.made is not None and found.made.num_rows:
            yield found.made
        short: list[tuple[int, int]] = []
        for piece in found.pieces:
            if not self._is_long(found, piece):
                short.append(piece)
                continue
            yield from self._short_pieces(found, short)
            yield from self._long_row(found, piece[0])
            short = []
        yield from self._short_pieces(found, short)

    def unmatched_right(self) -> Iterator[pa.RecordBatch]:
        if not self._keeps_right:
            return
        alone = np.flatnonzero(~self._matched_right[: self._nobody])
        columns = [missing(field) for field in self._left_fields]
        nobody = make_batch(columns, self._left_fields, 1)
        step = self._context.batch_rows
        for start in range(0, len(alone), step):
            rows = alone[start : start + step]
            yield self._joined(nobody, _Pairs(np.zeros(len(rows), np.int64), rows))

    def _value(self, key: Expression, left: pa.RecordBatch) -> pa.Array:
        context = self._context
        return evaluate_array(key, left, context.environment, context.subqueries)

    def _sizes(self, codes: np.ndarray) -> np.ndarray:
        """How many right rows are tried for each left row."""
        starts = self._lookup.starts
        if starts is None or self._takes_one:
            return (codes >= 0).astype(np.int64)
        if not self._lookup.count:
            return np.zeros(len(codes), np.int64)
        at = np.maximum(codes, 0)
        sizes: np.ndarray = np.take(starts, at + 1).astype(np.int64) - np.take(starts, at)
        sizes[codes < 0] = 0
        return sizes

    # --- pieces: left rows start…stop, which give about a batch of pairs together

    def _pairs_max(self, left: pa.RecordBatch) -> int:
        width: int = self._right_width + left.nbytes // max(left.num_rows, 1) + 1
        return min(self._context.batch_rows, max(MADE_BYTES // width, MADE_ROWS_MIN))

    def _pieces(self, left: pa.RecordBatch, sizes: np.ndarray) -> Iterator[tuple[int, int]]:
        pairs_max = self._pairs_max(left)
        totals = np.cumsum(np.maximum(sizes, 1) if self._keeps_left else sizes)
        start = 0
        while start < len(sizes):
            done = totals[start - 1] if start else 0
            stop = int(np.searchsorted(totals, done + pairs_max, side="right"))
            stop = min(max(stop, start + 1), start + self._context.batch_rows, len(sizes))
            yield start, stop
            start = stop

    def _is_long(self, found: Found, piece: tuple[int, int]) -> bool:
        """Whether it is one row with more pairs than a batch should have."""
        start, stop = piece
        return stop == start + 1 and int(found.sizes[start]) > self._pairs_max(found.left)

    def _short_pieces(
        self, found: Found, pieces: Sequence[tuple[int, int]]
    ) -> Iterator[pa.RecordBatch]:
        def make(piece: tuple[int, int]) -> pa.RecordBatch:
            return self._piece(found, *piece)

        made = map(make, pieces) if self.stateful else self._context.parallel(make, pieces)
        for batch in made:
            self._context.check()
            if batch.num_rows:
                yield batch

    def _piece(self, found: Found, start: int, stop: int) -> pa.RecordBatch:
        if self._node.residual is None and not (self._is_any and self.stateful):
            pairs = self._all_pairs(found, start, stop)
            if self._keeps_right:
                self._matched_right[pairs.right] = True
            return self._joined(found.left, pairs)
        pairs = self._strict(found, self._residual(found, self._tried(found, start, stop)))
        if self._keeps_right:
            self._matched_right[pairs.right] = True
        if self._keeps_left:
            pairs = _with_unmatched_left(pairs, start, stop, self._nobody)
        return self._joined(found.left, pairs)

    def _long_row(self, found: Found, row: int) -> Iterator[pa.RecordBatch]:
        """The pairs of one left row that are too many for a batch."""
        has_pair = False
        for pairs in self._tried_of_long_row(found, row):
            self._context.check()
            pairs = self._strict(found, self._residual(found, pairs))
            if not len(pairs.right):
                continue
            if self._keeps_right:
                self._matched_right[pairs.right] = True
            has_pair = True
            yield self._joined(found.left, pairs)
            if self._is_any and self._node.kind != "RIGHT":
                return
        if self._keeps_left and not has_pair:
            alone = _Pairs(np.array([row]), np.array([self._nobody]))
            yield self._joined(found.left, alone)

    # --- pairs

    def _all_pairs(self, found: Found, start: int, stop: int) -> _Pairs:
        """As they come out where no condition follows: with a pair for a left row that is alone,
        if those are kept."""
        sizes = found.sizes[start:stop]
        if self._keeps_left:
            sizes = np.maximum(sizes, 1)
        return self._spread(found.codes[start:stop], sizes, start)

    def _tried(self, found: Found, start: int, stop: int) -> _Pairs:
        """Every left row with every right row of its key, the right rows in their order."""
        return self._spread(found.codes[start:stop], found.sizes[start:stop], start)

    def _spread(self, codes: np.ndarray, sizes: np.ndarray, start: int) -> _Pairs:
        if (sizes == 1).all():
            rows = np.arange(start, start + len(codes))
            return _Pairs(rows, self._partners(codes, None), in_order=True)
        rows = np.repeat(np.arange(len(codes)), sizes)
        within = None
        if len(sizes) and sizes.max() > 1:
            within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return _Pairs(rows + start, self._partners(codes[rows], within))

    def _partners(self, codes: np.ndarray, within: np.ndarray | None) -> np.ndarray:
        """The right row of each pair: of its code's rows the one at `within`, the first by default;
        nobody where there is no code."""
        if not self._lookup.count:
            return np.full(len(codes), self._nobody)
        assert self._lookup.order is not None
        at = np.maximum(codes, 0)
        if self._lookup.starts is not None:
            at = np.take(self._lookup.starts, at).astype(np.int64)
        if within is not None:
            at = at + within
        right: np.ndarray = np.take(self._lookup.order, at)
        if self._keeps_left:
            right[codes < 0] = self._nobody
        return right

    def _tried_of_long_row(self, found: Found, row: int) -> Iterator[_Pairs]:
        step = self._pairs_max(found.left)
        code = found.codes[row : row + 1]
        for first in range(0, int(found.sizes[row]), step):
            within = np.arange(first, min(first + step, int(found.sizes[row])))
            codes = np.repeat(code, len(within))
            yield _Pairs(np.full(len(within), row), self._partners(codes, within))

    def _residual(self, found: Found, pairs: _Pairs) -> _Pairs:
        if self._node.residual is None or not len(pairs.right):
            return pairs
        keep = evaluate_predicate(
            self._node.residual,
            self._joined(found.left, pairs),
            self._context.environment,
            self._context.subqueries,
        )
        return _chosen(pairs, true_positions(keep))

    def _strict(self, found: Found, pairs: _Pairs) -> _Pairs:
        """ANY: one partner for each left row (LEFT, FULL), right row (RIGHT), key (INNER)."""
        if not self._is_any or not len(pairs.right):
            return pairs
        match self._node.kind:
            case "RIGHT":
                kept = _firsts(pairs.right)
                kept = kept[~self._matched_right[pairs.right[kept]]]
            case "INNER":
                of_pair = found.codes[pairs.left]
                kept = _firsts(of_pair)
                kept = kept[~self._used_codes[of_pair[kept]]]
                self._used_codes[of_pair[kept]] = True
            case _:
                kept = _firsts(pairs.left)
        return _chosen(pairs, kept)

    def _semi(self, found: Found) -> pa.RecordBatch:
        """Left rows that have a partner (SEMI) or none (ANTI)."""
        if self._node.residual is None:
            has_partner = found.codes >= 0
        else:
            has_partner = np.zeros(found.left.num_rows, bool)
            for piece in found.pieces:
                tried: Iterable[_Pairs] = [self._tried(found, *piece)]
                if self._is_long(found, piece):
                    tried = self._tried_of_long_row(found, piece[0])
                for pairs in tried:
                    self._context.check()
                    has_partner[self._residual(found, pairs).left] = True
        if self._node.strictness == "ANTI":
            has_partner = ~has_partner
        kept = take_rows(found.left, pa.array(np.flatnonzero(has_partner)))
        return make_batch(kept.columns, self._node.fields, kept.num_rows)

    def _joined(self, left: pa.RecordBatch, pairs: _Pairs) -> pa.RecordBatch:
        """The rows of the pairs."""
        if pairs.in_order and len(pairs.left):
            columns = left.slice(int(pairs.left[0]), len(pairs.left)).columns
        else:
            rows = pa.array(pairs.left)
            columns = [column.take(rows) for column in left.columns]
        rows = pa.array(pairs.right)
        columns += [column.take(rows) for column in self._right.columns]
        fields = (*self._left_fields, *self._right_fields)
        typed = [
            column if column.type == field.type.arrow else column.cast(field.type.arrow)
            for column, field in zip(columns, fields, strict=True)
        ]
        return make_batch(typed, fields, len(pairs.right))


def _firsts(values: np.ndarray) -> np.ndarray:
    """Where each value is for the first time."""
    return factorise([pa.array(values)], len(values)).first


def _chosen(pairs: _Pairs, kept: np.ndarray) -> _Pairs:
    return _Pairs(pairs.left[kept], pairs.right[kept])


def sides(node: Join) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The fields of both sides as they come out; SEMI and ANTI drop the right side's later."""
    if node.strictness in ("SEMI", "ANTI"):
        return node.left.schema, node.right.schema
    split = len(node.left.schema)
    if len(node.fields) != split + len(node.right.schema):
        raise InternalError("A join's schema is not its left side's and its right side's.")
    return node.fields[:split], node.fields[split:]


def missing(field: Field) -> pa.Array:
    """One value: NULL where the field may be, else its type's default."""
    arrow = field.type.arrow
    if is_nullable(field.type):
        return pa.nulls(1, arrow)
    return pa.repeat(default_value(field.type), 1).cast(arrow)


def _with_unmatched_left(pairs: _Pairs, start: int, stop: int, nobody: int) -> _Pairs:
    """Left rows start…stop that have no pair, put in their places, with `nobody` at the right."""
    has_pair = np.zeros(stop - start, bool)
    has_pair[pairs.left - start] = True
    alone = np.flatnonzero(~has_pair) + start
    if not len(alone):
        return pairs
    left = np.concatenate([pairs.left, alone])
    right = np.concatenate([pairs.right, np.full(len(alone), nobody)])
    order = np.argsort(left, kind="stable")
    return _Pairs(left[order], right[order])
