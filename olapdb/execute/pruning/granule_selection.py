"""Pruning: the parts and row groups that a scan must read.

Parts are pruned by their columns' bounds and partition values, all at once and without opening a file;
row groups by the bounds in the footer of their part.  The remaining rows are filtered exactly, so
pruning may keep too much, but never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
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
from olapdb.execute.pruning.skip_index import (
    UsedIndex,
    by_row_group,
    index_names,
    kept_blocks,
    usable,
)
from olapdb.model.columns import PartColumns
from olapdb.model.part import ColumnBounds, Part
from olapdb.plan.conditions import conjuncts
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InValues,
    columns_of,
    transform,
    walk,
)
from olapdb.plan.nodes import Scan
from olapdb.plan.tuples import tuple_elements
from olapdb.records import dataclass
from olapdb.storage.reader import PartReader
from olapdb.storage.shared_codes import JointDictionary
from olapdb.types import DataType


@dataclass(frozen=True)
class PartSelection:
    """The row groups to read of a part: their numbers, their rows, the offsets of their first rows.

    `groups` None means the whole part, whose footer may be unread. `joints` has by column name one dictionary for all
    parts of a query."""

    part: Part
    reader: PartReader
    groups: tuple[int, ...] | None
    group_rows: tuple[int, ...]
    group_offsets: tuple[int, ...]
    joints: Mapping[str, JointDictionary] = field(default_factory=dict)

    @property
    def granules(self) -> int:
        """Return the number of row groups to read."""
        return max(self.part.granules, 1) if self.groups is None else len(self.groups)


@dataclass(frozen=True)
class GranuleSelection:
    """The parts and row groups to read, and the numbers of all parts and row groups."""

    parts: tuple[PartSelection, ...]
    parts_total: int
    granules_total: int

    @property
    def granules(self) -> int:
        """Return the number of row groups to read."""
        return sum(part.granules for part in self.parts)


def live_parts(scan: Scan, context: ExecutionContext) -> list[Part]:
    """Return the table's parts that have rows, in the order of their first block.

    They are those of the snapshot, or those that the context restricts the table to."""
    parts = context.parts.get(scan.table.id)
    if parts is None:
        parts = context.require_snapshot().parts(scan.table.id)
    left_out = context.left_out.get(id(scan), frozenset())
    return [part for part in parts if part.rows and part.id not in left_out]


@dataclass(frozen=True)
class _Selected:
    """The row groups that a selection leaves of some parts, by the positions of the parts, without their readers."""

    parts: tuple[tuple[int, tuple[int, ...] | None, tuple[int, ...], tuple[int, ...]], ...]

    @staticmethod
    def from_parts(parts: Sequence[Part], selected: Sequence[PartSelection]) -> _Selected:
        """Return the selections as positions among `parts`, without readers, so that they can be kept for later
        queries."""
        positions = {part.id: at for at, part in enumerate(parts)}
        return _Selected(
            tuple((positions[s.part.id], s.groups, s.group_rows, s.group_offsets) for s in selected)
        )

    def of(
        self, parts: Sequence[Part], reader: Callable[[Part], PartReader]
    ) -> list[PartSelection]:
        """Return the kept selections for the same parts, each with the new reader that `reader` returns for its
        part."""
        return [
            PartSelection(parts[at], reader(parts[at]), groups, rows, offsets)
            for at, groups, rows, offsets in self.parts
        ]


_ENTRY_GRANULES = 64
"""What a kept selection takes beside its numbers of granules, counted in granules: its key, with the condition."""
_KEPT_VALUES_MAX = 64
_KEPT_CONSTANT_BYTES_MAX = 1024
"""Longer lists of IN and larger constants would take more memory than pruning takes time."""


def is_constant_for_parts(expression: Expression) -> bool:
    """Return whether an expression (without its children) gives the same for a row of a part in every query, and is
    small enough to be part of a key that is kept."""
    match expression:
        case Call():
            return expression.function.volatility == "pure"
        case InValues():
            return len(expression.key) <= _KEPT_VALUES_MAX
        case Constant():
            return bool(pa.repeat(expression.value, 1).nbytes <= _KEPT_CONSTANT_BYTES_MAX)
        case _:
            return isinstance(expression, ColumnRef | Cast)


class Selector:
    """The pruning of one scan by one condition; `condition` None keeps everything."""

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
        """`columns` (of the table), `partitions` and `indexes` (names of skip indexes) restrict the
        pruning to these, for EXPLAIN; None means all."""
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
        self._only_columns = columns
        self._partitions = partitions
        self._only_indexes = indexes
        self._part_columns = PartColumns(scan.table)

    def select(self, parts: Sequence[Part]) -> GranuleSelection:
        """Return the parts and row groups that may have a row which the condition keeps."""
        granules_total = sum(max(part.granules, 1) for part in parts)
        key = self._selection_key(parts)
        cache = self._context.require_store().cache.selections
        known = None if key is None else cache.get(key)
        if isinstance(known, _Selected):
            selected = known.of(parts, self._reader)
        else:
            pruned = [self._skip_blocks(s) for s in self._prune_groups(self.keep_parts(parts))]
            selected = [s for s in pruned if s.groups is None or s.groups]
            if key is not None:
                selection = _Selected.from_parts(parts, selected)
                cache.put(key, selection, granules_total + _ENTRY_GRANULES)
        return GranuleSelection(tuple(selected), len(parts), granules_total)

    def _selection_key(self, parts: Sequence[Part]) -> Hashable | None:
        """Return the key under which the selection of these parts is kept for later queries. None where the selection
        depends on more than parts and conditions: on subqueries, the time of the query, skip indexes and their
        settings."""
        condition, table = self._condition, self._scan.table
        restricted = self._only_columns is not None or self._only_indexes is not None
        if table.indexes or restricted or not self._partitions:
            return None
        if condition is not None and not all(map(is_constant_for_parts, walk(condition))):
            return None
        columns = tuple(
            (unique, name, None if (column := table.column(name)) is None else column.id, data_type)
            for unique, (name, data_type) in self._names.items()
        )
        zone = self._context.environment.zone
        ids = tuple(part.id for part in parts)
        return (condition, columns, table.id, table.version, table.past, zone, ids)

    def keep_parts(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts that remain by their column bounds and partition values.

        It opens no file."""
        if self._condition is None or not parts:
            return list(parts)
        columns = self._columns([self._part_columns.bounds(part) for part in parts])
        partitions: list[tuple[Expression, ValueInterval]] = []
        if self._partitions:
            columns.update(self._virtual(parts))
            partitions = self._partition_intervals(parts)
        keep = self._keep(Candidates(len(parts), columns, partitions))
        return [part for part, is_kept in zip(parts, keep, strict=True) if is_kept]

    def is_used(self, parts: Sequence[Part]) -> bool:
        """Return whether the condition can prune by the columns' bounds or the partition key."""
        if self._condition is None:
            return False
        columns = self._columns([self._part_columns.bounds(part) for part in parts])
        partitions = self._partition_intervals(parts) if self._partitions else []
        candidates = Candidates(len(parts), columns, partitions)
        return is_restricted(self._condition, candidates, self._context.environment)

    def _prune_groups(self, parts: Sequence[Part]) -> list[PartSelection]:
        """Select row groups by their bounds, all at once; parts of one group stay whole."""
        self._read_footers(parts)
        whole = [self._whole(part) for part in parts]
        if self._condition is None:
            return whole
        several = [selection for selection in whole if len(selection.group_rows) > 1]
        if not several:
            return whole
        ends = np.cumsum([len(s.group_rows) for s in several])
        keep = self._keep(Candidates(int(ends[-1]), self._columns_in_groups(several)))
        pruned = {
            selection.part.id: _pruned(selection, part_keep)
            for selection, part_keep in zip(several, np.split(keep, ends[:-1]), strict=True)
        }
        return [pruned.get(selection.part.id, selection) for selection in whole]

    @cached_property
    def indexes(self) -> Mapping[str, UsedIndex]:
        """Return the skip indexes that can prune by the condition, by name."""
        if not self._scan.table.indexes or self._condition is None:
            return {}
        settings = Settings.of(self._context.settings)
        if not settings.boolean("use_skip_indexes"):
            return {}
        ignored = index_names(settings.text("ignore_data_skipping_indices"))
        expressions = [
            (index, named)
            for index, expression in self._layout.index_expressions
            if (named := self._in_scan_names(expression)) is not None
            and (self._only_indexes is None or index.name in self._only_indexes)
            and index.name not in ignored
        ]
        return usable(expressions, conjuncts(self._condition))

    def _skip_blocks(self, selection: PartSelection) -> PartSelection:
        """Return the selection without the row groups that the part's skip indexes exclude."""
        if not self.indexes or selection.part.inline:
            return selection
        total = max(selection.part.granules, 1)
        keep = np.ones(total, bool)
        for used in self.indexes.values():
            batch = selection.reader.skip_index(used.index, used.arrow)
            if batch is not None:
                blocks = kept_blocks(used, batch, self._context.environment)
                keep &= by_row_group(blocks, used.index, total)
        if selection.groups is not None:
            keep = keep[list(selection.groups)]
        return _pruned(selection, keep)

    def _read_footers(self, parts: Sequence[Part]) -> None:
        """Read the missing footers of parts with several row groups, in parallel where they are many."""
        footers = self._context.require_store().cache.footers
        unread = [p for p in parts if _has_groups(p) and footers.get(p.path) is None]
        if len(unread) > 1:
            list(self._context.parallel_if_slow(self._whole, unread))

    def _whole(self, part: Part) -> PartSelection:
        """Return a selection of all row groups of a part."""
        reader = self._reader(part)
        if not _has_groups(part):
            return PartSelection(part, reader, None, (part.rows,), (0,))
        rows = reader.group_rows
        offsets = tuple(int(v) for v in np.cumsum((0, *rows))[:-1])
        return PartSelection(part, reader, None, rows, offsets)

    def _reader(self, part: Part) -> PartReader:
        """Return a new reader of the part, of the scan's table."""
        context = self._context
        return PartReader(
            context.require_store(),
            context.require_snapshot(),
            part,
            self._scan.table,
            context.environment,
        )

    def _partition_intervals(self, parts: Sequence[Part]) -> list[tuple[Expression, ValueInterval]]:
        """Return the items of the partition key in the scan's names, with their value in each part."""
        key = self._layout.table.partition_key
        if not key or not isinstance(self._condition, Call) or not self._may_read_of(key):
            return []
        intervals = []
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
                intervals.append((named, interval))
        return intervals

    def _may_read_of(self, text: str) -> bool:
        """Return whether the text of a key may name a column that the condition reads: binding a key for the first time
        takes as long as all else that chooses parts."""
        if any(name in text for name, _ in self._names.values()):
            return True
        return any(c.default_kind == "ALIAS" and c.name in text for c in self._scan.table.columns)

    def _keep(self, candidates: Candidates) -> np.ndarray:
        """Return a mask of the candidates for which the condition can be true; it must be set."""
        assert self._condition is not None
        context = self._context
        return keep_candidates(self._condition, candidates, context.environment, context.subqueries)

    def _columns(self, bounds: Sequence[Mapping[str, ColumnBounds]]) -> dict[str, ValueInterval]:
        """Return the bounds of the condition's columns over the candidates, by unique name."""
        intervals = {}
        for unique, (name, data_type) in self._names.items():
            if self._only_columns is not None and name not in self._only_columns:
                continue
            interval = interval_of_bounds([b.get(name) for b in bounds], data_type)
            if interval is not None:
                intervals[unique] = interval
        return intervals

    def _columns_in_groups(self, parts: Sequence[PartSelection]) -> dict[str, ValueInterval]:
        """Return the bounds of the condition's columns in all row groups of the parts, by unique name: from the
        cache where a query asked for them before."""
        cache, table = self._context.require_store().cache.bounds, self._scan.table
        paths = tuple(selection.reader.cache_path for selection in parts)
        intervals = {}
        for unique, (name, data_type) in self._names.items():
            column = table.column(name)  # None: a virtual column, which has no bounds
            if column is None or not (self._only_columns is None or name in self._only_columns):
                continue
            key = (column.id, data_type.name, table.past, paths)
            interval = cache.get(key)
            if interval is None:
                bounds = [b for s in parts for b in s.reader.bounds_in_groups(name)]
                interval = interval_of_bounds(bounds, data_type) or _UNKNOWN
                cache.put(key, interval, len(bounds))
            if isinstance(interval, ValueInterval):
                intervals[unique] = interval
        return intervals

    def _virtual(self, parts: Sequence[Part]) -> dict[str, ValueInterval]:
        """Return the values of virtual columns that have one value in each part, by unique name."""
        intervals = {}
        for unique, (name, data_type) in self._names.items():
            value = VIRTUAL_VALUES.get(name)
            if value is not None and self._scan.table.column(name) is None:
                bounds = [(value(part), value(part), 0) for part in parts]
                interval = interval_of_bounds(bounds, data_type)
                if interval is not None:
                    intervals[unique] = interval
        return intervals

    def _in_scan_names(self, expression: Expression) -> Expression | None:
        """Return an expression over the table's columns with the scan's unique names.

        Returns None if the condition does not read all these columns; of a tuple, those of at least
        one element. Columns that are not read get names that no condition has."""
        unique = {column: u for u, (column, _) in self._names.items()}
        items = tuple_elements(expression) or (expression,)
        if not any(columns_of(item) <= unique.keys() for item in items):
            return None

        def rename(part: Expression) -> Expression | None:
            """Return the column reference under its unique name; None for other expressions."""
            if not isinstance(part, ColumnRef):
                return None
            return ColumnRef(part.type, unique.get(part.name, f"\0{part.name}"))

        return transform(expression, rename)


_UNKNOWN = "unknown"
"""What is cached of a column without bounds."""


def _has_groups(part: Part) -> bool:
    """Return whether the part is a file with more than one granule."""
    return part.granules > 1 and not part.inline


def _pruned(selection: PartSelection, keep: np.ndarray) -> PartSelection:
    """Return the selection with only the row groups that `keep` marks.

    `keep` has a value for each row group of the selection, not for each of the part.
    """
    if keep.all():
        return selection
    positions = np.flatnonzero(keep)
    groups = selection.groups
    return PartSelection(
        selection.part,
        selection.reader,
        tuple(int(at) if groups is None else groups[at] for at in positions),
        tuple(selection.group_rows[at] for at in positions),
        tuple(selection.group_offsets[at] for at in positions),
    )


VIRTUAL_VALUES = {
    "_part": lambda part: part.name,
    "_partition_id": lambda part: part.partition_id,
    "_block_number": lambda part: part.block_range.first,
}
"""The virtual columns with one value in each part, and that value; `_part_offset` has none."""


def _has_plain_bounds(data_type: DataType) -> bool:
    """Return whether a partition value, stored as JSON, converts to an Arrow value directly."""
    arrow = data_type.arrow
    return bool(
        pa.types.is_integer(arrow)
        or pa.types.is_date(arrow)
        or pa.types.is_timestamp(arrow)
        or pa.types.is_string(arrow)
    )
