"""The catalog's list of damaged parts.  It is not versioned: it tells of the disk, as it is now."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.writer import Writer
from olapdb.model.damage import Damage


class DamagedParts:
    """What the catalog knows; where it cannot be written, what this process has met beside."""

    def __init__(self, connections: Connections, writer: Writer, read_only: bool) -> None:
        self._connections, self._writer, self._read_only = connections, writer, read_only
        self._own: dict[str, Damage] = {}

    def all(self) -> tuple[Damage, ...]:
        with self._connections.reading() as connection:
            rows = sql.all_damaged(connection).fetchall()
        found = {row[0]: Damage(*row) for row in rows}
        return tuple({**self._own, **found}.values())

    def note(self, damaged: Iterable[Damage]) -> None:
        """What is known already stays as it was noted first."""
        new = {one.part_id: one for one in damaged}
        if self._read_only:
            self._own = {**new, **self._own}
            return
        with self._writer.housekeeping("note damaged parts") as connection:
            sql.forget_damaged_of_dropped(connection)
            known = {row[0] for row in sql.all_damaged(connection)}
            for one in new.values():
                if one.part_id not in known:
                    sql.insert_damaged(
                        connection,
                        part_id=one.part_id,
                        table_id=one.table_id,
                        part=one.part,
                        reason=one.reason,
                        found_ms=one.found_ms,
                    )

    def forget(self, part_ids: Collection[str]) -> None:
        self._own = {key: one for key, one in self._own.items() if key not in part_ids}
        if not self._read_only:
            with self._writer.housekeeping("forget damaged parts") as connection:
                sql.forget_damaged(connection, part_ids=json.dumps(sorted(part_ids)))
