"""Which parts and row groups a scan reads: pruning by part, then by row group.

A part is judged by its columns' bounds and its partition's value, all parts at once and without
opening a file; a row group by the bounds that its part's footer has.  What stays is read and
filtered exactly, so pruning may be as careless as it likes in one direction only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.config import Settings
from olapdb.engine.layout import TableLayout
from olapdb.execute.pruning.interval_analysis import (
    Candidates,
    ValueInterval,
    interval_of_bounds,
    is_restricted,
    keep_candidates,
)
from olapdb.execute.pruning.skip_index import UsedIndex, by_row_group, kept_blocks, usable
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.plan.expressions import Call, ColumnRef, Expression, columns_of, transform
from olapdb.plan.nodes import Scan
from olapdb.storage.reader import PartReader
from olapdb.types import DataType


@dataclass(frozen=True)
class PartSelection:
    """The row groups to read of a part: their numbers, rows, and first rows' offsets.

    `groups` None: the whole part (whose footer need not have been opened)."""

    part: Part
    reader: PartReader
    groups: tuple[int, ...] | None
    group_rows: tuple[int, ...]
    group_offsets: tuple[int, ...]

    @property
    def granules(self) -> int:
        return max(self.part.granules, 1) if self.groups is None else len(self.groups)


@dataclass(frozen=True)
class GranuleSelection:
    """What is read, and how much there was."""

    parts: tuple[PartSelection, ...]
    parts_total: int
    granules_total: int

    @property
    def granules(self) -> int:
        return sum(part.granules for part in self.parts)


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that must all hold: `a AND (b AND c)` gives a, b, c."""
    if condition is None:
        return
    if isinstance(condition, Call) and condition.name == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def live_parts(scan: Scan, context: ExecutionContext) -> list[Part]:
    """The table's parts with rows at the snapshot, or those that the context restricts it to, in
    the order of their first block."""
    given = context.parts.get(scan.table.id)
    parts = context.need_snapshot().parts(scan.table.id) if given is None else given
    return [part for part in parts if part.rows]


class Selector:
    """Prunes the parts of one scan by one condition; `condition` None keeps everything."""

    def __init__(
        self,
        scan: Scan,
        condition: Expression | None,
        layout: TableLayout,
        context: ExecutionContext,
        *,
        columns: frozenset[str] | None = None,
        partitions: bool = True,
        indexes: frozenset[str] | None = None,
    ) -> None:
        """`columns` (of the table), `partitions` and `indexes` (names of skip indexes) limit what
        is looked at, for EXPLAIN."""
        self._scan = scan
        self._condition = condition
        self._layout = layout
        self._context = context
        names = {u: (c, t) for (u, c), t in zip(scan.columns, scan.types, strict=True)}
        names.update({u: (c, t) for u, c, t in scan.predicate_columns})
        used = columns_of(condition) if condition is not None else frozenset()
        self._names: Mapping[str, tuple[str, DataType]] = {
            u: names[u] for u in sorted(used) if u in names
        }
        self._bounded = columns
        self._partitions = partitions
        self._only_indexes = indexes
        self._part_columns = PartColumns(scan.table)

    def select(self, parts: Sequence[Part]) -> GranuleSelection:
        """The parts and row groups that may hold a row which the condition keeps."""
        granules_total = sum(max(part.granules, 1) for part in parts)
        kept = [self._skipped(one) for one in self._groups(self.keep_parts(parts))]
        return GranuleSelection(
            tuple(s for s in kept if s.groups is None or s.groups), len(parts), granules_total
        )

    def keep_parts(self, parts: Sequence[Part]) -> list[Part]:
        """By the parts' column bounds and partition values; no file is opened."""
        if self._condition is None or not parts:
            return list(parts)
        columns = self._columns([self._part_columns.bounds(part) for part in parts])
        partitions: list[tuple[Expression, ValueInterval]] = []
        if self._partitions:
            columns.update(self._virtual(parts))
            partitions = self._partition_intervals(parts)
        keep = self._keep(Candidates(len(parts), columns, partitions))
        return [part for part, kept in zip(parts, keep, strict=True) if kept]

    def is_used(self, parts: Sequence[Part]) -> bool:
        """Whether the condition says something of the columns that are looked at, or of the
        partition key."""
        if self._condition is None:
            return False
        columns = self._columns([self._part_columns.bounds(part) for part in parts])
        partitions = self._partition_intervals(parts) if self._partitions else []
        candidates = Candidates(len(parts), columns, partitions)
        return is_restricted(self._condition, candidates, self._context.environment)

    def _groups(self, parts: Sequence[Part]) -> list[PartSelection]:
        """By the bounds of the parts' row groups, all at once; a part of one group was judged as
        a whole."""
        whole = [self._whole(part) for part in self._opened(parts)]
        if self._condition is None:
            return whole
        several = [selection for selection in whole if len(selection.group_rows) > 1]
        bounds = [group.bounds for s in several for group in s.reader.row_groups]
        if not bounds:
            return whole
        keep = self._keep(Candidates(len(bounds), self._columns(bounds)))
        ends = np.cumsum([len(s.group_rows) for s in several])[:-1]
        pruned = {
            selection.part.id: _pruned(selection, own)
            for selection, own in zip(several, np.split(keep, ends), strict=True)
        }
        return [pruned.get(selection.part.id, selection) for selection in whole]

    @cached_property
    def indexes(self) -> Mapping[str, UsedIndex]:
        """The skip indexes that the condition may be asked of, by name."""
        if not self._scan.table.indexes or self._condition is None:
            return {}
        if not Settings.of(self._context.settings).boolean("use_skip_indexes"):
            return {}
        expressions = [
            (index, named)
            for index, expression in self._layout.index_expressions
            if (named := self._in_scan_names(expression)) is not None
            and (self._only_indexes is None or index.name in self._only_indexes)
        ]
        return usable(expressions, list(conjuncts(self._condition)))

    def _skipped(self, selection: PartSelection) -> PartSelection:
        """By the part's skip indexes."""
        if not self.indexes or selection.part.inline:
            return selection
        total = max(selection.part.granules, 1)
        keep = np.ones(total, bool)
        for used in self.indexes.values():
            batch = selection.reader.skip_index(used.index, used.arrow)
            if batch is not None:
                blocks = kept_blocks(used, batch, self._context.environment)
                keep &= by_row_group(blocks, used.index.granularity, total)
        if selection.groups is not None:
            keep = keep[list(selection.groups)]
        return _pruned(selection, keep)

    def _opened(self, parts: Sequence[Part]) -> Sequence[Part]:
        """The parts, the footers of those with several row groups read; by threads where they
        are not at hand."""
        footers = self._context.need_store().cache.footers
        unread = [p for p in parts if _has_groups(p) and footers.get(p.path) is None]
        if len(unread) > 1:
            list(self._context.parallel(self._whole, unread))
        return parts

    def _whole(self, part: Part) -> PartSelection:
        """All of the part."""
        context = self._context
        reader = PartReader(
            context.need_store(),
            context.need_snapshot(),
            part,
            self._scan.table,
            context.environment,
        )
        if not _has_groups(part):
            return PartSelection(part, reader, None, (part.rows,), (0,))
        rows = tuple(group.rows for group in reader.row_groups)
        offsets = tuple(int(v) for v in np.cumsum((0, *rows))[:-1])
        return PartSelection(part, reader, None, rows, offsets)

    def _partition_intervals(self, parts: Sequence[Part]) -> list[tuple[Expression, ValueInterval]]:
        """The partition key's items, in the scan's names, with their one value in each part."""
        if not self._layout.table.partition_key or not _has_calls(self._condition):
            return []
        known = []
        for at, expression in enumerate(self._layout.partition_expressions):
            named = self._in_scan_names(expression)
            if named is None or isinstance(named, ColumnRef):
                continue
            values = [p.partition_value[at] if at < len(p.partition_value) else None for p in parts]
            bounds: list[ColumnBounds | None] = [None if v is None else (v, v, 0) for v in values]
            if not _has_plain_bounds(expression.type):
                continue
            interval = interval_of_bounds(bounds, expression.type)
            if interval is not None:
                known.append((named, interval))
        return known

    def _keep(self, candidates: Candidates) -> np.ndarray:
        assert self._condition is not None
        context = self._context
        return keep_candidates(self._condition, candidates, context.environment, context.subqueries)

    def _columns(self, bounds: Sequence[Mapping[str, ColumnBounds]]) -> dict[str, ValueInterval]:
        """The bounds of the condition's columns over the candidates."""
        found = {}
        for unique, (name, data_type) in self._names.items():
            if self._bounded is not None and name not in self._bounded:
                continue
            interval = interval_of_bounds([one.get(name) for one in bounds], data_type)
            if interval is not None:
                found[unique] = interval
        return found

    def _virtual(self, parts: Sequence[Part]) -> dict[str, ValueInterval]:
        """Virtual columns that are one value in a part."""
        found = {}
        for unique, (name, data_type) in self._names.items():
            value = VIRTUAL_VALUES.get(name)
            if value is not None and self._scan.table.column(name) is None:
                bounds = [(value(part), value(part), 0) for part in parts]
                interval = interval_of_bounds(bounds, data_type)
                if interval is not None:
                    found[unique] = interval
        return found

    def _in_scan_names(self, expression: Expression) -> Expression | None:
        """An expression over the table's columns over the scan's names instead; None where the
        condition does not name all of them."""
        unique = {column: u for u, (column, _) in self._names.items()}
        if not columns_of(expression) <= unique.keys():
            return None

        def rename(part: Expression) -> Expression | None:
            return ColumnRef(part.type, unique[part.name]) if isinstance(part, ColumnRef) else None

        return transform(expression, rename)


def _has_groups(part: Part) -> bool:
    return part.granules > 1 and not part.inline


def _pruned(selection: PartSelection, keep: np.ndarray) -> PartSelection:
    """The row groups that are kept; all of them, as before, where every one is."""
    if keep.all():
        return selection
    kept = np.flatnonzero(keep)
    groups = selection.groups
    return PartSelection(
        selection.part,
        selection.reader,
        tuple(int(at) if groups is None else groups[at] for at in kept),
        tuple(selection.group_rows[at] for at in kept),
        tuple(selection.group_offsets[at] for at in kept),
    )


VIRTUAL_VALUES = {
    "_part": lambda part: part.name,
    "_partition_id": lambda part: part.partition_id,
    "_block_number": lambda part: part.block_range.first,
}
"""Virtual columns by the one value that a part has; `_part_offset` differs in each row."""


def _has_calls(condition: Expression | None) -> bool:
    return isinstance(condition, Call)


def _has_plain_bounds(data_type: DataType) -> bool:
    """Whether a partition value, kept as JSON, becomes an Arrow value again by itself."""
    arrow = data_type.arrow
    return bool(
        pa.types.is_integer(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
        or pa.types.is_string(arrow)
    )
