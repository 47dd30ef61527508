"""A replay's note beside the parts that it writes: what of the target they stand for.

See `olapdb.storage.replay_manifest`: nothing but a catalog that is rebuilt from footers reads it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from olapdb.errors import OperationalError
from olapdb.model.changes import AddPart, Change
from olapdb.model.part import Part
from olapdb.runtime.failpoints import failpoint
from olapdb.runtime.services import Services
from olapdb.storage.replay_manifest import (
    ManifestFile,
    ReplacedSlice,
    manifest_path,
    write_manifest,
)
from olapdb.storage.writer import DATA_FOLDER, part_path


@dataclass(frozen=True)
class ReplayManifest:
    """Of one attempt of a replay of the table `table_id`."""

    services: Services
    table_id: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def path(self) -> str:
        return manifest_path(DATA_FOLDER, self.table_id, self.services.lease_id, self.id)

    @property
    def _is_told(self) -> bool:
        """No catalog is made anew of what lies in memory."""
        return self.services.store.local_path("") is not None

    def begin(self) -> None:
        """Before the first part is written. Flushed, so that none of them can outlive it."""
        if self._is_told:
            write_manifest(self.services.store, ManifestFile(self.path))
            self.services.store.sync()
            failpoint("replay.begun")

    def complete(self, new: Iterable[Change], removed: Iterable[Part]) -> None:
        """Before the commit, which makes the parts among `new` live and ends those `removed`.

        A partition without a new file is not told of: what lies in the catalog is lost with it,
        and then the older rows are better than none."""
        if not self._is_told:
            return
        gone: dict[str, list[str]] = {}
        for part in removed:
            if part.path == _own_path(part):  # else another table's, which the footer names
                gone.setdefault(part.partition_id, []).append(part.path)
        made: dict[str, list[str]] = {}
        for change in new:
            if not isinstance(change, AddPart) or change.part.table_id != self.table_id:
                continue
            if change.part.path:
                made.setdefault(change.part.partition_id, []).append(change.part.path)
        slices = tuple(
            ReplacedSlice(tuple(sorted(paths)), tuple(sorted(gone[partition])))
            for partition, paths in sorted(made.items())
            if partition in gone
        )
        if slices:
            write_manifest(self.services.store, ManifestFile(self.path, slices))
        else:  # of small parts, say, which lie in the catalog: there is nothing to tell
            self.services.store.delete(self.path)
        failpoint("replay.noted")

    def forget(self) -> None:
        """After the parts were discarded; vacuum removes what cannot be deleted now."""
        if self._is_told:
            with suppress(OperationalError):
                self.services.store.delete(self.path)


def _own_path(part: Part) -> str:
    lease_id = part.path.rpartition("/")[2].partition("-")[0]
    return part_path(part.table_id, lease_id, part.id)
