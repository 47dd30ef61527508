"""system.detached_parts and view_retained; how a partition's value is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from olapdb.execute.layout import TableLayout
from olapdb.functions import display
from olapdb.model.part import Part, detached_table
from olapdb.model.schema import MaterializedView, Table
from olapdb.system.registry import Row, SystemContext, SystemTable, moment
from olapdb.types import (
    DATETIME,
    STRING,
    UINT32,
    UINT64,
    DataType,
    DateTime64,
    Decimal,
    Float,
    Integer,
    Nullable,
    plain,
)

_MAYBE_STRING: DataType = Nullable(STRING)


class PartitionTexts:
    """The values of a table's partitions as ClickHouse shows them: 202401, 2024-01-05, eu,
    ('eu',202401), tuple()."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[tuple[object, ...], str] = {}

    def of(self, part: Part) -> str:
        value = part.partition_value
        if not value:
            return "tuple()"
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._text(value)
        return found

    def _text(self, value: tuple[object, ...]) -> str:
        types = [e.type for e in TableLayout(self._table).partition_expressions]
        if len(types) != len(value):
            return str(value)
        texts = [_one(v, t, quoted=len(types) > 1) for v, t in zip(value, types, strict=True)]
        return texts[0] if len(texts) == 1 else f"({','.join(texts)})"


def _one(value: object, data_type: DataType, *, quoted: bool) -> str:
    """A value as the catalog keeps it: dates are days, timestamps ticks."""
    if value is None:
        return "NULL"
    arrow = plain(data_type).arrow
    if pa.types.is_date32(arrow):
        array = pa.array([value], pa.int32()).view(arrow)
    elif pa.types.is_timestamp(arrow):
        array = pa.array([value], pa.int64()).view(arrow)
    else:
        try:
            array = pa.array([value], arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return str(value)
    (text,) = display(array, plain(data_type))
    is_number = isinstance(plain(data_type), Integer | Float | Decimal)
    if is_number or not quoted:
        return text or ""
    escaped = (text or "").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _detached(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        if not isinstance(item, Table):
            continue
        for part in context.snapshot.parts(detached_table(item.id)):
            blocks = part.block_range
            yield (
                item.database, item.name, part.partition_id, part.name, part.bytes,
                moment(part.created_ms), "default", part.path, part.detached_reason, blocks.first,
                blocks.last,
                part.level, part.rows,
            )  # fmt: skip


def _retained(context: SystemContext) -> Iterator[Row]:
    for item in context.snapshot.objects():
        if not isinstance(item, MaterializedView):
            continue
        for one in context.snapshot.retained(item.id):
            for each in one.slices:
                yield (
                    item.database, item.name, one.side, one.partition, one.rows, each.partition,
                    each.rows, each.verdict, one.cause, one.statement, one.query_id,
                    moment(one.since_ms), one.commit,
                )  # fmt: skip


TABLES = (
    SystemTable(
        "detached_parts",
        (
            ("database", STRING), ("table", STRING), ("partition_id", _MAYBE_STRING),
            ("name", STRING), ("bytes_on_disk", UINT64), ("modification_time", DATETIME),
            ("disk", STRING), ("path", STRING), ("reason", _MAYBE_STRING),
            ("min_block_number", UINT64), ("max_block_number", UINT64), ("level", UINT32),
            ("rows", UINT64),
        ),
        _detached,
        "Parts that were detached and not attached again.",
    ),
    SystemTable(
        "view_retained",
        (
            ("database", STRING), ("view", STRING), ("side", STRING), ("partition_id", STRING),
            ("rows", UINT64), ("target_partition_id", _MAYBE_STRING), ("target_rows", UINT64),
            ("verdict", STRING), ("cause", STRING), ("statement", STRING), ("query_id", STRING),
            ("since", DateTime64(3)), ("commit", UINT64),
        ),
        _retained,
        "Slices of views that are frozen, since rows left by retention, with their last verdict.",
    ),
)  # fmt: skip
