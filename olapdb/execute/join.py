"""Hash joins: the right side is held and hashed, the left side streams past it in its order.

Both sides' keys become codes (`lookup.Lookup`); a batch's pairs are then spread out with numpy.
Rows without a partner are paired with one extra row of the other side, which holds its default
values or NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from olapdb.errors import InternalError, NotSupportedError
from olapdb.execute.batches import make_batch, single_batch, table_of, take_rows
from olapdb.execute.codes import factorise
from olapdb.execute.context import ExecutionContext
from olapdb.execute.evaluate import evaluate_array, evaluate_predicate, true_positions
from olapdb.execute.lookup import Lookup
from olapdb.functions import default_value
from olapdb.functions.base import Groups
from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Field, Join
from olapdb.types import is_nullable

LEFT_ROWS_MAX = 1_048_576
"""Left batches are joined up to this, where the right side is large: looking rows up costs a pass
over the right side's keys each time."""


def join_batches(
    node: Join,
    left: Iterator[pa.RecordBatch],
    right: Iterator[pa.RecordBatch],
    context: ExecutionContext,
) -> Iterator[pa.RecordBatch]:
    """Pairs in the left side's order; then, for RIGHT and FULL, right rows without a partner."""
    _refuse(node)
    with context.memory.hold("JOIN") as account:
        held: list[pa.RecordBatch] = []
        for batch in right:
            context.check()
            held.append(batch)
            account.grow(batch.nbytes)
        joiner = _Joiner(node, single_batch(table_of(held, node.right.schema)), context)
        del held
        account.grow(joiner.nbytes)
        chunks = _chunks(left, node, joiner.right_rows, context)
        made: Iterator[list[pa.RecordBatch]]
        if joiner.stateful:
            made = (joiner.join(chunk) for chunk in chunks)
        else:
            made = context.parallel(joiner.join, chunks)
        for batches in made:
            yield from batches
        yield from joiner.unmatched_right()


def _refuse(node: Join) -> None:
    if node.strictness == "ASOF":
        raise NotSupportedError(
            "ASOF JOIN is not supported yet.",
            hint="Join on the key with an inequality, and take argMax of the right side.",
        )
    if node.strictness in ("SEMI", "ANTI") and node.kind not in ("LEFT", "INNER"):
        raise NotSupportedError(
            f"{node.kind} {node.strictness} JOIN is not supported.",
            hint=f"Swap the sides and use LEFT {node.strictness} JOIN.",
        )


def _chunks(
    left: Iterator[pa.RecordBatch], node: Join, right_rows: int, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Left batches, joined where the right side is larger than they are."""
    wanted = min(LEFT_ROWS_MAX, right_rows // 4)
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in left:
        context.check()
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows >= wanted:
            yield held[0] if len(held) == 1 else single_batch(table_of(held, node.left.schema))
            held, rows = [], 0
    if held:
        yield single_batch(table_of(held, node.left.schema))


@dataclass(frozen=True)
class _Pairs:
    """Row numbers on both sides; the side's number of rows stands for "no partner"."""

    left: np.ndarray
    right: np.ndarray


class _Joiner:
    """The built right side. `join` may run in many threads unless `stateful`."""

    def __init__(self, node: Join, right: pa.RecordBatch, context: ExecutionContext) -> None:
        self._node = node
        self._context = context
        self.right_rows = right.num_rows
        keys = [self._value(key, right) for key in node.right_keys]
        lookup = Lookup(keys, right.num_rows, threads=context.threads)
        self._lookup = lookup
        groups = Groups(np.where(lookup.codes < 0, lookup.count, lookup.codes), lookup.count + 1)
        self._order = groups.order
        self._starts = groups.starts
        # one more group holds the rows with a NULL key, which match nothing, and code -1 finds it
        self._sizes = groups.sizes.copy()
        self._sizes[-1] = 0
        self._left_fields, self._right_fields = _sides(node)
        self._right = _with_missing_row(right, self._right_fields)
        self._keeps_left = node.kind in ("LEFT", "FULL")
        self._keeps_right = node.kind in ("RIGHT", "FULL")
        self._matched_right = np.zeros(right.num_rows, bool)
        self._used_codes = np.zeros(lookup.count + 1, bool)

    @property
    def nbytes(self) -> int:
        return int(self._lookup.nbytes + self._order.nbytes + self._starts.nbytes)

    @property
    def stateful(self) -> bool:
        """Whether what a row gives depends on the rows before it."""
        return self._keeps_right or (self._node.strictness == "ANY" and self._node.kind == "INNER")

    def join(self, left: pa.RecordBatch) -> list[pa.RecordBatch]:
        keys = [self._value(key, left) for key in self._node.left_keys]
        codes = self._lookup.find(keys, left.num_rows)
        wide = _with_missing_row(left, self._left_fields)
        if self._node.strictness in ("SEMI", "ANTI"):
            return [self._semi(left, wide, codes)]
        batches = []
        for start, stop in self._pieces(codes):
            pairs = self._pairs(codes[start:stop], start)
            pairs = self._residual(pairs, wide)
            pairs = self._strict(pairs, codes)
            if self._keeps_right:
                self._matched_right[pairs.right] = True
            if self._keeps_left:
                pairs = _with_unmatched_left(pairs, start, stop, self.right_rows)
            if len(pairs.left):
                batches.append(self._joined(wide, pairs))
        return batches

    def unmatched_right(self) -> Iterator[pa.RecordBatch]:
        if not self._keeps_right:
            return
        missing = np.flatnonzero(~self._matched_right)
        nobody = _with_missing_row(
            single_batch(table_of([], self._node.left.schema)), self._left_fields
        )
        step = self._context.batch_rows
        for start in range(0, len(missing), step):
            rows = missing[start : start + step]
            yield self._joined(nobody, _Pairs(np.zeros(len(rows), np.int64), rows))

    def _value(self, key: Expression, batch: pa.RecordBatch) -> pa.Array:
        context = self._context
        return evaluate_array(key, batch, context.environment, context.subqueries)

    def _pieces(self, codes: np.ndarray) -> Iterator[tuple[int, int]]:
        """Left rows start…stop that give about a batch of pairs together."""
        totals = np.cumsum(self._sizes[codes])
        start = 0
        while start < len(codes):
            done = totals[start - 1] if start else 0
            stop = int(np.searchsorted(totals, done + self._context.batch_rows, side="right"))
            stop = min(max(stop, start + 1), start + self._context.batch_rows, len(codes))
            yield start, stop
            start = stop

    def _pairs(self, codes: np.ndarray, start: int) -> _Pairs:
        """Every left row with every right row of its key, the right rows in their order."""
        sizes = self._sizes[codes]
        if self._node.strictness == "ANY" and self._node.residual is None:
            sizes = self._any_sizes(sizes)
        left = np.repeat(np.arange(len(codes)), sizes)
        within = np.arange(len(left)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        right = self._order[np.repeat(self._starts[codes], sizes) + within]
        return _Pairs(left + start, right)

    def _any_sizes(self, sizes: np.ndarray) -> np.ndarray:
        """ANY LEFT needs one partner a row only."""
        return sizes if self._keeps_right else np.minimum(sizes, 1)

    def _residual(self, pairs: _Pairs, wide: pa.RecordBatch) -> _Pairs:
        if self._node.residual is None or not len(pairs.left):
            return pairs
        keep = evaluate_predicate(
            self._node.residual,
            self._joined(wide, pairs),
            self._context.environment,
            self._context.subqueries,
        )
        kept = true_positions(keep)
        return _Pairs(pairs.left[kept], pairs.right[kept])

    def _strict(self, pairs: _Pairs, codes: np.ndarray) -> _Pairs:
        """ANY: one partner for each left row (LEFT, FULL), right row (RIGHT), key (INNER)."""
        if self._node.strictness != "ANY" or not len(pairs.left):
            return pairs
        match self._node.kind:
            case "RIGHT":
                kept = factorise([pa.array(pairs.right)], len(pairs.right)).first
                kept = kept[~self._matched_right[pairs.right[kept]]]
            case "INNER":
                of_pair = codes[pairs.left]
                kept = factorise([pa.array(of_pair)], len(of_pair)).first
                kept = kept[~self._used_codes[of_pair[kept]]]
                self._used_codes[of_pair[kept]] = True
            case _:
                kept = factorise([pa.array(pairs.left)], len(pairs.left)).first
        return _Pairs(pairs.left[kept], pairs.right[kept])

    def _semi(
        self, left: pa.RecordBatch, wide: pa.RecordBatch, codes: np.ndarray
    ) -> pa.RecordBatch:
        """Left rows that have a partner (SEMI) or none (ANTI)."""
        if self._node.residual is None:
            has_partner = codes >= 0
        else:
            has_partner = np.zeros(left.num_rows, bool)
            for start, stop in self._pieces(codes):
                pairs = self._residual(self._pairs(codes[start:stop], start), wide)
                has_partner[pairs.left] = True
        if self._node.strictness == "ANTI":
            has_partner = ~has_partner
        kept = take_rows(left, pa.array(np.flatnonzero(has_partner)))
        return make_batch(kept.columns, self._node.fields, kept.num_rows)

    def _joined(self, wide: pa.RecordBatch, pairs: _Pairs) -> pa.RecordBatch:
        left, right = pa.array(pairs.left), pa.array(pairs.right)
        columns = [column.take(left) for column in wide.columns]
        columns += [column.take(right) for column in self._right.columns]
        return make_batch(columns, (*self._left_fields, *self._right_fields), len(pairs.left))


def _sides(node: Join) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The fields of both sides as they come out; SEMI and ANTI drop the right side's later."""
    if node.strictness in ("SEMI", "ANTI"):
        return node.left.schema, node.right.schema
    split = len(node.left.schema)
    if len(node.fields) != split + len(node.right.schema):
        raise InternalError("A join's schema is not its left side's and its right side's.")
    return node.fields[:split], node.fields[split:]


def _with_missing_row(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """The rows and one more, at the end: NULL where the field may be, else the default value."""
    if not fields:
        return batch
    columns = []
    for column, field in zip(batch.columns, fields, strict=True):
        arrow = field.type.arrow
        if is_nullable(field.type):
            missing = pa.nulls(1, arrow)
        else:
            missing = pa.repeat(default_value(field.type), 1)
        columns.append(pa.concat_arrays([column.cast(arrow), missing.cast(arrow)]))
    return make_batch(columns, tuple(fields), batch.num_rows + 1)


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
