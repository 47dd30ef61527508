"""The parts that a statement about partitions selects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from olapdb.errors import BadDataPartName, NoSuchDataPart
from olapdb.model.part import Part
from olapdb.model.requirements import PartsLive, PartsOfPartitionAre, Requirement
from olapdb.model.schema import Table
from olapdb.records import dataclass


def is_part_name(text: str) -> bool:
    """Return whether a text has the form of a part's name, `partition_first_last_level`; as in ClickHouse, a
    fourth number may follow."""
    return re.fullmatch(r"[^/]+(_[0-9]+){3,4}", text) is not None


@dataclass(frozen=True, slots=True)
class NamedParts:
    """The parts that a command names: a partition by its id, a part by its name, or (neither
    given) all."""

    partition: str | None = None
    part: str | None = None

    def choose(
        self, table: Table, parts: Sequence[Part], *, detached: bool = False
    ) -> tuple[Part, ...]:
        """Return the selected ones of these parts that have rows. Raises NoSuchDataPart, or
        BadDataPartName for detached parts, where no part has the name."""
        if self.part is not None:
            named = tuple(p for p in parts if p.rows and p.name == self.part)
            if not named:
                name = f"{table.database}.{table.name}"
                if detached:
                    raise BadDataPartName(
                        f"{name} has no detached part {self.part}.",
                        hint="system.detached_parts lists them.",
                    )
                kind = NoSuchDataPart if is_part_name(self.part) else BadDataPartName
                raise kind(
                    f"{name} has no part {self.part}.",
                    hint="system.parts lists them; a merge may have joined it with others.",
                )
            return named
        return tuple(p for p in parts if p.rows and self.partition in (None, p.partition_id))

    def requirements(
        self, table: Table, chosen: Sequence[Part], live: Sequence[Part]
    ) -> list[Requirement]:
        """Return the requirements that the command still selects exactly the chosen parts.

        `live` are the table's live parts. For a partition the requirement includes its parts
        without rows, which are never chosen.
        """
        if self.part is not None:
            return [PartsLive(table.id, tuple(sorted(part.id for part in chosen)))]
        by_partition: dict[str, list[str]] = {} if self.partition is None else {self.partition: []}
        for part in chosen:
            by_partition.setdefault(part.partition_id, [])
        for part in live:
            if part.partition_id in by_partition:
                by_partition[part.partition_id].append(part.id)
        return [
            PartsOfPartitionAre(table.id, partition_id, tuple(sorted(part_ids)))
            for partition_id, part_ids in by_partition.items()
        ]
