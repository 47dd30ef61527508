"""The pairs of a hash join: left batches are looked up in the right side, about a batch of pairs each.

codes of left rows   2 -1 0      the rows of code 0: 4 6, of code 2: 5
sizes                1  0 2      LEFT: 1 1 2
left                 0 2 2             0 1 2 2
right                5 4 6             5 n 4 6       n: the extra row, for "no partner"
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import make_batch, rows_only, take_known, take_rows
from olapdb.compute.context import ExecutionContext
from olapdb.compute.evaluate import evaluate_array, evaluate_predicate
from olapdb.compute.group_codes import factorise
from olapdb.compute.hash_table import Lookup
from olapdb.compute.row_sizes import row_sizes, stretches, uneven_row_sizes
from olapdb.config import tuning
from olapdb.errors import InternalError
from olapdb.execute.operators.join_outputs import Wanted, may_be_narrowed
from olapdb.execute.operators.single_partners import SinglePartners
from olapdb.functions import default_value
from olapdb.functions.kernels.columns import true_positions
from olapdb.functions.kernels.decimal_width import is_short
from olapdb.plan.expressions import Expression, columns_of
from olapdb.plan.nodes import Field, Join
from olapdb.records import dataclass
from olapdb.types import is_nullable
from olapdb.types.arrow_values import from_numpy

LEFT_ROWS_MAX = 1_048_576
"""Left batches are concatenated up to this, where each lookup passes over all keys of the right
side."""


_BATCHES_OF_PAIRS = 4
"""A thread holds about so many batches of pairs of the left rows that it looks up at once."""


@dataclass(frozen=True)
class Pairs:
    """Row numbers on both sides; "no partner" is the right side's number of rows.

    `in_order`: the left rows are consecutive, each once; of a join with single partners only the first is in `left`."""

    left: np.ndarray
    right: np.ndarray
    in_order: bool = False


@dataclass(frozen=True)
class Matches:
    """The matches of a left chunk: the code of each row, and its number of pairs before conditions.

    `pieces` are the ranges of left rows to build a batch of pairs from; `result` is the chunk's batch
    if it is already built."""

    left: pa.RecordBatch
    codes: np.ndarray
    sizes: np.ndarray
    pieces: list[tuple[int, int]]
    result: pa.RecordBatch | None = None


class Joiner:
    """The built right side of a join; `right` ends with a row for "no partner" where needed.

    All methods but `unmatched_right` are thread-safe unless `stateful`."""

    def __init__(
        self,
        node: Join,
        right: pa.RecordBatch,
        right_rows: int,
        lookup: Lookup,
        context: ExecutionContext,
        wanted: Wanted,
    ) -> None:
        """Take the right side's rows with the columns that are read of them."""
        self._node = node
        self._columns = wanted.columns if may_be_narrowed(node) else None
        self._compact = wanted.compact if may_be_narrowed(node) else frozenset()
        self._compared = frozenset() if node.residual is None else columns_of(node.residual)
        self._context = context
        self._no_partner = right_rows
        self.lookup = lookup
        self._left_fields, _ = sides(node)
        self._right = right
        self._right_width: int = right.nbytes // max(right_rows, 1)
        self._right_sizes = uneven_row_sizes(right, context.batch_rows, context.batch_bytes)
        """The bytes of each right row if the average would mislead, else None."""
        self._keeps_left = node.kind in ("LEFT", "FULL")
        self._keeps_right = node.kind in ("RIGHT", "FULL")
        self._is_any, is_semi = node.strictness == "ANY", node.strictness in ("SEMI", "ANTI")
        may_take_one = node.residual is None and not self._keeps_right
        self._takes_one = may_take_one and (self._is_any or is_semi)
        self._matched_right = np.zeros(right_rows + 1 if self._keeps_right else 0, bool)
        uses_codes = self._is_any and node.kind == "INNER"
        self._used_codes = np.zeros(lookup.count if uses_codes else 0, bool)
        self.stateful = self._keeps_right or uses_codes
        """Whether the pairs of a row depend on earlier rows."""
        self._single: SinglePartners | None = None
        is_plain = node.residual is None and not is_semi
        if is_plain and not self.stateful and self._right_sizes is None:
            extra = right_rows if self._keeps_left else None
            self._single = SinglePartners.of(lookup, right, extra, takes_one=self._takes_one)
        if self._single is not None:
            self._right = self._single.right

    @property
    def nbytes(self) -> int:
        """Return the bytes that the joiner holds, without those of the lookup and of the right side's rows."""
        return self._matched_right.nbytes + self._used_codes.nbytes

    @property
    def left_chunk_rows(self) -> int:
        """Return the least number of left rows to look up at once: 1, or many where each look-up passes over the whole
        right side."""
        if not self.lookup.rescans_for_each_batch:
            return 1
        return min(LEFT_ROWS_MAX, self._no_partner // 4)

    def left_rows_max(self, left: pa.RecordBatch) -> int:
        """Return how many rows of a left chunk to look up at once, one at least: a thread holds all their pairs."""
        partners = 1 if self._takes_one else max(self._no_partner // max(self.lookup.count, 1), 1)
        width: int = self._right_width + left.nbytes // max(left.num_rows, 1) + 1
        return max(_BATCHES_OF_PAIRS * self._context.batch_bytes // (width * partners), 1)

    @cached_property
    def has_few_pairs(self) -> bool:
        """Whether no left row has more than a few pairs, and none of them depends on earlier rows."""
        if self.stateful or self.lookup.rescans_for_each_batch:
            return False
        starts = self.lookup.starts
        if starts is None or self._takes_one or self._node.strictness in ("SEMI", "ANTI"):
            return True
        return self.lookup.count == 0 or int(np.diff(starts).max()) <= tuning.FEW_PAIRS_MAX

    def pairs(self, left: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of a left chunk, in this thread."""
        matches = self.probe(left)
        if matches.result is not None and matches.result.num_rows:
            yield matches.result
        for piece in matches.pieces:
            pairs = self._piece(matches, *piece)
            if pairs.num_rows:
                yield pairs

    def probe(self, left: pa.RecordBatch) -> Matches:
        """Look up a left chunk; return its matches, with the result if it fits one batch.

        SEMI and ANTI joins always have their result at once.
        """
        keys = [self._value(key, left) for key in self._node.left_keys]
        codes = self.lookup.find(keys, left.num_rows)
        if self._single is not None and (
            self._single.rows is None or left.num_rows <= self._pairs_max(left)
        ):
            return Matches(left, codes, codes, [], self._rows_of_single(self._single, left, codes))
        sizes = self._sizes(codes)
        matches = Matches(left, codes, sizes, list(self._pieces(left, codes, sizes)))
        if self._node.strictness in ("SEMI", "ANTI"):
            return Matches(left, codes, sizes, [], self._semi(matches))
        if len(matches.pieces) == 1 and not self._is_long(matches, matches.pieces[0]):
            return Matches(left, codes, sizes, [], self._piece(matches, *matches.pieces[0]))
        return matches

    def _rows_of_single(
        self, single: SinglePartners, left: pa.RecordBatch, codes: np.ndarray
    ) -> pa.RecordBatch:
        """Return the pairs of left rows that have one partner at most."""
        rows, right = single.find(codes)
        first = np.zeros(1, np.int64) if rows is None else rows
        return self._rows(left, Pairs(first, right, in_order=rows is None))

    def pair_batches(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a chunk's pairs, none of them empty."""
        if matches.result is not None and matches.result.num_rows:
            yield matches.result
        short: list[tuple[int, int]] = []
        for piece in matches.pieces:
            if not self._is_long(matches, piece):
                short.append(piece)
                continue
            yield from self._short_pieces(matches, short)
            yield from self._long_row(matches, piece[0])
            short = []
        yield from self._short_pieces(matches, short)

    def unmatched_right(self) -> Iterator[pa.RecordBatch]:
        """Yield the right rows without a partner; call it after all left chunks."""
        if not self._keeps_right:
            return
        unmatched = np.flatnonzero(~self._matched_right[: self._no_partner])
        columns = [missing_value(field) for field in self._left_fields]
        left_row = make_batch(columns, self._left_fields, 1)
        step = self._context.batch_rows
        for start in range(0, len(unmatched), step):
            rows = unmatched[start : start + step]
            yield pair_rows(
                self._node, left_row, self._right, Pairs(np.zeros(len(rows), np.int64), rows)
            )

    def _value(self, key: Expression, left: pa.RecordBatch) -> pa.Array:
        """Return the values of a key expression for the left rows."""
        context = self._context
        return evaluate_array(key, left, context.environment, context.subqueries)

    def _sizes(self, codes: np.ndarray) -> np.ndarray:
        """Return the number of candidate right rows of each left row; int64.

        It is 0 for a code of -1, and at most 1 if the join takes one partner.
        """
        starts = self.lookup.starts
        if starts is None or self._takes_one:
            return (codes >= 0).astype(np.int64)
        if not self.lookup.count:
            return np.zeros(len(codes), np.int64)
        at = np.maximum(codes, 0)
        sizes: np.ndarray = np.take(starts, at + 1).astype(np.int64) - np.take(starts, at)
        sizes[codes < 0] = 0
        return sizes

    # --- pieces: left rows start…stop with about a batch of pairs

    def _pairs_max(self, left: pa.RecordBatch) -> int:
        """Return how many pairs a piece may have, by the average bytes of a joined row."""
        width: int = self._right_width + left.nbytes // max(left.num_rows, 1) + 1
        return min(self._context.batch_rows, max(self._context.batch_bytes // width, 1))

    def _pieces(
        self, left: pa.RecordBatch, codes: np.ndarray, sizes: np.ndarray
    ) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of consecutive left rows whose pairs fit a batch; one row at least.

        `codes[i]` is the code of left row i, `sizes[i]` the number of right rows with it.
        """
        pairs_max = self._pairs_max(left)
        has_one_each = self._right_sizes is None and (self.lookup.starts is None or self._takes_one)
        if has_one_each and 0 < len(sizes) <= min(pairs_max, self._context.batch_rows):
            yield 0, len(sizes)
            return
        totals = np.cumsum(np.maximum(sizes, 1) if self._keeps_left else sizes)
        pair_bytes = self._pair_bytes(left, codes, sizes)
        total_bytes = None if pair_bytes is None else np.cumsum(pair_bytes)
        start = 0
        while start < len(sizes):
            done = totals[start - 1] if start else 0
            stop = int(np.searchsorted(totals, done + pairs_max, side="right"))
            if total_bytes is not None:
                limit = self._context.batch_bytes + (int(total_bytes[start - 1]) if start else 0)
                stop = min(stop, int(np.searchsorted(total_bytes, limit, side="right")))
            stop = min(max(stop, start + 1), start + self._context.batch_rows, len(sizes))
            yield start, stop
            start = stop

    def _pair_bytes(
        self, left: pa.RecordBatch, codes: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray | None:
        """Return the bytes of the pairs of each left row, int64; None where all of them are about average."""
        context, left_sizes = self._context, None
        if sizes.max(initial=0) > 1:
            left_sizes = uneven_row_sizes(left, context.batch_rows, context.batch_bytes)
        if left_sizes is None and self._right_sizes is None:
            return None
        own = left.nbytes // max(left.num_rows, 1) if left_sizes is None else left_sizes
        pair_bytes: np.ndarray = sizes * own
        if self._right_sizes is None:
            pair_bytes += sizes * self._right_width
        else:
            of_codes = self._bytes_of_codes[np.maximum(codes, 0)]
            pair_bytes += np.where(codes >= 0, of_codes, 0)
        return pair_bytes

    @cached_property
    def _bytes_of_codes(self) -> np.ndarray:
        """The bytes of the right rows of each code, or of the first one where the join takes one; int64."""
        lookup = self.lookup
        if not lookup.count or self._right_sizes is None:
            return np.zeros(1, np.int64)
        assert lookup.order is not None
        in_order: np.ndarray = self._right_sizes[lookup.order]
        if lookup.starts is None:
            return in_order
        first: np.ndarray = in_order[lookup.starts[:-1]]
        if self._takes_one:
            return first
        return np.diff(np.concatenate([[0], np.cumsum(in_order)])[lookup.starts])

    def _is_long(self, matches: Matches, piece: tuple[int, int]) -> bool:
        """Return whether a piece is one row with more pairs than a batch should have."""
        start, stop = piece
        if stop > start + 1 or int(matches.sizes[start]) <= 1:
            return False
        pairs = int(matches.sizes[start])
        own = int(row_sizes(matches.left.slice(start, 1).columns, 1)[0])
        of_right = pairs * self._right_width
        if self._right_sizes is not None:
            of_right = int(self._bytes_of_codes[max(int(matches.codes[start]), 0)])
        is_wide = pairs * own + of_right > self._context.batch_bytes
        return is_wide or pairs > self._pairs_max(matches.left)

    def _short_pieces(
        self, matches: Matches, pieces: Sequence[tuple[int, int]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batch of each piece that has rows; in parallel if the join keeps no state."""

        def build(piece: tuple[int, int]) -> pa.RecordBatch:
            """Return the batch of the pairs of the left rows start…stop."""
            return self._piece(matches, *piece)

        batches = map(build, pieces) if self.stateful else self._context.parallel(build, pieces)
        for batch in batches:
            self._context.check()
            if batch.num_rows:
                yield batch

    def _piece(self, matches: Matches, start: int, stop: int) -> pa.RecordBatch:
        """Return the batch of the pairs of left rows start…stop that meet all conditions."""
        if self._node.residual is None and not (self._is_any and self.stateful):
            pairs = self._unconditional_pairs(matches, start, stop)
            if self._keeps_right:
                self._matched_right[pairs.right] = True
            return self._rows(matches.left, pairs)
        pairs = self._residual(matches, self._candidates(matches, start, stop))
        pairs = self._one_partner(matches, pairs)
        if self._keeps_right:
            self._matched_right[pairs.right] = True
        if self._keeps_left:
            pairs = _with_unmatched_left(pairs, start, stop, self._no_partner)
        return self._rows(matches.left, pairs)

    def _rows(self, left: pa.RecordBatch, pairs: Pairs) -> pa.RecordBatch:
        """Return the rows of pairs, with the columns that are read above the join."""
        return pair_rows(self._node, left, self._right, pairs, self._columns, self._compact)

    def _long_row(self, matches: Matches, row: int) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of one left row that has too many for a batch."""
        has_pair = False
        for pairs in self._candidates_of_row(matches, row):
            self._context.check()
            pairs = self._one_partner(matches, self._residual(matches, pairs))
            if not len(pairs.right):
                continue
            if self._keeps_right:
                self._matched_right[pairs.right] = True
            has_pair = True
            yield self._rows(matches.left, pairs)
            if self._is_any and self._node.kind != "RIGHT":
                return
        if self._keeps_left and not has_pair:
            unmatched = Pairs(np.array([row]), np.array([self._no_partner]))
            yield self._rows(matches.left, unmatched)

    # --- pairs

    def _unconditional_pairs(self, matches: Matches, start: int, stop: int) -> Pairs:
        """Return the pairs of a join without further conditions, with those of unmatched left rows
        where the join keeps them."""
        sizes = matches.sizes[start:stop]
        if self._keeps_left:
            sizes = np.maximum(sizes, 1)
        return self._spread(matches.codes[start:stop], sizes, start)

    def _candidates(self, matches: Matches, start: int, stop: int) -> Pairs:
        """Return each left row of start…stop with every right row of its key.

        The right rows of a left row are in their own order.
        """
        return self._spread(matches.codes[start:stop], matches.sizes[start:stop], start)

    def _spread(self, codes: np.ndarray, sizes: np.ndarray, start: int) -> Pairs:
        """Pair each left row with `sizes` right rows of its key; the left rows begin at `start`."""
        if (sizes == 1).all():
            rows = np.arange(start, start + len(codes))
            return Pairs(rows, self._partners(codes, None), in_order=True)
        if sizes.max() <= 1:
            rows = np.flatnonzero(sizes)
            return Pairs(rows + start, self._partners(codes[rows], None))
        rows = np.repeat(np.arange(len(codes)), sizes)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Pairs(rows + start, self._partners(codes[rows], within))

    def _partners(self, codes: np.ndarray, within: np.ndarray | None) -> np.ndarray:
        """Return the right row of each pair: number `within` of its code's rows, by default the first.

        Without a code it is "no partner"."""
        if not self.lookup.count:
            return np.full(len(codes), self._no_partner)
        assert self.lookup.order is not None
        at = np.maximum(codes, 0) if self._keeps_left else codes
        if self.lookup.starts is not None:
            at = np.take(self.lookup.starts, at).astype(np.int64)
        if within is not None:
            at = at + within
        right: np.ndarray = np.take(self.lookup.order, at)
        if self._keeps_left:
            right[codes < 0] = self._no_partner
        return right

    def _candidates_of_row(self, matches: Matches, row: int) -> Iterator[Pairs]:
        """Yield one left row with every right row of its key, about a batch of pairs at a time."""
        left, code = matches.left.slice(row, 1), matches.codes[row : row + 1]
        count, step = int(matches.sizes[row]), self._pairs_max(left)
        pieces = iter([(first, min(first + step, count)) for first in range(0, count, step)])
        if self._right_sizes is not None:
            partners = self._partners(np.repeat(code, count), np.arange(count))
            pair_sizes = self._right_sizes[partners] + left.nbytes
            pieces = stretches(pair_sizes, self._context.batch_rows, self._context.batch_bytes)
        for first, stop in pieces:
            within = np.arange(first, stop)
            codes = np.repeat(code, len(within))
            yield Pairs(np.full(len(within), row), self._partners(codes, within))

    def _residual(self, matches: Matches, pairs: Pairs) -> Pairs:
        """Return the pairs that the join's residual condition keeps."""
        if self._node.residual is None or not len(pairs.right):
            return pairs
        keep = evaluate_predicate(
            self._node.residual,
            pair_rows(self._node, matches.left, self._right, pairs, self._compared),
            self._context.environment,
            self._context.subqueries,
        )
        return _take_pairs(pairs, true_positions(keep))

    def _one_partner(self, matches: Matches, pairs: Pairs) -> Pairs:
        """Return the pairs of an ANY join; pairs of other joins are unchanged.

        ANY keeps one partner for each left row (LEFT, FULL), right row (RIGHT) or key (INNER)."""
        if not self._is_any or not len(pairs.right):
            return pairs
        match self._node.kind:
            case "RIGHT":
                firsts = _first_occurrences(pairs.right)
                firsts = firsts[~self._matched_right[pairs.right[firsts]]]
            case "INNER":
                pair_codes = matches.codes[pairs.left]
                firsts = _first_occurrences(pair_codes)
                firsts = firsts[~self._used_codes[pair_codes[firsts]]]
                self._used_codes[pair_codes[firsts]] = True
            case _:
                firsts = _first_occurrences(pairs.left)
        return _take_pairs(pairs, firsts)

    def _semi(self, matches: Matches) -> pa.RecordBatch:
        """Return the left rows that have a partner (SEMI) or none (ANTI)."""
        if self._node.residual is None:
            has_partner = matches.codes >= 0
        else:
            has_partner = np.zeros(matches.left.num_rows, bool)
            for piece in matches.pieces:
                candidates: Iterable[Pairs] = [self._candidates(matches, *piece)]
                if self._is_long(matches, piece):
                    candidates = self._candidates_of_row(matches, piece[0])
                for pairs in candidates:
                    self._context.check()
                    has_partner[self._residual(matches, pairs).left] = True
        if self._node.strictness == "ANTI":
            has_partner = ~has_partner
        names = [
            field.name
            for field in self._node.fields
            if self._columns is None or field.name in self._columns
        ]
        return take_rows(matches.left.select(names), from_numpy(np.flatnonzero(has_partner)))


def pair_rows(
    node: Join,
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    pairs: Pairs,
    names: Collection[str] | None = None,
    compact: Collection[str] = (),
) -> pa.RecordBatch:
    """Return the rows of the pairs: left columns, then right columns; of those in `names`, None for all.

    Dictionaries stay dictionaries, and Decimals of 64 bits in `compact` stay such."""
    types = {field.name: field.type for side in sides(node) for field in side}
    left_names = [name for name in left.schema.names if names is None or name in names]
    right_names = [name for name in right.schema.names if names is None or name in names]
    if pairs.in_order and len(pairs.left):
        consecutive = left.slice(int(pairs.left[0]), len(pairs.right))
        columns = [consecutive.column(name) for name in left_names]
    else:
        rows = from_numpy(pairs.left)
        columns = [take_known(left.column(name), rows) for name in left_names]
    if not left_names and not right_names:
        return rows_only(len(pairs.right))
    rows = from_numpy(pairs.right)
    columns += [take_known(right.column(name), rows) for name in right_names]
    every = [*left_names, *right_names]
    typed = [
        column
        if column.type == types[name].arrow
        or isinstance(column, pa.DictionaryArray)
        or (name in compact and is_short(column.type))
        else column.cast(types[name].arrow)
        for column, name in zip(columns, every, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, names=every)


def _first_occurrences(values: np.ndarray) -> np.ndarray:
    """Return the position of the first row of each distinct value."""
    return factorise([from_numpy(values)], len(values)).first


def _take_pairs(pairs: Pairs, positions: np.ndarray) -> Pairs:
    """Return the pairs at these positions."""
    return Pairs(pairs.left[positions], pairs.right[positions])


def sides(node: Join) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the fields of both sides in the result, of SEMI and ANTI in the pairs to judge."""
    if node.strictness in ("SEMI", "ANTI"):
        return node.left.schema, node.right.schema
    split = len(node.left.schema)
    if len(node.fields) != split + len(node.right.schema):
        raise InternalError("A join's schema is not its left side's and its right side's.")
    return node.fields[:split], node.fields[split:]


def missing_value(field: Field) -> pa.Array:
    """Return the value of a row without a partner: NULL if the field is Nullable, else the default.

    An array of length 1."""
    arrow = field.type.arrow
    if is_nullable(field.type):
        return pa.nulls(1, arrow)
    return pa.repeat(default_value(field.type), 1).cast(arrow)


def _with_unmatched_left(pairs: Pairs, start: int, stop: int, no_partner: int) -> Pairs:
    """Return the pairs, in left order, with one for each left row of start…stop that has none."""
    has_pair = np.zeros(stop - start, bool)
    has_pair[pairs.left - start] = True
    unmatched = np.flatnonzero(~has_pair) + start
    if not len(unmatched):
        return pairs
    left = np.concatenate([pairs.left, unmatched])
    right = np.concatenate([pairs.right, np.full(len(unmatched), no_partner)])
    order = np.argsort(left, kind="stable")
    return Pairs(left[order], right[order])
