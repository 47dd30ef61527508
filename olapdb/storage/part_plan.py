"""The facts about a part that is about to be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from olapdb.model.part import Blocks, Contribution, Part
from olapdb.model.schema import Table
from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class ProjectedRows:
    """The rows of a projection of one part: `shape` is a table with their columns and order;
    `column_types` are the ids and types of the part's columns that order or group them."""

    shape: Table
    rows: pa.Table
    query: str
    column_types: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Derived:
    """What a part holds besides its rows, by name: the values that its skip indexes are built of,
    and the rows of its projections. What is missing here, the part lacks."""

    indexes: Mapping[str, pa.Array] = field(default_factory=dict)
    projections: Mapping[str, ProjectedRows] = field(default_factory=dict)

    def without(self, name: str) -> Derived:
        """Return the indexes and projections without those of this name."""
        return Derived(
            {n: values for n, values in self.indexes.items() if n != name},
            {n: rows for n, rows in self.projections.items() if n != name},
        )


NOTHING_DERIVED = Derived()


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Everything about a new part except its rows.

    `inline_bytes_max` is the size in memory up to which the part stays in the catalog.
    `derived` has the inputs of the table's skip indexes and the rows of its projections.
    `codec` compresses the columns without a CODEC of their own, "" as the default does; an inline part has none.
    `keeps_rows`: the rows enter the column cache, unless they would fill much of it.
    `owns_rows`: no caller changes the memory of the rows, so that the column cache may keep them uncopied.
    A catalog that is rebuilt from footers needs three more. `replaces` are the ids of the parts whose rows this one
    holds. `swap` is the id of the replay whose manifest lists them. `after` is the table's newest block, if the part's
    own is new.
    """

    partition_id: str
    partition_value: tuple[object, ...]
    blocks: Blocks
    contributions: Sequence[Contribution] = ()
    level: int = 0
    inline_bytes_max: int = 0
    replaces: Sequence[str] = ()
    swap: str = ""
    after: int | None = None
    derived: Derived = NOTHING_DERIVED
    codec: str = ""
    owns_rows: bool = False
    keeps_rows: bool = True

    @staticmethod
    def replacing(part: Part, table: Table, derived: Derived = NOTHING_DERIVED) -> PartPlan:
        """Return the plan of a part that replaces `part` with the same blocks, partition, level,
        codec and contributions."""
        return PartPlan(
            part.partition_id,
            part.partition_value,
            part.block_range,
            part.contributions,
            part.level,
            inline_limit(table, (part,)),
            (part.id,),
            derived=derived,
            codec=part.codec,
        )


def inline_limit(table: Table, made_of: Iterable[Part]) -> int:
    """Return the largest size in bytes at which a part that replaces the parts `made_of` stays in
    the catalog: 0 if any of them with rows is a file, else the table's `inline_bytes_max`."""
    if not all(part.inline or not part.rows for part in made_of):
        return 0
    return int(table.setting("inline_bytes_max"))
