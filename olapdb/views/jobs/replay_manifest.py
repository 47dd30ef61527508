"""The manifest of a replay, written beside its parts: the files that they replace.

Only rebuilding a lost catalog from part footers reads it, see `olapdb.storage.replay_manifest`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field

from olapdb.errors import OperationalError
from olapdb.model.changes import AddPart, Change
from olapdb.model.part import Part
from olapdb.records import dataclass
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
    """The manifest of one attempt to replay the table `table_id`."""

    services: Services
    table_id: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def path(self) -> str:
        """Return the path of the manifest's file in the store."""
        return manifest_path(DATA_FOLDER, self.table_id, self.services.lease_id, self.id)

    @property
    def _is_written(self) -> bool:
        """Return whether the replay writes a manifest: a catalog cannot be rebuilt from a store in
        memory."""
        return self.services.store.local_path("") is not None

    def begin(self) -> None:
        """Write the manifest as in progress, before the first part. Sync it, so that no part
        outlives it."""
        if self._is_written:
            write_manifest(self.services.store, ManifestFile(self.path))
            self.services.store.sync()
            failpoint("replay.begun")

    def complete(self, new: Iterable[Change], removed: Iterable[Part]) -> None:
        """List the replaced files, before the commit that adds the parts among `new` and removes
        `removed`.

        A partition without a new file is omitted. Its new parts are inline in the catalog, so a
        lost catalog loses them too; then the replaced rows are better than none."""
        if not self._is_written:
            return
        removed_paths: dict[str, list[str]] = {}
        for part in removed:
            if part.path == _own_path(part):  # not a file that another table wrote
                removed_paths.setdefault(part.partition_id, []).append(part.path)
        new_paths: dict[str, list[str]] = {}
        for change in new:
            if not isinstance(change, AddPart) or change.part.table_id != self.table_id:
                continue
            if change.part.path:
                new_paths.setdefault(change.part.partition_id, []).append(change.part.path)
        slices = tuple(
            ReplacedSlice(tuple(sorted(paths)), tuple(sorted(removed_paths[partition])))
            for partition, paths in sorted(new_paths.items())
            if partition in removed_paths
        )
        if slices:
            write_manifest(self.services.store, ManifestFile(self.path, slices))
        else:  # no file replaces another, for example because the new parts are inline
            self.services.store.delete(self.path)
        failpoint("replay.noted")

    def forget(self) -> None:
        """Delete the manifest once the parts are discarded; vacuum removes it if that fails."""
        if self._is_written:
            with suppress(OperationalError):
                self.services.store.delete(self.path)


def _own_path(part: Part) -> str:
    """Return the path of the part's file if its own table wrote it."""
    lease_id = part.path.rpartition("/")[2].partition("-")[0]
    return part_path(part.table_id, lease_id, part.id)
