"""The facts about a part that is about to be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from olapdb.model.part import Blocks, Contribution, Part
from olapdb.model.schema import Table


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Everything about a new part except its rows.

    `inline_bytes_max` is the size in memory up to which the part stays in the catalog.
    `index_values` are the inputs of the table's skip indexes, by name; an index without input does
    not skip granules of this part.  For a catalog rebuilt from footers: `replaces` are the ids of
    the parts whose rows this one holds, `swap` is the id of the replay whose manifest lists them,
    `after` the table's newest block, if the part's own is new.
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
    index_values: Mapping[str, pa.Array] | None = None

    @staticmethod
    def replacing(
        part: Part, table: Table, index_values: Mapping[str, pa.Array] | None = None
    ) -> PartPlan:
        """Return the plan of a part that replaces `part` with the same blocks, partition, level and
        contributions."""
        return PartPlan(
            part.partition_id,
            part.partition_value,
            part.block_range,
            part.contributions,
            part.level,
            inline_limit(table, (part,)),
            (part.id,),
            index_values=index_values,
        )


def inline_limit(table: Table, made_of: Iterable[Part]) -> int:
    """Return the largest size in bytes at which a part that replaces the parts `made_of` stays in
    the catalog: 0 if any of them with rows is a file, else the table's `inline_bytes_max`."""
    if not all(part.inline or not part.rows for part in made_of):
        return 0
    return int(table.setting("inline_bytes_max"))
