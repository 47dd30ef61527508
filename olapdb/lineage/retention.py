"""Slices that are frozen because rows left by retention, and their frozen keys (rule 4).

Rows that leave by retention (TTL, DROP PARTITION with `retain`) stay in the views that have
processed them.  The keys of a target that they reached are known as bounds of its sorting key:

    source (month)   202401 leaves       made keys  (2024-01-01, 'a') … (2024-01-31, 'z')
    target (year)    2024                frozen     those, item by item
                                         the rest   is compared and recomputed as usual

A key within the bounds is frozen: neither compared, since its source rows are gone, nor replaced.
Frozen rows are the rows of the target that have a frozen key.
Bounds may be wider than the reached keys, never narrower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field, replace

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.commit.origin import CommitOrigin
from olapdb.engine.layout import TableLayout
from olapdb.ingest.block_parts import layout_of
from olapdb.ingest.trigger import TriggerContext
from olapdb.lineage.invalidation import StaleSlices
from olapdb.model.changes import Change, Retain
from olapdb.model.fingerprints import check_is_current
from olapdb.model.part import BlockRange, Part
from olapdb.model.schema import MaterializedView, Table
from olapdb.model.snapshot import Snapshot
from olapdb.model.view_state import (
    ESCAPED,
    Cause,
    FrozenVerdict,
    KeyBounds,
    KeyValue,
    Retained,
    RetainedSlice,
)
from olapdb.records import dataclass

DISCARD_HINT = "SETTINGS discard_retained = 1 gives them up."


@dataclass(frozen=True, slots=True)
class FrozenKeys:
    """The frozen keys of one target: bounds by partition (None: of every partition); bounds None
    freeze the partition as a whole.  Plain data."""

    slices: tuple[tuple[str | None, KeyBounds | None], ...] = ()

    @staticmethod
    def of(snapshot: Snapshot, target_id: str) -> FrozenKeys:
        """Return the frozen keys of all views that write the target: a merge combines rows of
        one key from any view."""
        slices: dict[tuple[str | None, KeyBounds | None], None] = {}
        for view in snapshot.views_into(target_id):
            for retained in snapshot.retained(view.id):
                slices.update(((s.partition, s.bounds), None) for s in retained.slices)
        return FrozenKeys(tuple(slices))

    def __bool__(self) -> bool:
        return bool(self.slices)

    def in_partition(self, partition: str) -> list[KeyBounds | None]:
        """Return the bounds that apply to the partition; None freezes all of it."""
        return [bounds for p, bounds in self.slices if p in (None, partition)]

    def holds(self, partition: str) -> bool:
        """Return whether any key of the partition is frozen."""
        return bool(self.in_partition(partition))

    def holds_all(self, partition: str) -> bool:
        """Return whether every key of the partition is frozen."""
        return None in self.in_partition(partition)

    def frozen_mask(self, layout: TableLayout, partition: str, rows: pa.Table) -> pa.Array:
        """Return for each row of the target's partition whether its key is frozen; never NULL."""
        boxes = self.in_partition(partition)
        if not boxes or not rows.num_rows:
            return pa.repeat(pa.scalar(False), rows.num_rows)
        if None in boxes:
            return pa.repeat(pa.scalar(True), rows.num_rows)
        keys = [_orderable(key) for key in layout.sorting_keys(rows)]
        inside = pa.repeat(pa.scalar(False), rows.num_rows)
        for bounds in boxes:
            assert bounds is not None
            inside = pc.or_(inside, _in_bounds(bounds, keys, rows.num_rows))
        return inside

    def without_frozen(self, layout: TableLayout, partition: str, rows: pa.Table) -> pa.Table:
        """Return the rows of the partition whose keys are not frozen."""
        if not self.holds(partition):
            return rows
        return rows.filter(pc.invert(self.frozen_mask(layout, partition, rows)))


def key_bounds(layout: TableLayout, rows: pa.Table) -> KeyBounds | None:
    """Return the bounds of the rows' sorting keys; None for a table without one, or without
    rows."""
    if not layout.table.sorting_key or not rows.num_rows:
        return None
    low: list[KeyValue] = []
    high: list[KeyValue] = []
    nulls: list[bool] = []
    for values in layout.sorting_keys(rows):
        ordered = _orderable(values)
        nulls.append(values.null_count > 0)
        if ordered is None:
            low.append(None)
            high.append(None)
            continue
        ends = pc.min_max(ordered)
        low.append(_encode_bound(ends["min"]))
        high.append(_encode_bound(ends["max"]))
    return KeyBounds(tuple(low), tuple(high), tuple(nulls))


def _encode_bound(end: pa.Scalar) -> KeyValue:
    """Return the end of a range as a value to store; text as UTF-8 with escapes."""
    if end.is_valid and _is_text(end.type):
        return str(bytes(end.as_buffer()), "utf-8", ESCAPED)
    value: KeyValue = end.as_py()
    return value


def _decode_bound(stored: int | str, arrow: pa.DataType) -> pa.Scalar:
    """Return a stored end of a range as an Arrow scalar, the inverse of `_encode_bound`."""
    return pa.scalar(stored.encode("utf-8", ESCAPED) if isinstance(stored, str) else stored, arrow)


def _orderable(values: pa.Array) -> pa.Array | None:
    """Return whole numbers, times and texts as values that bounds can describe; None for other
    types."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.view(pa.int32())
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        return values.view(pa.int64())
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8())
    return values if pa.types.is_integer(kind) or _is_text(kind) else None


def _is_text(arrow: pa.DataType) -> bool:
    """Return whether the type is an Arrow string, of either offset width."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def _in_bounds(bounds: KeyBounds, keys: list[pa.Array | None], rows: int) -> pa.Array:
    """Return for each row whether its key is within the bounds. Items added to the key later are
    unbounded."""
    inside = pa.repeat(pa.scalar(True), rows)
    items = zip(keys, bounds.low, bounds.high, bounds.nulls, strict=False)
    for values, low, high, nulls in items:
        if values is None:
            continue
        if low is None or high is None:
            own = pc.is_null(values)
        else:
            if _is_text(values.type):
                values = values.cast(pa.binary())
            try:
                ends = _decode_bound(low, values.type), _decode_bound(high, values.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                continue  # the column's type was changed since: not bounded
            own = pc.and_(pc.greater_equal(values, ends[0]), pc.less_equal(values, ends[1]))
        inside = pc.and_(inside, pc.fill_null(own, nulls))
    return inside


# --- slices that rows leave -----------------------------------------------------------------------


@dataclass
class FrozenSlices(StaleSlices):
    """The slices that rows leaving by retention reached, with the bounds of their keys."""

    bounds: dict[str | None, list[KeyBounds | None]] = field(default_factory=dict)

    @staticmethod
    def of(view: MaterializedView) -> FrozenSlices:
        """Return an empty set of slices of the view."""
        return FrozenSlices(view, {}, {})

    def on_slice_rows(
        self, target: Table, partition: str, rows: pa.Table, context: TriggerContext
    ) -> None:
        """Add the bounds of the piece's keys."""
        self.bounds.setdefault(partition, []).append(key_bounds(layout_of(target, context), rows))

    def add_all(self, rows: int) -> None:
        """Add the whole target, of `rows` rows: every key of it is then frozen."""
        super().add_all(rows)
        self.bounds.setdefault(None, []).append(None)

    def slices(self, snapshot: Snapshot) -> tuple[RetainedSlice, ...]:
        """Return the slices to retain, each with its bounds and the verdict at the snapshot."""
        return tuple(
            RetainedSlice(
                partition,
                rows,
                joined_bounds(self.bounds.get(partition, [None])),
                frozen_verdict(self.view, snapshot, partition),
            )
            for partition, rows in self.rows.items()
        )


@dataclass
class WatchedSlices(StaleSlices):
    """Stale slices that also collect in `stale_frozen` the slices whose frozen keys the change
    reaches: the verdict on those keys becomes stale."""

    frozen: FrozenKeys = field(default_factory=FrozenKeys)
    stale_frozen: set[str | None] = field(default_factory=set)

    def on_slice_rows(
        self, target: Table, partition: str, rows: pa.Table, context: TriggerContext
    ) -> None:
        """Add the partition to `stale_frozen` where one of the rows has a frozen key."""
        if partition in self.stale_frozen or not self.frozen.holds(partition):
            return
        if pc.any(self.frozen.frozen_mask(layout_of(target, context), partition, rows)).as_py():
            self.stale_frozen.add(partition)

    def add_all(self, rows: int) -> None:
        """Add all of the target, frozen keys included."""
        super().add_all(rows)
        if self.frozen:
            self.stale_frozen.add(None)

    def add_partitions(self, partitions: Collection[str] | None, rows: int) -> None:
        """Add these slices; each one with frozen keys counts as hit."""
        super().add_partitions(partitions, rows)
        if partitions is None and self.frozen:
            self.stale_frozen.add(None)
        self.stale_frozen.update(
            partition for partition in partitions or () if self.frozen.holds(partition)
        )


SELF_RECORDED_CAUSES: frozenset[Cause] = frozenset(
    (
        "DELETE",
        "TTL",
        "DROP PARTITION",
        "DETACH PARTITION",
        "MOVE PARTITION",
        "REPLACE PARTITION",
        "QUARANTINE PART",
        "UPSTREAM REPLAY",
    )
)
"""Causes of changes whose own commit records which frozen keys it reached."""


def frozen_keys_stale(
    view: MaterializedView, snapshot: Snapshot, partitions: Collection[str | None]
) -> list[Change]:
    """Return changes that mark the frozen keys of these slices (None: of all) as stale."""
    changes: list[Change] = []
    for record in snapshot.retained(view.id):
        slices = tuple(
            replace(s, rows=0, verdict="stale")
            for s in record.slices
            if s.verdict in ("proven", "covered")
            and (None in partitions or s.partition is None or s.partition in partitions)
        )
        if slices:
            changes.append(Retain(replace(record, rows=0, bytes=0, parts=0, slices=slices)))
    return changes


def joined_bounds(bounds_list: Iterable[KeyBounds | None]) -> KeyBounds | None:
    """Return the narrowest bounds around all of them; None as soon as one is None."""
    box: KeyBounds | None = None
    for bounds in bounds_list:
        if bounds is None:
            return None
        box = bounds if box is None else box.joined(bounds)
    return box


def retained_record(
    view: MaterializedView,
    side: str,
    parts: Iterable[Part],
    rows: int,
    slices: tuple[RetainedSlice, ...],
    origin: CommitOrigin,
    cause: Cause,
) -> Retained:
    """Return the ledger's row about `rows` rows that leave the partition of `parts`.

    `side` is "source" or "target", the table that they leave. There must be at least one part.
    """
    left_parts = list(parts)
    total_rows = sum(part.rows for part in left_parts) or 1
    return Retained(
        view.id,
        "target" if side == "target" else "source",
        left_parts[0].partition_id,
        rows,
        sum(part.bytes for part in left_parts) * rows // total_rows,
        len(left_parts),
        BlockRange(
            min(p.block_range.first for p in left_parts),
            max(p.block_range.last for p in left_parts),
        ),
        slices,
        cause,
        origin.statement,
        origin.query_id,
        origin.now_ms(),
    )


_OTHER_DEFINITIONS = frozenset(
    ("DIMENSION CHANGE", "FUNCTION CHANGED", "MODIFY QUERY", "UPDATE", "UPSTREAM REBUILD")
)
"""Causes after which a view computes other rows from the same source rows."""


def is_lineage_unknown(view: MaterializedView, snapshot: Snapshot) -> bool:
    """Return whether the target may hold rows of another definition of the view, or of another
    state of a dimension. Running the view does not show then which keys the source rows reached."""
    if view.unprovable and view.dimension_ids:
        return True
    return any(
        invalidation.cause in _OTHER_DEFINITIONS for invalidation in snapshot.invalidations(view.id)
    )


def frozen_verdict(
    view: MaterializedView, snapshot: Snapshot, partition: str | None
) -> FrozenVerdict:
    """Return the current verdict on the slice, for its frozen keys to keep.

    It is "stale" if an invalidation is about the slice (VIEW FAILED apart), "proven" or "different"
    by its current check, else "covered".
    """
    for invalidation in snapshot.invalidations(view.id):
        if invalidation.cause != "VIEW FAILED" and (
            partition is None or invalidation.target_partition in (None, partition)
        ):
            return "stale"
    if partition is None:
        return "covered"
    for check in snapshot.checks(view.id):
        if check.target_partition == partition and check_is_current(check, view, snapshot):
            return "proven" if check.verdict == "equal" else "different"
    return "covered"
