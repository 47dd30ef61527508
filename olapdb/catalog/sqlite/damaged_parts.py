"""The catalog's list of damaged parts. It is not versioned: it describes the present state of the
disk."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.connections import Connections
from olapdb.catalog.sqlite.writer import CatalogWriter
from olapdb.model.damage import Damage


class DamagedParts:
    """The list in the catalog and, if the catalog is read-only, those that this process found."""

    def __init__(self, connections: Connections, writer: CatalogWriter, read_only: bool) -> None:
        self._connections, self._writer, self._read_only = connections, writer, read_only
        self._own: dict[str, Damage] = {}

    def all(self) -> tuple[Damage, ...]:
        """Return the list; the catalog's entries take precedence over this process's own."""
        with self._connections.reading() as connection:
            rows = sql.all_damaged(connection).fetchall()
        stored = {row[0]: Damage(*row) for row in rows}
        return tuple({**self._own, **stored}.values())

    def note(self, damaged: Iterable[Damage]) -> None:
        """Add parts to the list, and delete the entries of parts that were dropped.

        A part that is in the list keeps its entry. With a read-only catalog only this process
        remembers the parts."""
        new = {damage.part_id: damage for damage in damaged}
        if self._read_only:
            self._own = {**new, **self._own}
            return
        with self._writer.housekeeping("note damaged parts") as connection:
            sql.clear_damaged_of_dropped(connection)
            known_ids = {row[0] for row in sql.all_damaged(connection)}
            for damage in new.values():
                if damage.part_id not in known_ids:
                    sql.insert_damaged(
                        connection,
                        part_id=damage.part_id,
                        table_id=damage.table_id,
                        part=damage.part,
                        reason=damage.reason,
                        found_ms=damage.found_ms,
                    )

    def forget(self, part_ids: Collection[str]) -> None:
        """Remove parts from the list."""
        self._own = {key: damage for key, damage in self._own.items() if key not in part_ids}
        if not self._read_only:
            with self._writer.housekeeping("forget damaged parts") as connection:
                sql.clear_damaged(connection, part_ids=json.dumps(sorted(part_ids)))
